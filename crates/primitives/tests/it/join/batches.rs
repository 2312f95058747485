//! Joins whose result is record batches.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, ArrayRef, Int64Array, RecordBatch, StringArray};
use atoll_primitives::Part;
use atoll_primitives::join::{JoinInput, JoinKind, hash_join_batches};

use super::small;

fn side(keys: Vec<Option<i64>>, texts: Vec<&str>) -> JoinInput {
    let columns: [(&str, ArrayRef, bool); 2] = [
        ("key", Arc::new(Int64Array::from(keys)), true),
        ("text", Arc::new(StringArray::from(texts)), false),
    ];
    let rows = RecordBatch::try_from_iter_with_nullable(columns).expect("a batch");
    let parts = [rows.slice(0, 1), rows.slice(1, rows.num_rows() - 1)];
    JoinInput::new(parts.map(|rows| Part::new(None, rows)).to_vec(), [0])
}

/// Rows of the result as text, sorted.
fn rows(kind: JoinKind) -> Vec<String> {
    let context = small();
    let left = side(vec![Some(1), Some(2), None, Some(2)], vec!["a", "b", "c", "d"]);
    let right = side(vec![Some(2), Some(3), None], vec!["x", "y", "z"]);
    let join = hash_join_batches(&context, &left, &right, kind);
    let batches = context.runtime().block_on(join).expect("the join ends").consumers;
    let mut rows = Vec::new();
    for batch in batches {
        for row in 0..batch.num_rows() {
            let cells = batch.columns().iter().map(|column| match column.is_null(row) {
                true => "-".to_owned(),
                false => match column.as_primitive_opt::<Int64Type>() {
                    Some(numbers) => numbers.value(row).to_string(),
                    None => column.as_string::<i32>().value(row).to_owned(),
                },
            });
            rows.push(cells.collect::<Vec<_>>().join(" "));
        }
    }
    rows.sort();
    rows
}

#[test]
fn pairs_have_the_columns_of_both_sides_and_rows_alone_have_nulls() {
    assert_eq!(rows(JoinKind::Inner), ["2 b 2 x", "2 d 2 x"]);
    assert_eq!(rows(JoinKind::Left), ["- c - -", "1 a - -", "2 b 2 x", "2 d 2 x"]);
    assert_eq!(rows(JoinKind::Right), ["- - - z", "- - 3 y", "2 b 2 x", "2 d 2 x"]);
    assert_eq!(
        rows(JoinKind::Full),
        ["- - - z", "- - 3 y", "- c - -", "1 a - -", "2 b 2 x", "2 d 2 x"]
    );
}

#[test]
fn semi_and_anti_joins_have_the_columns_of_their_side() {
    assert_eq!(rows(JoinKind::LeftSemi), ["2 b", "2 d"]);
    assert_eq!(rows(JoinKind::RightSemi), ["2 x"]);
    assert_eq!(rows(JoinKind::LeftAnti), ["- c", "1 a"]);
    assert_eq!(rows(JoinKind::RightAnti), ["- z", "3 y"]);
}

#[test]
fn a_side_with_unknown_columns_is_refused() {
    let context = small();
    let (known, unknown) = (side(vec![Some(1)], vec!["a"]), JoinInput::new(vec![], [0]));
    let join = hash_join_batches(&context, &known, &unknown, JoinKind::Left);
    let error = context.runtime().block_on(join).expect_err("no columns");
    assert!(error.to_string().contains("no parts"), "{error}");
}
