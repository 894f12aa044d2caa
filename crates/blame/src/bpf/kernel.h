/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/* The fields of the kernel's own structures that are read. Their offsets are those of the
 * running kernel: the loader takes them from its BTF (CO-RE). */
#ifndef NOISEFLOOR_KERNEL_H
#define NOISEFLOOR_KERNEL_H

typedef unsigned char __u8;
typedef signed char __s8;
typedef unsigned short __u16;
typedef short __s16;
typedef unsigned int __u32;
typedef int __s32;
typedef unsigned long long __u64;
typedef long long __s64;
/* Used in bpf_helper_defs.h. */
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u32 __wsum;

/* A kernel thread: include/linux/sched.h. */
#define PF_KTHREAD 0x00200000
/* The kernel's internal priorities of real-time threads are below this one:
 * include/linux/sched/prio.h. */
#define MAX_RT_PRIO 100
/* Neither a group nor an ancestor of it has a CPU quota: RUNTIME_INF in kernel/sched/sched.h. */
#define NO_QUOTA (-1LL)

/* The states of a thread that leaves the CPU, as tracepoints pass them: the same file. */
#define TASK_INTERRUPTIBLE 0x0001
#define TASK_STOPPED 0x0004
#define TASK_TRACED 0x0008
#define TASK_DEAD 0x0080
#define TASK_FROZEN 0x8000 /* since 6.1 */
/* It is to wait until its cgroup is thawed: include/linux/sched/jobctl.h. */
#define JOBCTL_TRAP_FREEZE (1ULL << 23)

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct thread_info {
	__u64 flags;
	__u64 preempt_count; /* arm64 only */
	int preempt_lazy_count; /* only with the real-time patches, until 6.5 */
	__u32 cpu;
};

/* A CPU's run queue. */
struct rq {
	__u64 clock; /* changes whenever the scheduler updates it */
	__u64 prev_steal_time_rq; /* CONFIG_PARAVIRT_TIME_ACCOUNTING */
};

struct cfs_bandwidth {
	__s64 hierarchical_quota; /* the smallest of a group and its ancestors; 0: not known yet */
};

/* The threads of a cgroup. */
struct task_group {
	struct cfs_bandwidth cfs_bandwidth; /* CONFIG_CFS_BANDWIDTH */
};

/* Those on one CPU. */
struct cfs_rq {
	struct rq *rq; /* CONFIG_FAIR_GROUP_SCHED */
	struct task_group *tg; /* the same */
	int throttle_count; /* CONFIG_CFS_BANDWIDTH: how many of it and its ancestors are throttled */
};

struct sched_entity {
	struct cfs_rq *cfs_rq; /* the same */
};

struct kernfs_node {
	__u64 id; /* the inode of a cgroup's directory */
};

struct cgroup;

struct cgroup_subsys_state {
	struct cgroup *cgroup;
	struct cgroup_subsys_state *parent;
};

struct cgroup_root {
	int hierarchy_id;
};

struct cgroup {
	struct cgroup_subsys_state self;
	struct kernfs_node *kn;
	struct cgroup_root *root;
};

/* The cgroups of a thread. */
struct css_set {
	struct cgroup_subsys_state *subsys[1]; /* by controller */
	struct cgroup *dfl_cgrp; /* that of v2 */
};

/* The scheduler's times of a thread. */
struct sched_info {
	__u64 last_queued; /* by its run queue's clock, when it began to wait there; 0: it does not */
};

struct task_struct {
	struct thread_info thread_info;
	__u32 flags;
	int pid;
	int tgid;
	int prio;
	__u64 jobctl; /* what is to be done before the thread returns to user mode */
	struct sched_entity se;
	struct sched_info sched_info; /* CONFIG_SCHED_INFO */
	__u64 start_time;
	struct css_set *cgroups;
	__u64 utime; /* ns; without CONFIG_VIRT_CPU_ACCOUNTING_GEN of whole ticks */
	__u64 stime;
	unsigned long min_flt;
	unsigned long maj_flt;
	_Bool throttled; /* its cgroup's quota is used up (since 6.18) */
	unsigned int __state; /* what it waits in; 0: it can run (since 5.14) */
	char comm[16] __attribute__((aligned(8))); /* two loads, and not one per letter */
};

struct task_struct___until_5_14 {
	long state;
};

struct hrtimer {
	void *function;
};

/* The registers at a thread's entry into the kernel. */
struct pt_regs {
	__u64 orig_ax; /* x86: the system call's number, or -1 */
	__s32 syscallno; /* arm64: the same */
};

#pragma clang attribute pop

/* Only for raw tracepoints: their arguments, in the kernel's order. */
struct bpf_raw_tracepoint_args {
	__u64 args[0];
};

#define BPF_F_CURRENT_CPU 0xffffffffULL

/* The helpers that not all kernels have: include/uapi/linux/bpf.h. */
enum bpf_func_id {
	BPF_FUNC_get_current_task_btf = 158,
};

enum bpf_map_type {
	BPF_MAP_TYPE_HASH = 1,
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_MAP_TYPE_PERF_EVENT_ARRAY = 4,
	BPF_MAP_TYPE_PERCPU_HASH = 5,
	BPF_MAP_TYPE_PERCPU_ARRAY = 6,
	BPF_MAP_TYPE_QUEUE = 22,
	BPF_MAP_TYPE_RINGBUF = 27,
};

enum {
	BPF_ANY = 0,
	BPF_NOEXIST = 1,
	BPF_F_MMAPABLE = 1024,
};

#endif
