/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/* Every switch between tasks on the watched CPUs, and why each task had to go.
 *
 * Each CPU has a slot and a list of records that nothing is overwritten in: what comes when it
 * is full is counted. User space reads both through mmap, once, at the end. What decides is the
 * order of things, never how far apart they are. A slot is written to by whoever has its CPU's
 * run queue locked (wake-ups, requests, switches) or is that CPU itself (ticks, a task that
 * wakes itself): nothing need be atomic. */
#include "kernel.h"
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#define CPUS 4096
#define COMM 16
#define TASKS 32768
/* So many of those that were woken last are remembered, a power of two. */
#define WOKEN 16

#ifdef __TARGET_ARCH_arm64
#define SCHED_YIELD 124
#else
#define SCHED_YIELD 24
#endif

/* Why it ended: `recording::End`, in its order. */
enum end {
	TICK,
	WAKEUP,
	YIELD,
	SLEEP,
	OTHER,
};

/* Who asked for the task that runs to go. */
enum asked {
	NOBODY,
	BY_TICK,
	BY_ELSE,
};

/* A tick that is going on. */
enum tick {
	NONE,
	MAY_ASK,
	MAY_NOT, /* somebody had asked before */
};

struct slot {
	__u64 seen; /* switches ever */
	__u32 runs; /* the number of the task that was switched to, plus one */
	__u32 woken; /* tasks woken on this CPU since then */
	__u8 tick; /* enum tick */
	__u8 asked; /* enum asked */
	__u8 flag; /* that the request set, of the task's `thread_info.flags` */
	__u8 spare[45];
	__u32 last[WOKEN]; /* the numbers of those that were woken last */
};

/* A task that left a CPU; it ran there since the record before. */
struct record {
	__u64 end; /* CLOCK_MONOTONIC */
	__u32 task; /* its number; above its 24 bits UNTOLD and enum end */
	__u32 born;
};

#define WHY_SHIFT 24
/* The switch to it was not told. */
#define UNTOLD (1U << 31)

struct who {
	__u32 tid;
	__u32 born; /* numbers are used again; of idling 0 */
};

struct task {
	char name[COMM];
	__u8 is_stopper;
	__u8 spare[7];
};

/* Records of each CPU. */
const volatile __u32 room = 1;
/* Of each CPU that is watched its place among those, plus one; of others 0. */
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

/* Since Linux 6.17 the kernel tells when it is asked for a switch (include/trace/events/sched.h).
 * Before, the flags by which it is are looked at, around each tick: TIF_NEED_RESCHED, which has
 * always had that place, and on x86 the lazy one: since 6.13 (and 6.6, where patched for real time)
 * the next, which else is for debuggers; until 6.5, where patched, one of its own. */
typedef void (*btf_trace_sched_set_need_resched_tp)(void *, struct task_struct *, int, int);
#ifdef __TARGET_ARCH_arm64
#define NEED_RESCHED (1 << 1)
#define OWN_LAZY 0
#else
#define NEED_RESCHED (1 << 3 | 1 << 4)
#define OWN_LAZY (1 << 19)
#endif

static __always_inline int is_told(void)
{
	return bpf_core_type_exists(btf_trace_sched_set_need_resched_tp);
}

/* Where that is not told: whether the current thread is asked to go. */
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
	if (is_told())
		return;
	if (is_asked())
		slot->tick = MAY_NOT;
	else
		slot->asked = NOBODY;
}

static __always_inline void end_tick(struct slot *slot)
{
	if (!is_told() && slot->tick == MAY_ASK && is_asked())
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

/* Where the timer is not known, the local timer's interrupt is a tick that wakes nobody. */
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

/* (task, its CPU, the flag): it is asked to go, and was not before. Where there are two such
 * flags the urgent one may follow the lazy one, which asked first. One that was taken back
 * without a switch, since nobody was to come before the task, is forgotten. */
SEC("raw_tp")
int asked_for(struct bpf_raw_tracepoint_args *args)
{
	struct task_struct *task = (void *)args->args[0];
	__u32 cpu = args->args[1];
	struct slot *slot = slot_of(place_of(cpu));

	if (!slot || !is_told())
		return 0;
	if (slot->asked && BPF_CORE_READ(task, thread_info.flags) >> (slot->flag & 63) & 1)
		return 0;
	slot->flag = args->args[2];
	slot->asked = slot->tick && cpu == bpf_get_smp_processor_id() ? BY_TICK : BY_ELSE;
	return 0;
}

/* (woken), on whichever CPU; also at sched_wakeup_new. The task's own CPU is the one that it is
 * to run on. What a tick wakes asks in its place. */
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
	if (is_told())
		slot->asked = slot->asked ? BY_ELSE : NOBODY;
	else if (is_asked())
		slot->tick = MAY_NOT;
	return 0;
}

/* Whether a task was woken on this CPU since the one that leaves it was switched to. */
static __always_inline int was_woken(struct slot *slot, __u32 tid)
{
	int at;

#pragma unroll
	for (at = 0; at < WOKEN; at++)
		if (at < slot->woken && slot->last[at] == tid)
			return 1;
	return 0;
}

/* Whether the current thread entered the kernel to give way. */
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

/* Whether it is `migration/CPU`, which comes to move others. */
static __always_inline int is_stopper(struct task_struct *task, const char *name)
{
	return name[0] == 'm' && name[1] == 'i' && name[2] == 'g' && name[9] == '/' &&
	       BPF_CORE_READ(task, flags) & PF_KTHREAD;
}

/* Keeps its name; whether it comes to move others. */
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

/* (preempted, previous, next, the previous one's state: 0 if it could run on) */
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
	__u32 untold;
	enum end end;

	if (!slot)
		return 0;
	if (tid)
		own.born = current->start_time;
	untold = slot->runs == tid + 1 ? 0 : UNTOLD;
	/* All others were entered when they were switched to. */
	if (untold && tid)
		meet(own, current);
	who.tid = BPF_CORE_READ(next, pid);
	end = end_of(current, slot, args->args[0], args->args[3], who.tid);
	if (who.tid) {
		who.born = BPF_CORE_READ(next, start_time);
		if (meet(who, next) && end != SLEEP)
			end = OTHER;
	}
	write(slot, place, bpf_ktime_get_ns(), tid | end << WHY_SHIFT | untold, own.born);
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
