#include <stdio.h>
#include <noisefloor.h>

static void fail(const char *what)
{
    fprintf(stderr, "%s: %s\n", what, nf_last_error());
}

int main(void)
{
    nf_options options = { .size = sizeof(options), .flags = NF_UNTHROTTLED };
    nf_summary summary = { .size = sizeof(summary) };
    nf_isolation *cpu;
    nf_gaps *gaps;
    char refused[1024];
    uint64_t median_ns;

    if (nf_isolate(&options, &cpu) < 0) {
        fail("isolate");
        return 1;
    }
    if (nf_refused(cpu, refused, sizeof(refused)) > 0)
        fprintf(stderr, "not done:\n%s\n", refused);
    if (nf_enter(cpu, NF_FIFO | NF_MEMORY, 0) < 0 && nf_enter(cpu, 0, 0) < 0)
        fail("enter");
    if (nf_wait(cpu, 1000000000, 0, NULL) < 0)
        fail("the tick");

    /* The work goes here. This measures the time that it would lose. */
    if (nf_measure(100000000, 0, &gaps) == NF_OK) {
        nf_summarise(gaps, &summary);
        printf("CPU %d lost %llu ns in %llu gaps\n", nf_cpu(cpu),
               (unsigned long long)summary.noise_ns, (unsigned long long)summary.gaps);
        if (nf_quantile(gaps, 500000, &median_ns) == NF_OK)
            printf("half of them were no longer than %llu ns\n",
                   (unsigned long long)median_ns);
        nf_gaps_free(gaps);
    }
    return nf_release(cpu) < 0;
}
