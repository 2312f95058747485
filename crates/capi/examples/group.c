/*
 * Sales of shops, in columns of this program's own: sums by shop, by city and month, and a join.
 *
 *     cargo build --release -p atoll-capi
 *     cc -O2 -I crates/capi/include -o group crates/capi/examples/group.c -L target/release -latoll
 *     LD_LIBRARY_PATH=target/release ./group
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "atoll.h"

enum { SALES = 1000000, SHOPS = 1000 };

static void check(int code, const char *doing)
{
    if (code != ATOLL_OK) {
        fprintf(stderr, "%s: error %d: %s\n", doing, code, atoll_error());
        exit(1);
    }
}

static void *column(size_t values, size_t width)
{
    void *memory = calloc(values, width);
    if (memory == NULL) {
        fprintf(stderr, "no memory for a column\n");
        exit(1);
    }
    return memory;
}

/* The shortest way: one sum by one key. */
static void sums_by_shop(atoll_context *context, const int64_t *shops, const int64_t *amounts)
{
    atoll_result *sums = NULL;
    check(atoll_aggregate_sum_i64(context, shops, amounts, SALES, &sums), "sums by shop");
    int64_t total = 0;
    for (size_t block = 0; block < atoll_result_blocks(sums); block++) {
        atoll_column sum;
        check(atoll_result_column(sums, block, 1, &sum), "column of sums");
        const int64_t *values = sum.values;
        for (size_t row = 0; row < sum.length; row++)
            total += values[row];
    }
    printf("%zu shops sold for %" PRId64 "\n", atoll_result_rows(sums), total);
    printf("why: %s\n", atoll_result_reason(sums));
    atoll_free_result(sums);
}

/* Several keys, one of them text, and several functions; a sale without an amount is null. */
static void sales_by_city_and_month(atoll_context *context)
{
    const char cities[] = "ChurBernChurChurBern";
    const int32_t offsets[] = {0, 4, 8, 12, 16, 20};
    const int32_t months[] = {1, 1, 1, 2, 1};
    const double amounts[] = {10.0, 20.0, 0.0, 5.0, 2.5};
    const uint8_t amounts_there[] = {0x1b}; /* 0b11011: the third one is null */

    const atoll_column columns[] = {
        {.type = ATOLL_UTF8, .length = 5, .values = cities, .offsets = offsets, .bytes = 20},
        {.type = ATOLL_INT32, .length = 5, .values = months},
        {.type = ATOLL_FLOAT64, .length = 5, .values = amounts, .validity = amounts_there},
    };
    const atoll_part part = {.home = ATOLL_NO_HOME, .column_count = 3, .columns = columns};
    const uint32_t keys[] = {0, 1};
    const atoll_function functions[] = {{ATOLL_COUNT_ROWS, 0}, {ATOLL_SUM, 2}, {ATOLL_AVG, 2}};
    const atoll_aggregation by_city_and_month = {
        .parts = &part, .part_count = 1,
        .keys = keys, .key_count = 2,
        .functions = functions, .function_count = 3,
    };
    atoll_result *groups = NULL;
    check(atoll_aggregate(context, &by_city_and_month, &groups), "sales by city and month");

    for (size_t block = 0; block < atoll_result_blocks(groups); block++) {
        atoll_column city, month, count, sum, mean;
        check(atoll_result_column(groups, block, 0, &city), "column of cities");
        check(atoll_result_column(groups, block, 1, &month), "column of months");
        check(atoll_result_column(groups, block, 2, &count), "column of counts");
        check(atoll_result_column(groups, block, 3, &sum), "column of sums");
        check(atoll_result_column(groups, block, 4, &mean), "column of means");
        for (size_t row = 0; row < city.length; row++) {
            int length = city.offsets[row + 1] - city.offsets[row];
            printf("%.*s, month %" PRId32 ": %" PRId64 " sales for %.2f, %.2f each\n", length,
                   (const char *)city.values + city.offsets[row],
                   ((const int32_t *)month.values)[row], ((const int64_t *)count.values)[row],
                   ((const double *)sum.values)[row], ((const double *)mean.values)[row]);
        }
    }
    atoll_free_result(groups);
}

/* One sum for each worker, a cache line apart. */
struct subtotal {
    uint64_t amount;
    char apart[56];
};

static int add_up(void *user, uint32_t worker, const uint64_t *left, const uint64_t *right, size_t rows)
{
    struct subtotal *subtotal = (struct subtotal *)user + worker;
    for (size_t row = 0; row < rows; row++)
        subtotal->amount += left[row] * right[row];
    return 0;
}

/* Amounts times the rate of their shop, without writing a single pair. */
static void taxes(atoll_context *context, const atoll_part *sales, const atoll_part *shops)
{
    const uint32_t first[] = {0};
    const atoll_side left = {.parts = sales, .part_count = 1, .keys = first, .key_count = 1, .payload = 1};
    const atoll_side right = {.parts = shops, .part_count = 1, .keys = first, .key_count = 1, .payload = 1};
    struct subtotal *subtotals = column(atoll_threads(context), sizeof *subtotals);
    check(atoll_join_blocks(context, &left, &right, ATOLL_INNER, add_up, subtotals), "taxes");
    uint64_t tax = 0;
    for (uint32_t worker = 0; worker < atoll_threads(context); worker++)
        tax += subtotals[worker].amount;
    free(subtotals);
    printf("taxes: %" PRIu64 "\n", tax);
}

/* Shops without a sale, by row number. The result outlives its input. */
static atoll_result *idle(atoll_context *context, const atoll_part *sales, const atoll_part *shops)
{
    const uint32_t first[] = {0};
    atoll_side left = {.parts = shops, .part_count = 1, .keys = first, .key_count = 1};
    atoll_side right = {.parts = sales, .part_count = 1, .keys = first, .key_count = 1};
    left.payload = right.payload = ATOLL_ROW_NUMBERS;
    atoll_result *alone = NULL;
    check(atoll_join(context, &left, &right, ATOLL_LEFT_ANTI, &alone), "idle shops");
    return alone;
}

int main(void)
{
    atoll_context *context = NULL;
    check(atoll_open(2, &context), "opening");
    check(atoll_set_memory_limit(context, 1u << 30), "setting a limit");

    /* Shop 7 sells nothing. */
    int64_t *shops = column(SALES, sizeof *shops), *amounts = column(SALES, sizeof *amounts);
    for (size_t row = 0; row < SALES; row++) {
        shops[row] = row % SHOPS == 7 ? 8 : (int64_t)(row % SHOPS);
        amounts[row] = (int64_t)(row % 97);
    }
    int64_t *numbers = column(SHOPS, sizeof *numbers), *rates = column(SHOPS, sizeof *rates);
    for (size_t row = 0; row < SHOPS; row++) {
        numbers[row] = (int64_t)row;
        rates[row] = (int64_t)(row % 3);
    }
    sums_by_shop(context, shops, amounts);
    sales_by_city_and_month(context);

    const atoll_column of_sales[] = {
        {.type = ATOLL_INT64, .length = SALES, .values = shops},
        {.type = ATOLL_INT64, .length = SALES, .values = amounts},
    };
    const atoll_column of_shops[] = {
        {.type = ATOLL_INT64, .length = SHOPS, .values = numbers},
        {.type = ATOLL_INT64, .length = SHOPS, .values = rates},
    };
    const atoll_part sales = {.home = ATOLL_NO_HOME, .column_count = 2, .columns = of_sales};
    const atoll_part shop_list = {.home = ATOLL_NO_HOME, .column_count = 2, .columns = of_shops};
    taxes(context, &sales, &shop_list);
    atoll_result *alone = idle(context, &sales, &shop_list);

    /* An error names what to do. */
    atoll_result *none = NULL;
    if (atoll_aggregate_sum_i64(context, shops, NULL, SALES, &none) == ATOLL_INVALID)
        printf("an error: %s\n", atoll_error());

    free(shops);
    free(amounts);
    free(numbers);
    free(rates);
    atoll_close(context);

    for (size_t block = 0; block < atoll_result_blocks(alone); block++) {
        atoll_column left;
        check(atoll_result_column(alone, block, 0, &left), "column of shops");
        for (size_t row = 0; row < left.length; row++)
            printf("idle: shop %" PRIu64 "\n", ((const uint64_t *)left.values)[row]);
    }
    atoll_free_result(alone);
    return 0;
}
