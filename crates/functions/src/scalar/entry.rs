//! A function as a table entry, and its conversion to a DataFusion function.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field, FieldRef, IntervalUnit, TimeUnit};
use datafusion::common::{Result, ScalarValue, plan_err};
use datafusion::logical_expr::{
    ColumnarValue, Documentation, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl,
    Signature, Volatility,
};

use super::call::Call;
use super::marks::{JSON_MARK, JSONB_MARK, MARK_PREFIX, is_jsonb_field, list_mark, mark_of};
use super::ranges::{RangeForm, given_form, gives_range};
use crate::listing::{Listing, no_function, told_apart_by_listing};
use crate::scalar::nested::structs::map_type;

/// Functions that return texts of other types.
const GIVES_TYPE: [(&str, &[&str]); 5] = [
    ("uuid", &["uuid_checked", "try_uuid_checked", "uuidv7"]),
    (
        "inet",
        &["inet_checked", "try_inet_checked", "broadcast", "netmask", "hostmask", "inet_plus"],
    ),
    ("cidr", &["cidr_checked", "try_cidr_checked", "network", "inet_merge"]),
    ("macaddr", &["macaddr_checked", "try_macaddr_checked", "macaddr_trunc"]),
    (
        "timetz",
        &["timetz_checked", "try_timetz_checked", "timetz_at_zone", "timetz_plus", "timetz_minus"],
    ),
];

/// Whether the function with this name returns texts of a type other than JSON and JSONB.
pub fn gives_type(name: &str) -> bool {
    KEEPS_TYPE.contains(&name)
        || GIVES_TYPE.iter().any(|(_, names)| names.contains(&name))
        || gives_range(name)
}

/// Functions that return a value of the type of their first argument.
const KEEPS_TYPE: [&str; 2] = ["set_masklen", "time_rounded"];

/// Functions that return JSON.
const GIVES_JSON: [&str; 15] = [
    "json",
    "json_aggregated",
    "json_array",
    "json_at_path",
    "json_build_array",
    "json_build_object",
    "json_checked",
    "json_extract",
    "json_merge_patch",
    "json_object",
    "json_strip_nulls",
    "json_structure",
    "row_to_json",
    "to_json",
    "try_json_checked",
];

/// Functions that return JSONB.
const GIVES_JSONB: [&str; 14] = [
    "jsonb_build_array",
    "jsonb_build_object",
    "jsonb_checked",
    "jsonb_concat",
    "jsonb_delete",
    "jsonb_delete_path",
    "jsonb_extract_path",
    "jsonb_insert",
    "jsonb_path_query_array",
    "jsonb_path_query_first",
    "jsonb_set",
    "jsonb_strip_nulls",
    "to_jsonb",
    "try_jsonb_checked",
];

/// Functions that return a part of JSON, or changed JSON; the result is JSONB if the first argument is JSONB.
const KEEPS_JSONB: [&str; 4] =
    ["json_at_path", "json_extract", "json_merge_patch", "json_strip_nulls"];

/// The type of an argument, and the type it is cast to before the call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Takes {
    /// Any type, not cast.
    Any,
    /// Any scalar type, not cast.
    Plain,
    /// Text, as Utf8.
    Text,
    /// JSON text, likewise; its field still has the JSONB mark.
    Json,
    /// Text or bytes, as Binary.
    Bytes,
    /// An integer, as BIGINT.
    Whole,
    /// An integer, as it is.
    Integer,
    /// A number, as DOUBLE.
    Double,
    /// A number, as it is.
    Number,
    /// BOOLEAN.
    Flag,
    /// A date, timestamp or text, as TIMESTAMP in microseconds of local time.
    Moment,
    /// A date, or a timestamp in microseconds.
    DateOrTimestamp,
    /// A date or timestamp, as TIMESTAMP in microseconds; not text.
    DateOrTimestampOnly,
    /// An INTERVAL.
    Interval,
    /// A TIME, in microseconds.
    Time,
    /// A list, as it is.
    List,
    /// A list of texts.
    Texts,
    /// A list of numbers, as DOUBLE.
    Doubles,
    /// A map.
    Map,
    /// A struct.
    Struct,
}

impl Takes {
    /// Returns the type that an argument of this type is cast to; None if it is not accepted.
    fn coerced(self, given: &DataType) -> Option<DataType> {
        let as_it_is = |fits: bool| fits.then(|| given.clone());
        let is_null = given.is_null();
        let is_text = matches!(given, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View);
        let is_bytes = given.is_binary() || matches!(given, DataType::FixedSizeBinary(_));
        let micros = |zone: Option<Arc<str>>| DataType::Timestamp(TimeUnit::Microsecond, zone);
        match self {
            Self::Any => as_it_is(true),
            Self::Plain => as_it_is(!given.is_nested()),
            // A cast would remove the field's mark: the function casts.
            Self::Json if is_text => Some(given.clone()),
            Self::Text | Self::Json => (is_text || is_null).then_some(DataType::Utf8),
            Self::Bytes => (is_text || is_bytes || is_null).then_some(DataType::Binary),
            Self::Whole => (given.is_integer() || is_null).then_some(DataType::Int64),
            Self::Integer if is_null => Some(DataType::Int64),
            Self::Integer => as_it_is(given.is_integer()),
            Self::Double => (given.is_numeric() || is_null).then_some(DataType::Float64),
            Self::Number if is_null => Some(DataType::Float64),
            Self::Number => as_it_is(given.is_numeric()),
            Self::Flag => (is_null || *given == DataType::Boolean).then_some(DataType::Boolean),
            Self::Moment => match given {
                DataType::Timestamp(_, zone) => Some(micros(zone.clone())),
                DataType::Date32 | DataType::Date64 | DataType::Null => Some(micros(None)),
                _ => is_text.then(|| micros(None)),
            },
            Self::DateOrTimestamp => match given {
                DataType::Timestamp(_, zone) => Some(micros(zone.clone())),
                DataType::Date32 | DataType::Date64 => Some(DataType::Date32),
                _ => (is_text || is_null).then(|| micros(None)),
            },
            Self::DateOrTimestampOnly if is_text => None,
            Self::DateOrTimestampOnly => Self::Moment.coerced(given),
            Self::Interval => (is_null || matches!(given, DataType::Interval(_)))
                .then_some(DataType::Interval(IntervalUnit::MonthDayNano)),
            Self::Time => (is_null || matches!(given, DataType::Time32(_) | DataType::Time64(_)))
                .then_some(DataType::Time64(TimeUnit::Microsecond)),
            Self::List => match given {
                DataType::List(_) => as_it_is(true),
                DataType::LargeList(field) | DataType::FixedSizeList(field, _) => {
                    Some(DataType::List(Arc::clone(field)))
                }
                _ => is_null.then(|| DataType::new_list(DataType::Null, true)),
            },
            Self::Texts => (is_null
                || is_list_where(given, |item| {
                    matches!(
                        item,
                        DataType::Utf8 | DataType::Utf8View | DataType::LargeUtf8 | DataType::Null
                    )
                }))
            .then(|| DataType::new_list(DataType::Utf8, true)),
            Self::Doubles => (is_null
                || is_list_where(given, |item| item.is_numeric() || item.is_null()))
            .then(|| DataType::new_list(DataType::Float64, true)),
            Self::Map if is_null => Some(map_type(&DataType::Null, &DataType::Null)),
            Self::Map => as_it_is(matches!(given, DataType::Map(..))),
            Self::Struct => as_it_is(matches!(given, DataType::Struct(_))),
        }
    }
}

fn is_list_where(given: &DataType, of: impl Fn(&DataType) -> bool) -> bool {
    match given {
        DataType::List(field) | DataType::LargeList(field) | DataType::FixedSizeList(field, _) => {
            of(field.data_type())
        }
        _ => false,
    }
}

/// One signature of a function.
pub(crate) enum Arguments {
    /// Exactly these.
    Are(&'static [Takes]),
    /// These, then any number of the last one.
    More(&'static [Takes], Takes),
}

impl Arguments {
    fn have_json(&self) -> bool {
        let (Self::Are(first) | Self::More(first, _)) = self;
        first.contains(&Takes::Json)
    }

    pub(crate) fn coerced(&self, given: &[DataType]) -> Option<Vec<DataType>> {
        let (first, rest) = match self {
            Self::Are(first) => (*first, None),
            Self::More(first, rest) => (*first, Some(*rest)),
        };
        if given.len() < first.len() || (rest.is_none() && given.len() > first.len()) {
            return None;
        }
        let kinds = first
            .iter()
            .copied()
            .chain(std::iter::repeat_n(rest.unwrap_or(Takes::Any), given.len() - first.len()));
        kinds.zip(given).map(|(kind, given)| kind.coerced(given)).collect()
    }
}

/// Returns the result type for argument types and constant arguments.
pub(crate) type Gives = fn(&[DataType], &[Option<&ScalarValue>]) -> Result<DataType>;

/// Computes the rows of a call.
pub(crate) type Run = fn(&Call) -> Result<datafusion::arrow::array::ArrayRef>;

/// A function with its documentation and implementation.
pub(crate) struct Entry {
    /// Its name.
    pub(crate) name: &'static str,
    /// Its other names.
    pub(crate) aliases: &'static [&'static str],
    /// Its arguments in the reference, without the parentheses.
    pub(crate) arguments: &'static str,
    /// A sentence about what it does.
    pub(crate) about: &'static str,
    /// A call and its result.
    pub(crate) example: &'static str,
    /// The signatures.
    pub(crate) takes: &'static [Arguments],
    /// The result type.
    pub(crate) gives: Gives,
    /// Whether each call may return another value.
    pub(crate) volatile: bool,
    /// The implementation.
    pub(crate) run: Run,
}

impl Entry {
    pub(super) fn function(&'static self) -> ScalarUDF {
        let Self { name, aliases, arguments, about, example, .. } = *self;
        ScalarUDF::new_from_impl(Listed {
            entry: self,
            listing: Listing::new(name, aliases, arguments, about, example),
            signature: Signature::user_defined(match self.volatile {
                true => Volatility::Volatile,
                false => Volatility::Immutable,
            }),
        })
    }
}

/// Converts an entry to a DataFusion function.
struct Listed {
    entry: &'static Entry,
    listing: Listing,
    signature: Signature,
}

told_apart_by_listing!(Listed);

impl ScalarUDFImpl for Listed {
    fn name(&self) -> &str {
        self.entry.name
    }

    fn aliases(&self) -> &[String] {
        &self.listing.aliases
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, given: &[DataType]) -> Result<Vec<DataType>> {
        let found = self.entry.takes.iter().find_map(|arguments| arguments.coerced(given));
        found.ok_or_else(|| no_function(self.entry.name, given, self.entry.arguments))
    }

    fn return_type(&self, given: &[DataType]) -> Result<DataType> {
        (self.entry.gives)(given, &vec![None; given.len()])
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        let types: Vec<DataType> =
            args.arg_fields.iter().map(|field| field.data_type().clone()).collect();
        let gives = (self.entry.gives)(&types, args.scalar_arguments)?;
        let field = Field::new(self.entry.name, gives, true);
        let name = &self.entry.name;
        let is_jsonb = || args.arg_fields.first().is_some_and(|first| is_jsonb_field(first));
        let mark = match GIVES_JSON.contains(name) {
            _ if GIVES_JSONB.contains(name) => Some(JSONB_MARK.to_owned()),
            true if KEEPS_JSONB.contains(name) && is_jsonb() => Some(JSONB_MARK.to_owned()),
            true => Some(JSON_MARK.1.to_owned()),
            false => {
                let first = args.arg_fields.first().filter(|_| KEEPS_TYPE.contains(name));
                let of_type = GIVES_TYPE.iter().find(|(_, names)| names.contains(name));
                let given = of_type.map(|(given, _)| *given);
                let given = given.or_else(|| first.and_then(|first| mark_of(first)));
                let first = args.arg_fields.first().map(AsRef::as_ref);
                let given = given.or_else(|| given_form(name, first).map(RangeForm::name));
                given.map(|given| format!("{MARK_PREFIX}{given}"))
            }
        };
        let metadata = mark.map(|mark| (JSON_MARK.0.to_owned(), mark));
        let field = field.with_metadata(metadata.into_iter().collect());
        // Several paths return a list of JSON.
        let of_list = if field.data_type().is_nested() { list_mark(&field) } else { None };
        Ok(Arc::new(match of_list {
            Some((key, mark)) => field.with_metadata([(key.to_owned(), mark)].into()),
            None => field,
        }))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let constant = !self.entry.volatile
            && args.args.iter().all(|arg| matches!(arg, ColumnarValue::Scalar(_)));
        let rows = if constant { 1 } else { args.number_rows };
        let mut call = Call::new(self.entry.name, args, rows)?;
        if self.entry.takes.iter().any(Arguments::have_json) {
            call.read_views()?;
        }
        let result = (self.entry.run)(&call)?;
        match constant {
            true => Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&result, 0)?)),
            false => Ok(ColumnarValue::Array(result)),
        }
    }

    fn documentation(&self) -> Option<&Documentation> {
        Some(&self.listing.documentation)
    }
}

/// Result types that do not depend on the arguments.
macro_rules! gives {
    ($($name:ident: $data_type:expr;)*) => {$(
        pub(crate) fn $name(
            _: &[DataType],
            _: &[Option<&ScalarValue>],
        ) -> Result<DataType> {
            Ok($data_type)
        }
    )*};
}

gives! {
    text: DataType::Utf8;
    bytes: DataType::Binary;
    whole: DataType::Int64;
    double: DataType::Float64;
    flag: DataType::Boolean;
    date: DataType::Date32;
    timestamp: DataType::Timestamp(TimeUnit::Microsecond, None);
    interval: DataType::Interval(IntervalUnit::MonthDayNano);
    texts: DataType::new_list(DataType::Utf8, true);
}

/// Returns the type of the first argument.
pub(crate) fn as_first(given: &[DataType], _: &[Option<&ScalarValue>]) -> Result<DataType> {
    match given.first() {
        Some(first) => Ok(first.clone()),
        None => plan_err!("an argument is missing"),
    }
}
