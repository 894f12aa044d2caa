/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/* Records the kernel's activities on the measured CPUs, one record for each that ended.
 *
 * Each CPU has a lane: for each level of concurrent activities the current one, and the
 * number of records in the level's ring. Only the CPU itself writes to its lane, and an
 * interruption of the writer is of another level. So no lock and no atomic access is needed.
 * User space reads all of it through mmap, without a system call. */
#include "kernel.h"
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#define NAMED 0xffffffff /* no vector has this number: `detail` is the address of its name */
#define COMM 16

enum level {
	THREAD,
	SOFTIRQ,
	HANDLER,
	VECTOR,
	NMI,
	QUOTA, /* no level, either: a measured thread's CPU quota is used up */
	STEAL, /* no level: the hypervisor's clock, which is read and does not interrupt */
	RINGS,
};

struct slot {
	__u64 start; /* 0: none; STEAL: a reading before the scheduler's last one */
	__u64 detail; /* STEAL: the stolen time by then */
	__u64 head; /* records ever written */
	__u32 first; /* the ring's first record among those of all CPUs */
	__u32 mask; /* its number of records, a power of two, minus one */
};

/* Cache lines, of which an event needs the first, and the one with its level. What programs need to know
 * at each event is here, and not in their constants, which are on a page of their own. */
struct lane {
	__u32 place; /* the index among the measured CPUs, plus one; 0 for others */
	__u32 own; /* `own_process` */
	__u64 looked; /* the time of the last reading of stolen time */
	__u64 clock; /* and the run queue's clock then */
	struct cfs_rq *limited; /* of the measured thread that ran last, if a CPU quota applies to it */
	struct slot slots[RINGS];
	__u64 spinner; /* classic.h: the thread that spun last */
	struct rq *queue; /* of this CPU; 0: not known yet */
	__u64 unused[6];
};

struct record {
	__u64 start;
	__u64 end;
	__u64 detail; /* the first timer's function; THREAD: process << 32 | priority; STEAL: ns */
	__u64 id;     /* vector, IRQ, softirq, thread; above its 32 bits the marks below */
};

/* A thread of a program, or of a descendant of it. */
#define OWN (1ULL << 32)
/* It could have continued when it left the CPU. */
#define RUNNABLE (1ULL << 33)
/* It is a kernel thread. */
#define KERNEL (1ULL << 34)
/* It belongs to the process that traces, or to one that supervises a program for it. */
#define SELF (1ULL << 35)
/* A signal stopped it, a tracer, or the freezer of its cgroup; it has ended. */
#define STOPPED (1ULL << 36)
#define TRACED (1ULL << 37)
#define FROZEN (1ULL << 38)
#define DEAD (1ULL << 39)

struct comm {
	char name[COMM];
};

/* The process of the spinning threads, in the kernel's numbers: none, until `hello` stores
 * the one that runs it. */
__u32 own_process = -1;

/* By CPU, up to the last one that is measured. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct lane);
} lanes SEC(".maps");

/* The processes that this one started, which supervise programs, and their descendants, which are
 * the programs. */
enum child {
	SUPERVISOR = 1,
	PROGRAM,
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u8);
} children SEC(".maps");

/* The rings of each lane. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct record);
} rings SEC(".maps");

/* The threads' names, parallel to the rings of their level. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct comm);
} comms SEC(".maps");

/* A run of a program's thread on a CPU that is not measured. */
struct outside {
	struct record run;
	__u64 cpu;
};

struct {
	__uint(type, BPF_MAP_TYPE_QUEUE);
	__uint(max_entries, 1);
	__type(value, struct outside);
} outside_runs SEC(".maps");

/* Each CPU that is not measured: its last switch, and the runs for which the queue had no room. */
struct outside_cpu {
	__u64 since;
	__u64 lost;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct outside_cpu);
} outside_cpus SEC(".maps");

/* Wakes the reader: perf events of the CPUs. */
struct {
	__uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(__u32));
} alarms SEC(".maps");

/* 0 if this CPU is not measured. */
static __always_inline struct lane *lane_here(void)
{
	__u32 cpu = bpf_get_smp_processor_id();
	struct lane *lane = bpf_map_lookup_elem(&lanes, &cpu);

	return lane && lane->place ? lane : 0;
}

/* The next record of a ring, which becomes visible with `publish`. */
static __always_inline struct record *next_record(struct slot *slot)
{
	__u32 key = slot->first + (slot->head & slot->mask);

	return bpf_map_lookup_elem(&rings, &key);
}

/* With the alarm at each quarter of a ring. */
static __always_inline void publish(void *context, struct slot *slot, __u32 level)
{
	__u32 ring = level;

#ifdef __TARGET_ARCH_arm64
	/* The only instruction with a memory barrier that all versions of BPF have. */
	__sync_fetch_and_add(&slot->head, 1);
#else
	barrier();
	*(volatile __u64 *)&slot->head = slot->head + 1;
#endif
	if (unlikely(!(slot->head & (slot->mask >> 2))))
		bpf_perf_event_output(context, &alarms, BPF_F_CURRENT_CPU, &ring, sizeof(ring));
}

static __always_inline void write(void *context, struct lane *lane, __u32 level, __u64 id,
				  __u64 start, __u64 end, __u64 detail)
{
	struct slot *slot = &lane->slots[level];
	struct record *record = next_record(slot);

	if (!record)
		return;
	record->start = start;
	record->end = end;
	record->detail = detail;
	record->id = id;
	publish(context, slot, level);
}

/* Whether the kernel has the helper that returns the running task with its type (see `access`). */
static __always_inline int has_task(void)
{
	return bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_get_current_task_btf);
}

/* Whether the kernel reads the hypervisor's clock, and its run queues can be found. */
static __always_inline int has_steal(void)
{
	return bpf_core_field_exists(struct rq, prev_steal_time_rq) &&
	       bpf_core_field_exists(struct sched_entity, cfs_rq) &&
	       bpf_core_field_exists(struct cfs_rq, rq);
}

/* The run queue of this CPU, which is that of the running task's group; 0 if it is not known. */
static __always_inline struct rq *queue_of(struct task_struct *running)
{
	return has_steal() ? running->se.cfs_rq->rq : 0;
}

/* Since 6.2 an address can be read as what it is, without a call: to return from one takes 10 ns if
 * the kernel guards its returns. */
extern void *bpf_rdonly_cast(const void *address, __u32 type) __ksym __weak;

static __always_inline struct rq *queue_here(struct lane *lane)
{
	if (!has_steal())
		return 0;
	if (!&bpf_rdonly_cast)
		return has_task() ? queue_of(bpf_get_current_task_btf()) : 0;
	if (unlikely(!lane->queue))
		lane->queue = queue_of(bpf_get_current_task_btf());
	return bpf_rdonly_cast(lane->queue, bpf_core_type_id_kernel(struct rq));
}

/* Reads the time that the hypervisor took from this CPU since boot. The scheduler reads the
 * hypervisor's clock whenever it updates its own (`update_rq_clock_task` in
 * kernel/sched/core.c): at each tick and each switch, which is visible by a changed clock of
 * the run queue. The difference to the value before becomes a record that begins at a
 * reading known to be earlier. Interrupts are disabled here, so that readings do not
 * interrupt each other. */
static __always_inline void read_steal(void *context, struct lane *lane, struct rq *rq, __u64 now)
{
	struct slot *slot = &lane->slots[STEAL];
	__u64 stolen, clock;

	if (!has_steal() || !rq)
		return;
	/* In this order: another CPU may be writing the clock, and then the stolen time. */
	stolen = *(volatile __u64 *)&rq->prev_steal_time_rq;
	clock = *(volatile __u64 *)&rq->clock;
	if (clock != lane->clock) {
		lane->clock = clock;
		if (unlikely(stolen != slot->detail && slot->start))
			write(context, lane, STEAL, 0, slot->start, now,
			      stolen - slot->detail);
		slot->detail = stolen;
		slot->start = lane->looked;
	}
	lane->looked = now;
}

/* How the running task is read. Programs get it with its type, and can read it directly. Only at classic
 * tracepoints before 5.11 (`bpf_get_current_task_btf`) they get its address, and a helper copies each
 * field. */
enum access {
	DIRECT,
	COPIED,
};

#define RUNNING(access, task, field)                                                       \
	((access) == DIRECT ? (task)->field : BPF_CORE_READ(task, field))

/* Whether the kernel has CPU quotas (CONFIG_CFS_BANDWIDTH). */
static __always_inline int has_quotas(void)
{
	return bpf_core_field_exists(struct sched_entity, cfs_rq) &&
	       bpf_core_field_exists(struct cfs_rq, tg) &&
	       bpf_core_field_exists(struct cfs_rq, throttle_count) &&
	       bpf_core_field_exists(struct cfs_bandwidth, hierarchical_quota);
}

/* The thread's queue on this CPU, if the CPU quota of its group or of an ancestor applies to it: it
 * applies to no real-time thread. */
static __always_inline struct cfs_rq *limited_queue(struct task_struct *thread, enum access access)
{
	__s64 quota;

	if (!has_quotas() || RUNNING(access, thread, prio) < MAX_RT_PRIO)
		return 0;
	quota = access == DIRECT ?
			thread->se.cfs_rq->tg->cfs_bandwidth.hierarchical_quota :
			BPF_CORE_READ(thread, se.cfs_rq, tg, cfs_bandwidth.hierarchical_quota);
	if (quota == NO_QUOTA)
		return 0;
	return access == DIRECT ? thread->se.cfs_rq : BPF_CORE_READ(thread, se.cfs_rq);
}

/* Since 6.18, the threads of a throttled queue remain in it until they return to user mode. */
static __always_inline int throttles_threads(void)
{
	return bpf_core_field_exists(struct task_struct, throttled);
}

/* Whether the quota keeps a thread that leaves the CPU from running. */
static __always_inline int is_throttled(struct task_struct *leaving, enum access access)
{
	return !throttles_threads() || RUNNING(access, leaving, throttled);
}

/* Records how long the queue of the measured thread is throttled, from a time when it `may_begin`. The
 * scheduler throttles a queue when a thread of it leaves the CPU, and unthrottles it in the interrupt of
 * the period's timer, or in one that another CPU sends (before 6.3 without one). */
static __always_inline void read_quota(void *context, struct lane *lane, __u64 now,
				       int may_begin)
{
	struct slot *slot = &lane->slots[QUOTA];
	struct cfs_rq *limited = lane->limited;
	int throttled = 0;

	if (!has_quotas() || !unlikely(limited || slot->start))
		return;
	if (limited)
		throttled = BPF_CORE_READ(limited, throttle_count);
	if (throttled && !slot->start && may_begin) {
		slot->start = now;
	} else if (!throttled && slot->start) {
		write(context, lane, QUOTA, 0, slot->start, now, 0);
		slot->start = 0;
	}
}

/* The same at the end of an interrupt. It tells nothing about a thread that runs. */
static __always_inline void read_quota_of_waiting(void *context, struct lane *lane, __u64 now)
{
	if (!has_quotas() || !unlikely(lane->limited))
		return;
	if (has_task() && bpf_get_current_task_btf()->se.cfs_rq == lane->limited)
		return;
	read_quota(context, lane, now, !throttles_threads());
}

static __always_inline int begin(void *context, __u32 level)
{
	struct lane *lane = lane_here();
	__u64 now;

	if (!lane)
		return 0;
	now = bpf_ktime_get_ns();
	lane->slots[level].detail = 0;
	lane->slots[level].start = now;
	if (level == VECTOR)
		read_steal(context, lane, queue_here(lane), now);
	return 0;
}

static __always_inline int end(void *context, __u32 level, __u64 id)
{
	struct lane *lane = lane_here();
	struct slot *slot;
	__u64 start, now;

	if (!lane)
		return 0;
	slot = &lane->slots[level];
	start = slot->start;
	slot->start = 0;
	if (!start)
		return 0;
	now = bpf_ktime_get_ns();
	write(context, lane, level, id, start, now, slot->detail);
	if (level == VECTOR)
		read_steal(context, lane, queue_here(lane), now);
	/* The timers of arm64 are devices. */
	if (level == VECTOR || level == HANDLER)
		read_quota_of_waiting(context, lane, now);
	return 0;
}

SEC("raw_tp")
int vector_entry(struct bpf_raw_tracepoint_args *args)
{
	return begin(args, VECTOR);
}

SEC("raw_tp")
int vector_exit(struct bpf_raw_tracepoint_args *args)
{
	return end(args, VECTOR, args->args[0]);
}

SEC("raw_tp/irq_handler_entry")
int handler_entry(struct bpf_raw_tracepoint_args *args)
{
	return begin(args, HANDLER);
}

SEC("raw_tp/irq_handler_exit")
int handler_exit(struct bpf_raw_tracepoint_args *args)
{
	return end(args, HANDLER, args->args[0]);
}

SEC("raw_tp/softirq_entry")
int softirq_entry(struct bpf_raw_tracepoint_args *args)
{
	return begin(args, SOFTIRQ);
}

SEC("raw_tp/softirq_exit")
int softirq_exit(struct bpf_raw_tracepoint_args *args)
{
	return end(args, SOFTIRQ, args->args[0]);
}

/* (reason): arm64's name of an inter-processor interrupt, which has no number. */
SEC("raw_tp/ipi_exit")
int ipi_exit(struct bpf_raw_tracepoint_args *args)
{
	struct lane *lane = lane_here();

	if (lane)
		lane->slots[VECTOR].detail = args->args[0];
	return end(args, VECTOR, NAMED);
}

/* The interrupt in which a timer expires, unless another one has in it already. arm64's
 * timer has a handler like a device. */
static __always_inline struct slot *unnamed_timer(void)
{
	struct lane *lane = lane_here();
	struct slot *slot;

	if (!lane)
		return 0;
	slot = &lane->slots[lane->slots[VECTOR].start ? VECTOR : HANDLER];
	return slot->start && !slot->detail ? slot : 0;
}

/* (hrtimer, now): the first timer's function names the interrupt. */
SEC("tp_btf/hrtimer_expire_entry")
int timer_expired(__u64 *args)
{
	struct hrtimer *timer = (void *)args[0];
	struct slot *slot = unnamed_timer();

	if (slot)
		slot->detail = (__u64)timer->function;
	return 0;
}

/* Without a begin event, but with a duration. */
static __always_inline int end_of_nmi(void *context, __u64 handler, __u64 took)
{
	struct lane *lane = lane_here();
	__u64 now;

	if (!lane)
		return 0;
	now = bpf_ktime_get_ns();
	write(context, lane, NMI, 0, now - took, now, handler);
	return 0;
}

/* (handler, duration, whether it handled the NMI) */
SEC("raw_tp/nmi_handler")
int nmi(struct bpf_raw_tracepoint_args *args)
{
	return end_of_nmi(args, args->args[0], args->args[1]);
}

/* A thread's name. Two loads take less time than a helper that copies. */
static __always_inline void name_of(struct comm *comm, struct task_struct *task,
				    enum access access)
{
	if (access == COPIED) {
		BPF_CORE_READ_INTO(&comm->name, task, comm);
	} else {
		((__u64 *)comm->name)[0] = ((__u64 *)task->comm)[0];
		((__u64 *)comm->name)[1] = ((__u64 *)task->comm)[1];
	}
}

/* A spinner belongs to this process, and has the name spin/CPU. Other threads of this
 * process count like all others, and on a machine with one CPU they run there, too. */
static __always_inline int is_spinners(const char *name)
{
	return name[0] == 's' && name[1] == 'p' && name[2] == 'i' && name[3] == 'n' &&
	       name[4] == '/';
}

static __always_inline int spins(struct lane *lane, struct task_struct *thread,
				 enum access access)
{
	struct comm comm;

	if (RUNNING(access, thread, tgid) != lane->own)
		return 0;
	name_of(&comm, thread, access);
	return is_spinners(comm.name);
}

/* A thread that measures: a spinner, or that of `latency` or `jitter`, which have these names. */
static __always_inline int measures(const char *name)
{
	return is_spinners(name) ||
	       (name[0] == 'l' && name[1] == 'a' && name[2] == 't' && name[3] == 'e' &&
		name[4] == '/') ||
	       (name[0] == 'j' && name[1] == 'i' && name[2] == 't' && name[3] == 't' &&
		name[4] == 'e' && name[5] == 'r' && !name[6]);
}

/* Reads the quota of a thread that leaves the CPU, if its own counts, or of the one that did so last. */
static __always_inline void read_quota_at_switch(void *context, struct lane *lane,
						 struct task_struct *leaving, enum access access,
						 __u64 mark, int counts, __u64 now)
{
	int may_begin = !throttles_threads();

	if (mark & DEAD) {
		lane->limited = 0;
	} else if (mark & OWN || counts) {
		lane->limited = limited_queue(leaving, access);
		may_begin = is_throttled(leaving, access);
	}
	read_quota(context, lane, now, may_begin);
}

/* The running thread leaves the CPU to another, which may be a spinner. */
static __always_inline int leave(void *context, struct lane *lane, struct task_struct *running,
				 enum access access, int to_spinner, __u64 mark)
{
	struct slot *slot = &lane->slots[THREAD];
	__u64 now = bpf_ktime_get_ns();
	__u64 start = slot->start;
	__u32 key, process = RUNNING(access, running, tgid);
	int is_own = process == lane->own;
	struct record *record;
	struct comm name, *comm;

	name_of(&name, running, access);
	read_steal(context, lane, access == DIRECT ? queue_of(running) : 0, now);
	read_quota_at_switch(context, lane, running, access, mark,
			     is_own && measures(name.name), now);
	slot->start = to_spinner ? 0 : now;
	/* A spinner that was named after the switch to it was not recognised then. */
	if (!start || (is_own && is_spinners(name.name)))
		return 0;
	record = next_record(slot);
	key = (lane->place - 1) * (slot->mask + 1) + (slot->head & slot->mask);
	comm = bpf_map_lookup_elem(&comms, &key);
	if (!record || !comm)
		return 0;
	record->start = start;
	record->end = now;
	record->detail = (__u64)process << 32 | (__u32)RUNNING(access, running, prio);
	if (is_own)
		mark |= SELF;
	if (RUNNING(access, running, flags) & PF_KTHREAD)
		mark |= KERNEL;
	record->id = RUNNING(access, running, pid) | mark;
	*comm = name;
	publish(context, slot, THREAD);
	return 0;
}

/* (preempted, previous, next) */
SEC("tp_btf/sched_switch")
int switched(__u64 *args)
{
	struct task_struct *running = (void *)args[1], *next = (void *)args[2];
	struct lane *lane = lane_here();

	if (!lane)
		return 0;
	return leave(args, lane, running, DIRECT, spins(lane, next, DIRECT), 0);
}

/* (parent, child): also for a thread, whose process is known then. */
SEC("raw_tp/sched_process_fork")
int forked(struct bpf_raw_tracepoint_args *args)
{
	struct task_struct *parent = (void *)args->args[0], *child = (void *)args->args[1];
	__u32 from = BPF_CORE_READ(parent, tgid), process = BPF_CORE_READ(child, tgid);
	__u8 kind = from == own_process ? SUPERVISOR : PROGRAM;

	if (process == own_process || process == from)
		return 0;
	if (kind == SUPERVISOR || bpf_map_lookup_elem(&children, &from))
		bpf_map_update_elem(&children, &process, &kind, BPF_ANY);
	return 0;
}

/* (task): none of it runs any more. */
SEC("raw_tp/sched_process_free")
int freed(struct bpf_raw_tracepoint_args *args)
{
	struct task_struct *task = (void *)args->args[0];
	__u32 process = BPF_CORE_READ(task, tgid);

	if (BPF_CORE_READ(task, pid) == process)
		bpf_map_delete_elem(&children, &process);
	return 0;
}

/* Why a thread of a program leaves the CPU. The freezer of version 2 lets it wait for a signal. */
static __always_inline __u64 marks_of(struct task_struct *leaving, int is_preempted, __u32 state)
{
	if (is_preempted || !state)
		return OWN | RUNNABLE;
	if (state & TASK_STOPPED)
		return OWN | STOPPED;
	if (state & TASK_TRACED)
		return OWN | TRACED;
	if (state & TASK_FROZEN ||
	    (state & TASK_INTERRUPTIBLE && leaving->jobctl & JOBCTL_TRAP_FREEZE))
		return OWN | FROZEN;
	return state & TASK_DEAD ? OWN | DEAD : OWN;
}

/* The same as `leave` on a CPU that is not measured: only runs of the program are recorded. */
static __always_inline int leave_outside(struct task_struct *running, __u64 marks)
{
	__u32 key = 0;
	struct outside_cpu *here = bpf_map_lookup_elem(&outside_cpus, &key);
	struct outside outside = {};

	if (!here)
		return 0;
	outside.run.start = here->since;
	outside.run.end = here->since = bpf_ktime_get_ns();
	if (!(marks & OWN) || !outside.run.start)
		return 0;
	outside.run.detail = (__u64)running->tgid << 32 | (__u32)running->prio;
	outside.run.id = running->pid | marks;
	outside.cpu = bpf_get_smp_processor_id();
	if (bpf_map_push_elem(&outside_runs, &outside, 0))
		here->lost++;
	return 0;
}

/* The same with marked threads, without spinners. Since 5.18 the last argument is the
 * previous task's state, 0 if it could have continued. */
SEC("tp_btf/sched_switch")
int switched_marked(__u64 *args)
{
	struct task_struct *running = (void *)args[1];
	__u32 process = running->tgid;
	__u8 *child = bpf_map_lookup_elem(&children, &process);
	struct lane *lane = lane_here();
	__u64 marks = 0;

	if (child)
		marks = *child == PROGRAM ? marks_of(running, args[0], args[3]) :
					    SELF;
	if (!lane)
		return leave_outside(running, marks);
	return leave(args, lane, running, DIRECT, 0, marks);
}

/* Run once, by this process itself. Returns its number. */
SEC("raw_tp")
int hello(struct bpf_raw_tracepoint_args *args)
{
	own_process = bpf_get_current_pid_tgid() >> 32;
	return own_process;
}

#include "classic.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";
