//! An accumulator of one group over that of many.

use std::fmt::Debug;

use datafusion::arrow::array::{Array, ArrayRef};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::{Accumulator, GroupsAccumulator};

use super::rows::{Arranged, GroupRows};

/// Groups whose results are computed from their rows.
pub(crate) trait RowGroups: GroupsAccumulator + Debug + Sync {
    /// The rows so far.
    fn rows(&self) -> &GroupRows;

    /// One result per group.
    ///
    /// # Errors
    /// As the aggregate defines.
    fn results(&self, arranged: Arranged) -> Result<ArrayRef>;
}

/// The rows of one group.
#[derive(Debug)]
pub(crate) struct OneGroup<G>(pub(crate) G);

impl<G: RowGroups> OneGroup<G> {
    fn arranged(&self) -> Result<Arranged> {
        let mut arranged = self.0.rows().arranged()?;
        arranged.offsets.resize(2, 0);
        Ok(arranged)
    }
}

impl<G: RowGroups> Accumulator for OneGroup<G> {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let groups = vec![0; values[0].len()];
        self.0.update_batch(values, &groups, None, 1)
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        let groups = vec![0; states[0].len()];
        self.0.merge_batch(states, &groups, 1)
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        ScalarValue::try_from_array(&self.0.results(self.arranged()?)?, 0)
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let lists = self.arranged()?.into_lists()?;
        lists.iter().map(|list| ScalarValue::try_from_array(list, 0)).collect()
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.0.size()
    }
}
