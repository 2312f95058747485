//! Casts to ranges and multiranges, their constructors, functions and operators.

use std::sync::Arc;

use datafusion::arrow::array::ArrayRef;
use datafusion::arrow::array::timezone::Tz;
use datafusion::arrow::datatypes::{DataType, Field};
use datafusion::common::{Result, ScalarValue};

use super::form::{RangeForm, RangeType};
use super::points::{point_of_row, points};
use super::set::{RangeBound, RangeSet};
use crate::failure::FunctionFailure;
use crate::scalar::call::Call;
use crate::scalar::entry::{Arguments, Entry, Takes, bytes, flag, text, texts};
use crate::scalar::marks::mark_of;
use crate::scalar::text::texts::entry;
use crate::temporal::StatementClock;

/// The type of a field's ranges or multiranges.
pub(crate) fn form_of(field: &Field) -> Option<RangeForm> {
    let is_one = !field.data_type().is_nested();
    mark_of(field).filter(|_| is_one).and_then(RangeForm::named)
}

/// The functions whose results are of the type of their first argument.
const KEEPS_TYPE: [&str; 4] = ["range_union", "range_intersect", "range_minus", "range_shown"];

/// Whether the function with this name returns ranges or multiranges.
pub(in crate::scalar) fn gives_range(name: &str) -> bool {
    KEEPS_TYPE.contains(&name)
        || matches!(
            name,
            "multirange"
                | "multirange_ranges"
                | "range_merge"
                | "range_agg"
                | "range_intersect_agg"
        )
        || RangeForm::given_by(name).is_some()
}

/// The type of a function's result, if that is a range or multirange.
pub(in crate::scalar) fn given_form(name: &str, first: Option<&Field>) -> Option<RangeForm> {
    let first = || first.and_then(form_of);
    match name {
        "multirange" => first().map(|form| RangeForm::multi(form.of)),
        "range_merge" | "multirange_ranges" => first().map(|form| RangeForm::range(form.of)),
        name if KEEPS_TYPE.contains(&name) => first(),
        name => RangeForm::given_by(name),
    }
}

pub(super) fn clock(call: &Call) -> StatementClock<'_> {
    StatementClock { begun: None, ..StatementClock::from_options(&call.config) }
}

/// The type of an argument.
fn form(call: &Call, at: usize) -> Result<RangeForm> {
    match call.fields.get(at).and_then(|field| form_of(field)) {
        Some(form) => Ok(form),
        None => {
            call.fails_as("42883", "an argument is not a range; cast it, as in '[1,5)'::int4range")
        }
    }
}

/// The value of an argument.
fn set(call: &Call, at: usize, row: usize) -> Result<RangeSet> {
    let read = form(call, at)?.read(call.text(at).value(row), clock(call));
    read.map_err(FunctionFailure::into_datafusion)
}

/// A text as a value of a type; a range as a multirange.
fn checked(call: &Call, to: RangeForm, is_tried: bool) -> Result<ArrayRef> {
    let from = match call.fields.first().and_then(|field| form_of(field)) {
        Some(from) if from == to => to,
        Some(from) if to == RangeForm::multi(from.of) => from,
        Some(from) => {
            let message = format!("cannot cast type {} to {}", from.name(), to.name());
            return Err(FunctionFailure::error("42846", message));
        }
        None => to,
    };
    call.texts(|row, out| {
        match from.read(call.text(0).value(row), clock(call)) {
            Ok(set) => out.push_str(&to.text(&set, None)),
            Err(_) if is_tried => return Ok(false),
            Err(failure) => return Err(failure.into_datafusion()),
        }
        Ok(true)
    })
}

fn is_valid(call: &Call, form: RangeForm) -> Result<ArrayRef> {
    let is_stored = |text: &str| {
        form.canonical(text, StatementClock::default()).is_ok_and(|canonical| canonical == text)
    };
    call.all_pass(is_stored)
}

fn order(call: &Call, form: RangeForm) -> Result<ArrayRef> {
    call.binaries(|row, out| {
        let set = form.read(call.text(0).value(row), clock(call));
        set.map_err(FunctionFailure::into_datafusion)?.write_order(out);
        Ok(true)
    })
}

/// The range between two bounds; NULL leaves a side without a bound.
fn range(call: &Call, of: RangeType) -> Result<ArrayRef> {
    let (lower, upper) = (points(call, 0, of)?, points(call, 1, of)?);
    call.all_texts(|row, out| {
        let (is_from, is_to) = inclusive(call, row)?;
        let lower = RangeBound { value: point_of_row(&lower, row)?, is_inclusive: is_from };
        let upper = RangeBound { value: point_of_row(&upper, row)?, is_inclusive: is_to };
        let set = RangeSet::of_bounds(of, lower, upper);
        let set = set.map_err(FunctionFailure::into_datafusion)?;
        out.push_str(&RangeForm::range(of).text(&set, None));
        Ok(true)
    })
}

/// Which bounds a constructor includes.
fn inclusive(call: &Call, row: usize) -> Result<(bool, bool)> {
    use datafusion::arrow::array::Array;
    if call.count() < 3 {
        return Ok((true, false));
    }
    let flags = call.text(2);
    if flags.is_null(row) {
        let message = "range constructor flags argument must not be null";
        return Err(FunctionFailure::error("22000", message.to_owned()));
    }
    match flags.value(row) {
        "[)" => Ok((true, false)),
        "[]" => Ok((true, true)),
        "()" => Ok((false, false)),
        "(]" => Ok((false, true)),
        _ => {
            let message = "invalid range bound flags; valid ones are '[]', '[)', '(]' and '()'";
            Err(FunctionFailure::error("42601", message.to_owned()))
        }
    }
}

/// A multirange of ranges.
fn multirange(call: &Call, of: RangeType) -> Result<ArrayRef> {
    let (one, all) = (RangeForm::range(of), RangeForm::multi(of));
    let given = call.fields.iter().filter_map(|field| form_of(field));
    if let Some(other) = given.into_iter().find(|form| *form != one) {
        let message = format!("function {}({}) does not exist", all.name(), other.name());
        return Err(FunctionFailure::error("42883", message));
    }
    call.texts(|row, out| {
        let ranges = (0..call.count()).map(|at| one.read(call.text(at).value(row), clock(call)));
        let ranges: std::result::Result<Vec<RangeSet>, _> = ranges.collect();
        let set = RangeSet::union(ranges.map_err(FunctionFailure::into_datafusion)?);
        out.push_str(&all.text(&set, None));
        Ok(true)
    })
}

/// A value computed from the first argument, of the type of the result.
fn converted(call: &Call, to: fn(RangeForm) -> RangeForm) -> Result<ArrayRef> {
    call.texts(|row, out| {
        let first = set(call, 0, row)?;
        let set = match call.count() {
            1 => first.merged_if(to(form(call, 0)?)),
            _ => RangeSet::union([first, set(call, 1, row)?]).merged(),
        };
        out.push_str(&to(form(call, 0)?).text(&set, None));
        Ok(true)
    })
}

/// The ranges of a multirange; a list as it is.
fn ranges(call: &Call) -> Result<ArrayRef> {
    if call.arrays[0].data_type().is_nested() {
        return Ok(Arc::clone(&call.arrays[0]));
    }
    call.text_lists(|row, out| {
        let one = RangeForm::range(form(call, 0)?.of);
        for range in set(call, 0, row)?.ranges() {
            out.values().append_value(one.text(&range, None));
        }
        Ok(true)
    })
}

/// The type of a list, or of a list of ranges.
fn list_or_texts(given: &[DataType], scalars: &[Option<&ScalarValue>]) -> Result<DataType> {
    match given.first() {
        Some(list) if list.is_nested() => Ok(list.clone()),
        _ => texts(given, scalars),
    }
}

/// A property of one value.
fn has(call: &Call, holds: impl Fn(&RangeSet) -> bool) -> Result<ArrayRef> {
    call.flags(|row| Ok(Some(holds(&set(call, 0, row)?))))
}

/// A property of the first or last bound of a value that has one.
fn bound(call: &Call, is_lower: bool, holds: impl Fn(&RangeBound) -> bool) -> Result<ArrayRef> {
    has(call, |set| {
        let bounds = if is_lower { set.bounds().next() } else { set.bounds().last() };
        bounds.is_some_and(|(lower, upper)| holds(if is_lower { &lower } else { &upper }))
    })
}

/// A relation between two values.
fn related(call: &Call, holds: impl Fn(&RangeSet, &RangeSet) -> bool) -> Result<ArrayRef> {
    call.flags(|row| Ok(Some(holds(&set(call, 0, row)?, &set(call, 1, row)?))))
}

fn contains_value(call: &Call) -> Result<ArrayRef> {
    let Some(form) = call.fields.first().and_then(|field| form_of(field)) else {
        return call.flags(|_| form(call, 0).map(|_| None));
    };
    let values = points(call, 1, form.of)?;
    call.flags(|row| {
        let value = point_of_row(&values, row)?;
        let set = set(call, 0, row)?;
        Ok(value.map(|value| set.contains(&RangeSet::of_value(value))))
    })
}

/// A value made of two.
fn combined(
    call: &Call,
    operation: &str,
    of: impl Fn(&RangeSet, &RangeSet) -> RangeSet,
) -> Result<ArrayRef> {
    call.texts(|row, out| {
        let form = form(call, 0)?;
        let set = of(&set(call, 0, row)?, &set(call, 1, row)?).of_form(form, operation);
        out.push_str(&form.text(&set.map_err(FunctionFailure::into_datafusion)?, None));
        Ok(true)
    })
}

/// The text in the session's time zone.
fn shown(call: &Call) -> Result<ArrayRef> {
    let zone = clock(call).time_zone.and_then(|zone| zone.parse::<Tz>().ok());
    call.texts(|row, out| {
        out.push_str(&form(call, 0)?.text(&set(call, 0, row)?, zone));
        Ok(true)
    })
}

const ONE: &[Arguments] = &[Arguments::Are(&[Takes::Json])];
const ONE_OR_LIST: &[Arguments] =
    &[Arguments::Are(&[Takes::Text]), Arguments::Are(&[Takes::Texts])];
const ONE_OR_ANY_LIST: &[Arguments] =
    &[Arguments::Are(&[Takes::Json]), Arguments::Are(&[Takes::List])];
const TWO: &[Arguments] = &[Arguments::Are(&[Takes::Json, Takes::Json])];
const ONE_OR_TWO: &[Arguments] =
    &[Arguments::Are(&[Takes::Json]), Arguments::Are(&[Takes::Json, Takes::Json])];
const AND_VALUE: &[Arguments] = &[Arguments::Are(&[Takes::Json, Takes::Any])];
const BOUNDS: &[Arguments] = &[
    Arguments::Are(&[Takes::Any, Takes::Any]),
    Arguments::Are(&[Takes::Any, Takes::Any, Takes::Text]),
];
const RANGES: &[Arguments] = &[Arguments::More(&[], Takes::Json)];

/// The functions of a type: its constructor, casts, test and order.
macro_rules! of_type {
    (
        $form:expr, $name:literal, $arguments:literal, $takes:expr, $run:expr, $about:literal,
        $call:literal, $text:literal
    ) => {
        &[
            Entry {
                name: $name,
                aliases: &[],
                arguments: $arguments,
                about: $about,
                example: concat!($name, "(", $call, ") = '", $text, "'"),
                takes: $takes,
                gives: text,
                volatile: false,
                run: |call| $run(call, $form.of),
            },
            Entry {
                name: concat!($name, "_checked"),
                aliases: &[],
                arguments: "text",
                about: concat!("A text as ", $name, "; the cast to it."),
                example: concat!($name, "_checked('", $text, "') = '", $text, "'"),
                takes: ONE,
                gives: text,
                volatile: false,
                run: |call| checked(call, $form, false),
            },
            Entry {
                name: concat!("try_", $name, "_checked"),
                aliases: &[],
                arguments: "text",
                about: concat!("The same, but NULL for an invalid text; TRY_CAST to ", $name, "."),
                example: concat!("try_", $name, "_checked('x') IS NULL"),
                takes: ONE,
                gives: text,
                volatile: false,
                run: |call| checked(call, $form, true),
            },
            Entry {
                name: concat!($name, "_valid"),
                aliases: &[],
                arguments: "text",
                about: concat!(
                    "Whether a text is a ",
                    $name,
                    " as it is stored, or all texts of a list are."
                ),
                example: concat!($name, "_valid('", $text, "')"),
                takes: ONE_OR_LIST,
                gives: flag,
                volatile: false,
                run: |call| is_valid(call, $form),
            },
            Entry {
                name: concat!($name, "_order"),
                aliases: &[],
                arguments: "range",
                about: concat!(
                    "Bytes that compare as ",
                    $name,
                    " does: by lower bounds, then by upper ones."
                ),
                example: concat!($name, "_order('", $text, "') = ", $name, "_order('", $text, "')"),
                takes: ONE_OR_TEXT,
                gives: bytes,
                volatile: false,
                run: |call| order(call, $form),
            },
        ]
    };
}

const ONE_OR_TEXT: &[Arguments] = &[Arguments::Are(&[Takes::Text])];

macro_rules! of_ranges {
    ($of:ident, $name:literal, $call:literal, $text:literal) => {
        of_type!(
            RangeForm::range(RangeType::$of),
            $name,
            "lower, upper [, bounds]",
            BOUNDS,
            range,
            "The range between two values; NULL leaves a side unbounded. bounds is '[)' by default.",
            $call,
            $text
        )
    };
}

macro_rules! of_multiranges {
    ($of:ident, $name:literal, $call:literal, $text:literal) => {
        of_type!(
            RangeForm::multi(RangeType::$of),
            $name,
            "range, …",
            RANGES,
            multirange,
            "The multirange of ranges.",
            $call,
            $text
        )
    };
}

pub(in crate::scalar) static ENTRIES: &[&[Entry]] = &[
    of_ranges!(Int4, "int4range", "1, 5, '[]'", "[1,6)"),
    of_ranges!(Int8, "int8range", "1, NULL", "[1,)"),
    of_ranges!(Num, "numrange", "1.5, 2.5", "[1.5,2.5)"),
    of_ranges!(Date, "daterange", "DATE '2024-01-01', NULL", "[2024-01-01,)"),
    of_ranges!(Ts, "tsrange", "TIMESTAMP '2024-01-01', NULL", "[\"2024-01-01 00:00:00\",)"),
    of_ranges!(Tstz, "tstzrange", "NULL, NULL", "(,)"),
    of_multiranges!(Int4, "int4multirange", "int4range(1, 3), int4range(2, 5)", "{[1,5)}"),
    of_multiranges!(Int8, "int8multirange", "int8range(1, 3)", "{[1,3)}"),
    of_multiranges!(Num, "nummultirange", "numrange(1.5, 2.5)", "{[1.5,2.5)}"),
    of_multiranges!(Date, "datemultirange", "daterange(NULL, NULL)", "{(,)}"),
    of_multiranges!(Ts, "tsmultirange", "tsrange(NULL, NULL)", "{(,)}"),
    of_multiranges!(Tstz, "tstzmultirange", "tstzrange(NULL, NULL)", "{(,)}"),
    FUNCTIONS,
    OPERATORS,
];

const FUNCTIONS: &[Entry] = &[
    entry!("multirange" [], "range", ONE, text, "A range as a multirange.",
        "multirange(int4range(1, 5)) = '{[1,5)}'", |call| converted(call, |form| RangeForm::multi(form.of))),
    entry!("range_merge" [], "range, range, or multirange", ONE_OR_TWO, text,
        "The smallest range that contains both, or all ranges of a multirange.",
        "range_merge(int4range(1, 2), int4range(5, 6)) = '[1,6)'",
        |call| converted(call, |form| RangeForm::range(form.of))),
    entry!("multirange_ranges" [], "multirange or list", ONE_OR_ANY_LIST, list_or_texts,
        "The ranges of a multirange as a list, for unnest; a list as it is.",
        "multirange_ranges('{[1,3),[5,9)}'::int4multirange)[2] = '[5,9)'", ranges),
    entry!("isempty" [], "range", ONE, flag, "Whether a range has no values.",
        "isempty(int4range(1, 1))", |call| has(call, RangeSet::is_empty)),
    entry!("lower_inc" [], "range", ONE, flag, "Whether the lower bound is in the range.",
        "lower_inc(int4range(1, 5))", |call| bound(call, true, |bound| bound.is_inclusive)),
    entry!("upper_inc" [], "range", ONE, flag, "Whether the upper bound is in the range.",
        "NOT upper_inc(int4range(1, 5))", |call| bound(call, false, |bound| bound.is_inclusive)),
    entry!("lower_inf" [], "range", ONE, flag, "Whether a range has no lower bound.",
        "lower_inf(int4range(NULL, 5))", |call| bound(call, true, |bound| bound.value.is_none())),
    entry!("upper_inf" [], "range", ONE, flag, "Whether a range has no upper bound.",
        "upper_inf(int4range(1, NULL))", |call| bound(call, false, |bound| bound.value.is_none())),
    entry!("range_text" [], "range", ONE, text, "The text of a range in the session's time zone; the cast to TEXT.",
        "range_text(int4range(1, 5)) = '[1,5)'", shown),
    entry!("range_shown" [], "range", ONE, text, "A range whose text is in the session's time zone.",
        "range_shown(int4range(1, 5)) = '[1,5)'", shown),
];

const OPERATORS: &[Entry] = &[
    entry!("range_contains" [], "range, range", TWO, flag,
        "Whether all values of the second are in the first; the operator @>.",
        "range_contains(int4range(1, 9), int4range(2, 3))", |call| related(call, RangeSet::contains)),
    entry!("range_contains_elem" [], "range, value", AND_VALUE, flag,
        "Whether a value is in a range; the operator @>.",
        "range_contains_elem(int4range(1, 5), 4)", contains_value),
    entry!("range_overlaps" [], "range, range", TWO, flag, "Whether ranges have a value in common; the operator &&.",
        "range_overlaps(int4range(1, 5), int4range(4, 9))", |call| related(call, RangeSet::overlaps)),
    entry!("range_before" [], "range, range", TWO, flag, "Whether all values of the first are less; the operator <<.",
        "range_before(int4range(1, 5), int4range(5, 9))", |call| related(call, RangeSet::is_before)),
    entry!("range_overleft" [], "range, range", TWO, flag,
        "Whether the first has no value greater than all of the second; the operator &<.",
        "range_overleft(int4range(1, 5), int4range(4, 5))", |call| related(call, RangeSet::ends_within)),
    entry!("range_overright" [], "range, range", TWO, flag,
        "Whether the first has no value less than all of the second; the operator &>.",
        "range_overright(int4range(4, 5), int4range(1, 2))", |call| related(call, RangeSet::starts_within)),
    entry!("range_adjacent" [], "range, range", TWO, flag,
        "Whether nothing is between ranges, and nothing in both; the operator -|-.",
        "range_adjacent(int4range(1, 5), int4range(5, 9))", |call| related(call, RangeSet::is_adjacent)),
    entry!("range_union" [], "range, range", TWO, text, "The values of both; the operator +.",
        "range_union(int4range(1, 5), int4range(5, 9)) = '[1,9)'",
        |call| combined(call, "union", |left, right| RangeSet::union([left.clone(), right.clone()]))),
    entry!("range_intersect" [], "range, range", TWO, text, "The values that are in both; the operator *.",
        "range_intersect(int4range(1, 5), int4range(4, 9)) = '[4,5)'",
        |call| combined(call, "intersection", RangeSet::intersection)),
    entry!("range_minus" [], "range, range", TWO, text,
        "The values of the first that are not in the second; the operator -.",
        "range_minus(int4range(1, 5), int4range(4, 9)) = '[1,4)'",
        |call| combined(call, "difference", RangeSet::difference)),
];
