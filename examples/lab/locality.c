/*
 * A known number of memory accesses from one node to another, to see them counted in the lab.
 *
 *     cc -O2 -I crates/marker/include -o locality examples/lab/locality.c
 *     atoll lab run --machine symas-8 --count region -- ./locality 0 3
 *
 * One thread on node FROM goes over a buffer on node TO once, a cache line at a time, inside region 0.
 * The buffer is larger than the caches, so each access is a miss. The report's matrix then has that
 * many accesses, and as many lines, in row FROM, column TO, and next to nothing anywhere else.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "atoll_marker.h"

enum { LINE = 64, BIND = 2, NODES = 64, USAGE = 2 };

static void die(const char *what)
{
    perror(what);
    exit(1);
}

/* The number that an argument is; ends the program where it is none below `limit`. */
static long number(const char *text, long limit)
{
    char *end;
    long value = strtol(text, &end, 10);

    if (end == text || *end != '\0' || value < 0 || value >= limit) {
        fprintf(stderr, "locality: invalid number %s; expected 0 to %ld\n", text, limit - 1);
        exit(USAGE);
    }
    return value;
}

/* Keeps this thread on the first cpu of a node. */
static void run_on(long node)
{
    char path[64];
    cpu_set_t cpus;
    FILE *list;
    int cpu;

    snprintf(path, sizeof path, "/sys/devices/system/node/node%ld/cpulist", node);
    if (!(list = fopen(path, "r")))
        die(path);
    if (fscanf(list, "%d", &cpu) != 1) {
        fprintf(stderr, "locality: node %ld has no cpus\n", node);
        exit(1);
    }
    fclose(list);
    CPU_ZERO(&cpus);
    CPU_SET(cpu, &cpus);
    if (sched_setaffinity(0, sizeof cpus, &cpus))
        die("sched_setaffinity");
}

/* `bytes` bytes of memory on a node, touched. */
static char *memory_on(long node, size_t bytes)
{
    uint64_t nodes = UINT64_C(1) << node;
    char *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (memory == MAP_FAILED)
        die("mmap");
    if (syscall(SYS_mbind, memory, bytes, BIND, &nodes, (unsigned long)NODES + 1, 0))
        die("mbind");
    memset(memory, 1, bytes);
    return memory;
}

/* One access to each line. `volatile` makes the compiler do every one and no other. */
static void load_lines(const volatile uint64_t *at, const volatile uint64_t *end)
{
    for (; at < end; at += LINE / sizeof *at)
        (void)*at;
}

static void store_lines(volatile uint64_t *at, const volatile uint64_t *end)
{
    for (; at < end; at += LINE / sizeof *at)
        *at = 1;
}

int main(int count, char **arguments)
{
    int is_store = count > 3 && !strcmp(arguments[3], "store");
    long from, to, mib;
    size_t bytes;
    uint64_t *memory, *end;

    if (count < 3 || count > 5 || (count > 3 && !is_store && strcmp(arguments[3], "load"))) {
        fprintf(stderr, "usage: locality FROM TO [load|store [MIB]]\n"
                        "from node FROM, access each line of MIB (64) MiB on node TO once\n");
        return USAGE;
    }
    from = number(arguments[1], NODES);
    to = number(arguments[2], NODES);
    mib = count > 4 ? number(arguments[4], 1L << 20) : 64;
    bytes = (size_t)mib << 20;
    run_on(from);
    memory = (uint64_t *)memory_on(to, bytes);
    end = memory + bytes / sizeof *memory;

    ATOLL_OPEN(0);
    if (is_store)
        store_lines(memory, end);
    else
        load_lines(memory, end);
    ATOLL_CLOSE(0);

    printf("%zu %ss of 8 bytes, each of another line, by node %ld in memory of node %ld\n",
           bytes / LINE, is_store ? "store" : "load", from, to);
    return 0;
}
