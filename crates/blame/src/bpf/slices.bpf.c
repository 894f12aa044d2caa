/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/* Records every context switch on the traced CPUs, and its reason.
 *
 * Each CPU has a slot and a list of records, of which none is overwritten: switches beyond
 * its size are counted. User space reads both through mmap, once, at the end. The reason is
 * derived from the order of events, never from the time between them. A slot is written to
 * with its CPU's run queue locked (wake-ups, requests, switches) or by that CPU itself
 * (ticks, a task that wakes itself): no atomic access is needed. */
#include "kernel.h"
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#define CPUS 4096
#define COMM 16
#define TASKS 32768
/* The number of recent wake-ups that are stored, a power of two. */
#define WOKEN 16

#ifdef __TARGET_ARCH_arm64
#define SCHED_YIELD 124
#else
#define SCHED_YIELD 24
#endif

/* The reason: `recording::End`, in its order. */
enum end {
	TICK,
	WAKEUP,
	YIELD,
	SLEEP,
	OTHER,
};

/* The origin of the request that the running task be switched. */
enum asked {
	NOBODY,
	BY_TICK,
	BY_ELSE,
};

/* The state of the current tick. */
enum tick {
	NONE,
	MAY_ASK,
	MAY_NOT, /* requested before the tick */
};

struct slot {
	__u64 seen; /* the number of switches */
	__u32 runs; /* the TID of the task that was switched to, plus one */
	__u32 woken; /* tasks woken on this CPU since then */
	__u8 tick; /* enum tick */
	__u8 asked; /* enum asked */
	__u8 flag; /* the bit of the task's `thread_info.flags` that the request set */
	__u8 spare[45];
	__u32 last[WOKEN]; /* the TIDs of the last woken tasks */
};

/* A task that left a CPU; it ran there since the record before. */
struct record {
	__u64 end; /* CLOCK_MONOTONIC */
	__u32 task; /* its TID; above its 24 bits MISSED and enum end */
	__u32 born;
};

#define WHY_SHIFT 24
/* The switch to it was not traced. */
#define MISSED (1U << 31)

struct who {
	__u32 tid;
	__u32 born; /* TIDs are reused; 0 for the idle task */
};

struct task {
	char name[COMM];
	__u8 is_stopper;
	__u8 spare[7];
};

/* The capacity in records of each CPU. */
const volatile __u32 room = 1;
/* The index of each traced CPU, plus one; 0 for others. */
const volatile __u16 places[CPUS];
/* The functions of the timers that are ticks; 0: none. */
const volatile __u64 ticks[2];

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct slot);
} slots SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct record);
} records SEC(".maps");

/* Tasks that were switched to, or that left a CPU without a recorded switch to them. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, TASKS);
	__type(key, struct who);
	__type(value, struct task);
} tasks SEC(".maps");

/* Since Linux 6.17 the kernel traces requests for a switch (include/trace/events/sched.h).
 * Before, the flags of a request are read before and after each tick: TIF_NEED_RESCHED,
 * which has always been the same bit, and on x86 the lazy one: since 6.13 (and in 6.6 with
 * the real-time patches) the next bit, which is otherwise for debuggers; until 6.5, with the
 * patches, a bit of its own. */
typedef void (*btf_trace_sched_set_need_resched_tp)(void *, struct task_struct *, int, int);
#ifdef __TARGET_ARCH_arm64
#define NEED_RESCHED (1 << 1)
#define OWN_LAZY 0
#else
#define NEED_RESCHED (1 << 3 | 1 << 4)
#define OWN_LAZY (1 << 19)
#endif

static __always_inline int has_resched_event(void)
{
	return bpf_core_type_exists(btf_trace_sched_set_need_resched_tp);
}

/* Without that event: whether a switch of the current thread is requested. */
static __always_inline int is_asked(void)
{
	struct task_struct *current = bpf_get_current_task_btf();
	__u64 flags = NEED_RESCHED;

	if (bpf_core_field_exists(current->thread_info.preempt_lazy_count))
		flags |= OWN_LAZY;
	return (current->thread_info.flags & flags) != 0;
}

static __always_inline __u32 place_of(__u32 cpu)
{
	return cpu < CPUS ? places[cpu] : 0;
}

static __always_inline struct slot *slot_of(__u32 place)
{
	__u32 key = place - 1;

	return place ? bpf_map_lookup_elem(&slots, &key) : 0;
}

static __always_inline struct slot *slot_here(void)
{
	return slot_of(place_of(bpf_get_smp_processor_id()));
}

static __always_inline void begin_tick(struct slot *slot)
{
	slot->tick = MAY_ASK;
	if (has_resched_event())
		return;
	if (is_asked())
		slot->tick = MAY_NOT;
	else
		slot->asked = NOBODY;
}

static __always_inline void end_tick(struct slot *slot)
{
	if (!has_resched_event() && slot->tick == MAY_ASK && is_asked())
		slot->asked = BY_TICK;
	slot->tick = NONE;
}

static __always_inline int end_here(void)
{
	struct slot *slot = slot_here();

	if (slot)
		end_tick(slot);
	return 0;
}

/* (hrtimer, now) */
SEC("raw_tp/hrtimer_expire_entry")
int timer_begins(struct bpf_raw_tracepoint_args *args)
{
	struct hrtimer *timer = (void *)args->args[0];
	struct slot *slot = slot_here();
	__u64 function;

	if (!slot)
		return 0;
	function = (__u64)BPF_CORE_READ(timer, function);
	if (function == ticks[0] || function == ticks[1])
		begin_tick(slot);
	return 0;
}

SEC("raw_tp/hrtimer_expire_exit")
int timer_ends(struct bpf_raw_tracepoint_args *args)
{
	return end_here();
}

/* If the timer is unknown, an interrupt of the local timer without a wake-up counts as a
 * tick. */
SEC("raw_tp")
int vector_begins(struct bpf_raw_tracepoint_args *args)
{
	struct slot *slot = slot_here();

	if (slot)
		begin_tick(slot);
	return 0;
}

SEC("raw_tp")
int vector_ends(struct bpf_raw_tracepoint_args *args)
{
	return end_here();
}

/* (task, its CPU, the flag): a switch is requested that was not requested before. With two
 * such flags the urgent one may follow the lazy one, which was the first request. A request
 * that was cleared without a switch, as no task came before this one, is forgotten. */
SEC("raw_tp")
int asked_for(struct bpf_raw_tracepoint_args *args)
{
	struct task_struct *task = (void *)args->args[0];
	__u32 cpu = args->args[1];
	struct slot *slot = slot_of(place_of(cpu));

	if (!slot || !has_resched_event())
		return 0;
	if (slot->asked && BPF_CORE_READ(task, thread_info.flags) >> (slot->flag & 63) & 1)
		return 0;
	slot->flag = args->args[2];
	slot->asked = slot->tick && cpu == bpf_get_smp_processor_id() ? BY_TICK : BY_ELSE;
	return 0;
}

/* (woken), on any CPU; also at sched_wakeup_new. The task's CPU is the one that it will run
 * on. A request after a wake-up in a tick is the woken task's, not the tick's. */
SEC("raw_tp/sched_wakeup")
int woken(struct bpf_raw_tracepoint_args *args)
{
	struct task_struct *task = (void *)args->args[0];
	__u32 cpu = BPF_CORE_READ(task, thread_info.cpu);
	struct slot *slot = slot_of(place_of(cpu));

	if (!slot)
		return 0;
	slot->last[slot->woken & (WOKEN - 1)] = BPF_CORE_READ(task, pid);
	slot->woken += 1;
	if (!slot->tick || cpu != bpf_get_smp_processor_id())
		return 0;
	if (has_resched_event())
		slot->asked = slot->asked ? BY_ELSE : NOBODY;
	else if (is_asked())
		slot->tick = MAY_NOT;
	return 0;
}

/* Whether a task was woken on this CPU since the switch to the one that leaves it. */
static __always_inline int was_woken(struct slot *slot, __u32 tid)
{
	int at;

#pragma unroll
	for (at = 0; at < WOKEN; at++)
		if (at < slot->woken && slot->last[at] == tid)
			return 1;
	return 0;
}

/* Whether the current thread entered the kernel with sched_yield(2). */
static __always_inline int yields(struct task_struct *current)
{
	struct pt_regs *entered;

	if (current->flags & PF_KTHREAD)
		return 0;
	entered = (void *)bpf_task_pt_regs(current);
#ifdef __TARGET_ARCH_arm64
	return entered->syscallno == SCHED_YIELD;
#else
	return entered->orig_ax == SCHED_YIELD;
#endif
}

static __always_inline enum end end_of(struct task_struct *current, struct slot *slot,
				       int is_preempted, __u64 state, __u32 next)
{
	if (!is_preempted && state)
		return SLEEP;
	if (!is_preempted && yields(current))
		return YIELD;
	if (slot->asked == BY_TICK && current->pid)
		return TICK;
	return was_woken(slot, next) ? WAKEUP : OTHER;
}

/* Whether it is `migration/CPU`, which migrates other tasks. */
static __always_inline int is_stopper(struct task_struct *task, const char *name)
{
	return name[0] == 'm' && name[1] == 'i' && name[2] == 'g' && name[9] == '/' &&
	       BPF_CORE_READ(task, flags) & PF_KTHREAD;
}

/* Stores its name; whether it is a stopper. */
static __always_inline int meet(struct who who, struct task_struct *task)
{
	struct task *known = bpf_map_lookup_elem(&tasks, &who);
	struct task made = {};

	if (known)
		return known->is_stopper;
	BPF_CORE_READ_INTO(&made.name, task, comm);
	made.is_stopper = is_stopper(task, made.name);
	bpf_map_update_elem(&tasks, &who, &made, BPF_NOEXIST);
	return made.is_stopper;
}

static __always_inline void publish(struct slot *slot)
{
#ifdef __TARGET_ARCH_arm64
	/* The only instruction with a memory barrier that all versions of BPF have. */
	__sync_fetch_and_add(&slot->seen, 1);
#else
	barrier();
	*(volatile __u64 *)&slot->seen = slot->seen + 1;
#endif
}

static __always_inline void write(struct slot *slot, __u32 place, __u64 now, __u32 task,
				  __u32 born)
{
	__u32 key = (place - 1) * room + (__u32)slot->seen;
	struct record *record;

	if (slot->seen < room) {
		record = bpf_map_lookup_elem(&records, &key);
		if (!record)
			return;
		record->end = now;
		record->task = task;
		record->born = born;
	}
	publish(slot);
}

/* (preempted, previous, next, the previous one's state: 0 if it could have continued) */
SEC("raw_tp/sched_switch")
int switched(struct bpf_raw_tracepoint_args *args)
{
	struct task_struct *current = bpf_get_current_task_btf();
	struct task_struct *next = (void *)args->args[2];
	__u32 place = place_of(bpf_get_smp_processor_id());
	struct slot *slot = slot_of(place);
	__u32 tid = current->pid;
	struct who own = { .tid = tid };
	struct who who = {};
	__u32 missed;
	enum end end;

	if (!slot)
		return 0;
	if (tid)
		own.born = current->start_time;
	missed = slot->runs == tid + 1 ? 0 : MISSED;
	/* All others were stored when they were switched to. */
	if (missed && tid)
		meet(own, current);
	who.tid = BPF_CORE_READ(next, pid);
	end = end_of(current, slot, args->args[0], args->args[3], who.tid);
	if (who.tid) {
		who.born = BPF_CORE_READ(next, start_time);
		if (meet(who, next) && end != SLEEP)
			end = OTHER;
	}
	write(slot, place, bpf_ktime_get_ns(), tid | end << WHY_SHIFT | missed, own.born);
	slot->runs = who.tid + 1;
	slot->woken = 0;
	slot->asked = NOBODY;
	return 0;
}

/* (task, its new name) */
SEC("raw_tp/task_rename")
int renamed(struct bpf_raw_tracepoint_args *args)
{
	struct task_struct *task = (void *)args->args[0];
	struct who who = {
		.tid = BPF_CORE_READ(task, pid),
		.born = BPF_CORE_READ(task, start_time),
	};
	struct task *known = bpf_map_lookup_elem(&tasks, &who);

	if (known)
		bpf_probe_read_kernel_str(known->name, COMM, (void *)args->args[1]);
	return 0;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
