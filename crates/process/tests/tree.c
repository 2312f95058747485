/* tree SEED: a tree of processes that map and touch memory at random, some of it shared, some unmapped
   again, some processes gone. Prints the process ids that are left, and waits until its input ends. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#define OBJECTS 3
#define PROCESSES_MAX 8
#define PAGE 4096

static uint64_t state;
static char *object[OBJECTS], *inherited;
static size_t pages[OBJECTS], inherited_pages;
static int parent[PROCESSES_MAX], count, told[2];

/* splitmix64 */
static uint64_t below(uint64_t bound) {
    uint64_t z = (state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return (z ^ (z >> 31)) % bound;
}

static char *mapped(size_t pages, int flags) {
    char *memory = mmap(NULL, pages * PAGE, PROT_READ | PROT_WRITE, flags | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) exit(125);
    madvise(memory, pages * PAGE, MADV_NOHUGEPAGE);
    return memory;
}

/* Writes one page in `every` of a stretch, others for other processes. */
static void touch(char *memory, size_t pages, uint64_t every) {
    for (size_t page = 0; page < pages; page++)
        if (below(every) == 0) memory[page * PAGE] = 1;
}

static void live(int self, uint64_t seed) {
    state = seed + 1000 * (uint64_t)self;
    for (int i = 0; i < OBJECTS; i++) touch(object[i], pages[i], 1 + below(6));
    touch(inherited, inherited_pages, 1 + below(4));
    size_t own = 1 + below(600);
    touch(mapped(own, MAP_PRIVATE), own, 1 + below(3));
    int leaves = (int)below(3 * OBJECTS);
    if (leaves < OBJECTS) {
        /* Its children have the first half only. */
        munmap(object[leaves] + pages[leaves] / 2 * PAGE, (pages[leaves] + 1) / 2 * PAGE);
        pages[leaves] /= 2;
    }
    for (int child = self + 1; child < count; child++)
        if (parent[child] == self && fork() == 0) live(child, seed);
    int pid = getpid();
    if (write(told[1], &pid, sizeof pid) != sizeof pid) exit(125);
    char byte;
    if (self == 0) return;
    while (read(0, &byte, 1) > 0) {}
    _exit(0);
}

int main(int words, char **word) {
    uint64_t seed = words > 1 ? strtoull(word[1], NULL, 10) : 0;
    int pid[PROCESSES_MAX], dies[PROCESSES_MAX];
    /* Those whose parent is gone end without a trace too. */
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    signal(SIGCHLD, SIG_IGN);
    state = seed;
    count = 2 + (int)below(PROCESSES_MAX - 1);
    for (int i = 1; i < count; i++) parent[i] = (int)below((uint64_t)i);
    for (int i = 0; i < count; i++) dies[i] = below(4) == 0;
    for (int i = 0; i < OBJECTS; i++) object[i] = mapped(pages[i] = 2 + below(900), MAP_SHARED);
    inherited = mapped(inherited_pages = 1 + below(900), MAP_PRIVATE);
    touch(inherited, inherited_pages, 2);
    if (pipe(told)) return 125;
    live(0, seed);
    for (int i = 0; i < count; i++)
        if (read(told[0], &pid[i], sizeof pid[i]) != sizeof pid[i]) return 125;
    for (int i = 0; i < count; i++) {
        if (dies[i] && pid[i] != getpid()) {
            kill(pid[i], SIGKILL);
            while (kill(pid[i], 0) == 0) usleep(100);
        } else
            printf("%d ", pid[i]);
    }
    printf("\n");
    fflush(stdout);
    char byte;
    while (read(0, &byte, 1) > 0) {}
    return 0;
}
