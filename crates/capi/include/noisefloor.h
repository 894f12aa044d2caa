/*
 * noisefloor: take a CPU for one thread, wait until its tick has stopped, measure what is
 * still lost there, and give everything back. Link with -lnoisefloor.
 *
 * A program isolates a CPU, and the thread that is to run there enters:
 *
 *     nf_options options = { .size = sizeof(options), .wishes = NF_UNTHROTTLED | NF_IRQS };
 *     nf_isolation *cpu;
 *     if (nf_isolate(&options, &cpu) < 0 || nf_enter(cpu, NF_FIFO | NF_MEMORY, 0) < 0)
 *         errx(1, "%s", nf_last_error());
 *     if (nf_wait(cpu, 1000000000, 0, NULL) < 0)
 *         warnx("%s", nf_last_error());
 *     work();
 *     nf_release(cpu);
 *
 * Functions return a code: NF_OK or a number above it, or one below zero. Any thread may call
 * any of them, but not from a signal handler, and not in a child after fork() until it calls
 * exec(): what is isolated is the parent's. A handle that was released is refused, not
 * followed.
 *
 * Made by `cargo xtask header`; what is changed here is lost.
 */

#ifndef NOISEFLOOR_H
#define NOISEFLOOR_H

#include <stddef.h>
#include <stdint.h>

/* It is done. Everything that failed is below. */
#define NF_OK 0

/*
 * The call makes no sense: a null pointer, a number out of range, a handle that was released,
 * a thread that has not entered.
 */
#define NF_USAGE (-1)

/* This machine has no such CPU, it is offline, or not this process's to use. */
#define NF_NO_CPU (-2)

/* A privilege is missing; nf_last_error() says which. */
#define NF_PRIVILEGE (-3)

/*
 * This kernel cannot do it, as it is built or as it was booted; nf_last_error() says how it
 * could.
 */
#define NF_UNSUPPORTED (-4)

/* The tick has not stopped in time; nf_last_error() says what keeps it. */
#define NF_LATE (-5)

/* The machine would be taken over, or another program has what was asked for. */
#define NF_UNSAFE (-6)

/* What is to be changed cannot be written down, so it is not changed. */
#define NF_JOURNAL (-7)

/* The kernel refused for a reason of its own. */
#define NF_SYSTEM (-8)

/* There is nothing to tell: no gap was seen, so none is the median one. */
#define NF_NOTHING (-9)

/* A mistake in this library; please report it. */
#define NF_BUG (-70)

/*
 * Take the CPU of the field cpu, not the best one: the first whose tick can stop, else the
 * first isolated one, else the least interrupted one; CPU 0 only if asked for.
 */
#define NF_ON_CPU 1

/*
 * Let real-time threads have all of the CPU's time (RT throttling, and since Linux 6.12 the
 * fair server).
 */
#define NF_UNTHROTTLED 2

/* Move device interrupts off the CPU. */
#define NF_IRQS 4

/* Move unbound workqueues off the CPU. */
#define NF_WORKQUEUES 8

/* Move the kernel's movable threads off the CPU. */
#define NF_KTHREADS 16

/* Put this process into an isolated partition of the CPU (cgroup v2). */
#define NF_PARTITION 32

/* Let no CPU sleep so deep that it takes longer than dma_latency_us to wake. */
#define NF_DMA_LATENCY 64

/* For nf_enter: SCHED_FIFO, before ordinary threads. Threads that are started are ordinary. */
#define NF_FIFO 256

/* For nf_enter: lock the process's memory, all of it there and near the CPU. */
#define NF_MEMORY 512

/* For nf_wait: leave the CPU now and then and come back, so that the kernel tries again. */
#define NF_FORCED 4096

/* For nf_wait: make sure that the ticks do not come any more, which takes five of them. */
#define NF_CONFIRMED 8192

/* Gaps that were seen. */
typedef struct nf_gaps nf_gaps;

/* A CPU that is kept free. */
typedef struct nf_isolation nf_isolation;

/*
 * What to do for a CPU. Set size to sizeof(nf_options), and everything else to zero but for
 * what is wanted.
 */
typedef struct {
    /* sizeof(nf_options). */
    size_t size;
    /* NF_ON_CPU, NF_UNTHROTTLED, ..., NF_DMA_LATENCY, added up. */
    uint32_t wishes;
    /* The CPU, with NF_ON_CPU. */
    uint32_t cpu;
    /* Microseconds, with NF_DMA_LATENCY. */
    uint32_t dma_latency_us;
    /* Zero. */
    uint32_t reserved;
} nf_options;

/* What was seen, as a whole. Set size to sizeof(nf_summary) before it is asked for. */
typedef struct {
    /* sizeof(nf_summary). */
    size_t size;
    /* How long the loop ran, in nanoseconds, like all that ends in _ns. */
    uint64_t elapsed_ns;
    /* What one pass of the loop takes: a gap's ends are known as well as that. */
    uint64_t loop_ns;
    /* The shortest gap that was kept. */
    uint64_t threshold_ns;
    /* How many gaps there were. */
    uint64_t gaps;
    /* How many of them are kept, with their length; all, unless there was no more room. */
    uint64_t kept;
    /* All gaps together. */
    uint64_t noise_ns;
    /* The longest gap; 0 where there was none. */
    uint64_t max_ns;
    /* How often another thread took the CPU. */
    uint64_t preempted;
} nf_summary;

#ifdef __cplusplus
extern "C" {
#endif

/* The library's version, as `0.1.0`. */
const char *nf_version(void);

/*
 * Why the last call of this thread that failed did so, and what would help; empty where none
 * has. The text is good until another call of this thread fails.
 */
const char *nf_last_error(void);

/*
 * Keeps a CPU free as far as this process may. What it may not is no failure: nf_refused()
 * tells. Every setting that is changed is written down on disk first, and put back by
 * nf_release(), when the process ends by exit() or by returning from main(), and after
 * anything else (SIGKILL, abort(), _exit()) by the next program that uses this library, by
 * nf_restore() or by `noisefloor restore`. What a killed program has left is put back first.
 *
 * options may be null: the best CPU, and nothing is changed. Returns NF_OK and a handle in
 * isolation, or a code below zero.
 */
int nf_isolate(const nf_options *options, nf_isolation **isolation);

/* The number of the CPU, or a code below zero. */
int nf_cpu(const nf_isolation *isolation);

/* How many settings were changed, or were so already; or a code below zero. */
int nf_done(const nf_isolation *isolation);

/*
 * Writes to text what could not be done and what would help, a line each; nothing where all
 * was done. At most size bytes are written, the last one a zero. Returns how long the whole
 * text is without it, or a code below zero; text may be null.
 */
int nf_refused(const nf_isolation *isolation, char *text, size_t size);

/*
 * Lets the calling thread run on the CPU only, and with wishes (NF_FIFO, NF_MEMORY) more than
 * that. priority is that of SCHED_FIFO, 1 to 99, or 0 for the highest. It is done as a whole or
 * not at all. One thread at a time can have the CPU.
 */
int nf_enter(nf_isolation *isolation, uint32_t wishes, int priority);

/*
 * Gives the thread that has entered its affinity, policy and priority back, and its memory.
 * Any thread may call it.
 */
int nf_leave(nf_isolation *isolation);

/*
 * Waits until the tick of the CPU has stopped, which the calling thread has entered, at most
 * limit_ns nanoseconds; with 0 it looks once. how is NF_FORCED, NF_CONFIRMED, both or 0. The
 * thread spins. How long it took is written to waited_ns, unless that is null.
 *
 * Returns NF_OK; NF_LATE where the tick goes on, and nf_last_error() says what keeps it, for
 * which the thread spins for 25 ticks more; NF_UNSUPPORTED where the kernel never stops it.
 */
int nf_wait(nf_isolation *isolation, uint64_t limit_ns, uint32_t how, uint64_t *waited_ns);

/*
 * Gives everything back: to the thread that entered, and to the machine what no other program
 * needs as well. What somebody else has changed meanwhile stays. The handle is none any more,
 * whatever is returned; another nf_release() of it is NF_USAGE.
 */
int nf_release(nf_isolation *isolation);

/*
 * Puts back what programs have left changed that were killed. Returns how many settings were
 * put back, or a code below zero.
 */
int nf_restore(void);

/*
 * Spins on the calling thread for duration_ns nanoseconds (1 ms to 30 days), and keeps each gap
 * in its running that is longer than threshold_ns; with 0, a threshold is found by running the
 * loop. The thread neither sleeps nor yields before it is done, and calls the kernel only
 * before and after the loop. Any thread can be measured, whether it has entered or not.
 *
 * Returns NF_OK and a handle in gaps, to be given to nf_gaps_free(), or a code below zero.
 */
int nf_measure(uint64_t duration_ns, uint64_t threshold_ns, nf_gaps **gaps);

/* Writes what was seen as a whole to summary, whose field size must be set. */
int nf_summarise(const nf_gaps *gaps, nf_summary *summary);

/*
 * Writes the length to length_ns that at least so many millionths of all kept gaps do not
 * exceed: 500000 is the median, 999900 the 99.99th percentile, 1000000 the longest. It is
 * always the length of a gap that was seen. NF_NOTHING where none is kept.
 */
int nf_quantile(const nf_gaps *gaps, uint32_t millionths, uint64_t *length_ns);

/*
 * Writes when a kept gap began, counted from the loop's beginning, and how long it was. Gaps
 * are counted from 0, in the order in which they came. Either place may be null. NF_NOTHING
 * where there are not so many.
 */
int nf_gap(const nf_gaps *gaps, uint64_t index, uint64_t *start_ns, uint64_t *length_ns);

/*
 * Writes reasons to text not to trust what was seen, a line each; nothing where there is none.
 * As in nf_refused(), size bounds it, and the length of the whole is returned.
 */
int nf_doubts(const nf_gaps *gaps, char *text, size_t size);

/* Forgets what was seen. The handle is none any more; null is none, and fine. */
int nf_gaps_free(nf_gaps *gaps);

#ifdef __cplusplus
}
#endif

#endif  /* NOISEFLOOR_H */
