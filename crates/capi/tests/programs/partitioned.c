/*
 * An isolated partition of CPU 1, and the affinity of the workers of unbound workqueues before and
 * after it. Prints whether the partition was made, or why not.
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>

#include "noisefloor.h"

#define MOST 4096

static unsigned long before[MOST], after[MOST];

/* The first word of the affinity mask of such a worker; 0 for other processes. */
static unsigned long mask_of(const char *pid)
{
    char path[300], line[256];
    unsigned long mask = 0;
    int is_worker = 0;
    FILE *file;

    snprintf(path, sizeof(path), "/proc/%s/status", pid);
    file = fopen(path, "r");
    if (file == NULL)
        return 0;
    while (fgets(line, sizeof(line), file) != NULL) {
        is_worker |= strncmp(line, "Name:\tkworker/u", 15) == 0;
        if (strncmp(line, "Cpus_allowed:", 13) == 0)
            mask = strtoul(line + 13, NULL, 16);
    }
    fclose(file);
    return is_worker ? mask : 0;
}

static int look(unsigned long *masks)
{
    int workers = 0;
    DIR *all = opendir("/proc");
    struct dirent *entry;

    while (all != NULL && (entry = readdir(all)) != NULL) {
        int pid = atoi(entry->d_name);

        if (pid > 0 && pid < MOST && (masks[pid] = mask_of(entry->d_name)) != 0)
            workers++;
    }
    if (all != NULL)
        closedir(all);
    return workers;
}

int main(void)
{
    nf_options options;
    nf_isolation *isolation;
    int workers, pid, changed = 0;

    mount("cgroup2", "/sys/fs/cgroup", "cgroup2", 0, NULL);
    workers = look(before);
    memset(&options, 0, sizeof(options));
    options.size = sizeof(options);
    options.flags = NF_ON_CPU | NF_PARTITION;
    options.cpu = 1;
    if (nf_isolate(&options, &isolation) != NF_OK) {
        printf("refused %s\n", nf_last_error());
        return 3;
    }
    if (nf_done(isolation) > 0) {
        printf("made\n");
    } else {
        char why[512] = "";

        nf_refused(isolation, why, sizeof(why));
        printf("not made: %s\n", why);
    }
    if (nf_release(isolation) != NF_OK)
        return 4;
    look(after);
    for (pid = 1; pid < MOST; pid++) {
        if (before[pid] != 0 && after[pid] != 0 && before[pid] != after[pid]) {
            printf("worker %d was %lx and is %lx\n", pid, before[pid], after[pid]);
            changed++;
        }
    }
    printf("%d of %d workers changed\n", changed, workers);
    return changed != 0;
}
