//! What a client sends over PostgreSQL's protocol, first messages and those after them: what comes in pieces reads as
//! what comes at once.
#![no_main]

use bytes::BytesMut;
use libfuzzer_sys::fuzz_target;
use wire::{FirstMessage, FrontendMessage, ProtocolError, sasl_initial, take_first, take_message};

// The server itself would bring the SQL engine with it.
#[path = "../../crates/server/src/wire"]
#[expect(dead_code, reason = "the server takes more of it")]
mod wire {
    mod body;
    mod frontend;
    mod startup;

    pub(crate) use body::ProtocolError;
    pub(crate) use frontend::{FrontendMessage, sasl_initial, take_message};
    pub(crate) use startup::{FirstMessage, take_first};
}

/// All that a parser takes out of bytes that come in pieces, up to its first error.
fn taken<T>(
    bytes: &[u8],
    piece: usize,
    mut take: impl FnMut(&mut BytesMut) -> Result<Option<T>, ProtocolError>,
) -> (Vec<T>, Option<ProtocolError>) {
    let (mut input, mut all) = (BytesMut::new(), Vec::new());
    for piece in bytes.chunks(piece) {
        input.extend_from_slice(piece);
        loop {
            match take(&mut input) {
                Ok(Some(message)) => all.push(message),
                Ok(None) => break,
                Err(error) => return (all, Some(error)),
            }
        }
    }
    (all, None)
}

fuzz_target!(|input: (bool, u8, &[u8])| {
    let (is_first, piece, bytes) = input;
    let (piece, whole) = (usize::from(piece).max(1), bytes.len().max(1));
    if is_first {
        let at_once = taken(bytes, whole, take_first);
        assert_eq!(taken(bytes, piece, take_first), at_once);
        for message in at_once.0 {
            if let FirstMessage::Startup(startup) = message {
                let _ = startup.options();
            }
        }
    } else {
        let at_once = taken(bytes, whole, take_message);
        assert_eq!(taken(bytes, piece, take_message), at_once);
        for message in at_once.0 {
            if let FrontendMessage::Password(body) = message {
                let _ = sasl_initial(&body);
            }
        }
    }
});
