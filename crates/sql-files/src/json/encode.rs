//! Values that Arrow's writer would lose.

use std::io::Write;

use atoll_functions::temporal::{TemporalStyle, has_endless, temporal_texts};
use datafusion::arrow::array::types::{ArrowPrimitiveType, Float16Type, Float32Type, Float64Type};
use datafusion::arrow::array::{Array, AsArray, PrimitiveArray, StringArray};
use datafusion::arrow::datatypes::{DataType, FieldRef};
use datafusion::arrow::error::ArrowError;
use datafusion::arrow::json::writer::NullableEncoder;
use datafusion::arrow::json::{Encoder, EncoderFactory, EncoderOptions};

use atoll_sql_semantics::arithmetic::hexadecimal;

/// Encoders that replace Arrow's.
#[derive(Debug)]
pub(super) struct Encoders;

impl EncoderFactory for Encoders {
    fn make_default_encoder<'a>(
        &self,
        _: &'a FieldRef,
        array: &'a dyn Array,
        _: &'a EncoderOptions,
    ) -> Result<Option<NullableEncoder<'a>>, ArrowError> {
        Ok(match array.data_type() {
            DataType::Float16 => floats::<Float16Type>(array),
            DataType::Float32 => floats::<Float32Type>(array),
            DataType::Float64 => floats::<Float64Type>(array),
            DataType::Interval(_) | DataType::Duration(_) | DataType::Date64 => {
                temporal_texts(array, TemporalStyle::default())?.map(texts)
            }
            // Arrow's encoders fail at infinity.
            DataType::Date32 | DataType::Timestamp(..) if has_endless(array) => {
                temporal_texts(array, TemporalStyle::default())?
                    .map(|moments| texts(with_t(&moments)))
            }
            of if of.is_binary() => Some(texts(hexadecimal(array)?)),
            _ => None,
        })
    }
}

/// Timestamps with a T before the time of day.
fn with_t(moments: &StringArray) -> StringArray {
    moments.iter().map(|moment| moment.map(|moment| moment.replacen(' ', "T", 1))).collect()
}

/// An encoder of texts that escapes only backslashes.
fn texts<'a>(texts: StringArray) -> NullableEncoder<'a> {
    let nulls = texts.nulls().cloned();
    NullableEncoder::new(Box::new(Texts(texts)), nulls)
}

struct Texts(StringArray);

impl Encoder for Texts {
    fn encode(&mut self, row: usize, out: &mut Vec<u8>) {
        out.push(b'"');
        for byte in self.0.value(row).bytes() {
            if byte == b'\\' {
                out.push(b'\\');
            }
            out.push(byte);
        }
        out.push(b'"');
    }
}

/// An encoder of floats that are not all finite; `None` if Arrow's can write them all.
fn floats<'a, T>(array: &'a dyn Array) -> Option<NullableEncoder<'a>>
where
    T: ArrowPrimitiveType,
    T::Native: Into<f64> + std::fmt::Debug,
{
    let floats = array.as_primitive::<T>();
    let is_finite = |float: &T::Native| Into::<f64>::into(*float).is_finite();
    if floats.values().iter().all(is_finite) {
        return None;
    }
    Some(NullableEncoder::new(Box::new(Floats(floats)), array.nulls().cloned()))
}

/// Floats of which some are not numbers of JSON.
struct Floats<'a, T: ArrowPrimitiveType>(&'a PrimitiveArray<T>);

impl<T> Encoder for Floats<'_, T>
where
    T: ArrowPrimitiveType,
    T::Native: Into<f64> + std::fmt::Debug,
{
    fn encode(&mut self, row: usize, out: &mut Vec<u8>) {
        let float = self.0.value(row);
        let text: &[u8] = match float.into() {
            wide if wide.is_nan() => b"\"NaN\"",
            f64::INFINITY => b"\"Infinity\"",
            f64::NEG_INFINITY => b"\"-Infinity\"",
            _ => {
                // Writing to a Vec cannot fail.
                let _ = write!(out, "{float:?}");
                return;
            }
        };
        out.extend_from_slice(text);
    }
}
