//! Messages of PostgreSQL's protocol 3, as bytes.
//!
//! The decoders of the crate pgwire read beyond the end of a message that is shorter than its fields, into the next one
//! or past the buffer, and panic there. These stop at the end of their message.

mod body;
mod frontend;
mod output;
mod startup;

pub(crate) use body::{MESSAGE_MAX, ProtocolError};
pub(crate) use frontend::{
    BindMessage, FrontendMessage, Target, next_kind, sasl_initial, take_message,
};
pub(crate) use output::{ErrorFields, Output, Routine, Severity};
pub(crate) use startup::{FirstMessage, StartupMessage, take_first};
