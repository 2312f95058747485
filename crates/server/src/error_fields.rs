//! Error responses to clients.

use atoll_sql::{SourcePosition, SqlError};

use crate::wire::ErrorFields;

/// The error response for a statement that begins at character `start`, counted from 0, of the client's text.
pub(crate) fn error_fields(error: &SqlError, statement: &str, start: usize) -> ErrorFields {
    let mut fields = ErrorFields::error(error.state.code(), error.message.clone());
    fields.position = error.place.and_then(|place| character(statement, place));
    fields.position = fields.position.map(|position| position + start);
    fields.detail = error.detail().map(str::to_owned);
    fields.violated = error.violated().cloned().map(Box::new);
    fields.hint = (!error.helps.is_empty()).then(|| error.helps.join("\n"));
    fields
}

/// The character at a source position, from 1.
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
    fn positions_are_characters_of_the_statement() {
        let of =
            |line, column| character("SELECT ä,\n  nix", SourcePosition { line, column, width: 1 });
        assert_eq!(of(1, 8), Some(8));
        assert_eq!(of(2, 3), Some(13));
        assert_eq!(of(0, 1), None);
    }
}
