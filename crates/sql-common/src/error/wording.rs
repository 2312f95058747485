//! Rewrites DataFusion's messages for the person who typed the statement.

use atoll_topology::nearest_name;

use super::type_names::in_sql;

/// A message and its hint.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Wording {
    pub(super) message: String,
    pub(super) help: Option<String>,
}

/// DataFusion's message prefixes, which mean nothing to that person.
const PREFIXES: [&str; 16] = [
    "SQL error: ",
    "Error during planning: ",
    "Schema error: ",
    "Execution error: ",
    "External error: ",
    "Optimizer rule ",
    "Arrow error: ",
    "Cast error: ",
    "Compute error: ",
    "Arithmetic overflow: ",
    "Invalid argument error: ",
    "Parquet error: ",
    "Parser error: ",
    "Resources exhausted: ",
    "Invalid or Unsupported Configuration: ",
    "type_coercion\ncaused by\n",
];

/// DataFusion's requests for a bug report, which a wrong argument does not deserve.
const REPORT: &str = "This issue was likely caused by a bug in DataFusion's code.";

const NO_FUNCTION: &str = "No function matches the given name and argument types '";

const NO_OPERATOR: [&str; 5] = [
    "Cannot coerce arithmetic expression ",
    "Cannot infer common type for bitwise operation ",
    "Cannot get result type for temporal operation ",
    "Cannot get result type for arithmetic operation ",
    "Cannot get result type for decimal operation ",
];

/// Rewords a message.
pub(super) fn wording(text: &str) -> Wording {
    let rest = without_prefixes(text);
    if let Some(known) = no_function(rest).or_else(|| no_operator(rest)) {
        return known;
    }
    let known = unknown_function(rest).or_else(|| no_field(rest)).or_else(|| unknown_type(rest));
    if let Some(known) = known {
        return known;
    }
    if let Some(name) = unknown_setting(rest) {
        let message = format!("unrecognized configuration parameter \"{name}\"");
        return Wording { message, help: None };
    }
    if is_unplanned_subquery(rest) {
        let message = "this correlated subquery is not supported: no join can be made of the way it \
                       refers to the surrounding query; write it as a join, or as a subquery in FROM";
        return Wording { message: message.to_owned(), help: None };
    }
    if let Some(refused) = refused_types(rest) {
        return refused;
    }
    if let Some(bug) = rest.strip_prefix("Internal error: ") {
        let message = bug.split(REPORT).next().unwrap_or(bug).trim().trim_end_matches('.');
        let help = "this is a defect of Atoll, not of the statement; please report both".to_owned();
        return Wording { message: format!("internal error: {message}"), help: Some(help) };
    }
    let parser = rest.strip_prefix("ParserError(\"").and_then(|inner| inner.strip_suffix("\")"));
    let message = match (parser, rest) {
        (Some(inner), _) => format!("syntax error: {}", inner.replace("\\\"", "\"")),
        (None, "Divide by zero error") => "division by zero".to_owned(),
        (None, rest) => match rest.strip_prefix("This feature is not implemented: ") {
            Some(what) if what.contains("supported") => in_sql(what),
            Some(what) => format!("not supported: {}", in_sql(what)),
            None => in_sql(rest),
        },
    };
    Wording { message, help: None }
}

pub(super) fn without_prefixes(text: &str) -> &str {
    let mut rest = text.trim();
    while let Some(stripped) = PREFIXES.iter().find_map(|prefix| rest.strip_prefix(prefix)) {
        rest = stripped.trim_start();
    }
    rest
}

/// A subquery that DataFusion did not decorrelate reaches the physical planner, whose message prints the whole plan.
fn is_unplanned_subquery(text: &str) -> bool {
    let unplanned = text.split_once("Physical plan does not support logical expression ");
    unplanned.is_some_and(|(_, expr)| {
        ["Exists(", "InSubquery(", "ScalarSubquery(", "OuterReferenceColumn("]
            .iter()
            .any(|kind| expr.starts_with(kind))
    })
}

/// Functions of DuckDB and PostgreSQL that Atoll lacks, and their replacements.
const INSTEAD: [(&str, &str); 8] = [
    ("bitstring_agg", "bit strings are not supported; bit_or(1 << x) collects up to 63 of them"),
    ("fill", "coalesce(x, lag(x) OVER (…)) takes the value before"),
    (
        "getenv",
        "the variables of the process are not read; SET and a query of the shell's caller are",
    ),
    ("json_serialize_sql", "EXPLAIN shows how a statement is understood"),
    ("array_to_tsvector", "LIKE and regexp_matches search in texts"),
    ("sleep_ms", "pg_sleep(seconds) waits"),
    ("stem", "LIKE and regexp_matches search in texts"),
    ("to_tsvector", "LIKE and regexp_matches search in texts"),
];

/// A function that does not exist. DataFusion suggests the nearest name, however distant.
fn unknown_function(text: &str) -> Option<Wording> {
    let (name, rest) = text.strip_prefix("Invalid function '")?.split_once('\'')?;
    let suggested = rest.split_once("Did you mean '").and_then(|(_, rest)| rest.split_once('\''));
    let instead = INSTEAD.iter().find(|(known, _)| *known == name);
    let near = suggested.and_then(|(near, _)| nearest_name(name, [near]));
    let help = match (instead, near) {
        (Some((_, instead)), _) => (*instead).to_owned(),
        (None, Some(near)) => format!("Did you mean '{near}'?"),
        (None, None) => "\\df lists the functions, as atoll.functions does".to_owned(),
    };
    Some(Wording { message: format!("function '{name}' does not exist"), help: Some(help) })
}

/// The name of a setting that does not exist.
fn unknown_setting(text: &str) -> Option<&str> {
    let shown = || {
        let name = text.strip_prefix('\'')?;
        name.strip_suffix("' is not a variable which can be viewed with 'SHOW'")
    };
    let set = || text.split_once("ould not find config namespace")?.1.split('"').nth(1);
    shown().or_else(set)
}

/// Maximum number of columns listed as candidates.
const COLUMNS_LISTED: usize = 8;

/// A column that does not exist.
fn no_field(text: &str) -> Option<Wording> {
    let rest = text.strip_prefix("No field named ")?;
    let plain = |name: &str| name.trim().trim_end_matches('.').replace('"', "");
    let last = |name: &str| name.rsplit('.').next().unwrap_or(name).to_owned();
    let between = |start: &str, end: &str| {
        rest.split_once(start).and_then(|(_, rest)| rest.split_once(end)).map(|(name, _)| name)
    };
    let ends = [". Did you mean '", ".\n", ". "].iter().filter_map(|end| rest.find(end));
    let wanted = plain(&rest[..ends.min().unwrap_or(rest.len())]);
    let valid = rest.split_once("Valid fields are ").map_or("", |(_, valid)| valid);
    let columns: Vec<String> =
        valid.split(", ").map(plain).filter(|column| !column.is_empty()).collect();
    let names: Vec<String> = columns.iter().map(|column| last(column)).collect();
    let near = nearest_name(&last(&wanted), names.iter().map(String::as_str)).map(str::to_owned);
    let near = near.or_else(|| between("Did you mean '", "'?").map(|near| last(&plain(near))));
    let help = match (between("double quotes to refer to the ", " column"), near) {
        (Some(quoted), _) => Some(format!("names between double quotes keep their case: {quoted}")),
        (None, Some(near)) => Some(format!("Did you mean '{near}'?")),
        (None, None) if columns.is_empty() || columns.len() > COLUMNS_LISTED => None,
        (None, None) => Some(format!("the columns are {}", columns.join(", "))),
    };
    let message = match wanted.rsplit_once('.') {
        Some((table, _)) if !columns.iter().any(|column| is_of(column, table)) => {
            format!("missing FROM-clause entry for table \"{}\"", last(table))
        }
        Some(_) => format!("column {wanted} does not exist"),
        None => format!("column \"{wanted}\" does not exist"),
    };
    Some(Wording { message, help })
}

/// Whether a column is of a table, which may be named without its schema.
fn is_of(column: &str, table: &str) -> bool {
    let of = column.rsplit_once('.').map_or("", |(of, _)| of);
    of == table || of.ends_with(&format!(".{table}"))
}

/// A type that does not exist.
fn unknown_type(text: &str) -> Option<Wording> {
    let text = text.strip_prefix("This feature is not implemented: ").unwrap_or(text);
    let name = text.strip_prefix("Unsupported SQL type ")?.trim_matches('"');
    let is_name = name.chars().all(|letter| letter.is_alphanumeric() || letter == '_');
    is_name.then(|| Wording { message: format!("type \"{name}\" does not exist"), help: None })
}

/// A function that does not accept arguments of these types.
fn no_function(text: &str) -> Option<Wording> {
    let (call, rest) = text.split_once(NO_FUNCTION)?.1.split_once("'.")?;
    let name = call.split_once('(')?.0;
    let candidates = rest.split_once("Candidate functions:")?.1.lines().map(str::trim);
    // DataFusion's type names are not in messages that a function makes itself.
    let candidates = candidates.filter(|line| !line.is_empty() && !line.contains("UserDefined"));
    let candidates: Vec<String> = candidates.map(in_sql).collect();
    let help = (!candidates.is_empty())
        .then(|| format!("{name} exists as {}; cast the arguments", candidates.join(", ")));
    Some(Wording { message: format!("function {} does not exist", in_sql(call)), help })
}

/// An operator that does not accept operands of these types.
fn no_operator(text: &str) -> Option<Wording> {
    let operation = NO_OPERATOR.iter().find_map(|start| text.strip_prefix(start))?;
    let operation = operation.split(" to valid types").next()?.split(": ").next()?;
    let operation = operation.replace("BIT_XOR", "#");
    let help = Some("cast an operand to a type for which the operator exists".to_owned());
    Some(Wording { message: format!("operator does not exist: {}", in_sql(&operation)), help })
}

/// Types that a function or BETWEEN does not accept, which DataFusion 55.2 reports as an internal error.
fn refused_types(rest: &str) -> Option<Wording> {
    let text = rest.strip_prefix("Internal error: ").unwrap_or(rest);
    if let Some(types) = text.strip_prefix("Failed to coerce types ") {
        let types = types.split(" in BETWEEN").next().unwrap_or(types);
        let message = in_sql(&format!("operator does not exist: BETWEEN of {types}"));
        return Some(Wording { message, help: Some("cast the operands to one type".to_owned()) });
    }
    let ends =
        ["' failed to match any signature", "' user-defined coercion failed with: Internal error"];
    let (before, _) = ends.iter().find_map(|end| text.split_once(end))?;
    let name = before.rsplit('\'').next().unwrap_or(before);
    let message = format!("function {name} does not exist for arguments of these types");
    Some(Wording { message, help: Some("cast the arguments".to_owned()) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_argument_is_not_an_internal_error() {
        let text = "Error during planning: Internal error: Function 'avg' failed to match any \
                    signature, errors: x.\nThis issue was likely caused by a bug in DataFusion's \
                    code. Please help. No function matches the given name and argument types \
                    'avg(Date32)'. You might need to add explicit type casts.\n\tCandidate \
                    functions:\n\tavg(Decimal)\n\tavg(Float64)";
        let Wording { message, help } = wording(text);
        assert_eq!(message, "function avg(DATE) does not exist");
        let help = help.expect("the candidates are named");
        assert_eq!(help, "avg exists as avg(Decimal), avg(DOUBLE); cast the arguments");
    }

    #[test]
    fn an_operator_that_does_not_accept_its_operands_is_named() {
        for text in [
            "Error during planning: Cannot coerce arithmetic expression Boolean + Int64 to valid types",
            "Cannot get result type for temporal operation Boolean + Int64: Invalid argument error: x",
        ] {
            assert_eq!(wording(text).message, "operator does not exist: BOOLEAN + BIGINT");
        }
    }

    #[test]
    fn prefixes_say_nothing() {
        let message = |text| wording(text).message;
        assert_eq!(
            message("This feature is not implemented: AND CHAIN; say BEGIN again"),
            "not supported: AND CHAIN; say BEGIN again"
        );
        assert_eq!(
            message("This feature is not implemented: Unsupported SQL statement: X"),
            "Unsupported SQL statement: X"
        );
        assert_eq!(message("External error: sum(x) overflows BIGINT"), "sum(x) overflows BIGINT");
        assert_eq!(message("Arrow error: Divide by zero error"), "division by zero");
        assert_eq!(
            message(
                "Internal error: it broke.\nThis issue was likely caused by a bug in DataFusion's code. Please"
            ),
            "internal error: it broke"
        );
    }

    #[test]
    fn the_nearest_column_is_suggested_or_a_few_are_listed() {
        let told = |text: &str| {
            let Wording { message, help } = wording(text);
            (message, help.unwrap_or_default())
        };
        let near = told(
            "Schema error: No field named t.l_quantiy. Valid fields are t.l_tax, t.l_quantity.",
        );
        assert_eq!(near.0, "column t.l_quantiy does not exist");
        assert_eq!(near.1, "Did you mean 'l_quantity'?");
        let few = told("No field named zzz.\nValid fields are t.l_tax, t.\"N\".");
        assert_eq!(few.0, "column \"zzz\" does not exist");
        let other = told("No field named u.a. Valid fields are t.a.");
        assert_eq!(other.0, "missing FROM-clause entry for table \"u\"");
        assert_eq!(few.1, "the columns are t.l_tax, t.N");
        assert_eq!(told("No field named zzz.").1, "");
        let cased = told(
            "No field named n.\nColumn names are case sensitive. You can use double quotes to refer to the t.\"N\" \
             column or disable it.\nValid fields are t.\"N\".",
        );
        assert_eq!(cased.1, "names between double quotes keep their case: t.\"N\"");
    }
}
