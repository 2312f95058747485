//! The functions.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray};
use datafusion::arrow::datatypes::{
    DECIMAL128_MAX_PRECISION, DataType, Decimal128Type, Field, Float64Type,
};
use datafusion::common::{Result, ScalarValue, plan_err};
use datafusion::logical_expr::ScalarFunctionArgs;

use super::NumberTemplate;
use super::digits::{DOUBLE_DIGITS, Number, SINGLE_DIGITS, rounded};
use super::read::read;
use super::write::write;
use crate::scalar::call::Call;
use crate::scalar::entry::{Arguments, Entry, Takes};

/// Whether `to_char` formats such a value with a number template.
pub(in crate::scalar) fn is_number(data_type: &DataType) -> bool {
    data_type.is_numeric()
}

/// Formats numbers.
pub(in crate::scalar) fn written(
    name: &'static str,
    mut args: ScalarFunctionArgs,
    rows: usize,
) -> Result<ArrayRef> {
    let given = args.args[0].data_type();
    let is_float = given.is_floating();
    let sure = if given == DataType::Float64 { DOUBLE_DIGITS } else { SINGLE_DIGITS };
    // Integers and decimals keep all digits.
    let to = if is_float { DataType::Float64 } else { DataType::Utf8 };
    for (at, to) in [to, DataType::Utf8].into_iter().enumerate() {
        args.args[at] = args.args[at].cast_to(&to, None)?;
        args.arg_fields[at] = Arc::new(Field::new(args.arg_fields[at].name(), to, true));
    }
    let call = Call::new(name, args, rows)?;
    let templates = Templates::try_from_call(&call)?;
    call.texts(|row, out| {
        let number = match is_float {
            true => Number::Float(call.arrays[0].as_primitive::<Float64Type>().value(row), sure),
            false => Number::Exact(call.text(0).value(row)),
        };
        templates.with(&call, row, |template| write(template, number, out))?;
        Ok(true)
    })
}

/// The template of a call, which usually is the same in all rows.
struct Templates<'a> {
    first: Option<(&'a str, NumberTemplate)>,
}

impl<'a> Templates<'a> {
    fn try_from_call(call: &'a Call) -> Result<Self> {
        let is_there = call.rows > 0 && call.arrays[1].is_valid(0);
        let first = is_there.then(|| call.text(1).value(0));
        let parsed = first.map(|text| parse(call, text).map(|template| (text, template)));
        Ok(Self { first: parsed.transpose()? })
    }

    fn with<T>(
        &self,
        call: &Call,
        row: usize,
        act: impl FnOnce(&NumberTemplate) -> T,
    ) -> Result<T> {
        let text = call.text(1).value(row);
        match &self.first {
            Some((same, template)) if *same == text => Ok(act(template)),
            _ => Ok(act(&parse(call, text)?)),
        }
    }
}

fn parse(call: &Call, text: &str) -> Result<NumberTemplate> {
    NumberTemplate::parse(text)
        .or_else(|why| call.fails(format_args!("the template '{text}' cannot be used: {why}")))
}

/// Returns the number of fraction digits of a template.
fn number_type(_: &[DataType], constants: &[Option<&ScalarValue>]) -> Result<DataType> {
    let template = match constants.get(1).copied().flatten() {
        Some(template) => template.try_as_str().flatten().unwrap_or_default(),
        None => return plan_err!("to_number: the template must be a constant"),
    };
    match NumberTemplate::parse(template) {
        Ok(template) => {
            let scale = (template.behind + template.shift).min(DECIMAL128_MAX_PRECISION.into());
            Ok(DataType::Decimal128(DECIMAL128_MAX_PRECISION, scale as i8))
        }
        Err(why) => plan_err!("to_number: the template '{template}' cannot be used: {why}"),
    }
}

fn to_number(call: &Call) -> Result<ArrayRef> {
    let templates = Templates::try_from_call(call)?;
    call.primitives::<Decimal128Type>(|row| {
        let text = call.text(0).value(row);
        if call.text(1).value(row).is_empty() {
            return Ok(None);
        }
        let digits = templates.with(call, row, |template| {
            // Digits after V count as fraction digits.
            read(template, text).map(|digits| rounded(&digits, template.behind, 0))
        })?;
        let digits = digits.or_else(|why| call.fails_as("22P02", why))?;
        match digits.parse::<i128>() {
            Ok(number) if number.unsigned_abs() < 10u128.pow(DECIMAL128_MAX_PRECISION.into()) => {
                Ok(Some(number))
            }
            _ => call.fails(format_args!("'{text}' has more than 38 digits")),
        }
    })
}

pub(in crate::scalar) static ENTRIES: &[&[Entry]] = &[&[Entry {
    name: "to_number",
    aliases: &[],
    arguments: "text, template",
    about: "A text as a decimal, by a template of PostgreSQL such as '9,999.99', a constant that also \
            determines the number of fraction digits.",
    example: "to_number('1,234.5-', '9,999.9S') = -1234.5",
    takes: &[Arguments::Are(&[Takes::Text, Takes::Text])],
    gives: number_type,
    volatile: false,
    run: to_number,
}]];
