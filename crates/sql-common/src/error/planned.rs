//! SQLSTATEs of DataFusion's plan errors, which only their messages distinguish.

use super::SqlState;
use super::wording::without_prefixes;

/// Prefixes of messages, and their states.
const BEGINNINGS: [(&str, SqlState); 41] = [
    ("Invalid function '", SqlState::UNDEFINED_FUNCTION),
    ("Cannot coerce arithmetic expression ", SqlState::UNDEFINED_FUNCTION),
    ("Cannot get result type for ", SqlState::UNDEFINED_FUNCTION),
    ("Cannot infer common ", SqlState::UNDEFINED_FUNCTION),
    ("Can not find compatible types to compare ", SqlState::UNDEFINED_FUNCTION),
    ("There isn't a common type to coerce ", SqlState::UNDEFINED_FUNCTION),
    ("Cannot automatically convert ", SqlState::UNDEFINED_FUNCTION),
    ("Failed to coerce types ", SqlState::UNDEFINED_FUNCTION),
    ("Unary operator '-' only supports", SqlState::UNDEFINED_FUNCTION),
    ("Unary operator 'NOT' requires", SqlState::DATATYPE_MISMATCH),
    ("Cannot create filter with non-boolean ", SqlState::DATATYPE_MISMATCH),
    ("Incompatible inputs for ", SqlState::DATATYPE_MISMATCH),
    ("Inconsistent data type across values list", SqlState::DATATYPE_MISMATCH),
    ("Types don't match and no valid cast exists", SqlState::DATATYPE_MISMATCH),
    ("Column in SELECT must be in GROUP BY", SqlState::GROUPING_ERROR),
    ("Column in HAVING must be in GROUP BY", SqlState::GROUPING_ERROR),
    ("Column in QUALIFY must be in GROUP BY", SqlState::GROUPING_ERROR),
    ("Column in ORDER BY must be in GROUP BY", SqlState::GROUPING_ERROR),
    ("HAVING clause references: ", SqlState::GROUPING_ERROR),
    ("Aggregate function calls cannot be nested", SqlState::GROUPING_ERROR),
    ("Aggregate functions are not allowed", SqlState::GROUPING_ERROR),
    ("Window functions are not allowed", SqlState::WINDOWING_ERROR),
    ("Order by column out of bounds", SqlState::INVALID_COLUMN_REFERENCE),
    ("Cannot find column with position", SqlState::INVALID_COLUMN_REFERENCE),
    ("WITH query name ", SqlState::DUPLICATE_ALIAS),
    ("Inconsistent data length across values list", SqlState::SYNTAX_ERROR),
    ("Column count doesn't match insert query", SqlState::SYNTAX_ERROR),
    ("UNION queries have different number of columns", SqlState::SYNTAX_ERROR),
    ("Too many columns! The subquery should only", SqlState::SYNTAX_ERROR),
    ("Invalid qualifier ", SqlState::UNDEFINED_TABLE),
    ("table function '", SqlState::UNDEFINED_FUNCTION),
    ("LIMIT must be >= 0", SqlState::INVALID_ROW_COUNT_IN_LIMIT),
    ("OFFSET must be >=0", SqlState::INVALID_ROW_COUNT_IN_OFFSET),
    ("Expected LIMIT to be an integer", SqlState::DATATYPE_MISMATCH),
    ("Expected OFFSET to be an integer", SqlState::DATATYPE_MISMATCH),
    ("Placeholder '", SqlState::UNDEFINED_PARAMETER),
    ("cannot take square root of a negative number", SqlState::INVALID_ARGUMENT_FOR_POWER),
    ("zero raised to a negative power", SqlState::INVALID_ARGUMENT_FOR_POWER),
    ("negative count not allowed", SqlState::SUBSTRING_ERROR),
    ("Scalar subquery returned more than one row", SqlState::CARDINALITY_VIOLATION),
    ("field position must not be zero", SqlState::INVALID_PARAMETER),
];

/// Parts of messages, and their states.
const PARTS: [(&str, SqlState); 9] = [
    ("Unsupported SQL type ", SqlState::UNDEFINED_OBJECT),
    ("No function matches the given name and argument types '", SqlState::UNDEFINED_FUNCTION),
    ("' failed to match any signature", SqlState::UNDEFINED_FUNCTION),
    ("could not cast array of type ", SqlState::UNDEFINED_FUNCTION),
    ("must appear in the GROUP BY clause", SqlState::GROUPING_ERROR),
    ("is not a variable which can be viewed with 'SHOW'", SqlState::UNDEFINED_OBJECT),
    ("is too large to store in a Decimal", SqlState::NUMERIC_VALUE_OUT_OF_RANGE),
    ("regex parse error:", SqlState::INVALID_REGULAR_EXPRESSION),
    ("does not support logical expression WindowFunction", SqlState::WINDOWING_ERROR),
];

/// Returns the state of a message; None if the message does not identify one.
pub(super) fn planned_state(message: &str) -> Option<SqlState> {
    let message = without_prefixes(message);
    let begins = BEGINNINGS.iter().find(|(start, _)| message.starts_with(start));
    let found = begins.or_else(|| PARTS.iter().find(|(part, _)| message.contains(part)));
    found.map(|(_, state)| *state)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_have_the_states_that_postgresql_gives() {
        let state = |message| planned_state(message).map(SqlState::code);
        assert_eq!(state("Error during planning: Invalid function 'f'."), Some("42883"));
        assert_eq!(state("LIMIT must be >= 0, '-1' was provided"), Some("2201W"));
        assert_eq!(
            state("x. No function matches the given name and argument types 'f(Int64)'."),
            Some("42883")
        );
        assert_eq!(state("something else"), None);
    }
}
