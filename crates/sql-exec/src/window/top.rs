//! The first rows of each partition, where a filter above lets no others pass.

use std::fmt;
use std::sync::Arc;

use datafusion::common::ScalarValue;
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::{BinaryExpr, Column, Literal};
use datafusion::physical_expr::utils::split_conjunction;
use datafusion::physical_plan::projection::ProjectionExec;

use super::function::Computed;
use super::key::{KeyPacking, Word};
use super::order::Packed;
use super::plan::WindowPlan;
use super::rows::OrderedRows;

/// Words that are kept to find the first ones of each partition are at most these.
const WORDS_MAX: usize = 1 << 22;

/// The rows of each partition that are needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TopRows {
    /// How many.
    rows: usize,
    /// Whether the peers of the last are needed too.
    with_peers: bool,
}

impl TopRows {
    /// The rows that a filter above a window, and perhaps a projection of it, may let pass.
    pub(super) fn of_filter(
        filter: &Arc<dyn PhysicalExpr>,
        projection: Option<&ProjectionExec>,
        plan: &WindowPlan,
    ) -> Option<Self> {
        let tops = split_conjunction(filter).into_iter();
        tops.filter_map(|test| Self::of_test(test, projection, plan)).min_by_key(|top| top.rows)
    }

    fn of_test(
        test: &Arc<dyn PhysicalExpr>,
        projection: Option<&ProjectionExec>,
        plan: &WindowPlan,
    ) -> Option<Self> {
        let test = test.downcast_ref::<BinaryExpr>()?;
        let (number, operator, most) = match test.right().downcast_ref::<Literal>() {
            Some(most) => (test.left(), *test.op(), most),
            None => (test.right(), test.op().swap()?, test.left().downcast_ref::<Literal>()?),
        };
        let most = match most.value() {
            ScalarValue::Int64(Some(most)) => *most,
            ScalarValue::Int32(Some(most)) => i64::from(*most),
            ScalarValue::UInt64(Some(most)) => i64::try_from(*most).ok()?,
            _ => return None,
        };
        let most = match operator {
            Operator::Eq | Operator::LtEq => most,
            Operator::Lt => most.saturating_sub(1),
            _ => return None,
        };
        let mut column = number.downcast_ref::<Column>()?.index();
        if let Some(projection) = projection {
            column = projection.expr().get(column)?.expr.downcast_ref::<Column>()?.index();
        }
        let first = plan.schema.fields().len() - plan.functions.len();
        let with_peers = match plan.functions.get(column.checked_sub(first)?)?.computed {
            Computed::RowNumber => false,
            Computed::Rank => true,
            _ => return None,
        };
        Some(Self { rows: usize::try_from(most.max(0)).ok()?, with_peers })
    }

    /// The rows that are not after `rows` others in their partition by their words: the rest need not be sorted. All,
    /// where there are about as many partitions as rows.
    pub(super) fn candidates<W: Word>(self, packed: Packed<W>, packing: &KeyPacking) -> Packed<W> {
        let (Some(bits), Some(after)) = (packing.partition_bits(), packing.after_partition())
        else {
            return packed;
        };
        let partitions = 1_usize.checked_shl(bits).unwrap_or(usize::MAX);
        let words = partitions.saturating_mul(self.rows);
        if self.rows == 0 || words > WORDS_MAX.min(packed.len()) {
            return packed;
        }
        let mut first = vec![W::default(); words];
        let mut counts = vec![0_usize; partitions];
        for (word, _) in &packed {
            let partition = word.without(after).index();
            let first = &mut first[partition * self.rows..][..self.rows];
            let count = &mut counts[partition];
            if *count == self.rows {
                if *word >= first[self.rows - 1] {
                    continue;
                }
            } else {
                *count += 1;
            }
            let at = first[..*count - 1].partition_point(|earlier| earlier <= word);
            first[at..*count].rotate_right(1);
            first[at] = *word;
        }
        let is_candidate = |word: &W| {
            let partition = word.without(after).index();
            counts[partition] < self.rows || *word <= first[(partition + 1) * self.rows - 1]
        };
        packed.into_iter().filter(|(word, _)| is_candidate(word)).collect()
    }

    /// These rows of all.
    pub(super) fn of(self, ordered: &OrderedRows) -> OrderedRows {
        let mut top = OrderedRows::default();
        for partition in ordered.partitions() {
            let mut end = partition.end.min(partition.start.saturating_add(self.rows));
            let is_peer = |row: usize| row < partition.end && ordered.peers[row];
            while self.with_peers && end > partition.start && is_peer(end) {
                end += 1;
            }
            if end > partition.start {
                top.starts.push(top.rows.len() as u32);
            }
            top.rows.extend_from_slice(&ordered.rows[partition.start..end]);
            top.peers.extend_from_slice(&ordered.peers[partition.start..end]);
        }
        top
    }
}

impl fmt::Display for TopRows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let peers = if self.with_peers { " with peers" } else { "" };
        write!(f, "top={}{peers}", self.rows)
    }
}
