//! Every error: its code, a helpful message, no result, and no leaked memory.

use std::ffi::{c_int, c_void};
use std::ptr::{null, null_mut};

use atoll::{
    Aggregation, Column, Function, RowsPart, Side, atoll_aggregate, atoll_aggregate_sum_i64,
    atoll_cancel, atoll_close, atoll_free_result, atoll_join, atoll_join_blocks, atoll_memory_used,
    atoll_open, atoll_partition_u64, atoll_result_blocks, atoll_result_column,
    atoll_result_columns, atoll_result_reason, atoll_result_rows, atoll_set_memory_limit,
    atoll_sort_u64, atoll_threads,
};

use crate::groups::aggregation;
use crate::joins::side;
use crate::lent::{
    BOOL, DECIMAL128, FLOAT64, Found, INT32, INT64, Open, UTF8, done, error, fixed, found, part,
    texts,
};

const INVALID: c_int = 1;
const TYPE: c_int = 2;
const OVERFLOW: c_int = 3;
const MEMORY: c_int = 4;
const STOPPED: c_int = 6;

#[track_caller]
fn assert_error<T: std::fmt::Debug>(result: Result<T, (c_int, String)>, code: c_int, says: &str) {
    let (found, text) = result.unwrap_err();
    assert_eq!(found, code, "{text}");
    assert!(text.contains(says), "{says:?} is not in {text:?}");
}

fn aggregate(context: &Open, aggregation: &Aggregation) -> Result<Found, (c_int, String)> {
    // SAFETY: what it points to lives, as far as it points to anything.
    found(|to| unsafe { atoll_aggregate(context.0, aggregation, to) })
}

/// Workers let go of what they have shared a moment after their step has ended.
#[track_caller]
fn assert_all_back(context: &Open) {
    // SAFETY: a context.
    let used = || unsafe { atoll_memory_used(context.0) };
    let since = std::time::Instant::now();
    while used() > 0 {
        assert!(since.elapsed().as_secs() < 60, "{} bytes are still held", used());
        std::thread::yield_now();
    }
}

/// Sums column 0 by itself.
fn sum(context: &Open, columns: &[Column]) -> Result<Found, (c_int, String)> {
    let parts = [part(columns)];
    aggregate(context, &aggregation(&parts, &[0], &[Function { function: 2, column: 0 }]))
}

#[test]
fn a_machine_has_no_more_threads_than_the_kernel_counts() {
    let mut context = null_mut();
    // SAFETY: room for a pointer.
    let code = unsafe { atoll_open(1 << 20, &raw mut context) };
    assert_error(done(code), INVALID, "invalid number of threads: 1048576; expected 1 to");
    assert!(context.is_null());
    // SAFETY: null is refused.
    assert_error(done(unsafe { atoll_open(1, null_mut()) }), INVALID, "context: null pointer");
}

#[test]
fn null_is_no_context_and_no_result() {
    // SAFETY: all of them take null.
    unsafe {
        atoll_close(null_mut());
        atoll_cancel(null_mut());
        atoll_free_result(null_mut());
        assert_eq!((atoll_threads(null()), atoll_memory_used(null())), (0, 0));
        assert_eq!((atoll_result_rows(null()), atoll_result_blocks(null())), (0, 0));
        assert_eq!((atoll_result_columns(null()), *atoll_result_reason(null())), (0, 0));
        assert_error(
            done(atoll_set_memory_limit(null_mut(), 1)),
            INVALID,
            "open one with atoll_open",
        );
        let call = |to| atoll_aggregate_sum_i64(null_mut(), null(), null(), 0, to);
        assert_error(found(call), INVALID, "open one with atoll_open");
        let mut column = fixed::<i64>(INT64, &[]);
        let code = atoll_result_column(null(), 0, 0, &raw mut column);
        assert_error(done(code), INVALID, "result: null pointer");
    }
}

#[test]
fn null_and_misaligned_pointers_are_named() {
    let context = Open::new(1);
    let values = [1_i64, 2, 3];
    let good = fixed(INT64, &values);
    let odd = good.values.cast::<u8>().wrapping_add(1).cast::<c_void>();
    let cases = [
        (Column { values: null(), ..good }, "column 0, values: null pointer"),
        (Column { length: 2, values: odd, ..good }, "is not a multiple of 8"),
        (Column { length: usize::MAX / 4, ..good }, "exceed the address space"),
    ];
    for (column, says) in cases {
        assert_error(sum(&context, &[column]), INVALID, says);
    }
    // SAFETY: null is refused.
    let to_null = unsafe { atoll_aggregate_sum_i64(context.0, null(), null(), 0, null_mut()) };
    assert_error(done(to_null), INVALID, "result: null pointer");
    // SAFETY: the same.
    let none = found(|to| unsafe { atoll_aggregate(context.0, null(), to) });
    assert_error(none, INVALID, "aggregation: null pointer");
    let nowhere = Aggregation { keys: null(), ..aggregation(&[], &[0], &[]) };
    assert_error(aggregate(&context, &nowhere), INVALID, "keys: null pointer");
    let nowhere =
        Aggregation { functions: null(), function_count: 2, ..aggregation(&[], &[], &[]) };
    assert_error(aggregate(&context, &nowhere), INVALID, "functions: null pointer");
    let nowhere = [RowsPart { home: -1, column_count: 1, columns: null() }];
    let nowhere = aggregation(&nowhere, &[0], &[]);
    assert_error(aggregate(&context, &nowhere), INVALID, "part 0, columns: null pointer");
    assert_error(aggregate(&context, &aggregation(&[], &[0], &[])), INVALID, "no parts");
}

#[test]
fn unknown_types_positions_and_homes_are_errors() {
    let context = Open::new(1);
    let values = [1_i64, 2, 3];
    let good = fixed(INT64, &values);
    for number in [0, 15, u32::MAX] {
        assert_error(
            sum(&context, &[Column { data_type: number, ..good }]),
            TYPE,
            "unknown \
                                                                                    column type",
        );
    }
    for precision in [0, 39] {
        let decimal = Column { data_type: DECIMAL128, precision, length: 1, ..good };
        assert_error(sum(&context, &[decimal]), INVALID, "invalid decimal precision");
    }
    let columns = [good];
    let parts = [part(&columns)];
    let (key, none) = ([0], [Function { function: 0, column: 0 }]);
    let query = aggregation(&parts, &key, &none);
    let unknown = [Function { function: 6, column: 0 }];
    let unknown = Aggregation { functions: unknown.as_ptr(), ..query };
    assert_error(aggregate(&context, &unknown), INVALID, "unknown aggregate function 6");
    assert_error(
        aggregate(&context, &Aggregation { variant: 6, ..query }),
        INVALID,
        "unknown aggregation variant 6",
    );
    let far = aggregation(&parts, &[1], &none);
    assert_error(
        aggregate(&context, &far),
        INVALID,
        "position of a column: found 1, expected less than 1",
    );
    let far = [Function { function: 2, column: 7 }];
    let far = Aggregation { functions: far.as_ptr(), ..query };
    assert_error(aggregate(&context, &far), INVALID, "position of a column: found 7");
    for home in [-2, 70_000] {
        let away = [RowsPart { home, ..parts[0] }];
        let away = aggregation(&away, &key, &none);
        assert_error(aggregate(&context, &away), INVALID, "does not exist; expected one of");
    }
    let text = texts("ab", &[0, 1, 2]);
    assert_error(sum(&context, &[text]), TYPE, "sum does not support Utf8");
}

#[test]
fn columns_that_do_not_fit_together() {
    let context = Open::new(1);
    let (three, two) = ([1_i64, 2, 3], [1_i32, 2]);
    let uneven = [fixed(INT64, &three), fixed(INT32, &two)];
    assert_error(
        sum(&context, &uneven),
        INVALID,
        "part 0, column 1 has 2 values, and column 0 has 3",
    );
    let (first, second) = ([fixed(INT64, &three)], [fixed(INT32, &two)]);
    let parts = [part(&first), part(&second)];
    let query = aggregation(&parts, &[0], &[]);
    assert_error(aggregate(&context, &query), INVALID, "part 1, columns of types [Int32]");
}

#[test]
fn texts_are_checked_before_they_are_read() {
    let context = Open::new(1);
    let (broken, cut) = ([0xff_u8, 0xfe, b'a'], "aé");
    let falling = [0, 3, 1, 3];
    let beyond = [0, 1, 2, 9];
    let before = [-1, 1, 2, 3];
    for (offsets, bytes) in [(&falling, cut), (&beyond, cut), (&before, cut), (&[0, 2, 2, 3], cut)]
    {
        let (code, text) = sum(&context, &[texts(bytes, offsets)]).unwrap_err();
        assert_eq!(code, INVALID, "{offsets:?}: {text}");
    }
    let column = Column { bytes: 3, ..texts("abc", &[0, 1, 2, 3]) };
    let column = Column { values: broken.as_ptr().cast(), ..column };
    assert_error(sum(&context, &[column]), INVALID, "UTF8");
    assert_error(sum(&context, &[Column { offsets: null(), ..column }]), INVALID, "offsets: null");
    let endless = Column { length: usize::MAX, ..column };
    assert_error(sum(&context, &[endless]), INVALID, "exceed the address space");
    assert_eq!(column.data_type, UTF8);
}

#[test]
fn an_overflowing_sum_is_an_error_in_every_variant() {
    let context = Open::new(2);
    let keys = vec![1_i64; 100];
    let values = vec![i64::MAX / 50; 100];
    let columns = [fixed(INT64, &keys), fixed(INT64, &values)];
    let (parts, sum) = ([part(&columns)], [Function { function: 2, column: 1 }]);
    for variant in 0..6 {
        let query = Aggregation { variant, ..aggregation(&parts, &[0], &sum) };
        assert_error(aggregate(&context, &query), OVERFLOW, "overflows Int64; cast the column");
    }
    assert_all_back(&context);
}

#[test]
fn a_memory_limit_is_kept_and_an_error_gives_everything_back() {
    let context = Open::new(2);
    let keys: Vec<i64> = (0..1 << 20).collect();
    let (at, rows) = (keys.as_ptr(), keys.len());
    // SAFETY: so many values.
    let sum = |to| unsafe { atoll_aggregate_sum_i64(context.0, at, at, rows, to) };
    // SAFETY: a context.
    let limit = |bytes| done(unsafe { atoll_set_memory_limit(context.0, bytes) }).unwrap();
    limit(1 << 20);
    assert_error(found(sum), MEMORY, "raise the memory limit");
    assert_all_back(&context);

    let columns = [fixed(INT64, &keys)];
    let parts = [part(&columns)];
    let side = side(&parts, &[0], -1);
    let both = &raw const side;
    // SAFETY: made of slices that live.
    let joined = found(|to| unsafe { atoll_join(context.0, both, both, 0, to) });
    assert_error(joined, MEMORY, "raise the memory limit");
    assert_all_back(&context);

    limit(0);
    let result = found(sum).unwrap();
    assert_eq!(result.values::<i64>(1).len(), rows);
    drop(result);
    assert_all_back(&context);
}

#[test]
fn sides_that_cannot_be_joined() {
    let context = Open::new(1);
    let (long, short, wide) = ([1_i64, 2], [1_i32, 2], [1_i128, 2]);
    let columns = [fixed(INT64, &long), fixed(INT32, &short)];
    let columns = [columns[0], columns[1], Column { precision: 38, ..fixed(DECIMAL128, &wide) }];
    let parts = [part(&columns)];
    let good = side(&parts, &[0], -1);
    let join = |left: &Side, right: &Side, kind| {
        let (left, right) = (&raw const *left, &raw const *right);
        // SAFETY: what they point to lives, as far as it is there.
        found(|to| unsafe { atoll_join(context.0, left, right, kind, to) })
    };
    assert_error(join(&good, &good, 8), INVALID, "unknown join kind 8");
    assert_error(join(&good, &side(&parts, &[1], -1), 0), INVALID, "cast one of them");
    assert_error(join(&good, &side(&parts, &[], -1), 0), INVALID, "the same number on both sides");
    assert_error(join(&good, &side(&parts, &[9], -1), 0), INVALID, "position 9");
    assert_error(join(&good, &side(&parts, &[0], -2), 0), INVALID, "right: invalid payload -2");
    assert_error(join(&good, &side(&parts, &[0], 5), 0), INVALID, "");
    assert_error(join(&side(&parts, &[0], 1), &good, 0), TYPE, "");
    assert_error(join(&side(&[], &[0], -1), &good, 0), INVALID, "left, no parts");
    // SAFETY: null is refused.
    let none = found(|to| unsafe { atoll_join(context.0, null(), &raw const good, 0, to) });
    assert_error(none, INVALID, "left: null pointer");
    let both = &raw const good;
    // SAFETY: the same.
    let code = unsafe { atoll_join_blocks(context.0, both, both, 0, None, null_mut()) };
    assert_error(done(code), INVALID, "take: null pointer");
}

unsafe extern "C" fn stop(_: *mut c_void, _: u32, _: *const u64, _: *const u64, _: usize) -> c_int {
    -7
}

unsafe extern "C" fn call(
    user: *mut c_void,
    _: u32,
    _: *const u64,
    _: *const u64,
    _: usize,
) -> c_int {
    let none = |to| {
        // SAFETY: the context that the test gave, and no rows.
        unsafe { atoll_aggregate_sum_i64(user.cast(), null(), null(), 0, to) }
    };
    let (code, text) = found(none).unwrap_err();
    c_int::from(code == INVALID && text.contains("called from an atoll_block_fn"))
}

#[test]
fn a_callback_ends_its_join_and_cannot_call_back_in() {
    let context = Open::new(2);
    let keys = [1_i64, 2, 3];
    let columns = [fixed(INT64, &keys)];
    let parts = [part(&columns)];
    let side = side(&parts, &[0], -1);
    let both = &raw const side;
    // `call` returns 1 when it was refused, as it should.
    for take in [stop, call] {
        let user = context.0.cast();
        // SAFETY: made of slices that live.
        let code = unsafe { atoll_join_blocks(context.0, both, both, 0, Some(take), user) };
        assert_error(done(code), STOPPED, "stopped: the atoll_block_fn");
    }
}

#[test]
fn output_buffers_may_overlap_nothing() {
    let context = Open::new(1);
    let mut memory = vec![0_u64; 40];
    let at = memory.as_mut_ptr();
    let place = |offset: usize| at.wrapping_add(offset);
    let mut starts = [0; 3];
    let to_starts = starts.as_mut_ptr();
    let sort = |keys: usize, out: usize, payloads_out: usize| {
        let (keys, out, payloads_out) = (place(keys), place(out), place(payloads_out));
        // SAFETY: ten rows each; that they overlap is refused.
        done(unsafe { atoll_sort_u64(context.0, keys, null(), 10, 0, out, payloads_out) })
    };
    assert_error(sort(0, 9, 20), INVALID, "keys_out and keys overlap; pass separate buffers");
    assert_error(sort(0, 10, 19), INVALID, "keys_out and payloads_out overlap");
    assert_error(sort(5, 20, 0), INVALID, "payloads_out and keys overlap");
    sort(0, 10, 20).unwrap();
    let partition = |out: usize, starts: *mut usize, bits: u32| {
        let (keys, payloads, out, payloads_out) = (place(0), place(5), place(out), place(30));
        // SAFETY: five rows each; the same.
        done(unsafe {
            atoll_partition_u64(context.0, keys, payloads, 5, bits, out, payloads_out, starts)
        })
    };
    assert_error(partition(6, to_starts, 1), INVALID, "keys_out and payloads overlap");
    assert_error(partition(10, place(31).cast(), 1), INVALID, "payloads_out and starts overlap");
    assert_error(partition(10, to_starts, 15), INVALID, "at most 2^14");
    assert_error(partition(10, null_mut(), 1), INVALID, "starts: null pointer");
    partition(10, to_starts, 1).unwrap();
}

#[test]
fn sorts_that_are_asked_for_nothing_or_too_much() {
    let context = Open::new(1);
    let keys = [2_u64, 1];
    let (from, mut to) = (keys.as_ptr(), [0; 2]);
    let out = to.as_mut_ptr();
    // SAFETY: two rows each, where they are given.
    let sort = |from, flags, out| unsafe {
        done(atoll_sort_u64(context.0, from, null(), 2, flags, out, null_mut()))
    };
    assert_error(
        sort(from, 4, out),
        INVALID,
        "expected a combination of ATOLL_DESCENDING and \
                                               ATOLL_STABLE",
    );
    assert_error(sort(from, 0, null_mut()), INVALID, "pass at least one");
    assert_error(sort(null(), 0, out), INVALID, "keys, values: null pointer");
}

#[test]
fn columns_of_results_are_counted_from_zero() {
    let context = Open::new(1);
    let values = [1.5, 2.5];
    let bits = [0b10_u8];
    let columns = [fixed(FLOAT64, &values), Column { length: 2, ..fixed(BOOL, &bits) }];
    let result = sum(&context, &columns).unwrap();
    let mut column = fixed::<i64>(INT64, &[]);
    let mut get = |block, number| {
        // SAFETY: a result, and room for a column.
        done(unsafe { atoll_result_column(result.0, block, number, &raw mut column) })
    };
    assert_error(get(9, 0), INVALID, "block 9 is out of range; the result has 1");
    assert_error(get(0, 2), INVALID, "column 2 is out of range; the result has 2");
    get(0, 1).unwrap();
}

#[test]
fn texts_of_errors_belong_to_threads() {
    // SAFETY: null is refused.
    let fail = || unsafe { atoll_set_memory_limit(null_mut(), 0) };
    assert_eq!(fail(), INVALID);
    let elsewhere = std::thread::spawn(error).join().unwrap();
    assert_eq!(elsewhere, "");
    assert!(error().contains("context"));
}
