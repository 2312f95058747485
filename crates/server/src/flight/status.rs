//! Errors as gRPC statuses: a code by the class of the SQLSTATE, the message, and the SQLSTATE itself.

use arrow_flight::error::FlightError;
use tonic::metadata::{MetadataMap, MetadataValue};
use tonic::{Code, Status};

use crate::wire::ErrorFields;

/// The metadata key of the SQLSTATE in a status.
const STATE_KEY: &str = "x-sqlstate";

/// Bytes of a message: it is sent in a header, and clients refuse headers of more than 8 KiB.
const MESSAGE_MAX: usize = 2000;

impl From<ErrorFields> for Status {
    fn from(error: ErrorFields) -> Self {
        let mut message = error.message;
        if let Some(position) = error.position {
            message.push_str(&format!(" at character {position}"));
        }
        for more in [error.detail, error.hint].into_iter().flatten() {
            message.push_str("; ");
            message.push_str(&more);
        }
        cut(&mut message);
        message.push_str(&format!(" (SQLSTATE {})", error.state));
        let mut metadata = MetadataMap::new();
        metadata.insert(STATE_KEY, MetadataValue::from_static(error.state));
        Self::with_metadata(code(error.state), message, metadata)
    }
}

/// Truncates a message at a character boundary.
fn cut(message: &mut String) {
    if message.len() > MESSAGE_MAX {
        let end = (0..=MESSAGE_MAX).rev().find(|end| message.is_char_boundary(*end));
        message.truncate(end.unwrap_or_default());
        message.push('…');
    }
}

fn code(state: &str) -> Code {
    match (state, state.get(..2).unwrap_or_default()) {
        ("42501", _) => Code::PermissionDenied,
        ("42P01" | "26000" | "34000", _) => Code::NotFound,
        ("42P07" | "42P05" | "23505", _) => Code::AlreadyExists,
        ("57014", _) => Code::Cancelled,
        (_, "28") => Code::Unauthenticated,
        (_, "0A") => Code::Unimplemented,
        (_, "23" | "25" | "55") => Code::FailedPrecondition,
        (_, "40") => Code::Aborted,
        (_, "53") => Code::ResourceExhausted,
        (_, "57") => Code::Unavailable,
        (_, "58" | "XX") => Code::Internal,
        _ => Code::InvalidArgument,
    }
}

/// The error for a client's message that cannot be decoded.
pub(super) fn unreadable(error: &FlightError) -> ErrorFields {
    ErrorFields::error("08P01", format!("cannot decode the client's Arrow data: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_holds_message_place_hint_and_state() {
        let error = ErrorFields::error("42P01", "relation 'x' does not exist").hint("create it");
        let status = Status::from(ErrorFields { position: Some(15), ..error });
        assert_eq!(status.code(), Code::NotFound);
        let wanted = "relation 'x' does not exist at character 15; create it (SQLSTATE 42P01)";
        assert_eq!(status.message(), wanted);
        assert_eq!(status.metadata().get(STATE_KEY).expect("the SQLSTATE"), "42P01");
        let long = Status::from(ErrorFields::error("22P02", "ä".repeat(9000)));
        assert!(long.message().len() < MESSAGE_MAX + 40, "{}", long.message().len());
    }
}
