//! The log of a database with a data directory, and how records are ordered in it.
//!
//! A record is the epoch that its commit makes (8 bytes, the lowest first) and the change. Epochs follow
//! each other without gaps but where [`Durability::Off`](super::Durability::Off) left some out: what lies
//! behind a gap does not fit what is before it.

use super::change::DatabaseChange;
use super::error::TransactionError;
use crate::ids::Epoch;
use crate::log::{GroupCommit, LogRoom};

/// Bytes of the epoch before the change.
const EPOCH_BYTES: usize = 8;

/// Makes the bytes of a change, behind what is in the buffer.
pub type ChangeEncoder =
    Box<dyn Fn(&DatabaseChange, &mut Vec<u8>) -> Result<(), TransactionError> + Send + Sync>;

/// The log of a database.
pub struct DatabaseLog {
    /// Orders and syncs the records.
    pub commits: GroupCommit,
    /// Makes the bytes of a change.
    pub encode: ChangeEncoder,
}

impl std::fmt::Debug for DatabaseLog {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DatabaseLog").field("commits", &self.commits).finish_non_exhaustive()
    }
}

/// A record with room in the log, whose epoch is not known yet.
#[derive(Debug)]
pub(super) struct PreparedRecord {
    pub(super) room: LogRoom,
    pub(super) payload: Vec<u8>,
}

impl DatabaseLog {
    pub(super) async fn prepare(
        &self,
        change: &DatabaseChange,
    ) -> Result<PreparedRecord, TransactionError> {
        let mut payload = vec![0; EPOCH_BYTES];
        (self.encode)(change, &mut payload)?;
        let room = self.commits.reserve(payload.len())?.await?;
        Ok(PreparedRecord { room, payload })
    }
}

impl PreparedRecord {
    pub(super) fn set_epoch(&mut self, epoch: Epoch) {
        self.payload[..EPOCH_BYTES].copy_from_slice(&epoch.get().to_le_bytes());
    }
}

/// The epoch that a record makes and the bytes of its change; none where it is too short.
pub fn split_record(payload: &[u8]) -> Option<(Epoch, &[u8])> {
    let (epoch, change) = payload.split_first_chunk::<EPOCH_BYTES>()?;
    Some((Epoch::new(u64::from_le_bytes(*epoch)), change))
}
