/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/* Counts the wake-ups of each thread, its run time after them, and the threads it preempts;
 * only sums leave the kernel.
 *
 * A thread has a row, and each pair of waker and woken, or of preempting and preempted
 * thread, a count. All of these programs run with interrupts disabled. A row's wake-ups are
 * counted under its thread's own lock (`pi_lock`), its other fields by the CPU that switches
 * to the thread or away from it: nothing has two writers, so no atomic access is needed. */
#include "kernel.h"
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#define CPUS 4096
#define COMM 16
#define THREADS 65536
#define PAIRS 65536

/* include/linux/preempt.h: the context of the CPU in the preemption count (arm64). */
#define COUNT_INTERRUPT 0xff0000
#define COUNT_SOFTIRQ 0x100

/* A thread, by its TID and its start time (TIDs are reused); or, with TID 0, a waker that
 * is not a thread. */
struct who {
	__u32 tid;
	__u32 born; /* of TID 0: `enum no_thread` */
};

enum no_thread {
	IDLE,
	INTERRUPT,
	SOFTIRQ,
};

struct thread {
	__u64 wakeups;
	__u64 run; /* ns, after wake-ups that count */
	__u64 preempted;
	struct who waker; /* of the current wake-up */
	__u32 process;
	__s32 prio;
	__u8 due; /* a wake-up has begun, and may count */
	__u8 counts; /* the last one did */
	__u8 fresh; /* and the thread has not run since */
	__u8 unseen; /* the end of some run was missed */
	__u8 spare[4];
	char name[COMM];
};

struct pair {
	struct who actor;
	struct who other;
};

/* Contexts of a CPU other than a thread. */
enum place {
	VECTOR,
	HANDLER,
	TIMER,
	SOFT,
	PLACES,
};

/* The state of a CPU, and the counts that exceeded the maps. */
struct slot {
	__u8 in[PLACES];
	__u8 spare[4];
	__u64 since;
	struct who runs; /* since then, and that counts; number 0: none */
	__u64 lost_wakeups;
	__u64 lost_wakers;
	__u64 lost_victims;
};

/* Whether only wake-ups on the CPUs in `watched` count; or only those of or by a process, if
 * not 0. */
const volatile __u8 by_cpu;
const volatile __u8 watched[CPUS];
const volatile __u32 of_process;
/* Set and cleared by user space. */
volatile __u32 counting;

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, THREADS);
	__type(key, struct who);
	__type(value, struct thread);
} threads SEC(".maps");

/* Waker and woken. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, PAIRS);
	__type(key, struct pair);
	__type(value, __u64);
} wakers SEC(".maps");

/* Preempting and preempted. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, PAIRS);
	__type(key, struct pair);
	__type(value, __u64);
} victims SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct slot);
} slots SEC(".maps");

static __always_inline struct slot *slot_here(void)
{
	__u32 key = 0;

	return bpf_map_lookup_elem(&slots, &key);
}

static __always_inline int is_watched(__u32 cpu)
{
	return !by_cpu || (cpu < CPUS && watched[cpu]);
}

static __always_inline struct who who_is(struct task_struct *task)
{
	struct who who = {
		.tid = BPF_CORE_READ(task, pid),
		.born = BPF_CORE_READ(task, start_time),
	};

	return who;
}

/* The current thread, which is read without helpers. */
static __always_inline struct who who_runs(struct task_struct *current)
{
	struct who who = { .tid = current->pid, .born = current->start_time };

	if (!who.tid)
		who.born = IDLE;
	return who;
}

/* x86 stores the preemption count where only kernels with all of their symbols
 * (KALLSYMS_ALL) expose it, so there tracepoints show whether the CPU is in an interrupt.
 * Interrupts without a tracepoint count as the interrupted thread: KVM's posted interrupts,
 * for one. */
static __always_inline struct who who_wakes(struct task_struct *current, struct slot *slot)
{
	struct who interrupt = { .tid = 0, .born = INTERRUPT };
	struct who softirq = { .tid = 0, .born = SOFTIRQ };
#ifdef __TARGET_ARCH_arm64
	__u64 count = current->thread_info.preempt_count;

	if (count & COUNT_INTERRUPT)
		return interrupt;
	if (count & COUNT_SOFTIRQ)
		return softirq;
#else
	if (slot->in[VECTOR] || slot->in[HANDLER])
		return interrupt;
	if (slot->in[SOFT])
		return softirq;
	if (slot->in[TIMER])
		return interrupt;
#endif
	return who_runs(current);
}

static __always_inline int set_place(enum place place, __u8 in)
{
	struct slot *slot = slot_here();

	if (slot)
		slot->in[place] = in;
	return 0;
}

SEC("raw_tp")
int vector_entry(struct bpf_raw_tracepoint_args *args)
{
	return set_place(VECTOR, 1);
}

SEC("raw_tp")
int vector_exit(struct bpf_raw_tracepoint_args *args)
{
	return set_place(VECTOR, 0);
}

SEC("raw_tp/irq_handler_entry")
int handler_entry(struct bpf_raw_tracepoint_args *args)
{
	return set_place(HANDLER, 1);
}

SEC("raw_tp/irq_handler_exit")
int handler_exit(struct bpf_raw_tracepoint_args *args)
{
	return set_place(HANDLER, 0);
}

/* Timer interrupts that are none of the vectors: those of a hypervisor. */
SEC("raw_tp/hrtimer_expire_entry")
int timer_entry(struct bpf_raw_tracepoint_args *args)
{
	return set_place(TIMER, 1);
}

SEC("raw_tp/hrtimer_expire_exit")
int timer_exit(struct bpf_raw_tracepoint_args *args)
{
	return set_place(TIMER, 0);
}

SEC("raw_tp/softirq_entry")
int softirq_entry(struct bpf_raw_tracepoint_args *args)
{
	return set_place(SOFT, 1);
}

SEC("raw_tp/softirq_exit")
int softirq_exit(struct bpf_raw_tracepoint_args *args)
{
	return set_place(SOFT, 0);
}

static __always_inline struct thread *row_of(struct who who, struct task_struct *task)
{
	struct thread *row = bpf_map_lookup_elem(&threads, &who);
	struct thread made = {};

	if (row)
		return row;
	made.process = BPF_CORE_READ(task, tgid);
	made.prio = BPF_CORE_READ(task, prio);
	BPF_CORE_READ_INTO(&made.name, task, comm);
	bpf_map_update_elem(&threads, &who, &made, BPF_NOEXIST);
	return bpf_map_lookup_elem(&threads, &who);
}

/* Increments the count of a pair; whether it was the first. */
static __always_inline int add(void *pairs, struct who actor, struct who other, __u64 *lost)
{
	struct pair pair = { .actor = actor, .other = other };
	__u64 *count = bpf_map_lookup_elem(pairs, &pair);
	__u64 first = 1;

	if (count) {
		*count += 1;
		return 0;
	}
	if (!bpf_map_update_elem(pairs, &pair, &first, BPF_NOEXIST))
		return 1;
	*lost += 1;
	return 0;
}

static __always_inline void count(struct thread *row, struct who woken, struct who waker,
				  struct slot *slot)
{
	row->wakeups += 1;
	row->counts = 1;
	row->fresh = 1;
	/* The waker's row has its name. */
	if (add(&wakers, waker, woken, &slot->lost_wakers) && waker.tid)
		row_of(waker, bpf_get_current_task_btf());
}

/* (woken): the context of the waker, before the CPU of the woken thread is known. */
SEC("raw_tp/sched_waking")
int waking(struct bpf_raw_tracepoint_args *args)
{
	struct task_struct *task = (void *)args->args[0];
	struct task_struct *current = bpf_get_current_task_btf();
	struct slot *slot = slot_here();
	struct who woken, waker;
	struct thread *row;

	if (!counting || !slot)
		return 0;
	woken = who_is(task);
	waker = who_wakes(current, slot);
	if (of_process && BPF_CORE_READ(task, tgid) != of_process &&
	    (!waker.tid || current->tgid != of_process)) {
		row = bpf_map_lookup_elem(&threads, &woken);
		if (row)
			row->counts = row->due = 0;
		return 0;
	}
	row = row_of(woken, task);
	if (!row) {
		slot->lost_wakeups += 1;
		return 0;
	}
	row->prio = BPF_CORE_READ(task, prio);
	if (by_cpu) {
		row->waker = waker;
		row->due = 1;
	} else {
		count(row, woken, waker, slot);
	}
	return 0;
}

/* (woken): follows each `waking`, when the CPU is known; attached only if that matters. */
SEC("raw_tp/sched_wakeup")
int woken(struct bpf_raw_tracepoint_args *args)
{
	struct task_struct *task = (void *)args->args[0];
	struct slot *slot = slot_here();
	struct who woken = who_is(task);
	struct thread *row = bpf_map_lookup_elem(&threads, &woken);

	if (!counting || !slot || !row || !row->due)
		return 0;
	row->due = 0;
	row->counts = 0;
	if (is_watched(BPF_CORE_READ(task, thread_info.cpu)))
		count(row, woken, row->waker, slot);
	return 0;
}

/* The current thread's run ends here; `runnable`: involuntarily. */
static __always_inline void leave(struct slot *slot, struct who who, __u64 now, int runnable)
{
	struct who runs = slot->runs;
	struct thread *row;

	slot->runs.tid = 0;
	if (!runs.tid)
		return;
	row = bpf_map_lookup_elem(&threads, &runs);
	if (!row)
		return;
	if (runs.tid != who.tid || runs.born != who.born) {
		row->unseen = 1;
		return;
	}
	row->run += now - slot->since;
	/* It was woken before it had left: its next run preempts no other thread. */
	if (runnable)
		row->fresh = 0;
}

/* (preempted, previous, next, the previous one's state: 0 if it could have continued) */
SEC("raw_tp/sched_switch")
int switched(struct bpf_raw_tracepoint_args *args)
{
	struct task_struct *current = bpf_get_current_task_btf();
	int runnable = args->args[0] || !args->args[3];
	struct who previous = who_runs(current), next;
	__u64 now = bpf_ktime_get_ns();
	struct slot *slot = slot_here();
	struct thread *row;
	int fresh;

	if (!slot)
		return 0;
	/* Only PREEMPT_RT switches during one, where it is a thread's work. */
	slot->in[SOFT] = slot->in[TIMER] = 0;
	leave(slot, previous, now, runnable);
	if (!counting)
		return 0;
	next = who_is((void *)args->args[2]);
	if (!next.tid)
		return 0;
	row = bpf_map_lookup_elem(&threads, &next);
	if (!row)
		return 0;
	fresh = row->fresh;
	row->fresh = 0;
	if (!row->counts || !is_watched(bpf_get_smp_processor_id()))
		return 0;
	slot->runs = next;
	slot->since = now;
	if (!fresh || !runnable || !previous.tid)
		return 0;
	row->preempted += 1;
	if (add(&victims, next, previous, &slot->lost_victims))
		row_of(previous, current);
	return 0;
}

/* (thread, its new name) */
SEC("raw_tp/task_rename")
int renamed(struct bpf_raw_tracepoint_args *args)
{
	struct who who = who_is((void *)args->args[0]);
	struct thread *row = bpf_map_lookup_elem(&threads, &who);

	if (row)
		bpf_probe_read_kernel_str(row->name, COMM, (void *)args->args[1]);
	return 0;
}

/* Run once on each CPU after counting: adds the time of the running thread until now. No
 * other program is active there. */
SEC("raw_tp")
int settle(struct bpf_raw_tracepoint_args *args)
{
	struct task_struct *current = bpf_get_current_task_btf();
	struct slot *slot = slot_here();

	if (slot)
		leave(slot, who_runs(current), bpf_ktime_get_ns(), 1);
	return 0;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
