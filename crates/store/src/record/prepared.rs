//! Prepared transactions as bytes.
//!
//! | Byte of the step | Then |
//! |---|---|
//! | 3, prepares a transaction | name, owner, time (signed: microseconds since 1970-01-01 in UTC), locks, steps as those of a record but for 3 and 4 |
//! | 4, ends it | name, flag whether it commits |
//!
//! Locks are a list of a byte, then its parameters: 0 and table (number), 1 and table and row (numbers), each with a flag
//! whether exclusive, or 2 and sequence (number).

use std::sync::Arc;

use crate::change::{DatabaseChange, KeptLock, PreparedTransaction};
use crate::codec::{DecodeError, Decoder, Encoder};
use crate::ids::{RowId, SequenceId, TableId};
use crate::lock::LockMode;

/// The version of the records' format that has these steps.
pub(super) const FORMAT_VERSION: u32 = 5;

/// Writes a prepared transaction, without its steps.
pub(super) fn encode_prepared(
    encoder: &mut Encoder,
    name: &str,
    transaction: &PreparedTransaction,
) {
    encoder.text(name);
    encoder.text(&transaction.owner);
    encoder.signed(transaction.prepared_at);
    encoder.list(transaction.locks.iter(), |encoder, lock| match lock {
        KeptLock::Table(table, mode) => {
            encoder.byte(0);
            encoder.number(table.get());
            encoder.flag(*mode == LockMode::Exclusive);
        }
        KeptLock::Row(table, row, mode) => {
            encoder.byte(1);
            encoder.number(table.get());
            encoder.number(row.get());
            encoder.flag(*mode == LockMode::Exclusive);
        }
        KeptLock::Sequence(sequence) => {
            encoder.byte(2);
            encoder.number(sequence.get());
        }
    });
}

/// Reads its name, and the transaction without its steps.
pub(super) fn decode_prepared(
    decoder: &mut Decoder<'_>,
) -> Result<(Arc<str>, PreparedTransaction), DecodeError> {
    let name = decoder.text("name of a prepared transaction")?.into();
    let owner = decoder.text("owner of a prepared transaction")?.into();
    let prepared_at = decoder.signed("time of PREPARE TRANSACTION")?;
    let locks = decoder.list("locks", decode_lock)?;
    let change = DatabaseChange::default();
    Ok((name, PreparedTransaction { owner, prepared_at, change, locks }))
}

fn decode_lock(decoder: &mut Decoder<'_>) -> Result<KeptLock, DecodeError> {
    let mode = |decoder: &mut Decoder<'_>| {
        let is_exclusive = decoder.flag("whether a lock is exclusive")?;
        Ok(if is_exclusive { LockMode::Exclusive } else { LockMode::Shared })
    };
    match decoder.byte("kind of a lock")? {
        0 => {
            let table = TableId::new(decoder.number("table")?);
            Ok(KeptLock::Table(table, mode(decoder)?))
        }
        1 => {
            let table = TableId::new(decoder.number("table")?);
            let row = RowId::new(decoder.number("row id")?);
            Ok(KeptLock::Row(table, row, mode(decoder)?))
        }
        2 => Ok(KeptLock::Sequence(SequenceId::new(decoder.number("sequence")?))),
        other => Err(decoder.error("kind of a lock", format!("unknown kind {other}"))),
    }
}
