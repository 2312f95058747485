//! Who takes what a join finds.

use crate::PrimitiveError;

/// Takes what one worker finds, block by block, in no particular order. Which payloads come is the
/// [`Payload`](super::Payload) of each side: row numbers, or the words of a column.
pub trait Matches: Send {
    /// Payloads of pairs of rows with equal keys; both slices are equally long.
    ///
    /// # Errors
    /// Whatever ends the join.
    fn pairs(&mut self, left: &[u64], right: &[u64]) -> Result<(), PrimitiveError>;

    /// Payloads of left rows without a partner: those of an outer or anti join that have no match,
    /// those of a semi join that have one.
    ///
    /// # Errors
    /// Whatever ends the join.
    fn left_alone(&mut self, left: &[u64]) -> Result<(), PrimitiveError> {
        let _ = left;
        Ok(())
    }

    /// The same of right rows.
    ///
    /// # Errors
    /// Whatever ends the join.
    fn right_alone(&mut self, right: &[u64]) -> Result<(), PrimitiveError> {
        let _ = right;
        Ok(())
    }
}

/// Keeps what it is given: the payloads of pairs, and of rows alone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RowPairs {
    /// Left payloads of pairs.
    pub left: Vec<u64>,
    /// Right payloads of pairs.
    pub right: Vec<u64>,
    /// Payloads of left rows alone.
    pub left_alone: Vec<u64>,
    /// Payloads of right rows alone.
    pub right_alone: Vec<u64>,
}

impl Matches for RowPairs {
    fn pairs(&mut self, left: &[u64], right: &[u64]) -> Result<(), PrimitiveError> {
        self.left.extend_from_slice(left);
        self.right.extend_from_slice(right);
        Ok(())
    }

    fn left_alone(&mut self, left: &[u64]) -> Result<(), PrimitiveError> {
        self.left_alone.extend_from_slice(left);
        Ok(())
    }

    fn right_alone(&mut self, right: &[u64]) -> Result<(), PrimitiveError> {
        self.right_alone.extend_from_slice(right);
        Ok(())
    }
}
