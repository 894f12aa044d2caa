/*
 * A program as written for TIF: it includes nothing but its header, and has a thread of its own for
 * the work. What differs from machine to machine is printed, not checked.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tif_helper.h"
#include "check.h"

static int cpu;

static void *work(void *unused)
{
    struct sched_param parameters;
    long waited;

    CHECK(set_cpu_affinity(cpu, 0) == 0);
    CHECK(sched_getcpu() == cpu);
    if (set_sched_fifo(0) < 0) {
        CHECK(errno == EPERM);
        printf("no SCHED_FIFO\n");
    } else {
        CHECK(sched_getscheduler(0) == (SCHED_FIFO | SCHED_RESET_ON_FORK));
        CHECK(sched_getparam(0, &parameters) == 0);
        CHECK(parameters.sched_priority == sched_get_priority_max(SCHED_FIFO));
    }
    CHECK(nohz_wait(0, 0) <= 0 && nohz_wait(-5, 0) <= 0);
    waited = nohz_wait(5000, 0);
    if (waited < 0)
        waited = nohz_wait(20000, 1);
    CHECK(waited == 0 || waited == -1 || waited == -2);
    CHECK(sched_getcpu() == cpu);
    printf("waited %ld\n", waited);
    return unused;
}

static void errors(void)
{
    errno = 0;
    CHECK(set_cpu_affinity(-1, 0) == -1 && errno == EINVAL);
    errno = 0;
    CHECK(set_cpu_affinity(2000000000, 0) == -1 && errno == EINVAL);
    errno = 0;
    CHECK(set_cpu_affinity(4095, 0) == -1 && errno == EINVAL);
    errno = 0;
    CHECK(set_cpu_affinity(0, -1) == -1 && errno == ESRCH);
    errno = 0;
    CHECK(set_cpu_affinity(0, 0x3fffffff) == -1 && errno == ESRCH);
    errno = 0;
    CHECK(set_sched_fifo(-1) == -1 && errno == EINVAL);
    errno = 0;
    CHECK(set_sched_fifo(0x3fffffff) == -1 && errno == ESRCH);
}

int main(void)
{
    pthread_t thread;
    int first = get_nohz_full_cpu();

    printf("first %d\n", first);
    CHECK(first == -1 || (first > 0 && is_nohz_cpu(first) == 1));
    CHECK(!is_nohz_cpu(0) && !is_nohz_cpu(-1) && !is_nohz_cpu(1000000));
    errors();

    cpu = first > 0 ? first : sched_getcpu();
    CHECK(pthread_create(&thread, NULL, work, NULL) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
    /* By number, as by 0. */
    CHECK(set_cpu_affinity(cpu, (int)syscall(SYS_gettid)) == 0 && sched_getcpu() == cpu);
    nohz_exit(); /* without nohz_enter() it does nothing */
    return 0;
}
