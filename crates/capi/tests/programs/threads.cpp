// Threads: each has its own last error, one at a time enters the CPU, and any may leave for it.
#include <sched.h>

#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

#include "check.h"
#include "noisefloor.h"

struct Release {
    void operator()(nf_isolation *isolation) const { nf_release(isolation); }
};
using Isolation = std::unique_ptr<nf_isolation, Release>;

static_assert(std::is_trivial<nf_options>::value, "a C program fills it byte by byte");

static Isolation isolate()
{
    nf_options options{};
    nf_isolation *isolation = nullptr;

    options.size = sizeof(options);
    nf_isolate(&options, &isolation);
    return Isolation(isolation);
}

static void one_at_a_time(nf_isolation *isolation)
{
    CHECK(nf_enter(isolation, 0, 0) == NF_OK);
    std::thread other([isolation] {
        CHECK(std::string(nf_last_error()).empty());
        CHECK(nf_enter(isolation, 0, 0) == NF_USAGE);
        CHECK(nf_wait(isolation, 0, 0, nullptr) == NF_USAGE);
        CHECK(std::string(nf_last_error()).find("not entered") != std::string::npos);
        CHECK(nf_leave(isolation) == NF_OK);
        CHECK(nf_enter(isolation, 0, 0) == NF_OK);
        CHECK(sched_getcpu() == nf_cpu(isolation));
    });
    other.join();
    CHECK(std::string(nf_last_error()).empty());
    // The thread that had entered has ended.
    CHECK(nf_leave(isolation) == NF_OK);
}

static void all_at_once()
{
    std::vector<std::thread> threads;

    for (int i = 0; i < 4; i++)
        threads.emplace_back([] {
            for (int turn = 0; turn < 5; turn++) {
                cpu_set_t before, after;

                CHECK(sched_getaffinity(0, sizeof(before), &before) == 0);
                Isolation own = isolate();
                CHECK(nf_enter(own.get(), 0, 0) == NF_OK);
                CHECK(sched_getcpu() == nf_cpu(own.get()));
                own.reset();
                CHECK(sched_getaffinity(0, sizeof(after), &after) == 0);
                CHECK(CPU_EQUAL(&before, &after));
            }
        });
    for (std::thread &thread : threads)
        thread.join();
}

int main()
{
    Isolation isolation = isolate();

    if (!isolation) {
        std::printf("skipped: threads: %s\n", nf_last_error());
        return 0;
    }
    one_at_a_time(isolation.get());
    all_at_once();
    return 0;
}
