//! Functions of all types.

use arrow_schema::DataType;
use atoll_primitives::Part;
use atoll_primitives::aggregate::{Aggregate, Function, Query};

use super::data::{Spread, batch, column, numbers, value_types, with_nulls};
use super::{assert_right, parts, two_workers};

const FUNCTIONS: [Function; 6] = [
    Function::CountRows,
    Function::Count,
    Function::Sum,
    Function::Min,
    Function::Max,
    Function::Avg,
];

/// The functions that a type supports.
fn functions(data_type: &DataType) -> Vec<Function> {
    let is_number = data_type.is_numeric() || matches!(data_type, DataType::Decimal128(..));
    let of_type =
        |function: &Function| is_number || !matches!(function, Function::Sum | Function::Avg);
    FUNCTIONS.into_iter().filter(of_type).collect()
}

#[test]
fn every_function_of_every_type_with_and_without_nulls() {
    let context = two_workers();
    let keys = numbers(1, 3000, Spread::Uniform(40));
    // Small enough that nothing overflows.
    let values: Vec<u64> = numbers(2, 3000, Spread::Uniform(1 << 50));
    for data_type in value_types() {
        for nulls in [0.0, 0.3, 1.0] {
            let key = column(&DataType::Int32, &with_nulls(3, &keys, 0.0));
            let value = column(&data_type, &with_nulls(4, &values, nulls));
            let (schema, rows) = batch(vec![key, value]);
            let aggregates = functions(&data_type)
                .into_iter()
                .map(|function| Aggregate { function, column: 1 })
                .collect();
            let query = Query { keys: vec![0], aggregates };
            assert_right(&context, &query, &schema, &parts(&rows, 3, &[None]));
        }
    }
}

#[test]
fn a_group_whose_values_are_all_null_has_no_sum_though_others_have() {
    let context = two_workers();
    let keys: Vec<Option<u64>> = (0..2000).map(|row| Some(row % 7)).collect();
    for data_type in [DataType::Int64, DataType::Float64, DataType::Decimal128(38, 10)] {
        let values: Vec<Option<u64>> =
            (0..2000).map(|row| (row % 7 != 3 && row > 900).then_some(row)).collect();
        let (schema, rows) =
            batch(vec![column(&DataType::Int64, &keys), column(&data_type, &values)]);
        let aggregates = FUNCTIONS.map(|function| Aggregate { function, column: 1 }).to_vec();
        let query = Query { keys: vec![0], aggregates };
        assert_right(&context, &query, &schema, &parts(&rows, 2, &[None]));
    }
}

#[test]
fn many_functions_of_many_columns_at_once() {
    let context = two_workers();
    let keys = numbers(5, 2500, Spread::Zipf(600));
    let types =
        [DataType::Int64, DataType::Float64, DataType::Decimal128(38, 10), DataType::UInt64];
    let mut columns = vec![column(&DataType::Int64, &with_nulls(6, &keys, 0.1))];
    let mut aggregates = vec![Aggregate { function: Function::CountRows, column: 99 }];
    for (at, data_type) in types.iter().enumerate() {
        let values = numbers(at as u64, 2500, Spread::Uniform(1 << 40));
        columns.push(column(data_type, &with_nulls(at as u64, &values, 0.2)));
        let all = functions(data_type).into_iter();
        aggregates.extend(all.map(|function| Aggregate { function, column: at + 1 }));
    }
    let (schema, rows) = batch(columns);
    let query = Query { keys: vec![0], aggregates };
    assert_right(&context, &query, &schema, &parts(&rows, 2, &[None]));
}

#[test]
fn records_too_long_for_partitioning_use_local_tables() {
    let context = two_workers();
    let keys = column(&DataType::Int64, &with_nulls(1, &numbers(1, 900, Spread::Uniform(80)), 0.0));
    let mut columns = vec![keys];
    let mut aggregates = Vec::new();
    for at in 1..=70 {
        let values = numbers(at, 900, Spread::Uniform(1000));
        columns.push(column(&DataType::Int64, &with_nulls(at, &values, 0.1)));
        aggregates.push(Aggregate { function: Function::Sum, column: at as usize });
    }
    let (schema, rows) = batch(columns);
    let query = Query { keys: vec![0], aggregates };
    let parts = [Part::new(None, rows)];
    assert_right(&context, &query, &schema, &parts);
    let ring = atoll_primitives::aggregate::Variant::Ring;
    let outcome = super::run(&context, &query, &schema, &parts, ring).expect("it runs");
    assert!(outcome.reason.contains("ring was asked for"), "{}", outcome.reason);
}

#[test]
fn sums_that_overflow_on_the_way_but_not_in_the_end_are_right() {
    let context = two_workers();
    let up_and_down: Vec<Option<u64>> = (0..4000)
        .map(|row| Some(if row < 2000 { i64::MAX } else { i64::MIN + 1 } as u64))
        .collect();
    let keys: Vec<Option<u64>> = (0..4000).map(|row| Some(row % 3)).collect();
    let (schema, rows) =
        batch(vec![column(&DataType::Int64, &keys), column(&DataType::Int64, &up_and_down)]);
    let both = [Function::Sum, Function::Avg].map(|function| Aggregate { function, column: 1 });
    let query = Query { keys: vec![0], aggregates: both.to_vec() };
    for count in [1, 7] {
        assert_right(&context, &query, &schema, &parts(&rows, count, &[None]));
    }
}

#[test]
fn sums_that_overflow_in_the_end_are_an_error_in_every_variant() {
    let context = two_workers();
    let keys: Vec<Option<u64>> = (0..3000).map(|row| Some(row % 5)).collect();
    let large = |value: u64| vec![Some(value); 3000];
    let of_rows = |count: usize| {
        let rows = (0..3000).map(move |row| Some(if row < count { u64::MAX } else { 0 }));
        rows.collect::<Vec<_>>()
    };
    let digits = DataType::Decimal128(38, 0);
    let cases = [
        (DataType::Int64, large(i64::MAX as u64)),
        (DataType::Int64, large(i64::MIN as u64)),
        (DataType::UInt64, large(u64::MAX)),
        (DataType::UInt64, of_rows(6)),
        // One value for each group does not overflow.
        (DataType::UInt64, of_rows(5)),
    ];
    for (data_type, values) in cases {
        let (schema, rows) =
            batch(vec![column(&DataType::Int64, &keys), column(&data_type, &values)]);
        assert_right(&context, &super::sum_by(1), &schema, &parts(&rows, 4, &[None]));
    }
    let most = 10_i128.pow(38) - 1;
    for (values, overflows) in [(vec![most, 0, -5], false), (vec![most, 1, 0], true)] {
        let values = arrow_array::Decimal128Array::from(values).with_data_type(digits.clone());
        let key = column(&DataType::Int64, &[Some(1); 3]);
        let (schema, rows) = batch(vec![key, std::sync::Arc::new(values)]);
        let parts = [Part::new(None, rows)];
        assert_eq!(super::reference::group(&super::sum_by(1), &parts).is_none(), overflows);
        assert_right(&context, &super::sum_by(1), &schema, &parts);
    }
}

/// Decimals of 38 digits: ten of them may exceed 128 bits on their way to a sum that fits.
#[test]
fn sums_of_long_decimals_that_leave_128_bits_are_right_or_an_error() {
    let context = two_workers();
    let most = 10_i128.pow(38) - 1;
    // Rows of groups 0 and 1 alternate: the first returns to what its type holds.
    let back = |row: usize| match (row % 2, row < 2000) {
        (0, true) => most - row as i128,
        (0, false) => row as i128 - most,
        _ => row as i128,
    };
    let never = |row: usize| if row.is_multiple_of(2) { most } else { 7 };
    let decimals: [(&dyn Fn(usize) -> i128, bool); 2] = [(&back, false), (&never, true)];
    for (decimal, overflows) in decimals {
        let values: arrow_array::Decimal128Array =
            (0..4000).map(|row| Some(decimal(row))).collect();
        let values = values.with_data_type(DataType::Decimal128(38, 0));
        let keys: Vec<Option<u64>> = (0..4000).map(|row| Some(row % 2)).collect();
        let key = column(&DataType::Int64, &keys);
        let (schema, rows) = batch(vec![key, std::sync::Arc::new(values)]);
        for count in [1, 7] {
            let parts = parts(&rows, count, &[None]);
            assert_eq!(super::reference::group(&super::sum_by(1), &parts).is_none(), overflows);
            assert_right(&context, &super::sum_by(1), &schema, &parts);
        }
    }
}

/// 30,000 decimals, of which 17,000 fill 128 bits.
#[test]
fn averages_of_long_decimals_need_room_for_themselves_only() {
    let context = two_workers();
    let large = 10_i128.pow(34) - 2;
    let values: arrow_array::Decimal128Array =
        (0..60_000).map(|row| Some(large + row % 3 - 1)).collect();
    let values = values.with_data_type(DataType::Decimal128(38, 4));
    let keys: Vec<Option<u64>> = (0..60_000).map(|row| Some(row / 3 % 2)).collect();
    let (schema, rows) = batch(vec![column(&DataType::Int64, &keys), std::sync::Arc::new(values)]);
    let avg = Aggregate { function: Function::Avg, column: 1 };
    let query = Query { keys: vec![0], aggregates: vec![avg] };
    let parts = parts(&rows, 5, &[None]);
    assert!(super::reference::group(&query, &parts).is_some(), "the means fit");
    assert_right(&context, &query, &schema, &parts);
}
