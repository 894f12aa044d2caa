/*
 * A custom workload for `noisefloor jitter`, in C: sorts the same 4096 numbers each time, so
 * that only its run time varies.
 *
 *   cc -O2 -shared -fPIC -o sort.so sort.c
 *   noisefloor jitter --workload exec:./sort.so
 */
#include <stdint.h>
#include <stdlib.h>

#define COUNT 4096

static uint32_t numbers[COUNT];
/* The result is not used; volatile keeps the compiler from removing the sort. */
static volatile uint32_t median;

static int rising(const void *first, const void *second)
{
	uint32_t a = *(const uint32_t *)first, b = *(const uint32_t *)second;

	return (a > b) - (a < b);
}

/* Called once per loop, always by the same thread. */
void nf_workload(void)
{
	uint32_t number = 1;

	for (int i = 0; i < COUNT; i++) {
		number = number * 1664525u + 1013904223u;
		numbers[i] = number;
	}
	qsort(numbers, COUNT, sizeof(numbers[0]), rising);
	median = numbers[COUNT / 2];
}
