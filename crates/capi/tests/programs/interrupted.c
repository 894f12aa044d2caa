/*
 * Programs written for TIF that SIGINT ends at any moment, while they enter and exit in a loop. The
 * argument is the number of programs. Every other one handles the signal and exits; the others end
 * at once. Half of each are interrupted after the setting was changed. Before each,
 * sched_rt_runtime_us is set to another value, which is restored afterwards, at the latest by
 * nf_restore().
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "noisefloor.h"
#include "tif_helper.h"

#define SETTING "/proc/sys/kernel/sched_rt_runtime_us"

static long now(void)
{
    long value = -2;
    FILE *file = fopen(SETTING, "r");

    if (file != NULL) {
        if (fscanf(file, "%ld", &value) != 1)
            value = -2;
        fclose(file);
    }
    return value;
}

static int put(long value)
{
    FILE *file = fopen(SETTING, "w");

    if (file == NULL)
        return -1;
    fprintf(file, "%ld\n", value);
    return fclose(file);
}

static void on_signal(int number)
{
    (void)number;
    nohz_exit();
    exit(0);
}

static void over_and_over(int is_handled)
{
    signal(SIGINT, is_handled ? on_signal : SIG_DFL);
    for (;;) {
        if (nohz_enter() != 0)
            exit(3);
        nohz_exit();
    }
}

/* In a process of its own, as another program would. */
static void restore(void)
{
    pid_t child = fork();

    if (child == 0)
        _exit(nf_restore() < 0);
    waitpid(child, NULL, 0);
}

static pid_t started(int is_handled)
{
    pid_t child = fork();

    if (child == 0)
        over_and_over(is_handled);
    return child;
}

static void wait_at_most(long microseconds)
{
    struct timespec time = { 0, 0 };

    time.tv_nsec = rand() % microseconds * 1000;
    nanosleep(&time, NULL);
}

/* To enter for the first time takes most of a second in a guest, and the setting is changed for
 * some milliseconds of it. */
static void wait_until_changed(long value)
{
    int looks = 0;

    while (now() == value && looks++ < 20000)
        wait_at_most(1000);
}

int main(int argc, char **argv)
{
    int runs = argc == 2 ? atoi(argv[1]) : 1, left = 0, wrong = 0, number, status;
    long before = now();

    for (number = 0; number < runs; number++) {
        long value = 100000 + rand() % 800000, seen, restored;
        int is_changed = number % 4 < 2;
        pid_t child;

        if (put(value) != 0 || now() != value)
            return 4;
        child = started(number % 2);
        if (is_changed)
            wait_until_changed(value);
        wait_at_most(is_changed ? 5000 : 300000);
        kill(child, SIGINT);
        if (waitpid(child, &status, 0) != child)
            return 5;
        seen = now();
        restore();
        restored = now();
        left += seen == -1;
        if ((seen != value && seen != -1) || restored != value) {
            printf("run %d: %ld, then %ld, restored %ld\n", number, value, seen, restored);
            wrong++;
        }
    }
    put(before);
    printf("%d of %d interrupted runs left the setting to nf_restore, %d lost it\n", left,
           runs, wrong);
    if (runs > 8 && left == 0)
        return 6;
    return wrong != 0;
}
