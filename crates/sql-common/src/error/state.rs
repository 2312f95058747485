//! SQLSTATE: the code by which programs distinguish errors, as in PostgreSQL.

use std::borrow::Cow;
use std::collections::HashSet;
use std::error::Error;
use std::fmt;
use std::sync::{LazyLock, Mutex, PoisonError};

use atoll_store::database::TransactionError;
use datafusion::arrow::error::ArrowError;
use datafusion::common::{Column, DataFusionError, SchemaError, TableReference};

use super::ViolatedConstraint;
use super::overflow::ArithmeticOverflow;
use super::planned::planned_state;
use atoll_functions::{FunctionFailure, SumOverflow, is_of_pattern};

/// Five characters, the first two of which are the class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SqlState(&'static str);

macro_rules! states {
    ($($name:ident = $code:literal;)*) => {
        impl SqlState {
            $(
                #[doc = concat!("PostgreSQL's ", $code, ".")]
                pub const $name: Self = Self($code);
            )*
        }
    };
}

states! {
    DUPLICATE_ALIAS = "42712";
    DUPLICATE_FUNCTION = "42723";
    DUPLICATE_SCHEMA = "42P06";
    DUPLICATE_TABLE = "42P07";
    DATATYPE_MISMATCH = "42804";
    GENERATED_ALWAYS = "428C9";
    GROUPING_ERROR = "42803";
    INVALID_FOREIGN_KEY = "42830";
    INVALID_COLUMN_REFERENCE = "42P10";
    DATETIME_FIELD_OVERFLOW = "22008";
    INVALID_ARGUMENT_FOR_POWER = "2201F";
    INVALID_DATETIME_FORMAT = "22007";
    INVALID_REGULAR_EXPRESSION = "2201B";
    INVALID_ROW_COUNT_IN_LIMIT = "2201W";
    INVALID_ROW_COUNT_IN_OFFSET = "2201X";
    INVALID_RECURSION = "42P19";
    INVALID_OBJECT_DEFINITION = "42P17";
    INVALID_TABLE_DEFINITION = "42P16";
    UNDEFINED_FUNCTION = "42883";
    UNDEFINED_PARAMETER = "42P02";
    WINDOWING_ERROR = "42P20";
    FEATURE_NOT_SUPPORTED = "0A000";
    INVALID_GRANT = "0LP01";
    CARDINALITY_VIOLATION = "21000";
    DATA_EXCEPTION = "22000";
    NUMERIC_VALUE_OUT_OF_RANGE = "22003";
    DIVISION_BY_ZERO = "22012";
    INVALID_FRAME_OFFSET = "22013";
    NULL_VALUE_NOT_ALLOWED = "22004";
    SUBSTRING_ERROR = "22011";
    STRING_DATA_RIGHT_TRUNCATION = "22001";
    INVALID_TEXT_REPRESENTATION = "22P02";
    NOT_NULL_VIOLATION = "23502";
    UNIQUE_VIOLATION = "23505";
    CHECK_VIOLATION = "23514";
    ACTIVE_TRANSACTION = "25001";
    NO_ACTIVE_TRANSACTION = "25P01";
    INVALID_PARAMETER = "22023";
    IN_FAILED_TRANSACTION = "25P02";
    DEPENDENT_OBJECTS_STILL_EXIST = "2BP01";
    INVALID_STATEMENT_NAME = "26000";
    INVALID_PASSWORD = "28P01";
    SYNTAX_ERROR_OR_ACCESS_RULE_VIOLATION = "42000";
    INSUFFICIENT_PRIVILEGE = "42501";
    SYNTAX_ERROR = "42601";
    DUPLICATE_COLUMN = "42701";
    AMBIGUOUS_COLUMN = "42702";
    UNDEFINED_COLUMN = "42703";
    UNDEFINED_OBJECT = "42704";
    DUPLICATE_OBJECT = "42710";
    DUPLICATE_PREPARED_STATEMENT = "42P05";
    WRONG_OBJECT_TYPE = "42809";
    RESERVED_NAME = "42939";
    INVALID_NAME = "42602";
    CANNOT_COERCE = "42846";
    PROGRAM_LIMIT_EXCEEDED = "54000";
    UNDEFINED_SCHEMA = "3F000";
    UNDEFINED_TABLE = "42P01";
    OBJECT_IN_USE = "55006";
    NOT_IN_PREREQUISITE_STATE = "55000";
    CANT_CHANGE = "55P02";
    LOCK_NOT_AVAILABLE = "55P03";
    OUT_OF_MEMORY = "53200";
    TOO_MANY_WAITING = "53400";
    DISK_FULL = "53100";
    IO_ERROR = "58030";
    DUPLICATE_FILE = "58P02";
    DATA_CORRUPTED = "XX001";
    INVALID_FUNCTION_DEFINITION = "42P13";
    ERROR_IN_ASSIGNMENT = "22005";
    CASE_NOT_FOUND = "20000";
    NO_FUNCTION_RETURN = "2F005";
    STATEMENT_TOO_COMPLEX = "54001";
    STACKED_DIAGNOSTICS = "0Z002";
    RAISE_EXCEPTION = "P0001";
    NO_DATA_FOUND = "P0002";
    TOO_MANY_ROWS = "P0003";
    INTERNAL_ERROR = "XX000";
}

impl SqlState {
    /// Returns the five characters.
    pub fn code(self) -> &'static str {
        self.0
    }

    /// Creates an error with this state.
    pub fn error(self, message: impl Into<String>) -> DataFusionError {
        let message = message.into();
        StatedError { state: self, message, violated: None, detail: None, help: None }.boxed()
    }

    /// Creates an error with this state, a detail and a hint.
    pub fn detailed(
        self,
        message: impl Into<String>,
        detail: String,
        help: &'static str,
    ) -> DataFusionError {
        let (message, detail, help) = (message.into(), Some(detail), Some(help.into()));
        StatedError { state: self, message, violated: None, detail, help }.boxed()
    }

    /// Creates an error with this state for a violated constraint.
    pub fn violation(
        self,
        message: impl Into<String>,
        violated: ViolatedConstraint,
    ) -> DataFusionError {
        let (message, violated) = (message.into(), Some(violated));
        StatedError { state: self, message, violated, detail: None, help: None }.boxed()
    }

    /// Creates an error with this state, and perhaps a detail and a hint.
    pub fn told(
        self,
        message: impl Into<String>,
        detail: Option<String>,
        help: Option<String>,
    ) -> DataFusionError {
        let (message, help) = (message.into(), help.map(Cow::Owned));
        StatedError { state: self, message, violated: None, detail, help }.boxed()
    }

    /// Returns the state with a code, which may be one of a user's program; `None` if the text is not a code.
    pub fn from_code(code: &str) -> Option<Self> {
        /// The codes of programs, which stay: there are few.
        static CODES: LazyLock<Mutex<HashSet<&'static str>>> = LazyLock::new(Mutex::default);
        let is_code = |byte: u8| byte.is_ascii_digit() || byte.is_ascii_uppercase();
        if code.len() != 5 || !code.bytes().all(is_code) {
            return None;
        }
        let mut codes = CODES.lock().unwrap_or_else(PoisonError::into_inner);
        let known = codes.get(code).copied();
        Some(Self(known.unwrap_or_else(|| {
            let code: &'static str = String::leak(code.to_owned());
            codes.insert(code);
            code
        })))
    }

    /// Creates the error for a table that does not exist.
    pub fn missing_table(name: &str) -> DataFusionError {
        Self::UNDEFINED_TABLE.error(format!("relation \"{name}\" does not exist"))
    }

    /// Returns the state of an error.
    pub fn from_error(error: &DataFusionError) -> Self {
        let root = error.find_root();
        match root {
            DataFusionError::External(error) => Self::of_external(error.as_ref()),
            DataFusionError::SQL(..) => Self::SYNTAX_ERROR,
            DataFusionError::SchemaError(error, _) => match error.as_ref() {
                SchemaError::AmbiguousReference { .. } => Self::AMBIGUOUS_COLUMN,
                SchemaError::FieldNotFound { field, valid_fields } => {
                    Self::of_missing(field, valid_fields)
                }
                SchemaError::DuplicateQualifiedField { .. } => Self::DUPLICATE_ALIAS,
                SchemaError::DuplicateUnqualifiedField { .. } => Self::DUPLICATE_COLUMN,
            },
            _ => planned_state(&root.to_string()).unwrap_or_else(|| Self::of_kind(root)),
        }
    }

    /// The state of a missing column: its table may be missing too.
    fn of_missing(column: &Column, known: &[Column]) -> Self {
        let Some(table) = &column.relation else { return Self::UNDEFINED_COLUMN };
        let is_its = |known: &&TableReference| known.table() == table.table();
        let is_read =
            known.iter().filter_map(|known| known.relation.as_ref()).any(|of| is_its(&of));
        if is_read { Self::UNDEFINED_COLUMN } else { Self::UNDEFINED_TABLE }
    }

    /// The state of an error that only its kind identifies.
    fn of_kind(error: &DataFusionError) -> Self {
        match error {
            DataFusionError::Plan(message)
                if message.starts_with("column '") && message.contains("' does not exist") =>
            {
                Self::UNDEFINED_COLUMN
            }
            DataFusionError::Plan(message)
                if message.starts_with("relation \"") && message.ends_with("\" does not exist") =>
            {
                Self::UNDEFINED_TABLE
            }
            DataFusionError::Plan(message) if message.contains("not found") => {
                Self::UNDEFINED_TABLE
            }
            DataFusionError::Plan(_) => Self::SYNTAX_ERROR_OR_ACCESS_RULE_VIOLATION,
            DataFusionError::NotImplemented(_) => Self::FEATURE_NOT_SUPPORTED,
            DataFusionError::ResourcesExhausted(_) => Self::OUT_OF_MEMORY,
            DataFusionError::Configuration(message)
                if message.starts_with("unknown setting ")
                    || message.contains("ould not find config")
                    || message.starts_with("Config value")
                        && message.contains("\" not found on ") =>
            {
                Self::UNDEFINED_OBJECT
            }
            DataFusionError::Configuration(_) => Self::INVALID_PARAMETER,
            DataFusionError::IoError(_) | DataFusionError::ObjectStore(_) => Self::IO_ERROR,
            DataFusionError::ArrowError(error, _) => match error.as_ref() {
                ArrowError::DivideByZero => Self::DIVISION_BY_ZERO,
                ArrowError::ArithmeticOverflow(_) => Self::NUMERIC_VALUE_OUT_OF_RANGE,
                ArrowError::CastError(message) => Self::of_cast(message),
                ArrowError::ParseError(message) => Self::of_parse(message),
                _ => Self::DATA_EXCEPTION,
            },
            DataFusionError::Execution(message) if message == "division by zero" => {
                Self::DIVISION_BY_ZERO
            }
            DataFusionError::Execution(_) => Self::DATA_EXCEPTION,
            DataFusionError::Internal(message) => {
                planned_state(message).unwrap_or(Self::INTERNAL_ERROR)
            }
            _ => Self::INTERNAL_ERROR,
        }
    }

    /// The state of a text that is not a value of a type: `Cannot cast string 'x' to value of Int32 type`.
    fn of_cast(message: &str) -> Self {
        let parts = message.strip_prefix("Cannot cast string '");
        let Some((text, of)) = parts.and_then(|rest| rest.split_once("' to value of ")) else {
            return Self::INVALID_TEXT_REPRESENTATION;
        };
        let digits = text.trim().trim_start_matches(['-', '+']);
        let is_whole = !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit());
        if of.contains("Int") && is_whole {
            return Self::NUMERIC_VALUE_OUT_OF_RANGE;
        }
        match ["Date", "Time"].iter().any(|start| of.starts_with(start)) {
            true => Self::of_moment(text),
            false => Self::INVALID_TEXT_REPRESENTATION,
        }
    }

    /// The state of a text that is not a date or a time: one in the right form has a field out of range.
    fn of_moment(text: &str) -> Self {
        let fields = |part: &str, between: &[char]| {
            let is_number = |field: &str| {
                !field.is_empty() && field.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
            };
            part.split(between).all(is_number).then(|| part.split(between).count())
        };
        let has_form = text.trim().split([' ', 'T']).all(|part| {
            fields(part, &['-', '/']) == Some(3) || matches!(fields(part, &[':']), Some(2 | 3))
        });
        if has_form { Self::DATETIME_FIELD_OVERFLOW } else { Self::INVALID_DATETIME_FORMAT }
    }

    /// The state of a text that Arrow could not parse.
    fn of_parse(message: &str) -> Self {
        if message.starts_with("Invalid timezone") {
            return Self::INVALID_PARAMETER;
        }
        if let Some(rest) = message.strip_prefix("Error parsing timestamp from '") {
            return Self::of_moment(rest.split_once("': ").map_or(rest, |(text, _)| text));
        }
        match message.starts_with("Invalid input syntax for type interval") {
            true => Self::INVALID_DATETIME_FORMAT,
            false => Self::INVALID_TEXT_REPRESENTATION,
        }
    }

    fn of_external(error: &(dyn Error + 'static)) -> Self {
        if let Some(stated) = error.downcast_ref::<StatedError>() {
            return stated.state;
        }
        if let Some(failure) = error.downcast_ref::<FunctionFailure>() {
            return Self(failure.state);
        }
        if error.is::<SumOverflow>() || error.is::<ArithmeticOverflow>() {
            return Self::NUMERIC_VALUE_OUT_OF_RANGE;
        }
        if is_of_pattern(error) {
            return Self::INVALID_REGULAR_EXPRESSION;
        }
        let transaction = error.downcast_ref::<TransactionError>();
        let told = || planned_state(&error.to_string()).unwrap_or(Self::INTERNAL_ERROR);
        transaction.map_or_else(told, |error| Self(error.sqlstate()))
    }
}

impl fmt::Display for SqlState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

/// An error with its state.
#[derive(Debug)]
struct StatedError {
    state: SqlState,
    message: String,
    /// The violated constraint, if any.
    violated: Option<ViolatedConstraint>,
    /// More about this case.
    detail: Option<String>,
    /// What to do next.
    help: Option<Cow<'static, str>>,
}

impl StatedError {
    fn boxed(self) -> DataFusionError {
        DataFusionError::External(Box::new(self))
    }
}

/// Returns the detail and the hint of an error.
pub(super) fn said_beside<'e>(
    error: &'e (dyn Error + 'static),
) -> Option<(Option<&'e str>, Option<&'e str>)> {
    let stated = error.downcast_ref::<StatedError>()?;
    Some((stated.detail.as_deref(), stated.help.as_deref()))
}

/// Returns the constraint that an error violates.
pub(super) fn violated<'e>(error: &'e (dyn Error + 'static)) -> Option<&'e ViolatedConstraint> {
    error.downcast_ref::<StatedError>()?.violated.as_ref()
}

impl fmt::Display for StatedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl Error for StatedError {}
