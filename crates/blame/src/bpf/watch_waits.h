/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/* How long watched threads wait, and what has their CPU meanwhile (`watch.bpf.c`). */
#ifndef NOISEFLOOR_WATCH_WAITS_H
#define NOISEFLOOR_WATCH_WAITS_H

#include "watch_tables.h"

static __always_inline struct slot *slot_of(__u32 cpu)
{
	struct slot *slot = bpf_map_lookup_elem(&slots, &cpu);

	return slot && !slot->has_ended ? slot : 0;
}

static __always_inline struct slot *slot_here(void)
{
	return slot_of(bpf_get_smp_processor_id());
}

static __always_inline __u64 cgroup_of(struct task_struct *task)
{
	struct css_set *set = task->cgroups;
	void *list;

	if (by_cgroup == 1)
		return set->dfl_cgrp->kn->id;
	/* The verifier knows the index: it is a constant of the loaded programs. */
	list = (void *)set + bpf_core_field_offset(struct css_set, subsys);
	return (*(struct cgroup_subsys_state **)(list + controller * sizeof(void *)))->cgroup->kn->id;
}

/* Whether a cgroup is watched. IDs are not used again. */
static __always_inline int is_inside(struct slot *slot, __u64 cgroup)
{
	if (cgroup == *(volatile __u64 *)&slot->inside)
		return 1;
	if (cgroup == *(volatile __u64 *)&slot->outside)
		return 0;
	if (bpf_map_lookup_elem(&cgroups, &cgroup)) {
		*(volatile __u64 *)&slot->inside = cgroup;
		return 1;
	}
	*(volatile __u64 *)&slot->outside = cgroup;
	return 0;
}

/* Whether a thread is watched. The idle tasks, which are in the topmost cgroup, are not. */
static __always_inline int belongs(struct slot *slot, struct task_struct *task)
{
	__u32 process;
	int at;

	if (!task->pid)
		return 0;
	if (by_cgroup)
		return is_inside(slot, cgroup_of(task));
	process = task->tgid;
#pragma unroll
	for (at = 0; at < PROCESSES; at++)
		if (at < process_count && process == processes[at])
			return 1;
	return 0;
}

static __always_inline struct who who_is(struct task_struct *task)
{
	struct who who = { .tid = task->pid, .born = task->start_time };

	return who;
}

static __always_inline __u32 group_of(struct task_struct *task, int is_watched)
{
	if (!task->pid)
		return IDLE;
	if (is_watched)
		return WATCHED;
	if (task->flags & PF_KTHREAD)
		return KERNEL;
	return task->prio < 100 ? REALTIME : OTHERS;
}

/* Two loads take less time than a helper that copies. */
static __always_inline void name_of(char *name, struct task_struct *task)
{
	((__u64 *)name)[0] = ((__u64 *)task->comm)[0];
	((__u64 *)name)[1] = ((__u64 *)task->comm)[1];
}

/* How long each group had the CPU until now. */
static __always_inline void read_sums(struct slot *slot, __u64 now, __u64 *sums)
{
	__u64 interrupt = slot->nesting.active ? now - slot->nesting.since : 0;
	__u64 run = slot->since ? now - slot->since - slot->interrupted - interrupt : 0;
	__u32 group = slot->group;
	int at;

#pragma unroll
	for (at = 0; at < SUMS; at++)
		sums[at] = slot->sums[at];
	if (group < SUMS)
		sums[group] += run;
	sums[INTERRUPTS] += interrupt;
}

/* The same of a CPU whose run queue is not locked. */
static __noinline int read_unlocked(struct slot *slot, __u64 now, __u64 *sums)
{
	__u64 version;
	int try;

	if (!slot || !sums)
		return 0;
	for (try = 0; try < 8; try++) {
		version = *(volatile __u64 *)&slot->version;
		barrier();
		read_sums(slot, now, sums);
		barrier();
		if (!(version & 1) && version == *(volatile __u64 *)&slot->version)
			return 1;
	}
	return 0;
}

static __always_inline void read_usage(struct thread *row, struct task_struct *task)
{
	row->user = task->utime;
	row->system = task->stime;
	row->minor = task->min_flt;
	row->major = task->maj_flt;
}

/* One number for a thread. */
static __always_inline __u64 number_of(struct who who)
{
	union {
		struct who who;
		__u64 number;
	} both = { .who = who };

	return both.number;
}

static __always_inline struct thread *row_at(__u32 place)
{
	__u32 key = place & last_thread;

	return bpf_map_lookup_elem(&threads, &key);
}

static __always_inline int is_row_of(struct thread *row, __u64 number)
{
	return *(volatile __u64 *)&row->who == number;
}

/* A thread that is not in the first one of its places. */
static __noinline struct thread *find_further(__u32 tid, __u64 number)
{
	struct thread *row;
	__u32 at;

	for (at = 1; at < PLACES; at++) {
		row = row_at(tid + at);
		if (row && is_row_of(row, number))
			return row;
	}
	return 0;
}

static __always_inline struct thread *find(struct who who)
{
	struct thread *row = row_at(who.tid);
	__u64 number = number_of(who);

	if (row && is_row_of(row, number))
		return row;
	return find_further(who.tid, number);
}

/* Takes a free place for a thread; another CPU may try to take it for another thread. */
static __noinline struct thread *add_row(__u32 tid, __u64 number)
{
	struct thread *row;
	__u32 at;

	for (at = 0; at < PLACES; at++) {
		row = row_at(tid + at);
		if (!row || !is_row_of(row, 0))
			continue;
		if (__sync_val_compare_and_swap((__u64 *)&row->who, 0, number))
			continue;
		__builtin_memset(&row->cpu, 0, sizeof(*row) - sizeof(row->who));
		row->place = (tid + at) & last_thread;
		return row;
	}
	return 0;
}

/* The thread does not run again: its row can be read, and then be removed by `release`. */
static __always_inline void end_row(struct thread *row)
{
	__u32 place = row->place;

	row->has_ended = 1;
	bpf_map_push_elem(&ended, &place, BPF_ANY);
}

static __always_inline struct thread *row_of(struct who who, struct task_struct *task,
					     struct slot *slot)
{
	struct thread *row = find(who);

	if (row)
		return row;
	row = add_row(who.tid, number_of(who));
	if (!row) {
		slot->lost_threads += 1;
		return 0;
	}
	row->process = task->tgid;
	row->prio = task->prio;
	name_of(row->name, task);
	read_usage(row, task);
	row->user_before = row->user;
	row->system_before = row->system;
	row->minor_before = row->minor;
	row->major_before = row->major;
	return row;
}

/* Charges the current run for the threads that wait, before their number changes. */
static __always_inline void charge(struct slot *slot, __u64 now)
{
	if (slot->waiting)
		slot->charged += slot->waiting * (now - slot->charged_at);
	slot->charged_at = now;
}

/* Moved threads are counted from the next event of their new CPU on. */
static __always_inline void count_arrivals(struct slot *slot)
{
	__u32 arrived = *(volatile __u32 *)&slot->arrived;

	slot->waiting += arrived - slot->counted;
	slot->counted = arrived;
}

/* The row's sums at the begin of the wait are stored by the caller. */
static __always_inline void begin_wait(struct thread *row, struct slot *slot, __u32 cpu, __u64 now)
{
	row->state = WAITS;
	row->has_moved = row->is_misread = 0;
	row->since = row->begun = now;
	row->cpu = cpu;
	row->head = slot->head;
}

/* The bin of a length: its position in a power of two, in steps of 1/32 of it. */
static __always_inline __u32 bin_of(__u64 length)
{
	__u32 power = 0;
	__u64 rest = length;

	if (length < 1 << FINE)
		return length;
	if (rest >> 32) { power += 32; rest >>= 32; }
	if (rest >> 16) { power += 16; rest >>= 16; }
	if (rest >> 8) { power += 8; rest >>= 8; }
	if (rest >> 4) { power += 4; rest >>= 4; }
	if (rest >> 2) { power += 2; rest >>= 2; }
	if (rest >> 1) power += 1;
	return ((power - FINE + 1) << FINE) + ((length >> (power - FINE)) & ((1 << FINE) - 1));
}

static __always_inline void count_length(__u64 length)
{
	__u32 bin = bin_of(length);
	__u64 *count = bpf_map_lookup_elem(&lengths, &bin);

	if (count)
		*count += 1;
}

/* The place of a delay among the CPU's longest ones. */
static __always_inline struct delay *place_for(struct slot *slot, __u32 cpu, __u64 length)
{
	__u32 key = cpu * keep;

	if (slot->stored < keep)
		key += slot->stored;
	else if (length > slot->least)
		key += slot->least_at;
	else
		return 0;
	return bpf_map_lookup_elem(&longest, &key);
}

/* Stores a delay's place, and finds the shortest one. */
static __noinline int find_least(struct slot *slot, __u32 cpu)
{
	__u64 least = -1, length;
	struct delay *delay;
	__u32 at, key, found = 0;

	if (!slot)
		return 0;
	if (slot->stored < keep)
		slot->stored += 1;
	for (at = 0; at < KEEP_MAX; at++) {
		if (at >= slot->stored)
			break;
		key = cpu * keep + at;
		delay = bpf_map_lookup_elem(&longest, &key);
		if (!delay)
			break;
		length = delay->end - delay->begin;
		if (length < least) {
			least = length;
			found = at;
		}
	}
	slot->least = least;
	slot->least_at = found;
	return 0;
}

/* The last runs on this CPU, in order: those since `from`, and the one before them. */
static __noinline int copy_runs(struct slot *slot, struct delay *delay, __u32 from)
{
	__u32 at, first, head;

	if (!slot || !delay)
		return 0;
	/* Read once: Linux 6.1 refuses a loop that is entered behind a load in it. */
	head = slot->head;
	delay->runs_seen = head - from + (from > 0);
	first = head - (delay->runs_seen < RUNS ? delay->runs_seen : RUNS);
	for (at = 0; at < RUNS; at++) {
		if (first + at < head)
			delay->runs[at] = slot->recent[(first + at) & (RECENT - 1)];
		else
			delay->runs[at].since = 0;
	}
	return 0;
}

static __always_inline void write_delay(struct slot *slot, struct delay *delay, __u32 cpu)
{
	find_least(slot, cpu);
	if (logs && delay->end - delay->begin > above &&
	    bpf_ringbuf_output(&written, delay, sizeof(*delay), 0))
		slot->lost_delays += 1;
}

static __always_inline void describe(struct delay *delay, struct who who, struct thread *row,
				     __u64 begin, __u64 end, __u32 cpu, __u32 kind)
{
	delay->begin = begin;
	delay->end = end;
	delay->who = who;
	delay->process = row->process;
	delay->prio = row->prio;
	delay->cpu = cpu;
	delay->kind = kind;
	__builtin_memcpy(delay->name, row->name, COMM);
}

/* The sums of a CPU that switches meanwhile may be read some ns ahead of it. */
static __always_inline __u64 since_begin(__u64 sum, __u64 before)
{
	return (__s64)(sum - before) > 0 ? sum - before : 0;
}

/* The time of a group during a wait that ends on this CPU now, which has just added up its own. */
static __always_inline __u64 part_of(struct thread *row, struct slot *slot, int is_here, int at)
{
	__u64 part = is_here ? since_begin(slot->sums[at], row->before[at]) : 0;

	return row->has_moved ? part + row->so_far[at] : part;
}

/* Whether the parts of a wait are its length, but for what a CPU's sums may be ahead by. They are not known
 * if sums did not belong together: a virtual CPU that its host interrupts in the middle of a change leaves
 * its sums so for as long as that takes. */
static __always_inline int adds_up(struct thread *row, struct slot *slot, int is_here, __u64 length)
{
	__u64 sum = 0;
	int at;

#pragma unroll
	for (at = 0; at < SUMS; at++)
		sum += part_of(row, slot, is_here, at);
	return !row->is_misread && sum <= length + AHEAD;
}

/* A waiting thread gets the CPU, whose sums are those until now. */
static __always_inline void end_wait(struct thread *row, struct who who, struct slot *slot,
				     __u32 cpu, __u64 now)
{
	__u64 length = now - row->begun;
	int at, is_here = row->cpu == cpu, is_known = 0;
	struct delay *delay;

	if (row->is_throttled) {
		row->parts[QUOTA] += length;
	} else {
		is_known = adds_up(row, slot, is_here, length);
		/* Its move was missed, if it is not here. */
		if (!is_here || !is_known) {
			slot->unsure += 1;
			slot->unknown += length;
		}
#pragma unroll
		for (at = 0; at < SUMS; at++)
			row->parts[at] += is_known ? part_of(row, slot, is_here, at) : 0;
		if (slot->waiting)
			slot->waiting -= 1;
	}
	row->wait += length;
	row->waits += 1;
	if (length > row->longest)
		row->longest = length;
	count_length(length);
	delay = place_for(slot, cpu, length);
	if (!delay)
		return;
	describe(delay, who, row, row->begun, now, cpu, WAITED);
	delay->here = row->since;
	delay->was_preempted = row->was_preempted;
#pragma unroll
	for (at = 0; at < SUMS; at++)
		delay->parts[at] = is_known ? part_of(row, slot, is_here, at) : 0;
	delay->parts[QUOTA] = row->is_throttled ? length : 0;
	copy_runs(slot, delay, row->head);
	write_delay(slot, delay, cpu);
}

/* A thread without a row that leaves the CPU has had it while others waited. */
static __always_inline void add_taker(struct slot *slot)
{
	struct run *run = &slot->recent[(slot->head - 1) & (RECENT - 1)];
	struct who who = slot->runs;
	struct taker *taker = bpf_map_lookup_elem(&takers, &who), made = {};

	if (taker) {
		taker->ns += slot->charged;
		taker->runs += 1;
		return;
	}
	made.ns = slot->charged;
	made.runs = 1;
	made.process = run->process;
	made.prio = run->prio;
	made.group = run->group;
	__builtin_memcpy(made.name, run->name, COMM);
	if (bpf_map_update_elem(&takers, &who, &made, BPF_NOEXIST))
		slot->lost_takers += slot->charged;
}

#endif
