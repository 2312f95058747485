//! Aliases of DataFusion's functions.

use datafusion::prelude::SessionContext;

/// A function of DataFusion, and its names in DuckDB and PostgreSQL.
pub(crate) const SCALARS: &[(&str, &[&str])] = &[
    ("make_array", &["list_value", "list_pack", "array_value"]),
    ("starts_with", &["prefix", "^@"]),
    ("arrays_zip", &["array_zip"]),
    ("ceil", &["ceiling"]),
    ("lower", &["lcase"]),
    ("upper", &["ucase"]),
    ("array_has_any", &["array_overlap"]),
    (
        "inner_product",
        &["list_inner_product", "list_dot_product", "array_inner_product", "array_dot_product"],
    ),
    ("cosine_distance", &["list_cosine_distance", "array_cosine_distance"]),
    ("uuid", &["gen_random_uuid", "uuidv4"]),
    ("current_date", &["today"]),
    ("array_to_string", &["array_to_string_comma_default"]),
];

/// The same for aggregates.
pub(crate) const AGGREGATES: &[(&str, &[&str])] = &[
    ("array_agg", &["list"]),
    ("first_value", &["first", "arbitrary"]),
    ("last_value", &["last"]),
    ("approx_distinct", &["approx_count_distinct"]),
    ("var", &["variance"]),
    ("bool_and", &["every"]),
    ("string_agg", &["listagg", "group_concat"]),
];

/// Registers the functions under their aliases.
pub(super) fn register(context: &SessionContext) {
    let state = context.state();
    for (name, aliases) in SCALARS {
        if let Some(function) = state.scalar_functions().get(*name) {
            context.register_udf(function.as_ref().clone().with_aliases(aliases.iter().copied()));
        }
    }
    for (name, aliases) in AGGREGATES {
        if let Some(function) = state.aggregate_functions().get(*name) {
            context.register_udaf(function.as_ref().clone().with_aliases(aliases.iter().copied()));
        }
    }
}
