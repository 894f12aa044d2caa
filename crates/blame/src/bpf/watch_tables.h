/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/* What `watch.bpf.c` stores: of each CPU, of each thread, and of each delay; and what is asked. */
#ifndef NOISEFLOOR_WATCH_TABLES_H
#define NOISEFLOOR_WATCH_TABLES_H

#include "nesting.h"
#include <bpf/bpf_core_read.h>

#define COMM 16
/* Half of them can be used before one of a thread's places might not be free. */
#define THREADS 32768
/* The places in which a thread can be. */
#define PLACES 64
#define TAKERS 16384
#define INTERRUPTIONS 512
#define NUMBERS 256
#define PROCESSES 8
#define CGROUPS 8192
/* The runs that a slot stores, a power of two, and those of a delay. */
#define RECENT 64
#define RUNS 16
#define KEEP_MAX 64
/* ns by which the sums of a CPU may be ahead when they are read without its lock. */
#define AHEAD 10000
/* Of the histogram: steps of 1/32 of a power of two. */
#define FINE 5
#define BINS 1920
/* The bytes of delays that are not read yet. */
#define WRITTEN (1 << 20)

/* A thread, by its TID and its start time (TIDs are reused). */
struct who {
	__u32 tid;
	__u32 born;
};

/* What has a CPU while a watched thread waits for it. */
enum group {
	IDLE,
	WATCHED, /* other threads of the same program */
	OTHERS,
	REALTIME,
	KERNEL,
	INTERRUPTS,
	QUOTA, /* none of them: its cgroup's quota is used up */
	GROUPS,
};

/* The groups of which a CPU has a sum. */
#define SUMS QUOTA

/* A run of a thread on a CPU, until the next one there. */
struct run {
	__u64 since;
	__u32 tid;
	__u32 process;
	__s32 prio;
	__u32 group;
	char name[COMM];
};

/* A CPU, in whole cache lines: an interrupt changes the first three. */
struct slot {
	struct nesting nesting;
	__u64 version; /* odd while the sums, the group or the interrupts change */
	__u64 since; /* the last switch; 0: none was seen */
	__u64 interrupted; /* ns since then */
	__u32 interruptions; /* since then */
	__u32 has_ended; /* nothing counts any more */
	__u32 group; /* of the current thread */
	__u32 is_watched; /* the current thread */
	struct who runs;
	__u32 waiting; /* watched threads */
	__u32 counted; /* those of `arrived` that are in `waiting`, or were */
	__u32 arrived; /* watched threads that were moved to this CPU while they waited */
	__u32 head; /* runs ever stored */
	__u64 sums[SUMS]; /* ns of each group until the last switch */
	__u64 charged; /* ns, times the number of waiting threads, of the current run */
	__u64 charged_at;
	__u64 inside; /* a watched cgroup, and another one: the last ones that were looked up */
	__u64 outside;
	__u64 least; /* the shortest of the longest delays */
	__u32 least_at;
	__u32 stored; /* the number of delays */
	__u64 lost_threads; /* events of threads for which there was no room */
	__u64 lost_takers; /* ns of threads for which there was no room */
	__u64 lost_delays; /* that were not written */
	__u64 unsure; /* waits whose parts are not known */
	__u64 unknown; /* ns of them */
	__u64 unseen; /* ns before switches to threads that were not traced */
	__u64 spare[6];
	struct run recent[RECENT];
};

enum state {
	UNKNOWN,
	SLEEPS,
	WAITS,
	RUNS_NOW,
};

/* A watched thread, in whole cache lines; what each switch changes comes first. */
struct thread {
	struct who who; /* TID 0: free */
	__u16 cpu;
	__u8 state;
	__u8 was_preempted; /* before the current wait */
	__u8 is_throttled;
	__u8 has_moved; /* during the current wait */
	__u8 is_misread; /* a CPU's sums changed while they were read for it */
	__u8 unused;
	__u64 since; /* of the current state, on the current CPU */
	__u64 begun; /* the current wait */
	__u64 run; /* ns on a CPU, interrupts included */
	__u64 wait; /* ns that it waited for a CPU */
	__u64 waits;
	__u64 longest;
	__u32 head; /* of the CPU's runs when the wait began there */
	__s32 prio;
	__u64 slept;
	__u64 before[SUMS];
	__u64 took; /* ns of a CPU for which watched threads waited, summed over these */
	__u64 runs; /* in which it did */
	__u64 preempted; /* it could have continued when it left the CPU */
	__u64 user, system, minor, major;
	__u32 process;
	__u32 has_ended;
	__u64 parts[GROUPS]; /* of `wait` */
	__u64 interrupted; /* ns of `run` */
	__u64 interruptions;
	__u64 moved; /* to another CPU */
	__u64 user_before, system_before, minor_before, major_before;
	__u64 so_far[SUMS]; /* of the current wait, on other CPUs */
	char name[COMM];
	__u32 place; /* of this row */
	__u32 spare[3];
};

/* Another thread that had a CPU while watched threads waited for it. */
struct taker {
	__u64 ns; /* summed over these threads */
	__u64 runs;
	__u32 process;
	__s32 prio;
	__u32 group;
	__u32 spare;
	char name[COMM];
};

struct source {
	__u32 level;
	__u32 id;
};

struct interruption {
	__u64 ns;
	__u64 count;
	__u64 longest;
};

enum kind {
	WAITED,
	INTERRUPTED,
};

/* A delay of a watched thread. */
struct delay {
	__u64 begin; /* CLOCK_MONOTONIC */
	__u64 end;
	__u64 here; /* since when it waited on this CPU */
	__u64 parts[GROUPS];
	struct who who;
	__u32 process;
	__s32 prio;
	__u32 cpu;
	__u32 kind;
	__u32 was_preempted;
	__u32 runs_seen; /* runs on this CPU, of which `runs` has the last ones, in order */
	struct source source; /* of an interruption */
	char name[COMM];
	struct run runs[RUNS];
};

/* The watched processes and their number; or with a hierarchy of cgroups, the cgroups in `cgroups`. */
const volatile __u32 processes[PROCESSES];
const volatile __u32 process_count;
/* 0: no cgroups; 1: those of v2; else those of a hierarchy of v1. */
const volatile __u32 by_cgroup;
/* The index of its controller. */
const volatile __u32 controller;
const volatile __u32 hierarchy;
/* The number of places for threads, a power of two, minus 1. */
const volatile __u32 last_thread = THREADS - 1;
/* The number of the longest delays that are stored, for each CPU. */
const volatile __u32 keep = 1;
/* Whether each of them is also written when it happens, and not only if it is longer than that. */
const volatile __u8 logs;
const volatile __u64 above;

/* The flag has the effect that values begin at cache lines; so it does for threads. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, __u32);
	__type(value, struct slot);
} slots SEC(".maps");

/* The watched threads: each is in one of the places that follow its TID's. A hash table of the kernel takes 50 ns to
 * find one, three times per switch. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, THREADS);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, __u32);
	__type(value, struct thread);
} threads SEC(".maps");

/* The places of threads that have ended. */
struct {
	__uint(type, BPF_MAP_TYPE_QUEUE);
	__uint(max_entries, THREADS);
	__type(value, __u32);
} ended SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, TAKERS);
	__type(key, struct who);
	__type(value, struct taker);
} takers SEC(".maps");

/* By level and number, if that is below `NUMBERS`: without a hash table. By the CPU's own program only,
 * so that no update is lost. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, LEVELS * NUMBERS);
	__type(key, __u32);
	__type(value, struct interruption);
} interruptions SEC(".maps");

/* Those with other numbers: devices of large machines. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_HASH);
	__uint(max_entries, INTERRUPTIONS);
	__type(key, struct source);
	__type(value, struct interruption);
} others SEC(".maps");

/* The cgroups whose threads are watched. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, CGROUPS);
	__type(key, __u64);
	__type(value, __u8);
} cgroups SEC(".maps");

/* The number of waits by their length. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, BINS);
	__type(key, __u32);
	__type(value, __u64);
} lengths SEC(".maps");

/* The longest delays of each CPU. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct delay);
} longest SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, WRITTEN);
} written SEC(".maps");

#endif
