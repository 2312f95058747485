/*
 * Markers for `atoll lab run --count`: NOPs of seven bytes that do nothing on any processor and tell
 * the lab's counter which accesses to count. Copy this file into your program; it needs nothing else.
 * GCC and Clang on x86-64; elsewhere the markers are empty.
 *
 *     ATOLL_OPEN(0);                      region 0 opens: accesses of all threads count for it
 *     work();
 *     ATOLL_CLOSE(0);                     region 0 closes
 *     ATOLL_TAG(1, table, table_bytes);   the pages of `table` get tag 1
 *
 * Regions are numbered 0 to 63, tags 1 to 15 (0 takes a tag away); numbers are constants. A region
 * opened by several threads closes with the last of them; of several open regions the one opened last
 * counts. A tag belongs to the pages where they are at that moment: tag after the memory is placed.
 */
#ifndef ATOLL_MARKER_H
#define ATOLL_MARKER_H

#include <stddef.h>
#include <stdint.h>

/* Turns a number out of range into an error of the compiler. */
#define ATOLL_BELOW_(limit, number) \
    ((void)sizeof(char[((number) >= 0 && (number) < (limit)) ? 1 : -1]))

#if defined(__x86_64__) && defined(__GNUC__)

#define ATOLL_BYTES_ ".byte 0x0f, 0x1f, 0x80, %c0, %c1, 0x01, 0xa7"
#define ATOLL_MARKER_(number, kind) \
    __asm__ __volatile__(ATOLL_BYTES_ : : "i"(number), "i"(kind) : "memory")

/* The load before the marker takes the page fault; all three are translated as one piece. */
#define ATOLL_TAG_PAGE_(number, at) \
    __asm__ __volatile__(".p2align 5\n\tmovb (%2), %%al\n\t" ATOLL_BYTES_ "\n\tmovb (%2), %%al" \
                         : : "i"(number), "i"(3), "r"(at) : "rax", "memory")

#else

#define ATOLL_MARKER_(number, kind) ((void)0)
#define ATOLL_TAG_PAGE_(number, at) ((void)(at))

#endif

#define ATOLL_OPEN(number) \
    do { ATOLL_BELOW_(64, number); ATOLL_MARKER_(number, 1); } while (0)

#define ATOLL_CLOSE(number) \
    do { ATOLL_BELOW_(64, number); ATOLL_MARKER_(number, 2); } while (0)

/* Reads a byte of each page of `bytes` bytes from `memory` on. */
#define ATOLL_TAG(number, memory, bytes) \
    do { \
        const char *atoll_at_ = (const char *)(memory); \
        const char *const atoll_end_ = atoll_at_ + (bytes); \
        ATOLL_BELOW_(16, number); \
        while (atoll_at_ < atoll_end_) { \
            ATOLL_TAG_PAGE_(number, atoll_at_); \
            if ((size_t)(atoll_end_ - atoll_at_) <= 4096 - (uintptr_t)atoll_at_ % 4096) break; \
            atoll_at_ += 4096 - (uintptr_t)atoll_at_ % 4096; \
        } \
    } while (0)

#endif
