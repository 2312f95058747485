//! The names of errors in `EXCEPTION WHEN`.

use datafusion::common::Result;

use atoll_sql_common::error::SqlState;

/// Names of PostgreSQL (appendix A), with their codes. A code that ends in `000` matches its whole class.
const CODES: [(&str, &str); 41] = [
    ("feature_not_supported", "0A000"),
    ("case_not_found", "20000"),
    ("cardinality_violation", "21000"),
    ("data_exception", "22000"),
    ("string_data_right_truncation", "22001"),
    ("numeric_value_out_of_range", "22003"),
    ("null_value_not_allowed", "22004"),
    ("invalid_datetime_format", "22007"),
    ("datetime_field_overflow", "22008"),
    ("division_by_zero", "22012"),
    ("invalid_parameter_value", "22023"),
    ("invalid_text_representation", "22P02"),
    ("integrity_constraint_violation", "23000"),
    ("not_null_violation", "23502"),
    ("foreign_key_violation", "23503"),
    ("unique_violation", "23505"),
    ("check_violation", "23514"),
    ("dependent_objects_still_exist", "2BP01"),
    ("invalid_schema_name", "3F000"),
    ("serialization_failure", "40001"),
    ("deadlock_detected", "40P01"),
    ("syntax_error_or_access_rule_violation", "42000"),
    ("insufficient_privilege", "42501"),
    ("syntax_error", "42601"),
    ("invalid_table_definition", "42P16"),
    ("duplicate_column", "42701"),
    ("undefined_column", "42703"),
    ("undefined_object", "42704"),
    ("duplicate_object", "42710"),
    ("duplicate_function", "42723"),
    ("wrong_object_type", "42809"),
    ("undefined_function", "42883"),
    ("undefined_table", "42P01"),
    ("duplicate_schema", "42P06"),
    ("duplicate_table", "42P07"),
    ("lock_not_available", "55P03"),
    ("query_canceled", "57014"),
    ("plpgsql_error", "P0000"),
    ("raise_exception", "P0001"),
    ("no_data_found", "P0002"),
    ("too_many_rows", "P0003"),
];

/// The code of a cancelled statement, which OTHERS leaves to the client.
const CANCELED: &str = "57014";

/// The code of a named condition.
pub(super) fn code_of(name: &str) -> Result<String> {
    match CODES.iter().find(|(known, _)| name.eq_ignore_ascii_case(known)) {
        Some((_, code)) => Ok((*code).to_owned()),
        None => {
            let message = format!("unrecognized exception condition \"{name}\"");
            Err(SqlState::UNDEFINED_OBJECT.error(message))
        }
    }
}

/// An error that a handler takes.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Condition {
    Others,
    /// One code.
    Code(String),
    /// All codes with these two first characters.
    Class(String),
}

impl Condition {
    pub(super) fn from_name(name: &str) -> Result<Self> {
        if name.eq_ignore_ascii_case("others") {
            return Ok(Self::Others);
        }
        Self::from_code(&code_of(name)?)
    }

    pub(super) fn from_code(code: &str) -> Result<Self> {
        let is_code = code.len() == 5
            && code.bytes().all(|byte| byte.is_ascii_digit() || byte.is_ascii_uppercase());
        match code.strip_suffix("000").filter(|_| is_code) {
            _ if !is_code => {
                Err(SqlState::SYNTAX_ERROR.error(format!("invalid SQLSTATE code '{code}'")))
            }
            Some(class) => Ok(Self::Class(class.to_owned())),
            None => Ok(Self::Code(code.to_owned())),
        }
    }

    /// Whether it takes an error with this code.
    pub(super) fn takes(&self, state: SqlState) -> bool {
        match self {
            Self::Others => state.code() != CANCELED,
            Self::Code(code) => code == state.code(),
            Self::Class(class) => state.code().starts_with(class.as_str()),
        }
    }
}
