/*
 * What an access costs in the lab: nanoseconds of the guest's clock for each 8-byte load of an array,
 * one after the other and at random places. Prints `sequential NS` and `random NS`.
 *
 *     cc -O2 -I crates/marker/include -o lab_cost scripts/lab_cost.c
 *     atoll lab run --machine westmere-ex-4 --cpus 1 -- ./lab_cost 64
 */
#define _POSIX_C_SOURCE 199309L
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "atoll_marker.h"

enum { RANDOM = 2000000, LOADS = 1 << 25 };

static double now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

/* The array once, first to last. */
static uint64_t sequential(const uint64_t *array, size_t len)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < len; i++)
        sum += array[i];
    return sum;
}

/* Loads at places that do not depend on what was loaded; `len` is a power of two. */
static uint64_t scattered(const uint64_t *array, size_t len)
{
    uint64_t sum = 0, place = 88172645463325252u;

    for (int i = 0; i < RANDOM; i++) {
        place ^= place << 13;
        place ^= place >> 7;
        place ^= place << 17;
        sum += array[place & (len - 1)];
    }
    return sum;
}

int main(int count, char **arguments)
{
    long mebibytes = count > 1 ? strtol(arguments[1], NULL, 10) : 64;
    size_t len = (size_t)mebibytes << 17, times;
    volatile uint64_t result = 0;
    uint64_t *array;
    double start;

    if (mebibytes < 1 || mebibytes > 1024 || (mebibytes & (mebibytes - 1))) {
        fprintf(stderr, "lab_cost: say a power of two of MiB, up to 1024\n");
        return 2;
    }
    if (!(array = malloc(len * sizeof *array))) {
        perror("lab_cost");
        return 1;
    }
    for (size_t i = 0; i < len; i++)
        array[i] = i;
    times = (LOADS + len - 1) / len;

    ATOLL_OPEN(1);
    start = now();
    for (size_t i = 0; i < times; i++)
        result += sequential(array, len);
    printf("sequential %.3f\n", (now() - start) / (double)(times * len));
    ATOLL_CLOSE(1);

    ATOLL_OPEN(2);
    start = now();
    result += scattered(array, len);
    printf("random %.3f\n", (now() - start) / RANDOM);
    ATOLL_CLOSE(2);
    return 0;
}
