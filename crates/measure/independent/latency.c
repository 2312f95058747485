// Latency and read bandwidth of memory, by means that share nothing with the crate beside it:
// pthreads, mmap, first touch, a shuffled visiting order, work of fixed size.
//
//   cc -O3 -march=x86-64-v3 -pthread -o latency latency.c
//   ./latency MEGABYTES ROUNDS LATENCY_CPU FIRST_CPU [CPU ...]
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

struct line { struct line *next; char rest[56]; };
struct share { const uint64_t *from, *to; int cpu, rounds; uint64_t sum; };
static pthread_barrier_t start;

static double now(clockid_t clock) { // the chain by CPU time: slices of other programs do not count
    struct timespec t;
    clock_gettime(clock, &t);
    return t.tv_sec * 1e9 + t.tv_nsec;
}

static void bind(int cpu) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    if (pthread_setaffinity_np(pthread_self(), sizeof set, &set)) exit(2);
}

static void *read_share(void *argument) {
    struct share *share = argument;
    bind(share->cpu);
    pthread_barrier_wait(&start);
    uint64_t sum = 0; // not in the share, which the words might be part of for all the compiler knows
    for (int round = 0; round < share->rounds; round++)
        for (const uint64_t *word = share->from; word < share->to; word++) sum += *word;
    share->sum = sum;
    return NULL;
}

int main(int count, char **arguments) {
    if (count < 5) return fprintf(stderr, "MEGABYTES ROUNDS LATENCY_CPU CPU...\n"), 2;
    size_t bytes = (size_t)atol(arguments[1]) << 20, lines = bytes / sizeof(struct line);
    int rounds = atoi(arguments[2]), threads = count - 4;
    if (!lines || rounds < 1) return 2;
    bind(atoi(arguments[3]));
    size_t huge = 2 << 20; // aligned by hand: only whole huge pages can be huge
    char *memory = mmap(NULL, bytes + huge, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return perror("mmap"), 2;
    memory = (char *)(((uintptr_t)memory + huge - 1) / huge * huge);
    madvise(memory, bytes, MADV_HUGEPAGE);
    struct line *chain = (struct line *)memory;
    uint32_t *order = malloc(lines * sizeof *order); // Fisher and Yates
    if (!order) return perror("malloc"), 2;
    for (size_t i = 0; i < lines; i++) order[i] = i;
    srand48(42);
    for (size_t i = lines - 1; i > 0; i--) {
        size_t j = drand48() * (i + 1);
        uint32_t swap = order[i];
        order[i] = order[j], order[j] = swap;
    }
    for (size_t i = 0; i < lines; i++) chain[order[i]].next = &chain[order[(i + 1) % lines]];
    free(order);
    struct line *at = chain;
    for (size_t i = 0; i < lines / 8; i++) at = at->next; // warm
    double before = now(CLOCK_THREAD_CPUTIME_ID);
    for (size_t i = 0; i < lines * rounds; i++) at = at->next;
    printf("latency_ns %.2f %d\n", (now(CLOCK_THREAD_CPUTIME_ID) - before) / (lines * rounds), at == NULL);

    pthread_t thread[threads];
    struct share share[threads];
    size_t words = bytes / 8 / threads;
    pthread_barrier_init(&start, NULL, threads + 1);
    for (int i = 0; i < threads; i++) {
        const uint64_t *from = (const uint64_t *)memory + words * i;
        share[i] = (struct share){from, from + words, atoi(arguments[4 + i]), 8 * rounds, 0};
        if (pthread_create(&thread[i], NULL, read_share, &share[i])) return 2;
    }
    pthread_barrier_wait(&start);
    before = now(CLOCK_MONOTONIC_RAW);
    for (int i = 0; i < threads; i++) pthread_join(thread[i], NULL);
    printf("read_gb_s %.2f\n", (double)words * 8 * threads * 8 * rounds / (now(CLOCK_MONOTONIC_RAW) - before));
}
