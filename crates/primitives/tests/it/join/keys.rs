//! Keys of other types than one integer.

use std::sync::Arc;

use arrow_array::{
    ArrayRef, Date32Array, Float64Array, Int8Array, Int16Array, Int32Array, RecordBatch,
    StringArray, UInt8Array, UInt64Array,
};
use atoll_primitives::join::{JoinInput, JoinKind, RowPairs, hash_join};
use atoll_primitives::{Context, Part, PrimitiveError};

use super::reference::nested_loops;
use super::{join, small, tiny_tables};

fn input(columns: &[ArrayRef]) -> JoinInput {
    let named =
        columns.iter().enumerate().map(|(at, column)| (format!("c{at}"), Arc::clone(column), true));
    let rows = RecordBatch::try_from_iter_with_nullable(named).expect("a batch");
    let on: Vec<usize> = (0..columns.len()).collect();
    let middle = rows.num_rows() / 3;
    let parts = [rows.slice(0, middle), rows.slice(middle, rows.num_rows() - middle)];
    JoinInput::new(parts.map(|rows| Part::new(None, rows)).to_vec(), on)
}

/// Compares all kinds of joins of these columns with nested loops over the keys given as values.
fn compare<K: PartialEq>(left: (&[ArrayRef], &[Option<K>]), right: (&[ArrayRef], &[Option<K>])) {
    for context in [small(), small().with_tuning(tiny_tables())] {
        for kind in JoinKind::ALL {
            let (found, report) = join(&context, &input(left.0), &input(right.0), kind);
            assert_eq!(found, nested_loops(left.1, right.1, kind), "{kind:?} {:?}", report.variant);
        }
    }
}

#[test]
fn narrow_and_negative_integers_match() {
    let values = |count: i32| -> Vec<Option<i32>> {
        (0..count).map(|row| (row % 11 != 0).then_some(row % 37 - 18)).collect()
    };
    let (left, right) = (values(80), values(200));
    let columns = |values: &[Option<i32>]| -> [ArrayRef; 4] {
        [
            Arc::new(values.iter().map(|value| value.map(|v| v as i8)).collect::<Int8Array>()),
            Arc::new(values.iter().map(|value| value.map(|v| v as i16)).collect::<Int16Array>()),
            Arc::new(values.iter().copied().collect::<Date32Array>()),
            Arc::new(
                values.iter().map(|value| value.map(|v| (v + 18) as u8)).collect::<UInt8Array>(),
            ),
        ]
    };
    for (left_column, right_column) in columns(&left).into_iter().zip(columns(&right)) {
        compare((&[left_column], &left), (&[right_column], &right));
    }
}

#[test]
fn several_narrow_columns_match_where_all_of_them_do() {
    let values = |count: i32| -> Vec<Option<(i32, i16)>> {
        (0..count)
            .map(|row| (row % 13 != 0).then_some((-(row % 5), (row % 3) as i16 - 1)))
            .collect()
    };
    let (left, right) = (values(60), values(90));
    let columns = |values: &[Option<(i32, i16)>]| -> Vec<ArrayRef> {
        vec![
            Arc::new(values.iter().map(|value| value.map(|v| v.0)).collect::<Int32Array>()),
            Arc::new(values.iter().map(|value| value.map(|v| v.1)).collect::<Int16Array>()),
        ]
    };
    compare((&columns(&left), &left), (&columns(&right), &right));
}

#[test]
fn strings_and_wide_keys_match_by_their_bytes() {
    let texts =
        ["", "a", "a\0", "ab", "a long text that no word holds", "a long text that no word holdt"];
    let values = |count: usize| -> Vec<Option<(&str, u64)>> {
        (0..count).map(|row| (row % 7 != 0).then_some((texts[row % 6], (row % 4) as u64))).collect()
    };
    let (left, right) = (values(70), values(110));
    let columns = |values: &[Option<(&str, u64)>]| -> Vec<ArrayRef> {
        vec![
            Arc::new(values.iter().map(|value| value.map(|v| v.0)).collect::<StringArray>()),
            Arc::new(values.iter().map(|value| value.map(|v| v.1)).collect::<UInt64Array>()),
        ]
    };
    compare((&columns(&left), &left), (&columns(&right), &right));
    let only = |values: &[Option<(&'static str, u64)>]| -> Vec<Option<&'static str>> {
        values.iter().map(|value| value.map(|v| v.0)).collect()
    };
    compare((&columns(&left)[..1], &only(&left)), (&columns(&right)[..1], &only(&right)));
}

#[test]
fn floats_have_one_zero_and_one_nan() {
    let left = Float64Array::from(vec![Some(0.0), Some(-0.0), Some(f64::NAN), None, Some(1.5)]);
    let right = Float64Array::from(vec![Some(-0.0), Some(-f64::NAN), Some(1.5), None]);
    let pairs = vec![(0, 0), (1, 0), (2, 1), (4, 2)];
    let (left, right): (ArrayRef, ArrayRef) = (Arc::new(left), Arc::new(right));
    let text = |rows: usize| -> ArrayRef { Arc::new(StringArray::from(vec!["x"; rows])) };
    let context = small();
    let one = join(
        &context,
        &input(std::slice::from_ref(&left)),
        &input(std::slice::from_ref(&right)),
        JoinKind::Inner,
    );
    assert_eq!(one.0.0, pairs);
    let both = join(&context, &input(&[left, text(5)]), &input(&[right, text(4)]), JoinKind::Inner);
    assert_eq!(both.0.0, pairs);
}

fn refused(context: &Context, left: &JoinInput, right: &JoinInput) -> PrimitiveError {
    let join = hash_join(context, left, right, JoinKind::Inner, |_| RowPairs::default());
    context.runtime().block_on(join).expect_err("what does not fit together is refused")
}

#[test]
fn mismatched_columns_are_refused_with_advice() {
    let context = small();
    let numbers: ArrayRef = Arc::new(Int32Array::from(vec![1, 2, 3]));
    let texts: ArrayRef = Arc::new(StringArray::from(vec!["1", "2", "3"]));
    let (number, text) =
        (input(std::slice::from_ref(&numbers)), input(std::slice::from_ref(&texts)));
    assert!(refused(&context, &number, &text).to_string().contains("cast"));
    let both = input(&[numbers.clone(), texts]);
    assert!(refused(&context, &number, &both).to_string().contains("the same number"));
    let beyond = JoinInput { on: vec![9], ..number.clone() };
    assert!(refused(&context, &beyond, &beyond).to_string().contains("position 9"));
    let none = JoinInput { on: vec![], ..number.clone() };
    assert!(matches!(refused(&context, &none, &none), PrimitiveError::Shape { .. }));
    let narrow = number.clone().with_payload(0);
    assert!(matches!(refused(&context, &narrow, &number), PrimitiveError::Type { .. }));
    let carried = both.clone().with_payload(0);
    assert!(matches!(refused(&context, &carried, &both), PrimitiveError::Shape { .. }));
}

#[test]
fn sides_without_parts_are_empty() {
    let context = small();
    let nothing = JoinInput::new(vec![], [0]);
    let numbers = input(&[Arc::new(Int32Array::from(vec![1, 2, 3])) as ArrayRef]);
    let ((pairs, left, right), _) = join(&context, &nothing, &numbers, JoinKind::Full);
    assert_eq!((pairs, left, right), (vec![], vec![], vec![0, 1, 2]));
    assert_eq!(join(&context, &nothing, &nothing, JoinKind::Full).0, (vec![], vec![], vec![]));
}
