/*
 * A thread enters an isolated CPU, waits for its tick to stop, measures OS noise, and leaves. The
 * results are checked against system calls, another clock, and quantiles found by counting.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "check.h"
#include "noisefloor.h"

#define DURATION_NS 50000000u

struct thread_state {
    cpu_set_t cpus;
    int policy;
    int priority;
    int nice;
};

static struct thread_state state_now(void)
{
    struct thread_state now;
    struct sched_param parameters;

    memset(&now, 0, sizeof(now));
    CHECK(sched_getaffinity(0, sizeof(now.cpus), &now.cpus) == 0);
    CHECK(sched_getparam(0, &parameters) == 0);
    now.policy = sched_getscheduler(0);
    if (geteuid() != 0 && now.policy != (SCHED_FIFO | SCHED_RESET_ON_FORK))
        now.policy &= ~SCHED_RESET_ON_FORK; /* cannot be cleared without privileges */
    now.priority = parameters.sched_priority;
    now.nice = getpriority(PRIO_PROCESS, 0);
    return now;
}

static uint64_t clock_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static int by_length(const void *one, const void *other)
{
    uint64_t a = *(const uint64_t *)one;
    uint64_t b = *(const uint64_t *)other;

    return (a > b) - (a < b);
}

static void enter(nf_isolation *isolation)
{
    struct thread_state now;
    int code = nf_enter(isolation, NF_FIFO | NF_MEMORY, 0);

    if (code == NF_PRIVILEGE) {
        printf("without SCHED_FIFO: %s\n", nf_last_error());
        CHECK(nf_enter(isolation, 0, 0) == NF_OK);
        return;
    }
    CHECK(code == NF_OK);
    now = state_now();
    CHECK(now.policy == (SCHED_FIFO | SCHED_RESET_ON_FORK));
    CHECK(now.priority == sched_get_priority_max(SCHED_FIFO));
}

static void wait_for_the_tick(nf_isolation *isolation)
{
    uint64_t waited_ns = 0;
    int code = nf_wait(isolation, 10000000u, NF_FORCED, &waited_ns);

    switch (code) {
    case NF_OK:
        printf("the tick stopped after %lu ns\n", (unsigned long)waited_ns);
        break;
    case NF_LATE:
        CHECK(waited_ns >= 10000000u);
        printf("late: %s\n", nf_last_error());
        break;
    case NF_UNSUPPORTED:
        CHECK(strstr(nf_last_error(), "nohz_full=") != NULL);
        printf("unsupported: %s\n", nf_last_error());
        break;
    default:
        fprintf(stderr, "nf_wait: %d: %s\n", code, nf_last_error());
        exit(1);
    }
}

/* A quantile of the lengths, found by counting. */
static uint64_t counted(const uint64_t *sorted, uint64_t count, uint32_t millionths)
{
    uint64_t at = 0;

    while ((at + 1) * 1000000u < count * millionths)
        at++;
    return sorted[at];
}

static void measure(void)
{
    static const uint32_t asked[] = {1, 250000, 500000, 990000, 999900, 1000000};
    nf_summary summary;
    nf_gaps *gaps = NULL;
    uint64_t *lengths;
    uint64_t sum = 0, start, before = 0, began = clock_ns(), wall, found;
    size_t i;

    CHECK(nf_measure(DURATION_NS, 0, &gaps) == NF_OK);
    wall = clock_ns() - began;

    memset(&summary, 0, sizeof(summary));
    summary.size = sizeof(summary);
    CHECK(nf_summarise(gaps, &summary) == NF_OK);
    /* The counter's frequency is known better after the loop than before it. */
    CHECK(summary.elapsed_ns >= DURATION_NS / 10 * 9 && summary.elapsed_ns <= wall);
    CHECK(summary.loop_ns > 0 && summary.threshold_ns > summary.loop_ns);
    CHECK(summary.stored <= summary.gaps && summary.noise_ns <= summary.elapsed_ns);

    lengths = calloc(summary.stored + 1, sizeof(*lengths));
    CHECK(lengths != NULL);
    for (i = 0; i < summary.stored; i++) {
        CHECK(nf_gap(gaps, i, &start, &lengths[i]) == NF_OK);
        CHECK(start >= before && start + lengths[i] <= summary.elapsed_ns);
        before = start + lengths[i];
        sum += lengths[i];
    }
    CHECK(nf_gap(gaps, i, &start, NULL) == NF_NOTHING);
    CHECK(summary.stored != summary.gaps || sum == summary.noise_ns);

    qsort(lengths, summary.stored, sizeof(*lengths), by_length);
    for (i = 0; i < sizeof(asked) / sizeof(*asked); i++) {
        int code = nf_quantile(gaps, asked[i], &found);

        if (summary.stored == 0)
            CHECK(code == NF_NOTHING);
        else
            CHECK(code == NF_OK && found == counted(lengths, summary.stored, asked[i]));
    }
    CHECK(summary.stored != summary.gaps || summary.stored == 0 || found == summary.max_ns);
    printf("%lu gaps, %lu ns of %lu ns\n", (unsigned long)summary.gaps,
           (unsigned long)summary.noise_ns, (unsigned long)summary.elapsed_ns);
    free(lengths);
    CHECK(nf_gaps_free(gaps) == NF_OK);
    CHECK(nf_gaps_free(gaps) == NF_USAGE);
}

int main(int argc, char **argv)
{
    nf_isolation *isolation = NULL;
    struct thread_state before, after;
    char text[8];
    int cpu;

    CHECK(argc == 2 && strcmp(nf_version(), argv[1]) == 0);
    CHECK(nf_last_error()[0] == '\0');
    CHECK(setpriority(PRIO_PROCESS, 0, 3) == 0);
    before = state_now();

    if (nf_isolate(NULL, &isolation) == NF_UNSAFE) {
        printf("skipped: measured: %s\n", nf_last_error());
        return 0;
    }
    cpu = nf_cpu(isolation);
    CHECK(cpu > 0 && nf_done(isolation) == 0);
    memset(text, 'x', sizeof(text));
    CHECK(nf_refused(isolation, text, sizeof(text)) == 0 && text[0] == '\0');

    enter(isolation);
    CHECK(sched_getcpu() == cpu);
    CHECK(nf_enter(isolation, 0, 0) == NF_USAGE);
    wait_for_the_tick(isolation);
    measure();
    CHECK(sched_getcpu() == cpu);

    CHECK(nf_leave(isolation) == NF_OK);
    CHECK(nf_leave(isolation) == NF_USAGE);
    after = state_now();
    CHECK(memcmp(&before, &after, sizeof(before)) == 0);
    CHECK(nf_enter(isolation, 0, 0) == NF_OK);
    CHECK(nf_release(isolation) == NF_OK);
    after = state_now();
    CHECK(memcmp(&before, &after, sizeof(before)) == 0);
    CHECK(nf_release(isolation) == NF_USAGE && nf_cpu(isolation) == NF_USAGE);
    return 0;
}
