//! The columns of a batch as keys and values.

use std::sync::OnceLock;

use arrow_array::{Array, ArrayRef, RecordBatch};

use super::keys::{Encoder, KeyColumn};
use super::lane::Lane;
use super::plan::AggregatePlan;
use crate::PrimitiveError;

/// Keys and values of a batch.
#[derive(Debug)]
pub(super) struct BatchRows {
    pub(super) rows: usize,
    keys: Vec<ArrayRef>,
    /// Keys as numbers; None if one is neither a number nor a string column with short strings.
    key_lanes: Option<Vec<Lane>>,
    /// Keys to be encoded, once requested.
    key_columns: OnceLock<Vec<KeyColumn>>,
    /// Values.
    pub(super) lanes: Vec<Lane>,
}

impl BatchRows {
    /// The rows of a batch.
    ///
    /// # Errors
    /// [`PrimitiveError::Shape`] if its values differ from those of the query.
    pub(super) fn new(plan: &AggregatePlan, batch: &RecordBatch) -> Result<Self, PrimitiveError> {
        let keys = plan.keys(batch);
        let key_lanes = keys.iter().map(|key| Lane::key(key)).collect();
        let (rows, lanes) = (batch.num_rows(), plan.lanes(batch)?);
        Ok(Self { rows, keys, key_lanes, key_columns: OnceLock::new(), lanes })
    }

    /// Keys as numbers; None if some are not.
    pub(super) fn key_lanes(&self) -> &[Lane] {
        self.key_lanes.as_deref().unwrap_or_default()
    }

    /// Keys to be encoded.
    pub(super) fn key_columns(&self, encoder: &Encoder) -> Result<&[KeyColumn], PrimitiveError> {
        if let Some(columns) = self.key_columns.get() {
            return Ok(columns);
        }
        let columns = encoder.columns(&self.keys)?;
        Ok(self.key_columns.get_or_init(|| columns))
    }

    /// Whether a key has nulls.
    pub(super) fn has_nulls(&self, key: usize) -> bool {
        self.keys[key].logical_null_count() > 0
    }
}
