//! SQLSTATE: the code by which programs tell errors apart, as PostgreSQL gives it.

use std::error::Error;
use std::fmt;

use atoll_store::database::TransactionError;
use datafusion::arrow::error::ArrowError;
use datafusion::common::{DataFusionError, SchemaError};

use super::ViolatedConstraint;

/// Five characters, the first two of which are the class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SqlState(&'static str);

macro_rules! states {
    ($($name:ident = $code:literal;)*) => {
        impl SqlState {
            $(pub(crate) const $name: Self = Self($code);)*
        }
    };
}

states! {
    FEATURE_NOT_SUPPORTED = "0A000";
    INVALID_GRANT = "0LP01";
    CARDINALITY_VIOLATION = "21000";
    DATA_EXCEPTION = "22000";
    NUMERIC_VALUE_OUT_OF_RANGE = "22003";
    DIVISION_BY_ZERO = "22012";
    INVALID_TEXT_REPRESENTATION = "22P02";
    NOT_NULL_VIOLATION = "23502";
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
    UNDEFINED_SCHEMA = "3F000";
    UNDEFINED_TABLE = "42P01";
    OBJECT_IN_USE = "55006";
    NOT_IN_PREREQUISITE_STATE = "55000";
    CANT_CHANGE = "55P02";
    OUT_OF_MEMORY = "53200";
    TOO_MANY_WAITING = "53400";
    DISK_FULL = "53100";
    IO_ERROR = "58030";
    DUPLICATE_FILE = "58P02";
    DATA_CORRUPTED = "XX001";
    INTERNAL_ERROR = "XX000";
}

impl SqlState {
    /// The five characters.
    pub fn code(self) -> &'static str {
        self.0
    }

    /// An error of this state.
    pub(crate) fn error(self, message: impl Into<String>) -> DataFusionError {
        let (message, violated) = (message.into(), None);
        DataFusionError::External(Box::new(StatedError { state: self, message, violated }))
    }

    /// An error of this state about a constraint.
    pub(crate) fn violation(
        self,
        message: impl Into<String>,
        violated: ViolatedConstraint,
    ) -> DataFusionError {
        let (message, violated) = (message.into(), Some(violated));
        DataFusionError::External(Box::new(StatedError { state: self, message, violated }))
    }

    /// The state of an error.
    pub(crate) fn of(error: &DataFusionError) -> Self {
        match error.find_root() {
            DataFusionError::External(error) => Self::of_external(error.as_ref()),
            DataFusionError::SQL(..) => Self::SYNTAX_ERROR,
            DataFusionError::SchemaError(error, _) => match error.as_ref() {
                SchemaError::AmbiguousReference { .. } => Self::AMBIGUOUS_COLUMN,
                SchemaError::FieldNotFound { .. } => Self::UNDEFINED_COLUMN,
                _ => Self::SYNTAX_ERROR_OR_ACCESS_RULE_VIOLATION,
            },
            DataFusionError::Plan(message)
                if message.starts_with("column '") && message.contains("' does not exist") =>
            {
                Self::UNDEFINED_COLUMN
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
                ArrowError::CastError(_) | ArrowError::ParseError(_) => {
                    Self::INVALID_TEXT_REPRESENTATION
                }
                _ => Self::DATA_EXCEPTION,
            },
            DataFusionError::Execution(message) if message == "division by zero" => {
                Self::DIVISION_BY_ZERO
            }
            DataFusionError::Execution(_) => Self::DATA_EXCEPTION,
            _ => Self::INTERNAL_ERROR,
        }
    }

    fn of_external(error: &(dyn Error + 'static)) -> Self {
        if let Some(stated) = error.downcast_ref::<StatedError>() {
            return stated.state;
        }
        let transaction = error.downcast_ref::<TransactionError>();
        transaction.map_or(Self::INTERNAL_ERROR, |error| Self(error.sqlstate()))
    }
}

impl fmt::Display for SqlState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

/// An error that says its state.
#[derive(Debug)]
struct StatedError {
    state: SqlState,
    message: String,
    /// The constraint that it is about, where it is about one.
    violated: Option<ViolatedConstraint>,
}

/// The constraint that an error is about.
pub(super) fn violated<'e>(error: &'e (dyn Error + 'static)) -> Option<&'e ViolatedConstraint> {
    error.downcast_ref::<StatedError>()?.violated.as_ref()
}

impl fmt::Display for StatedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl Error for StatedError {}
