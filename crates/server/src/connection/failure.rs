//! What ends a statement, and what ends a connection.

use atoll_sql::arrow::error::ArrowError;
use atoll_sql::{SourcePosition, SqlError};

use crate::wire::{ErrorFields, ProtocolError};

/// Why a statement did not come to its end.
#[derive(Debug)]
pub(crate) enum Failure {
    /// It failed.
    Statement(Box<ErrorFields>),
    /// The connection ends with it.
    Ends(End),
}

/// Why a connection ends.
#[derive(Debug)]
pub(crate) enum End {
    /// The client said so.
    Asked,
    /// The client is gone.
    Gone,
    /// The client is told why.
    Told(Box<ErrorFields>),
}

impl End {
    /// The SQLSTATE of a statement that ends with the connection.
    pub(crate) fn state(&self) -> &'static str {
        match self {
            Self::Asked | Self::Gone => "08006",
            Self::Told(error) => error.state,
        }
    }

    pub(crate) fn terminated() -> Self {
        let message = "terminating connection due to administrator command";
        Self::Told(Box::new(ErrorFields::fatal("57P01", message)))
    }

    pub(crate) fn stopped() -> Self {
        let message = "terminating connection because the server stops";
        Self::Told(Box::new(ErrorFields::fatal("57P01", message)))
    }

    pub(crate) fn idle_in_transaction() -> Self {
        let message = "terminating connection due to idle-in-transaction timeout";
        Self::Told(Box::new(ErrorFields::fatal("25P03", message)))
    }
}

impl Failure {
    /// Its SQLSTATE.
    pub(crate) fn state(&self) -> &'static str {
        match self {
            Self::Statement(error) => error.state,
            Self::Ends(end) => end.state(),
        }
    }
}

impl From<End> for Failure {
    fn from(end: End) -> Self {
        Self::Ends(end)
    }
}

impl From<ErrorFields> for Failure {
    fn from(error: ErrorFields) -> Self {
        Self::Statement(Box::new(error))
    }
}

impl From<ProtocolError> for End {
    fn from(error: ProtocolError) -> Self {
        Self::Told(Box::new(ErrorFields::fatal("08P01", error.0)))
    }
}

impl From<ArrowError> for Failure {
    fn from(error: ArrowError) -> Self {
        ErrorFields::error("XX000", format!("a column cannot be sent: {error}")).into()
    }
}

/// What is said of a statement's error. The statement begins at character `start` of what was sent, from 0.
pub(crate) fn error_fields(error: &SqlError, statement: &str, start: usize) -> ErrorFields {
    let mut fields = ErrorFields::error(error.state.code(), error.message.clone());
    fields.position = error.place.and_then(|place| character(statement, place));
    fields.position = fields.position.map(|position| position + start);
    fields.detail = error.detail().map(str::to_owned);
    fields.violated = error.violated().cloned().map(Box::new);
    fields.hint = (!error.helps.is_empty()).then(|| error.helps.join("\n"));
    fields
}

/// The character of a place, from 1.
fn character(statement: &str, place: SourcePosition) -> Option<usize> {
    let line = usize::try_from(place.line).ok()?.checked_sub(1)?;
    let column = usize::try_from(place.column).ok()?;
    let before = statement.split_inclusive('\n').take(line).map(|line| line.chars().count());
    Some(before.sum::<usize>() + column)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_a_character_of_the_statement() {
        let of =
            |line, column| character("SELECT ä,\n  nix", SourcePosition { line, column, width: 1 });
        assert_eq!(of(1, 8), Some(8));
        assert_eq!(of(2, 3), Some(13));
        assert_eq!(of(0, 1), None);
    }
}
