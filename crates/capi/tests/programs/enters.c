/*
 * Disables real-time throttling with either library, and ends in the way that its argument names.
 * Each step prints sched_rt_runtime_us.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "noisefloor.h"
#include "tif_helper.h"

static void report(const char *step)
{
    char text[32] = "?";
    FILE *file = fopen("/proc/sys/kernel/sched_rt_runtime_us", "r");

    if (file != NULL) {
        if (fgets(text, sizeof(text), file) != NULL)
            text[strcspn(text, "\n")] = '\0';
        fclose(file);
    }
    printf("%s %s\n", step, text);
    fflush(stdout);
}

static void on_signal(int number)
{
    (void)number;
    nohz_exit();
    report("exited");
    exit(0);
}

static void enter(void)
{
    if (nohz_enter() != 0) {
        printf("refused %s\n", tif_last_error());
        exit(3);
    }
    report("entered");
}

static void isolate(void)
{
    nf_options options;
    nf_isolation *isolation;

    memset(&options, 0, sizeof(options));
    options.size = sizeof(options);
    options.flags = NF_UNTHROTTLED;
    if (nf_isolate(&options, &isolation) != NF_OK || nf_done(isolation) == 0) {
        printf("refused %s\n", nf_last_error());
        exit(3);
    }
    report("isolated");
}

/* A child that ends restores nothing of its parent's. */
static void fork_one(void)
{
    pid_t child = fork();

    if (child == 0) {
        nohz_exit();
        exit(0);
    }
    if (child < 0 || waitpid(child, NULL, 0) != child)
        exit(1);
    report("forked");
}

int main(int argc, char **argv)
{
    const char *how = argc == 2 ? argv[1] : "";

    if (strcmp(how, "restore") == 0) {
        int restored = nf_restore();

        printf("restored %d %s\n", restored, restored < 0 ? nf_last_error() : "");
        return 0;
    }
    report("began");
    signal(SIGINT, on_signal);
    if (strcmp(how, "isolate") == 0)
        isolate();
    else
        enter();
    if (strcmp(how, "twice") == 0) {
        enter();
        nohz_exit();
        report("once");
        nohz_exit();
        nohz_exit();
        report("exited");
        enter();
    }
    if (strcmp(how, "fork") == 0)
        fork_one();
    if (strcmp(how, "wait") == 0)
        pause();
    return 0;
}
