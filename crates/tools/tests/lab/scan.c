/*
 * Threads that read one buffer over and over. Atoll's tests count where from.
 *
 *     scan REGION THREADS FILE PASSES
 *
 * The buffer lies where the memory policy of the program puts it. Until there is a file FILE the threads
 * only warm up; then each reads the buffer so many times inside region REGION (0 to 3).
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "atoll_marker.h"

enum { BYTES = 16 << 20, LINE = 64, THREADS_MAX = 64 };

static volatile char *buffer;
static const char *ready;
static long region, threads, passes;
static pthread_barrier_t barrier;

static void pass(void)
{
    for (size_t at = 0; at < BYTES; at += LINE)
        (void)buffer[at];
}

static void *scan(void *unused)
{
    while (access(ready, F_OK) != 0)
        pass();
    pthread_barrier_wait(&barrier);
    switch (region) {
    case 0: ATOLL_OPEN(0); break;
    case 1: ATOLL_OPEN(1); break;
    case 2: ATOLL_OPEN(2); break;
    default: ATOLL_OPEN(3);
    }
    for (long i = 0; i < passes; i++)
        pass();
    switch (region) {
    case 0: ATOLL_CLOSE(0); break;
    case 1: ATOLL_CLOSE(1); break;
    case 2: ATOLL_CLOSE(2); break;
    default: ATOLL_CLOSE(3);
    }
    return unused;
}

int main(int count, char **arguments)
{
    pthread_t ids[THREADS_MAX];

    if (count != 5)
        return 2;
    region = atol(arguments[1]);
    threads = atol(arguments[2]);
    ready = arguments[3];
    passes = atol(arguments[4]);
    if (threads < 1 || threads > THREADS_MAX)
        return 2;
    buffer = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (buffer == MAP_FAILED)
        return 1;
    memset((void *)buffer, 1, BYTES);
    ATOLL_TAG(1, (const char *)buffer, BYTES);
    pthread_barrier_init(&barrier, NULL, (unsigned)threads);
    for (long i = 0; i < threads; i++)
        pthread_create(&ids[i], NULL, scan, NULL);
    for (long i = 0; i < threads; i++)
        pthread_join(ids[i], NULL);
    return 0;
}
