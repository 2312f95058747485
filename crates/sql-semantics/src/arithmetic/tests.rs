//! Decimal operations checked against Arrow's, which check every row.

use datafusion::arrow::array::{Array, ArrayRef, AsArray, Datum, Decimal128Array, Scalar};
use datafusion::arrow::compute::kernels::numeric;
use datafusion::arrow::datatypes::{DataType, Decimal128Type};
use datafusion::arrow::error::ArrowError;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use super::operation::{Arithmetic, Operation};

const OPERATIONS: [Operation; 3] = [Operation::Add, Operation::Subtract, Operation::Multiply];

fn random(rng: &mut StdRng, rows: usize, bits: u32, precision: u8, scale: i8) -> Decimal128Array {
    let limit = (1_i128 << bits) - 1;
    let limit = limit.min(10_i128.pow(u32::from(precision)) - 1);
    (0..rows)
        .map(|_| (!rng.random_bool(0.1)).then(|| rng.random_range(-limit..=limit)))
        .collect::<Decimal128Array>()
        .with_precision_and_scale(precision, scale)
        .expect("the values fit")
}

fn arrows(
    operation: Operation,
    left: &dyn Datum,
    right: &dyn Datum,
) -> Result<ArrayRef, ArrowError> {
    match operation {
        Operation::Add => numeric::add(left, right),
        Operation::Subtract => numeric::sub(left, right),
        _ => numeric::mul(left, right),
    }
}

fn check(operation: Operation, left: &dyn Datum, right: &dyn Datum, rows: usize) {
    let arrows = arrows(operation, left, right);
    let widest = DataType::Decimal128(38, 4);
    let result = arrows.as_ref().map_or(widest, |array| array.data_type().clone());
    // A null constant never reaches this code.
    if [left, right].iter().any(|side| side.get().1 && side.get().0.is_null(0)) {
        return;
    }
    let found = Arithmetic::new(operation, result.clone()).compute(left, right, rows);
    let expected = arrows.and_then(|values| {
        let DataType::Decimal128(precision, _) = result else { panic!("{result}") };
        values.as_primitive::<Decimal128Type>().validate_decimal_precision(precision)?;
        Ok(values)
    });
    match (expected, found) {
        (Ok(expected), Ok(found)) => assert_eq!(&expected, &found, "{operation}"),
        (Err(_), Err(_)) => {}
        (expected, found) => panic!("{operation}: {expected:?} is not {found:?}"),
    }
}

#[test]
fn results_are_arrows_whatever_the_width_of_the_values() {
    let mut rng = StdRng::seed_from_u64(7);
    for operation in OPERATIONS {
        for (left_bits, right_bits) in [(1, 1), (20, 40), (62, 62), (63, 64), (64, 62), (100, 30)] {
            for rows in [0, 1, 1000] {
                let left = random(&mut rng, rows, left_bits, 34, 2);
                let right = random(&mut rng, rows, right_bits, 25, 4);
                check(operation, &left, &right, rows);
                let one = random(&mut rng, 1, right_bits, 20, 0);
                check(operation, &left, &Scalar::new(one.clone()), rows);
                check(operation, &Scalar::new(one), &left, rows);
            }
        }
    }
}

#[test]
fn results_of_the_widest_type_fit_it_or_fail() {
    let mut rng = StdRng::seed_from_u64(8);
    for operation in OPERATIONS {
        for bits in [60, 63, 124, 125, 126] {
            for _ in 0..200 {
                let (left, right) =
                    (random(&mut rng, 2, bits, 38, 0), random(&mut rng, 2, bits, 38, 0));
                check(operation, &left, &right, 2);
            }
        }
    }
}

#[test]
fn an_overflow_is_an_error() {
    let widest = |values: Vec<i128>| {
        Decimal128Array::from(values).with_precision_and_scale(38, 0).expect("the type is valid")
    };
    let nines = widest(vec![10_i128.pow(38) - 1]);
    let fails = |operation, left: &dyn Datum, right: &dyn Datum| {
        let result = DataType::Decimal128(38, 0);
        Arithmetic::new(operation, result).compute(left, right, 1).is_err()
    };
    assert!(fails(Operation::Add, &nines, &widest(vec![1])));
    assert!(!fails(Operation::Add, &nines, &widest(vec![0])));
    assert!(fails(Operation::Subtract, &widest(vec![-1]), &nines));
    assert!(fails(Operation::Multiply, &nines, &widest(vec![2])));
    assert!(fails(Operation::Multiply, &widest(vec![10_i128.pow(37)]), &widest(vec![100_000])));
}
