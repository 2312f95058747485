/*
 * Atoll's data-management primitives over columns that lie in your program's memory: aggregation, joins,
 * sorting, radix partitioning and shuffles for machines with several NUMA nodes. Link with -latoll.
 *
 * Borrowing. Columns are read where they lie and are not copied. What a call is given must be alive and
 * unchanged until it returns, and may be freed then: nothing is kept. Results belong to the library until
 * atoll_free_result, also when the context is closed before.
 *
 * Errors. Functions that return an int return ATOLL_OK (0) or one of the codes below, and then
 * atoll_error() says what is wrong and what to do. A call that fails gives back all memory it took and
 * sets *result to NULL; output buffers may hold anything then.
 *
 * Threads. A context has worker threads, bound to the nodes of the machine; a call waits for them. Several
 * threads may make calls in one context at the same time.
 */
#ifndef ATOLL_H
#define ATOLL_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Errors ---------------------------------------------------------------------------------------- */

#define ATOLL_OK        0
#define ATOLL_INVALID   1 /* an argument: null, out of range, misaligned, overlapping, of the wrong length */
#define ATOLL_TYPE      2 /* a type that the function does not support */
#define ATOLL_OVERFLOW  3 /* a sum or mean that its type does not hold */
#define ATOLL_MEMORY    4 /* the memory limit, or the machine, does not hold what is needed */
#define ATOLL_CANCELLED 5 /* atoll_cancel */
#define ATOLL_STOPPED   6 /* an atoll_block_fn returned a value other than 0 */
#define ATOLL_SYSTEM    7 /* the machine could not be discovered, or threads not be started */
#define ATOLL_DEFECT    8 /* a defect of the library; please report it */

/* What the last failed call of this thread has to say, in UTF-8; "" before the first. Valid until the
 * thread's next call that fails. */
const char *atoll_error(void);

/* ---- Contexts -------------------------------------------------------------------------------------- */

/* Workers, memory with its limit, and what `atoll tune` has found out about this machine. */
typedef struct atoll_context atoll_context;

/* Starts `threads` workers, spread over the nodes of the machine; 0: one for each cpu. */
int atoll_open(uint32_t threads, atoll_context **context);

/* Ends the workers and frees the context; NULL is none. No call may be under way in it. */
void atoll_close(atoll_context *context);

/* Number of workers; 0 for NULL. */
uint32_t atoll_threads(const atoll_context *context);

/* The most memory that calls and results may hold together, in bytes; 0: no limit, as in the beginning.
 * Beyond it calls fail with ATOLL_MEMORY. Keys and counts in results of aggregations are not counted. */
int atoll_set_memory_limit(atoll_context *context, uint64_t bytes);

/* Memory that calls and results hold, in bytes; 0 for NULL. */
uint64_t atoll_memory_used(const atoll_context *context);

/* Ends the calls that are under way in the context, at their next block of rows, with ATOLL_CANCELLED.
 * From any thread, also from an atoll_block_fn. Later calls are not touched. */
void atoll_cancel(atoll_context *context);

/* ---- Columns --------------------------------------------------------------------------------------- */

/* Dates and times are the integers that they are stored as. */
#define ATOLL_INT8        1
#define ATOLL_INT16       2
#define ATOLL_INT32       3
#define ATOLL_INT64       4
#define ATOLL_UINT8       5
#define ATOLL_UINT16      6
#define ATOLL_UINT32      7
#define ATOLL_UINT64      8
#define ATOLL_FLOAT32     9
#define ATOLL_FLOAT64    10
#define ATOLL_DECIMAL128 11 /* 16 bytes, little end first, times 10 to the power of -scale */
#define ATOLL_BOOL       12 /* a bit for each value, the lowest bit of a byte first */
#define ATOLL_UTF8       13 /* bytes [offsets[i], offsets[i + 1]) of values; checked to be UTF-8 */
#define ATOLL_BINARY     14 /* the same, not checked */

/* A column, given or returned. Fields that a type does not use are not read. */
typedef struct atoll_column {
    uint32_t type;
    uint8_t precision;       /* ATOLL_DECIMAL128: digits in all, 1 to 38 */
    int8_t scale;            /* ATOLL_DECIMAL128: digits behind the point */
    size_t length;           /* number of values */
    const void *values;      /* aligned to the type */
    const uint8_t *validity; /* bit i % 8 of byte i / 8 is 1 where value i is not null; NULL: no nulls */
    const int32_t *offsets;  /* ATOLL_UTF8, ATOLL_BINARY: length + 1 of them, never falling */
    size_t bytes;            /* ATOLL_UTF8, ATOLL_BINARY: size of values */
} atoll_column;

#define ATOLL_NO_HOME (-1)

/* Rows that lie on one node. Columns are equally long, and of the same types in all parts of an input. */
typedef struct atoll_part {
    int32_t home;                /* node whose memory holds them, by Linux's number, or ATOLL_NO_HOME */
    uint32_t column_count;
    const atoll_column *columns;
} atoll_part;

/* ---- Results --------------------------------------------------------------------------------------- */

/* Columns in blocks of rows. */
typedef struct atoll_result atoll_result;

/* Rows of all blocks; number of blocks; number of columns. 0 for NULL. */
size_t atoll_result_rows(const atoll_result *result);
size_t atoll_result_blocks(const atoll_result *result);
uint32_t atoll_result_columns(const atoll_result *result);

/* A column of a block, readable until the result is freed; it may be given to other calls until then. */
int atoll_result_column(const atoll_result *result, size_t block, uint32_t column, atoll_column *found);

/* How it was done and why, such as "local: 1024 groups expected, ..."; "" for NULL. */
const char *atoll_result_reason(const atoll_result *result);

/* Frees a result; NULL is none. */
void atoll_free_result(atoll_result *result);

/* ---- Aggregation ----------------------------------------------------------------------------------- */

#define ATOLL_COUNT_ROWS 0 /* its column does not matter; INT64 */
#define ATOLL_COUNT      1 /* values that are not null; INT64 */
#define ATOLL_SUM        2 /* INT64, UINT64, FLOAT64, or a decimal of 10 digits more; exact but for floats */
#define ATOLL_MIN        3 /* of the column's type; NaN is the largest float */
#define ATOLL_MAX        4
#define ATOLL_AVG        5 /* FLOAT64, or a decimal of 4 digits more behind the point */

/* Ways to aggregate: Li et al. 2013, section 4.3, and tables of each worker's own. */
#define ATOLL_AUTO         0 /* the variant that is expected to be fastest */
#define ATOLL_LOCAL        1
#define ATOLL_NAIVE        2
#define ATOLL_RING         3
#define ATOLL_MIGRATE      4
#define ATOLL_MIGRATE_COPY 5

typedef struct atoll_function {
    uint32_t function; /* ATOLL_SUM, ... */
    uint32_t column;   /* by position */
} atoll_function;

typedef struct atoll_aggregation {
    const atoll_part *parts; /* at least one */
    size_t part_count;
    const uint32_t *keys;    /* positions of the key columns; none: all rows are one group */
    size_t key_count;
    const atoll_function *functions;
    size_t function_count;
    uint32_t variant;        /* ATOLL_AUTO, ... */
} atoll_aggregation;

/* Groups rows by their keys, of any type; null is a key like another, and 0.0 and -0.0 are the same one.
 * Functions take numbers and leave nulls out. The result has a column for each key, then one for each
 * function, and its groups in no order. */
int atoll_aggregate(atoll_context *context, const atoll_aggregation *aggregation, atoll_result **result);

/* The same for one sum over two columns without nulls: columns key and sum, both INT64. */
int atoll_aggregate_sum_i64(atoll_context *context, const int64_t *keys, const int64_t *values, size_t rows,
                            atoll_result **result);

/* ---- Joins ----------------------------------------------------------------------------------------- */

#define ATOLL_INNER      0
#define ATOLL_LEFT       1 /* outer joins: pairs, and rows without a match */
#define ATOLL_RIGHT      2
#define ATOLL_FULL       3
#define ATOLL_LEFT_SEMI  4 /* rows that have a match, once each */
#define ATOLL_RIGHT_SEMI 5
#define ATOLL_LEFT_ANTI  6 /* rows that have none */
#define ATOLL_RIGHT_ANTI 7

#define ATOLL_ROW_NUMBERS (-1)

typedef struct atoll_side {
    const atoll_part *parts;
    size_t part_count;
    const uint32_t *keys; /* positions of the key columns, of the same types on both sides */
    size_t key_count;     /* at least one */
    int32_t payload;      /* what is delivered of a row: the bits of this column (8 bytes, without nulls;
                             keys that fit 8 bytes together), or ATOLL_ROW_NUMBERS: rows are counted from
                             0 through all parts */
} atoll_side;

/* Takes `rows` payloads of one worker. `left` or `right` is NULL for rows of the other side that are
 * delivered alone: by outer, semi and anti joins. Workers call at the same time, each with its own number
 * below atoll_threads. The payloads may be read until the function returns. Returning a value other than
 * 0 ends the join. It must neither throw nor jump out, and make no call in a context but atoll_cancel. */
typedef int (*atoll_block_fn)(void *user, uint32_t worker, const uint64_t *left, const uint64_t *right,
                              size_t rows);

/* Joins two sides on equal keys (null matches nothing), block by block, in no order. */
int atoll_join_blocks(atoll_context *context, const atoll_side *left, const atoll_side *right, uint32_t kind,
                      atoll_block_fn take, void *user);

/* The same, kept: UINT64 columns 0 (left payloads) and 1 (right payloads). A side that a block has nothing
 * of, as its rows are delivered alone, has `values` NULL. */
int atoll_join(atoll_context *context, const atoll_side *left, const atoll_side *right, uint32_t kind,
               atoll_result **result);

/* ---- Partitioning and sorting ---------------------------------------------------------------------- */

/* Output buffers are yours, and overlap neither one another nor an input. `payloads` may be NULL: then row
 * numbers stand for it. */

/* Deals rows to 2^bits pieces (bits up to 14) by a hash of their key. Piece p is rows
 * [starts[p], starts[p + 1]) of the output, in the order of the input; `starts` has 2^bits + 1 places. */
int atoll_partition_u64(atoll_context *context, const uint64_t *keys, const uint64_t *payloads, size_t rows,
                        uint32_t bits, uint64_t *keys_out, uint64_t *payloads_out, size_t *starts);

/* Piece of a key. */
uint32_t atoll_piece_u64(uint64_t key, uint32_t bits);

#define ATOLL_DESCENDING 1
#define ATOLL_STABLE     2 /* rows of equal keys keep their order */

/* Sorts rows by their key; floats by IEEE 754's total order. `flags` combines the above. One of
 * `keys_out` and `payloads_out` may be NULL where it is not wanted. */
int atoll_sort_u64(atoll_context *context, const uint64_t *keys, const uint64_t *payloads, size_t rows,
                   uint32_t flags, uint64_t *keys_out, uint64_t *payloads_out);
int atoll_sort_i64(atoll_context *context, const int64_t *keys, const uint64_t *payloads, size_t rows,
                   uint32_t flags, int64_t *keys_out, uint64_t *payloads_out);
int atoll_sort_f64(atoll_context *context, const double *keys, const uint64_t *payloads, size_t rows,
                   uint32_t flags, double *keys_out, uint64_t *payloads_out);

/* ---- Shuffle --------------------------------------------------------------------------------------- */

/* Orders in which each worker takes its turns: Li et al. 2013, section 3. */
#define ATOLL_ORDER_NAIVE  0
#define ATOLL_ORDER_RANDOM 1
#define ATOLL_ORDER_RING   2

/* Copies every worker's pieces to the nodes of the workers that they are meant for. There are
 * atoll_threads * atoll_threads pieces, by source, then by whom they are meant for; block
 * `worker * atoll_threads + source` of the result is what `worker` got from `source`. */
int atoll_shuffle(atoll_context *context, const atoll_part *pieces, size_t piece_count, uint32_t order,
                  atoll_result **result);

#ifdef __cplusplus
}
#endif

#endif
