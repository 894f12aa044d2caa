/*
 * Each usage error is refused, with a text that names it; no invalid handle or pointer is
 * dereferenced.
 */
#include <string.h>

#include "check.h"
#include "noisefloor.h"

#define REFUSED(call, word)                                                             \
    do {                                                                                \
        CHECK((call) == NF_USAGE);                                                      \
        if (strstr(nf_last_error(), word) == NULL) {                                    \
            fprintf(stderr, "%s: %s\n", #call, nf_last_error());                        \
            exit(1);                                                                    \
        }                                                                               \
    } while (0)

static void handles(void)
{
    nf_isolation *none = NULL;
    nf_isolation *made_up = (nf_isolation *)(size_t)0x1234;
    nf_gaps *no_gaps = NULL;
    nf_summary summary;
    uint64_t number;

    memset(&summary, 0, sizeof(summary));
    summary.size = sizeof(summary);
    REFUSED(nf_isolate(NULL, NULL), "null");
    REFUSED(nf_cpu(none), "null");
    REFUSED(nf_done(made_up), "none of this library");
    REFUSED(nf_refused(none, NULL, 0), "null");
    REFUSED(nf_enter(made_up, 0, 0), "none of this library");
    REFUSED(nf_leave(none), "null");
    REFUSED(nf_wait(made_up, 0, 0, NULL), "none of this library");
    REFUSED(nf_release(none), "null");
    REFUSED(nf_measure(1000000, 0, NULL), "null");
    REFUSED(nf_summarise(no_gaps, &summary), "null");
    REFUSED(nf_quantile(no_gaps, 500000, &number), "null");
    REFUSED(nf_gap(no_gaps, 0, &number, &number), "null");
    REFUSED(nf_doubts(no_gaps, NULL, 0), "null");
    CHECK(nf_gaps_free(NULL) == NF_OK);
}

static void options(void)
{
    nf_isolation *isolation = NULL;
    nf_options asked;

    memset(&asked, 0, sizeof(asked));
    REFUSED(nf_isolate(&asked, &isolation), "sizeof");
    asked.size = sizeof(asked) - 1;
    REFUSED(nf_isolate(&asked, &isolation), "sizeof");
    asked.size = sizeof(asked);
    asked.flags = 1u << 31;
    REFUSED(nf_isolate(&asked, &isolation), "0x80000000");
    asked.flags = 0;
    asked.cpu = 1;
    REFUSED(nf_isolate(&asked, &isolation), "NF_ON_CPU");
    asked.cpu = 0;
    asked.dma_latency_us = 1;
    REFUSED(nf_isolate(&asked, &isolation), "NF_DMA_LATENCY");
    asked.dma_latency_us = 0;
    asked.reserved = 1;
    REFUSED(nf_isolate(&asked, &isolation), "reserved");
    asked.reserved = 0;
    asked.flags = NF_ON_CPU;
    asked.cpu = 4000000000u;
    CHECK(nf_isolate(&asked, &isolation) == NF_NO_CPU);
    CHECK(isolation == NULL);
}

static void numbers(void)
{
    nf_isolation *isolation = NULL;
    nf_gaps *gaps = NULL;
    nf_summary summary;
    uint64_t number;

    if (nf_isolate(NULL, &isolation) != NF_OK) {
        printf("skipped: misuse: %s\n", nf_last_error());
        return;
    }
    REFUSED(nf_enter(isolation, 4, 0), "0x4");
    REFUSED(nf_enter(isolation, 0, 1), "NF_FIFO");
    REFUSED(nf_enter(isolation, NF_FIFO, 100), "1 to 99");
    REFUSED(nf_enter(isolation, NF_FIFO, -1), "1 to 99");
    REFUSED(nf_leave(isolation), "no thread");
    REFUSED(nf_wait(isolation, 0, 0, NULL), "not entered");
    REFUSED(nf_wait(isolation, 0, 8, NULL), "0x8");
    REFUSED(nf_wait(isolation, 0, NF_FIFO, NULL), "0x100");
    REFUSED(nf_enter(isolation, NF_UNTHROTTLED, 0), "0x2");
    CHECK(nf_release(isolation) == NF_OK);
    REFUSED(nf_enter(isolation, 0, 0), "released");

    REFUSED(nf_measure(0, 0, &gaps), "1 ms");
    REFUSED(nf_measure(UINT64_MAX, 0, &gaps), "30 days");
    REFUSED(nf_measure(1000000, 1000000, &gaps), "threshold");
    CHECK(gaps == NULL);
    CHECK(nf_measure(1000000, 0, &gaps) == NF_OK);
    CHECK(nf_doubts(gaps, NULL, 0) > 0); /* the time is too short */
    memset(&summary, 0, sizeof(summary));
    REFUSED(nf_summarise(gaps, &summary), "sizeof");
    REFUSED(nf_summarise(gaps, NULL), "null");
    REFUSED(nf_quantile(gaps, 1000001, &number), "millionths");
    REFUSED(nf_quantile(gaps, 500000, NULL), "null");
    CHECK(nf_gap(gaps, UINT64_MAX, NULL, NULL) == NF_NOTHING);
    CHECK(nf_gaps_free(gaps) == NF_OK);
}

/* The sizes of structs are part of the ABI. */
static void sizes(void)
{
    nf_options asked;
    nf_summary summary;

    CHECK(sizeof(asked) == sizeof(size_t) + 4 * sizeof(uint32_t));
    CHECK(sizeof(summary) == sizeof(size_t) + 8 * sizeof(uint64_t));
}

int main(void)
{
    sizes();
    handles();
    options();
    numbers();
    return 0;
}
