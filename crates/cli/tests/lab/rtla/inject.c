/* The first program of the guest that compares with rtla: without arguments, it runs the script; with a
 * kind, it delays what runs on CPU 0 for 2 ms. The thread is this one, FIFO 99 with the name `pathd`; other
 * kinds are those of the module in delays.c. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#define LENGTH 2000000
#define MODULE "/sys/module/delays/parameters/delay"

static long long now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * 1000000000LL + time.tv_nsec;
}

static int run(void)
{
	struct sched_param above = { .sched_priority = 99 };
	long long end;

	prctl(PR_SET_NAME, "pathd");
	if (sched_setscheduler(0, SCHED_FIFO, &above))
		return 1;
	end = now() + LENGTH;
	while (now() < end) {
	}
	return 0;
}

int main(int count, char **words)
{
	char text[32];
	int file, length;

	if (count < 2) {
		execl("/busybox", "busybox", "sh", "/compare.sh", NULL);
		return 127;
	}
	if (!strcmp(words[1], "thread"))
		return run();
	file = open(MODULE, O_WRONLY);
	length = snprintf(text, sizeof(text), "%s %d", words[1], LENGTH / 1000);
	return write(file, text, length) != length;
}
