/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/* What uses each CPU: threads, interrupts and softirqs, by their time, their number and the longest one;
 * how long threads waited for the CPU, and how long the quota of a cgroup was used up there; why threads
 * left it; histograms of interruptions and waits. Only sums leave the kernel, once in an interval.
 *
 * A slot and the uses of a CPU are written to by that CPU only. The reader takes sums at any moment:
 * `version` shows whether a slot was complete then. */
#include "kernel.h"
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include "nesting.h"

#define COMM 16
#define USES 16384
/* The lengths of a histogram: up to each of the bounds, and above all of them. */
#define BOUNDS 16
#define LENGTHS (BOUNDS + 1)

/* What has a CPU, besides interrupts. */
enum group {
	IDLE,
	PROGRAMS,
	KERNEL,
	INTERRUPTS,
	GROUPS,
};

/* Why a thread left the CPU. */
enum leaving {
	SLEPT, /* it waits for something else */
	PREEMPTED, /* it could have continued */
	WAS_IDLE, /* it is the idle task */
	LEAVINGS,
};

/* `enum level` has those of interrupts. */
#define THREAD LEVELS

/* A thread or an interrupt, on one CPU. */
struct key {
	__u32 cpu;
	__u32 level;
	__u32 id; /* the TID, the number of the softirq, the IRQ or the vector */
	__u32 born; /* part of a thread's start time: TIDs are reused */
};

/* The longest time in each of the last two intervals: that of an odd interval, and of an even one. */
struct peak {
	__u32 interval;
	__u32 spare;
	__u64 longest[2];
};

/* Its sums, from the first time on. */
struct use {
	__u64 ns;
	__u64 count;
	__u64 last; /* the end of the last time */
	struct peak peak;
	__u32 process;
	__s32 prio;
	__u32 group;
	__u32 spare;
	char name[COMM];
};

struct slot {
	__u64 version; /* odd while other fields change */
	__u64 since; /* the last switch; 0: none was seen */
	__u64 interrupted; /* ns since then */
	__u64 sums[GROUPS]; /* ns until then; interrupts until now */
	struct nesting nesting;
	struct peak interruptions;
	__u64 waited; /* ns, of the threads that got the CPU */
	__u64 waits;
	struct peak wait;
	__u64 quota; /* ns in which a cgroup's quota was used up */
	__u64 quota_since; /* 0: it is not */
	struct cfs_rq *quota_of;
	__u64 lost; /* ns of uses for which there was no room */
	__u64 unseen; /* ns until switches of which the previous one was not traced */
	__u64 switches[LEAVINGS];
	__u64 interruption_lengths[LENGTHS]; /* the number of each length */
	__u64 wait_lengths[LENGTHS];
	/* The current thread. */
	__u32 tid;
	__u32 born;
	__u32 process;
	__s32 prio;
	__u32 group;
	__u32 has; /* 1: waits are known, 2: quotas are */
	char name[COMM];
};

/* The number of the current interval, which the reader increments. */
__u32 interval;

/* The bounds of histograms in ns, in ascending order. */
const volatile __u64 bounds[BOUNDS];

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, __u32);
	__type(value, struct slot);
} slots SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, USES);
	__type(key, struct key);
	__type(value, struct use);
} uses SEC(".maps");

static __always_inline struct slot *slot_of(__u32 cpu)
{
	return bpf_map_lookup_elem(&slots, &cpu);
}

static __always_inline void note(struct peak *peak, __u64 length)
{
	__u32 now = *(volatile __u32 *)&interval, at = now & 1;

	if (peak->interval != now) {
		/* None was noted in the interval before this one. */
		if (peak->interval + 1 != now)
			peak->longest[!at] = 0;
		peak->longest[at] = 0;
		peak->interval = now;
	}
	if (length > peak->longest[at])
		peak->longest[at] = length;
}

/* Most lengths are short: they take few steps. */
static __always_inline void count_length(__u64 *lengths, __u64 length)
{
	__u32 at;

#pragma unroll
	for (at = 0; at < BOUNDS; at++) {
		if (length <= bounds[at]) {
			lengths[at] += 1;
			return;
		}
	}
	lengths[BOUNDS] += 1;
}

/* The sums of a thread or an interrupt; a new one if there is room. */
static __always_inline struct use *use_of(struct slot *slot, struct key *key, __u64 length)
{
	static const struct use empty;
	struct use *use = bpf_map_lookup_elem(&uses, key);

	if (use)
		return use;
	bpf_map_update_elem(&uses, key, &empty, BPF_NOEXIST);
	use = bpf_map_lookup_elem(&uses, key);
	if (!use)
		slot->lost += length;
	return use;
}

static __always_inline void add(struct use *use, __u64 length, __u64 now)
{
	use->ns += length;
	use->count += 1;
	use->last = now;
	note(&use->peak, length);
}

/* The current thread leaves the CPU. */
static __always_inline void leave(struct slot *slot, __u32 cpu, __u64 length, __u64 now)
{
	struct key key = { .cpu = cpu, .level = THREAD, .id = slot->tid, .born = slot->born };
	struct use *use;

	if (!slot->tid)
		return;
	use = use_of(slot, &key, length);
	if (!use)
		return;
	add(use, length, now);
	use->process = slot->process;
	use->prio = slot->prio;
	use->group = slot->group;
	__builtin_memcpy(use->name, slot->name, COMM);
}

/* The idle tasks have no start time of their own. */
static __always_inline __u32 born_of(struct task_struct *task)
{
	return task->pid ? task->start_time : 0;
}

/* 0: it is runnable. */
static __always_inline __u64 state_of(struct task_struct *task)
{
	if (bpf_core_field_exists(task->__state))
		return task->__state;
	return ((struct task_struct___until_5_14 *)task)->state;
}

static __always_inline int has_waits(void)
{
	return bpf_core_field_exists(struct task_struct, sched_info) &&
	       bpf_core_field_exists(struct sched_entity, cfs_rq) &&
	       bpf_core_field_exists(struct cfs_rq, rq);
}

static __always_inline int has_quotas(void)
{
	return bpf_core_field_exists(struct sched_entity, cfs_rq) &&
	       bpf_core_field_exists(struct cfs_rq, throttle_count);
}

static __always_inline void enter(struct slot *slot, struct task_struct *task)
{
	slot->has = has_waits() | has_quotas() << 1;
	slot->tid = task->pid;
	slot->born = born_of(task);
	slot->process = task->tgid;
	slot->prio = task->prio;
	slot->group = !task->pid ? IDLE : task->flags & PF_KTHREAD ? KERNEL : PROGRAMS;
	__builtin_memcpy(slot->name, task->comm, COMM);
}

/* How long the next thread has waited on this CPU; what it waited on others is not known here. */
static __always_inline void add_wait(struct slot *slot, struct task_struct *next)
{
	__u64 queued, waited;

	if (!next->pid || !has_waits())
		return;
	queued = next->sched_info.last_queued;
	waited = next->se.cfs_rq->rq->clock - queued;
	if (!queued || (__s64)waited < 0)
		return;
	slot->waited += waited;
	slot->waits += 1;
	note(&slot->wait, waited);
	count_length(slot->wait_lengths, waited);
}

static __always_inline int is_throttled(struct cfs_rq *cfs_rq)
{
	int count = 0;

	bpf_probe_read_kernel(&count, sizeof(count), &cfs_rq->throttle_count);
	return count > 0;
}

/* A thread is left whose cgroup's quota is used up. */
static __always_inline void begin_quota(struct slot *slot, struct task_struct *task, __u64 now)
{
	if (slot->quota_since || task->prio < MAX_RT_PRIO || !task->pid || !has_quotas() ||
	    !is_throttled(task->se.cfs_rq))
		return;
	slot->quota_of = task->se.cfs_rq;
	slot->quota_since = now;
}

/* The period of the quota has begun again: found at the next switch or interrupt. */
static __always_inline void end_quota(struct slot *slot, __u64 now)
{
	if (!slot->quota_since || is_throttled(slot->quota_of))
		return;
	begin_change(&slot->version);
	slot->quota += now - slot->quota_since;
	slot->quota_since = 0;
	end_change(&slot->version);
}

/* The tracepoint has the state since 5.18. A task that was preempted may have one, and continues. */
static __always_inline enum leaving leaving_of(int is_preempted, struct task_struct *previous)
{
	if (!previous->pid)
		return WAS_IDLE;
	return is_preempted || !state_of(previous) ? PREEMPTED : SLEPT;
}

/* (preempted, previous, next) */
SEC("tp_btf/sched_switch")
int switched(__u64 *args)
{
	struct task_struct *previous = (void *)args[1], *next = (void *)args[2];
	enum leaving leaving = leaving_of(args[0] & 1, previous);
	__u32 cpu = bpf_get_smp_processor_id();
	struct slot *slot = slot_of(cpu);
	__u64 now = bpf_ktime_get_ns(), length;
	int is_known;
	__u32 group;

	if (!slot)
		return 0;
	end_quota(slot, now);
	length = slot->since ? now - slot->since - slot->interrupted : 0;
	is_known = slot->since && slot->tid == previous->pid && slot->born == born_of(previous);
	if (is_known)
		leave(slot, cpu, length, now);
	group = slot->group;
	begin_change(&slot->version);
	if (!is_known)
		slot->unseen += length;
	else if (group < GROUPS)
		slot->sums[group] += length;
	/* Only PREEMPT_RT switches during a softirq, where it is a thread's work. */
	slot->nesting.active = 0;
	slot->since = now;
	slot->interrupted = 0;
	begin_quota(slot, previous, now);
	enter(slot, next);
	end_change(&slot->version);
	slot->switches[leaving] += 1;
	add_wait(slot, next);
	return 0;
}

static __always_inline int begins(__u32 level)
{
	struct slot *slot = slot_of(bpf_get_smp_processor_id());

	if (slot)
		nest_begin(&slot->nesting, &slot->version, level, bpf_ktime_get_ns());
	return 0;
}

/* `active` changes last: what interrupts the end of a softirq is part of the same interruption. */
static __always_inline int ends(__u32 level, __u32 id)
{
	__u32 cpu = bpf_get_smp_processor_id(), others;
	struct key key = { .cpu = cpu, .level = level, .id = id };
	struct slot *slot = slot_of(cpu);
	__u64 now, own;
	struct use *use;

	if (!slot || !nest_has(&slot->nesting, level))
		return 0;
	now = bpf_ktime_get_ns();
	others = nest_end(&slot->nesting, level, now, &own);
	use = use_of(slot, &key, own);
	if (use)
		add(use, own, now);
	if (others) {
		slot->nesting.active = others;
		return 0;
	}
	end_quota(slot, now);
	note(&slot->interruptions, now - slot->nesting.since);
	count_length(slot->interruption_lengths, now - slot->nesting.since);
	begin_change(&slot->version);
	slot->sums[INTERRUPTS] += now - slot->nesting.since;
	slot->interrupted += now - slot->nesting.since;
	slot->nesting.active = 0;
	end_change(&slot->version);
	return 0;
}

#include "interrupt_programs.h"

/* Run once on each CPU at the begin: the thread that runs there. */
SEC("raw_tp")
int begin_here(struct bpf_raw_tracepoint_args *args)
{
	struct task_struct *current = bpf_get_current_task_btf();
	struct slot *slot = slot_of(bpf_get_smp_processor_id());

	if (!slot || slot->since)
		return 0;
	begin_change(&slot->version);
	enter(slot, current);
	/* Interrupts until now are before it, also the one in which this program may run. */
	slot->nesting.active = 0;
	slot->interrupted = 0;
	slot->since = bpf_ktime_get_ns();
	end_change(&slot->version);
	return 0;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
