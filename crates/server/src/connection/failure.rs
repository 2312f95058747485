//! How statements fail and connections end.

use crate::wire::{ErrorFields, ProtocolError};

/// Why a statement did not complete.
#[derive(Debug)]
pub(crate) enum Failure {
    /// It failed.
    Statement(Box<ErrorFields>),
    /// Its connection ended.
    Ends(End),
}

/// Why a connection ends.
#[derive(Debug)]
pub(crate) enum End {
    /// The client sent Terminate.
    Asked,
    /// The client disconnected.
    Gone,
    /// The server ends it with this error.
    Told(Box<ErrorFields>),
}

impl End {
    /// The SQLSTATE of a statement that ended with the connection.
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
        let message = "terminating connection because the server is shutting down";
        Self::Told(Box::new(ErrorFields::fatal("57P01", message)))
    }

    /// The client can reconnect and look for what it missed.
    pub(crate) fn lost_notifications() -> Self {
        let message = "terminating connection because too many notifications waited for it";
        let hint = "receive notifications over a connection without long transactions, and read them at once";
        Self::Told(Box::new(ErrorFields::fatal("54000", message).hint(hint)))
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
