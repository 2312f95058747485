//! Functions of angles in degrees, exact where PostgreSQL's are: at multiples of 30 and 45 degrees.

use datafusion::arrow::array::ArrayRef;
use datafusion::common::Result;

use crate::scalar::call::Call;
use crate::scalar::entry::{Arguments, Entry, Takes, double};
use crate::scalar::text::texts::entry;

const DEGREES: &[Arguments] = &[Arguments::Are(&[Takes::Double])];
const TWO: &[Arguments] = &[Arguments::Are(&[Takes::Double, Takes::Double])];

fn of_angles(call: &Call, of: impl Fn(f64) -> f64) -> Result<ArrayRef> {
    let values = call.double(0);
    call.doubles(|row| match values.value(row) {
        value if value.is_infinite() => call.fails_as("22003", "input is out of range"),
        value => Ok(Some(of(value))),
    })
}

/// Returns the angle with this sine or cosine, from -1 to 1.
fn of_ratios(call: &Call, of: impl Fn(f64) -> f64) -> Result<ArrayRef> {
    let values = call.double(0);
    call.doubles(|row| match values.value(row) {
        value if value.abs() > 1.0 => call.fails_as("22003", "input is out of range"),
        value => Ok(Some(of(value))),
    })
}

/// The sine of an angle in degrees.
fn sine(degrees: f64) -> f64 {
    let angle = degrees % 360.0;
    let (sign, angle) = if angle < 0.0 { (-1.0, -angle) } else { (1.0, angle) };
    let (sign, angle) = if angle > 180.0 { (-sign, angle - 180.0) } else { (sign, angle) };
    let angle = if angle > 90.0 { 180.0 - angle } else { angle };
    sign * match angle {
        0.0 => 0.0,
        30.0 => 0.5,
        90.0 => 1.0,
        angle => angle.to_radians().sin(),
    }
}

fn cosine(degrees: f64) -> f64 {
    let angle = (degrees % 360.0).abs();
    let angle = if angle > 180.0 { 360.0 - angle } else { angle };
    let (sign, angle) = if angle > 90.0 { (-1.0, 180.0 - angle) } else { (1.0, angle) };
    sign * match angle {
        0.0 => 1.0,
        60.0 => 0.5,
        90.0 => 0.0,
        angle => angle.to_radians().cos(),
    }
}

/// The tangent, which is ±1 at odd multiples of 45 degrees.
fn tangent(degrees: f64) -> f64 {
    match (degrees % 180.0).abs() {
        45.0 | 135.0 => (sine(degrees) * cosine(degrees)).signum(),
        _ => sine(degrees) / cosine(degrees),
    }
}

fn cotangent(degrees: f64) -> f64 {
    match (degrees % 180.0).abs() {
        45.0 | 135.0 => tangent(degrees),
        _ => cosine(degrees) / sine(degrees),
    }
}

/// Returns the angle with this sine.
fn arc_sine(ratio: f64) -> f64 {
    match ratio.abs() {
        0.5 => 30.0_f64.copysign(ratio),
        _ => ratio.asin().to_degrees(),
    }
}

fn arc_cosine(ratio: f64) -> f64 {
    match ratio {
        0.5 => 60.0,
        -0.5 => 120.0,
        _ => ratio.acos().to_degrees(),
    }
}

fn atan2d(call: &Call) -> Result<ArrayRef> {
    let (y, x) = (call.double(0), call.double(1));
    call.doubles(|row| Ok(Some(y.value(row).atan2(x.value(row)).to_degrees())))
}

pub(in crate::scalar) static ENTRIES: &[&[Entry]] = &[&[
    entry!("sind" [], "degrees", DEGREES, double, "The sine of an angle in degrees.",
        "sind(30) = 0.5", |call| of_angles(call, sine)),
    entry!("cosd" [], "degrees", DEGREES, double, "The cosine of an angle in degrees.",
        "cosd(60) = 0.5", |call| of_angles(call, cosine)),
    entry!("tand" [], "degrees", DEGREES, double, "The tangent of an angle in degrees.",
        "tand(45) = 1", |call| of_angles(call, tangent)),
    entry!("cotd" [], "degrees", DEGREES, double, "The cotangent of an angle in degrees.",
        "cotd(45) = 1", |call| of_angles(call, cotangent)),
    entry!("asind" [], "number", DEGREES, double, "The angle in degrees whose sine a number is.",
        "asind(0.5) = 30", |call| of_ratios(call, arc_sine)),
    entry!("acosd" [], "number", DEGREES, double, "The angle in degrees whose cosine a number is.",
        "acosd(0.5) = 60", |call| of_ratios(call, arc_cosine)),
    entry!("atand" [], "number", DEGREES, double, "The angle in degrees whose tangent a number is.",
    "atand(1) = 45", |call| {
        let values = call.double(0);
        call.doubles(|row| Ok(Some(values.value(row).atan().to_degrees())))
    }),
    entry!("atan2d" [], "y, x", TWO, double, "The angle in degrees of a point at the right of zero.",
        "atan2d(1, 1) = 45", atan2d),
]];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn angles_of_whole_parts_of_a_turn_are_exact() {
        for (degrees, sin, cos) in [
            (0.0, 0.0, 1.0),
            (30.0, 0.5, 0.0),
            (150.0, 0.5, 0.0),
            (210.0, -0.5, 0.0),
            (-90.0, -1.0, 0.0),
        ] {
            assert_eq!(sine(degrees), sin, "{degrees}");
            if cos != 0.0 {
                assert_eq!(cosine(degrees), cos, "{degrees}");
            }
        }
        assert_eq!((cosine(120.0), cosine(-60.0), cosine(270.0)), (-0.5, 0.5, 0.0));
        assert_eq!((tangent(45.0), tangent(135.0), tangent(225.0)), (1.0, -1.0, 1.0));
        assert_eq!((arc_sine(-0.5), arc_cosine(-0.5)), (-30.0, 120.0));
    }
}
