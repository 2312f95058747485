//! Statistics of the build side's keys and payloads.

use std::sync::Arc;

use super::RunningJoin;
use crate::PrimitiveError;
use crate::join::Matches;
use crate::work::Chunks;

/// Maximum keys per row of a dense range: the array, of four bytes a key, is then no larger than the rows themselves.
const DENSE_KEYS_PER_ROW: u64 = 4;

/// A range this small is always dense: its array fits the first-level cache.
const SMALL_RANGE: u64 = 4096;

/// Rows with a key, and the range of their keys (as signed numbers) and payloads.
#[derive(Clone, Copy, Debug)]
pub(super) struct Survey {
    pub(super) rows: usize,
    pub(super) keys: (i64, i64),
    pub(super) payloads: (u64, u64),
}

impl Survey {
    const EMPTY: Self = Self { rows: 0, keys: (i64::MAX, i64::MIN), payloads: (u64::MAX, 0) };

    fn add(&mut self, keys: &[u64], payloads: &[u64]) {
        self.rows += keys.len();
        for key in keys {
            self.keys = (self.keys.0.min(*key as i64), self.keys.1.max(*key as i64));
        }
        for payload in payloads {
            self.payloads = (self.payloads.0.min(*payload), self.payloads.1.max(*payload));
        }
    }

    fn merge(self, other: Self) -> Self {
        Self {
            rows: self.rows + other.rows,
            keys: (self.keys.0.min(other.keys.0), self.keys.1.max(other.keys.1)),
            payloads: (
                self.payloads.0.min(other.payloads.0),
                self.payloads.1.max(other.payloads.1),
            ),
        }
    }
}

impl<C: Matches + 'static> RunningJoin<'_, C> {
    /// Reads all rows of the build side.
    pub(super) async fn survey(&mut self) -> Result<Survey, PrimitiveError> {
        let side = Arc::clone(&self.build);
        let chunks = Chunks::new(side.lengths(), self.context.tuning().block_rows);
        let surveys = self
            .context
            .on_workers("survey keys", move |_, task| {
                let mut survey = Survey::EMPTY;
                side.read(&chunks, task, |block| {
                    survey.add(block.keys, block.payloads);
                    Ok(())
                })?;
                Ok(survey)
            })
            .await?;
        Ok(self.keep(surveys).into_iter().fold(Survey::EMPTY, Survey::merge))
    }

    /// Number of keys from the least to the greatest, if they are dense.
    pub(super) fn dense_keys(&self, survey: &Survey) -> Option<u64> {
        let (min, max) = survey.keys;
        let keys =
            if survey.rows == 0 { 0 } else { (max.wrapping_sub(min) as u64).checked_add(1)? };
        let dense = (survey.rows as u64).saturating_mul(DENSE_KEYS_PER_ROW).max(SMALL_RANGE);
        (keys <= dense && survey.rows as u64 <= keys).then_some(keys)
    }
}
