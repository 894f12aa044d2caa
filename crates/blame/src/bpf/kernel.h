/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/* The few fields of the kernel's own structures that are read. Their places are those of
 * the running kernel: the loader looks them up in its BTF (CO-RE). */
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
/* bpf_helper_defs.h names these. */
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u32 __wsum;

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct task_struct {
	int pid;
	int tgid;
	int prio;
	int nr_cpus_allowed;
	char comm[16];
};

struct hrtimer {
	void *function;
};

#pragma clang attribute pop

/* Only what raw tracepoints get: their arguments, as the kernel calls them. */
struct bpf_raw_tracepoint_args {
	__u64 args[0];
};

enum bpf_map_type {
	BPF_MAP_TYPE_ARRAY = 2,
};

enum {
	BPF_F_MMAPABLE = 1024,
};

#endif
