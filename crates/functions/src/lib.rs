//! Atoll's SQL functions: aggregates, of which `sum` and `avg` never wrap, `min` and `max` order floats
//! as SQL does, and `any_value` respects its ORDER BY; scalar functions by topic; functions whose result size is
//! limited. They depend on DataFusion, not on sessions, tables or placement.
//!
//! DataFusion's `sum` wraps silently, even for BIGINT (apache/datafusion#17539). Here a sum that its type
//! cannot hold is a [`SumOverflow`], and only such a sum: the running total is exact (`total`), so
//! an intermediate overflow that later rows reverse is not an error, and whether a query fails does not
//! depend on how its rows were partitioned.
//!
//! | file | contents |
//! |---|---|
//! | `exact_sum` | sums and averages: exact totals, and range checks of their types |
//! | `extremes` | `min` and `max`; aggregates of intervals |
//! | `ordered` | `any_value`, `array_agg` and `string_agg`, which respect their ORDER BY |
//! | `gathered` | aggregates that need all values of a group: mode, quantiles, `max(x, n)`, histogram |
//! | `framed` | aggregates over window frames |
//! | `excluded` | functions over frames with EXCLUDE |
//! | `shifted` | `lag` and `lead` with non-constant arguments |
//! | `signed` | functions that number and count, with signed results |
//! | `moments` | float aggregates with a fixed-size state: product, skewness |
//! | `named_part` | the function that names a part of an expression within a plan |
//! | `planner` | operators that are functions, and aggregates whose meaning depends on their number of arguments |
//! | `range_operators` | operators of ranges |
//! | `common_type` | the type in which two values are compared |
//! | `comparison` | `= ANY (list)`, operators between lists; sort keys of RANGE frames; row values |
//! | `lambda` | functions of a list and a lambda |
//! | `scalar` | scalar functions, by topic |
//! | `temporal` | conversion between text and dates, times and intervals |
//! | `wholes` | `ceil` and `floor` of decimals |
//! | `type_name` | SQL type names |
//! | `failure` | errors with a SQLSTATE |
//! | `defined` | `ln`, `power` and similar functions, which fail if the result is undefined |
//! | `growing` | `repeat` and similar functions, with limited result sizes |
//! | `wrapped` | wrappers around DataFusion's functions |
//!
//! Sums and averages of floats and averages of integers are DataFusion's own.

/// Evaluates to `$exact` with `$native` bound to the Arrow type next to the first pattern that matches
/// `$data_type`, or to `$builtin`.
macro_rules! by_native_type {
    ($data_type:expr, $native:ident, $exact:expr, $builtin:expr, [$(($pattern:pat, $type:ty)),*]) => {
        match $data_type {
            $($pattern => {
                type $native = $type;
                $exact
            })*
            _ => $builtin,
        }
    };
}

mod common_type;
mod comparison;
mod defined;
mod exact_sum;
mod excluded;
mod extremes;
mod failure;
mod framed;
mod gathered;
mod growing;
mod lambda;
mod listing;
mod marked;
mod masked;
mod moments;
mod named_part;
mod ordered;
mod planner;
mod range_operators;
mod scalar;
mod shifted;
mod signed;
mod statement_extension;
pub mod temporal;
#[cfg(test)]
mod tests;
mod text_forms;
mod type_name;
mod unnamed;
mod wholes;
mod wrapped;

use std::sync::{Arc, LazyLock};

use datafusion::logical_expr::{AggregateUDF, ScalarUDF};
use datafusion::prelude::SessionContext;

pub use exact_sum::avg::CheckedAvg;
pub use exact_sum::mean::decimal_average;
pub use exact_sum::overflow::SumOverflow;
pub use exact_sum::sum::CheckedSum;
pub use excluded::EXCLUDE;
pub use extremes::ordered::{OrderedMax, OrderedMin};
pub use failure::{FunctionFailure, is_of_pattern};
pub use growing::without_large_constants;
pub use marked::{marked_field, possible_values};
pub use named_part::{is_named_part, named_part_function, without_name};
pub use ordered::any_value::OrderedAnyValue;
pub use ordered::array_agg::OrderedArrayAgg;
pub use ordered::string_agg::CountedStringAgg;
pub use planner::{PlanCalls, UNKNOWN, gathered_in_order};
pub use scalar::{
    NetworkType, RangeBound, RangeForm, RangeNumber, RangePoint, RangeSet, RangeType,
    StatementStart, UNTOLD_SCALE, UUID_MARK, WrittenNumber, bytes_of_text, canonical_jsonb,
    canonical_timetz, canonical_uuid, check_json, gives_type, is_canonical_uuid, regex_of,
};
pub use text_forms::{
    ArrayItem, EncodingError, TextDecoder, TextEncoding, array_items, array_lengths,
    is_array_item_quoted, nested_array_items, push_array_item, without_exponent,
};
pub use type_name::{ENUM_ZONE, sql_name};
pub use unnamed::{UnnamedFunction, null_where_an_argument_is};

/// Returns the function that subtracts two timestamps; None if it is not registered.
pub fn timestamp_minus() -> Option<Arc<ScalarUDF>> {
    static FUNCTION: LazyLock<Option<Arc<ScalarUDF>>> =
        LazyLock::new(|| scalar::named("timestamp_minus"));
    FUNCTION.clone()
}

/// Returns Atoll's scalar function of this name.
pub fn function_named(name: &str) -> Option<Arc<ScalarUDF>> {
    scalar::named(name)
}

/// Returns the function that tests whether a regular expression matches a text; None if it is not registered.
pub fn regexp_like() -> Option<Arc<ScalarUDF>> {
    static FUNCTION: LazyLock<Option<Arc<ScalarUDF>>> =
        LazyLock::new(|| scalar::named("regexp_like"));
    FUNCTION.clone()
}

/// Returns Atoll's aggregates, to be registered over DataFusion's.
pub fn aggregates() -> Vec<Arc<AggregateUDF>> {
    let mut all = vec![
        Arc::new(AggregateUDF::from(CheckedSum::default())),
        Arc::new(AggregateUDF::from(CheckedAvg::default())),
        Arc::new(AggregateUDF::from(OrderedMin::default())),
        Arc::new(AggregateUDF::from(OrderedMax::default())),
        Arc::new(AggregateUDF::from(OrderedAnyValue::default())),
        Arc::new(AggregateUDF::from(OrderedArrayAgg::default())),
        Arc::new(AggregateUDF::from(CountedStringAgg::default())),
    ];
    let gathered = gathered::entries().map(gathered::Gathered::new);
    all.extend(gathered.map(|function| Arc::new(AggregateUDF::from(function))));
    let moments = moments::ENTRIES.iter().map(moments::Moments::new);
    all.extend(moments.map(|function| Arc::new(AggregateUDF::from(function))));
    all.extend(scalar::ranges::aggregates());
    all
}

/// Replaces DataFusion's functions by Atoll's of the same name.
pub fn register(context: &SessionContext) {
    for function in aggregates() {
        context.register_udaf(Arc::unwrap_or_clone(function));
    }
    wholes::register(context);
    signed::register(context);
    scalar::register(context);
    lambda::register(context);
    // Wraps the registered functions.
    defined::register(context);
    growing::register(context);
}
