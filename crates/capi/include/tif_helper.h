/*
 * The functions of Intel's Thread Isolation Framework (TIF), for programs that were written for
 * it: they compile unchanged, and link with -lnoisefloor. What is different: nohz_exit() puts
 * back what nohz_enter() found, and so does the process's end; lists of CPUs may begin with 0,
 * be long, and have strides; nothing is printed, and nf_last_error() of noisefloor.h says why
 * something failed.
 *
 * Made by `cargo xtask header`; what is changed here is lost.
 */

#ifndef NOISEFLOOR_TIF_HELPER_H
#define NOISEFLOOR_TIF_HELPER_H

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Waits until the tick has stopped on the calling thread's CPU, at most usecs microseconds; with
 * 0 or less it looks once. If forced is not 0, the thread leaves the CPU now and then and comes
 * back, so that the kernel tries again. Returns 0 as soon as the tick has stopped, -1 where it
 * has not in time, -2 where this kernel does not support it.
 */
long nohz_wait(long usecs, int forced);

/*
 * Lets real-time threads have all the time of the CPUs whose tick can stop, for all programs,
 * until nohz_exit() was called as often as this, or the process ends. Call it before threads
 * take their CPUs. Returns 0, or -1 with errno set.
 *
 * The setting is written down on disk before it is changed: after SIGKILL it is put back by
 * the next program that uses this library, or by `noisefloor restore`.
 */
int nohz_enter(void);

/*
 * Puts back what nohz_enter() found, when it was called as often. Does nothing where
 * nohz_enter() has failed.
 */
void nohz_exit(void);

/*
 * Gives a thread SCHED_FIFO at the highest priority; what it starts is ordinary. pid is the
 * thread's number, 0 for the calling one. Returns 0, or -1 with errno set.
 */
int set_sched_fifo(int pid);

/*
 * Lets a thread run on that CPU only. pid is the thread's number, 0 for the calling one. Returns
 * 0, or -1 with errno set.
 */
int set_cpu_affinity(int cpu, int pid);

/* The first CPU but CPU 0 whose tick can stop (nohz_full=), or -1 where there is none. */
int get_nohz_full_cpu(void);

/* 1 if the tick of that CPU can stop (nohz_full=) and it is not CPU 0, else 0. */
int is_nohz_cpu(int cpu);

#ifdef __cplusplus
}
#endif

#endif  /* NOISEFLOOR_TIF_HELPER_H */
