//! Consumers of a join's matches.

use crate::PrimitiveError;

/// Consumes the matches of one worker, block by block, in no particular order. The [`Payload`](super::Payload) of each
/// side determines the payloads: row numbers, or the words of a column.
pub trait Matches: Send {
    /// Payloads of pairs of rows with equal keys; both slices have the same length.
    ///
    /// # Errors
    /// Any error ends the join.
    fn pairs(&mut self, left: &[u64], right: &[u64]) -> Result<(), PrimitiveError>;

    /// Payloads of left rows without a partner: for an outer or anti join those without a match, for a semi join those
    /// with one.
    ///
    /// # Errors
    /// Any error ends the join.
    fn left_alone(&mut self, left: &[u64]) -> Result<(), PrimitiveError> {
        let _ = left;
        Ok(())
    }

    /// The same for right rows.
    ///
    /// # Errors
    /// Any error ends the join.
    fn right_alone(&mut self, right: &[u64]) -> Result<(), PrimitiveError> {
        let _ = right;
        Ok(())
    }
}

/// Stores the payloads of pairs and of single rows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RowPairs {
    /// Left payloads of pairs.
    pub left: Vec<u64>,
    /// Right payloads of pairs.
    pub right: Vec<u64>,
    /// Payloads of single left rows.
    pub left_alone: Vec<u64>,
    /// Payloads of single right rows.
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
