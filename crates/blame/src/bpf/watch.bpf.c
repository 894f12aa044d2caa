/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/* What the threads of a program do, and what they wait for: their time on CPUs, waiting for a CPU and
 * interrupted. Only sums leave the kernel, and the longest delays with what had the CPU meanwhile.
 *
 * Each CPU has a slot: how long each group of threads has used it, which threads ran there last, and
 * how many watched threads wait there. A wait is the difference of these sums at its end and at its
 * begin, so that its parts add up to it. A slot is written to with its CPU's run queue locked
 * (wake-ups, switches), by that CPU itself (interrupts), or atomically (`arrived`, `inside`,
 * `outside`). Another CPU's sums are read for a thread that is woken or moved, without its interrupts
 * being disabled, or its queue locked: `version` shows whether they changed meanwhile. A thread's row is written to by one of these
 * at a time; its place among the rows is taken atomically.
 *
 * What costs most at a switch is the entry of the programs, to read the clock, and each helper or hash
 * table of the kernel (50 ns): there is none on the way of a watched thread. */
#include "watch_waits.h"

static __always_inline int is_out_of_quota(struct task_struct *task)
{
	if (bpf_core_field_exists(task->throttled))
		return task->throttled;
	if (bpf_core_field_exists(struct sched_entity, cfs_rq) &&
	    bpf_core_field_exists(struct cfs_rq, throttle_count))
		return task->prio >= 100 && task->se.cfs_rq->throttle_count > 0;
	return 0;
}

/* A thread with a row leaves the CPU, whose sums are those until now. */
static __always_inline void leave(struct slot *slot, struct thread *row, struct task_struct *task,
				  __u32 cpu, __u64 now, int is_runnable, __u64 state)
{
	int at;

	read_usage(row, task);
	row->prio = task->prio;
	if (row->state == RUNS_NOW)
		row->run += now - row->since;
	row->is_throttled = is_runnable && is_out_of_quota(task);
	row->was_preempted = is_runnable;
	if (!is_runnable) {
		row->slept += 1;
		row->state = SLEEPS;
		if (state & TASK_DEAD)
			end_row(row);
		return;
	}
	row->preempted += 1;
	begin_wait(row, slot, cpu, now);
	if (row->is_throttled)
		return;
#pragma unroll
	for (at = 0; at < SUMS; at++)
		row->before[at] = slot->sums[at];
	slot->waiting += 1;
}

/* A watched thread gets the CPU, whose sums are those until now. */
static __always_inline void arrive(struct slot *slot, struct who who, struct task_struct *task,
				   __u32 cpu, __u64 now)
{
	struct thread *row = row_of(who, task, slot);

	if (!row)
		return;
	if (row->state == WAITS)
		end_wait(row, who, slot, cpu, now);
	row->state = RUNS_NOW;
	row->since = now;
}

/* The interrupts of a watched thread's run, which ends. */
static __always_inline void add_interrupted(struct slot *slot, struct thread *row)
{
	if (!slot->interruptions)
		return;
	row->interrupted += slot->interrupted;
	row->interruptions += slot->interruptions;
}

/* What the thread that ran here until now did to those that waited. Returns its row, if it is watched. */
static __always_inline struct thread *end_run(struct slot *slot, __u64 now)
{
	struct thread *row = slot->is_watched ? find(slot->runs) : 0;

	if (row)
		add_interrupted(slot, row);
	charge(slot, now);
	if (!slot->charged)
		return row;
	if (row) {
		row->took += slot->charged;
		row->runs += 1;
	} else {
		add_taker(slot);
	}
	slot->charged = 0;
	return row;
}

/* The switch to the thread that leaves was not traced: when it got the CPU is not known. `row` is that of the
 * one that was known to run, and `ran` since when. Returns the row of the thread that leaves. */
static __always_inline struct thread *miss(struct slot *slot, struct thread *row, struct who who,
					   struct task_struct *task, __u32 cpu, __u64 now, __u64 ran)
{
	int is_watched = belongs(slot, task);

	if (row && row->state == RUNS_NOW)
		row->state = UNKNOWN;
	if (row || is_watched || slot->waiting)
		slot->unseen += ran;
	if (!is_watched)
		return 0;
	arrive(slot, who, task, cpu, now);
	return find(who);
}

static __always_inline void store_run(struct slot *slot, struct task_struct *task, __u32 group,
				      __u64 now)
{
	struct run *run = &slot->recent[slot->head & (RECENT - 1)];

	run->since = now;
	run->tid = task->pid;
	run->process = task->tgid;
	run->prio = task->prio;
	run->group = group;
	name_of(run->name, task);
	slot->head += 1;
}

/* Adds the time since the last switch to the group of the current thread. */
static __always_inline void close_run(struct slot *slot, __u64 now)
{
	__u32 group = slot->group;

	if (slot->since && group < SUMS)
		slot->sums[group] += now - slot->since - slot->interrupted;
	slot->since = now;
	slot->interrupted = 0;
}

/* (preempted, previous, next, the previous one's state: 0 if it could have continued) */
SEC("tp_btf/sched_switch")
int switched(__u64 *args)
{
	struct task_struct *previous = (void *)args[1], *next = (void *)args[2];
	int is_runnable = args[0] || !args[3], is_watched;
	__u32 cpu = bpf_get_smp_processor_id(), group;
	struct slot *slot = slot_of(cpu);
	struct who from, to;
	struct thread *row;
	__u64 now, since;

	if (!slot)
		return 0;
	now = bpf_ktime_get_ns();
	from = who_is(previous);
	to = who_is(next);
	is_watched = belongs(slot, next);
	group = group_of(next, is_watched);
	count_arrivals(slot);
	row = end_run(slot, now);
	since = slot->since;
	begin_change(&slot->version);
	close_run(slot, now);
	/* Only PREEMPT_RT switches during one, where it is a thread's work. */
	slot->nesting.active = 0;
	slot->group = group;
	end_change(&slot->version);
	slot->interruptions = 0;
	if (since && (slot->runs.tid != from.tid || slot->runs.born != from.born))
		row = miss(slot, row, from, previous, cpu, now, now - since);
	else if (slot->is_watched && !row)
		slot->lost_threads += 1;
	/* A thread that left its cgroup while it waited may still be counted. */
	if (!to.tid)
		slot->waiting = 0;
	if (row)
		leave(slot, row, previous, cpu, now, is_runnable, args[3]);
	if (is_watched)
		arrive(slot, to, next, cpu, now);
	store_run(slot, next, group, now);
	slot->runs = to;
	slot->is_watched = is_watched;
	return 0;
}

static __always_inline int wakes(struct task_struct *task)
{
	__u32 cpu = task->thread_info.cpu;
	struct slot *slot = slot_of(cpu);
	struct thread *row;
	__u64 now;

	/* Before the first switch there are no sums. */
	if (!slot || !slot->since || !belongs(slot, task))
		return 0;
	row = row_of(who_is(task), task, slot);
	/* It is woken before it has left the CPU, or waits already. */
	if (!row || row->state >= WAITS)
		return 0;
	now = bpf_ktime_get_ns();
	row->was_preempted = 0;
	row->is_throttled = 0;
	begin_wait(row, slot, cpu, now);
	/* Another CPU's interrupts change its sums without the lock. If it is this CPU whose change was
	 * interrupted, its last values differ by the time of that change only. */
	row->is_misread = !read_unlocked(slot, now, row->before);
	count_arrivals(slot);
	charge(slot, now);
	slot->waiting += 1;
	return 0;
}

/* (woken), with its CPU's run queue locked */
SEC("tp_btf/sched_wakeup")
int woken(__u64 *args)
{
	return wakes((void *)args[0]);
}

/* (a new thread): the same */
SEC("tp_btf/sched_wakeup_new")
int woken_new(__u64 *args)
{
	return wakes((void *)args[0]);
}

/* (task, its new CPU): with the lock of its old run queue, or before a wake-up. */
SEC("tp_btf/sched_migrate_task")
int moved(__u64 *args)
{
	struct task_struct *task = (void *)args[0];
	__u32 from = task->thread_info.cpu, to = args[1];
	struct slot *old, *slot = slot_of(to);
	__u64 now, sums[SUMS] = {};
	struct thread *row;
	struct who who;
	int at;

	if (!slot || !belongs(slot, task))
		return 0;
	who = who_is(task);
	row = find(who);
	if (!row)
		return 0;
	row->moved += 1;
	old = slot_of(from);
	if (row->state != WAITS || row->is_throttled || !old || from == to)
		return 0;
	now = bpf_ktime_get_ns();
	if (!read_unlocked(old, now, sums))
		row->is_misread = 1;
#pragma unroll
	for (at = 0; at < SUMS; at++)
		row->so_far[at] = (row->has_moved ? row->so_far[at] : 0) +
				  since_begin(sums[at], row->before[at]);
	row->has_moved = 1;
	count_arrivals(old);
	charge(old, now);
	if (old->waiting)
		old->waiting -= 1;
	if (!read_unlocked(slot, now, sums))
		row->is_misread = 1;
	__builtin_memcpy(row->before, sums, sizeof(sums));
	__sync_fetch_and_add(&slot->arrived, 1);
	row->since = now;
	row->cpu = to;
	row->head = slot->head;
	return 0;
}

/* (task, its new name) */
SEC("tp_btf/task_rename")
int renamed(__u64 *args)
{
	struct task_struct *task = (void *)args[0];
	struct who who = who_is(task);
	struct thread *row = find(who);

	if (row)
		bpf_probe_read_kernel_str(row->name, COMM, (void *)args[1]);
	return 0;
}

/* (cgroup, path): a new one in a watched one is watched, too. */
SEC("tp_btf/cgroup_mkdir")
int made(__u64 *args)
{
	struct cgroup *cgroup = (void *)args[0];
	__u64 own = cgroup->kn->id, above = cgroup->self.parent->cgroup->kn->id;
	__u8 yes = 1;

	if (cgroup->root->hierarchy_id == hierarchy && bpf_map_lookup_elem(&cgroups, &above))
		bpf_map_update_elem(&cgroups, &own, &yes, BPF_ANY);
	return 0;
}

/* (cgroup, path) */
SEC("tp_btf/cgroup_rmdir")
int removed(__u64 *args)
{
	struct cgroup *cgroup = (void *)args[0];
	__u64 own = cgroup->kn->id;

	if (cgroup->root->hierarchy_id == hierarchy)
		bpf_map_delete_elem(&cgroups, &own);
	return 0;
}

static __always_inline int begins(__u32 level)
{
	struct slot *slot = slot_here();

	if (slot)
		nest_begin(&slot->nesting, &slot->version, level, bpf_ktime_get_ns());
	return 0;
}

static __always_inline void add_own(struct interruption *known, __u64 own)
{
	known->ns += own;
	known->count += 1;
	if (own > known->longest)
		known->longest = own;
}

static __noinline int add_other(__u32 level, __u32 id, __u64 own)
{
	struct source source = { .level = level, .id = id };
	struct interruption made = { .ns = own, .count = 1, .longest = own };
	struct interruption *known = bpf_map_lookup_elem(&others, &source);

	if (known)
		add_own(known, own);
	else
		bpf_map_update_elem(&others, &source, &made, BPF_NOEXIST);
	return 0;
}

/* An interruption of a watched thread: by its source, without those that interrupted it. */
static __always_inline void add_source(__u32 level, __u32 id, __u64 own)
{
	__u32 key = level * NUMBERS + id;
	struct interruption *known;

	if (id >= NUMBERS) {
		add_other(level, id, own);
		return;
	}
	known = bpf_map_lookup_elem(&interruptions, &key);
	if (known)
		add_own(known, own);
}

/* A watched thread can continue. */
static __always_inline void resume(struct slot *slot, __u32 cpu, __u64 begin, __u64 now,
				   __u32 level, __u32 id)
{
	struct delay *delay = place_for(slot, cpu, now - begin);
	struct thread *row;
	int at;

	if (!delay)
		return;
	row = find(slot->runs);
	if (!row || row->state != RUNS_NOW)
		return;
	describe(delay, slot->runs, row, begin, now, cpu, INTERRUPTED);
	delay->here = begin;
	delay->was_preempted = 0;
	delay->source.level = level;
	delay->source.id = id;
#pragma unroll
	for (at = 0; at < GROUPS; at++)
		delay->parts[at] = at == INTERRUPTS ? now - begin : 0;
	copy_runs(slot, delay, slot->head);
	write_delay(slot, delay, cpu);
}

static __always_inline int ends(__u32 level, __u32 id)
{
	__u32 cpu = bpf_get_smp_processor_id(), others;
	struct slot *slot = slot_of(cpu);
	__u64 now, own, begin;

	if (!slot || !nest_has(&slot->nesting, level))
		return 0;
	now = bpf_ktime_get_ns();
	others = nest_end(&slot->nesting, level, now, &own);
	if (slot->is_watched)
		add_source(level, id, own);
	if (others) {
		slot->nesting.active = others;
		return 0;
	}
	begin = slot->nesting.since;
	if (slot->is_watched)
		resume(slot, cpu, begin, now, level, id);
	begin_change(&slot->version);
	slot->sums[INTERRUPTS] += now - begin;
	slot->interrupted += now - begin;
	slot->interruptions += 1;
	slot->nesting.active = 0;
	end_change(&slot->version);
	return 0;
}

#include "interrupt_programs.h"

/* Run once on each CPU at the begin: the thread that runs there. No other program is active. */
SEC("raw_tp")
int begin_here(struct bpf_raw_tracepoint_args *args)
{
	struct task_struct *current = bpf_get_current_task_btf();
	__u32 cpu = bpf_get_smp_processor_id();
	__u64 now = bpf_ktime_get_ns();
	struct slot *slot = slot_of(cpu);

	if (!slot || slot->since)
		return 0;
	slot->runs = who_is(current);
	slot->is_watched = belongs(slot, current);
	slot->group = group_of(current, slot->is_watched);
	slot->since = slot->charged_at = now;
	/* Interrupts until now are before it, also the one in which this program may run. */
	slot->nesting.active = 0;
	slot->interrupted = slot->interruptions = 0;
	if (slot->is_watched)
		arrive(slot, slot->runs, current, cpu, now);
	store_run(slot, current, slot->group, now);
	return 0;
}

/* The same at the end: adds the time of the running thread until now. */
SEC("raw_tp")
int end_here(struct bpf_raw_tracepoint_args *args)
{
	struct task_struct *current = bpf_get_current_task_btf();
	__u64 now = bpf_ktime_get_ns();
	struct slot *slot = slot_here();
	struct thread *row;

	if (!slot || !slot->since)
		return 0;
	row = end_run(slot, now);
	close_run(slot, now);
	slot->has_ended = 1;
	if (!row || row->state != RUNS_NOW)
		return 0;
	read_usage(row, current);
	row->run += now - row->since;
	row->since = now;
	return 0;
}

/* Run by hand for the place of a thread that has ended, whose row has been read: (the place) */
SEC("raw_tp")
int release(struct bpf_raw_tracepoint_args *args)
{
	struct thread *row = row_at(args->args[0]);

	if (row && row->has_ended)
		__sync_lock_test_and_set((__u64 *)&row->who, 0);
	return 0;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
