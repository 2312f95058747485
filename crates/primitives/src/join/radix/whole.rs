//! The join of a smaller side that fits the caches: one hash table that all workers probe.

use std::sync::Arc;

use super::RunningJoin;
use super::probe::{Probed, Same, probe_columns};
use crate::PrimitiveError;
use crate::join::Matches;
use crate::join::kind::UnmatchedRows;
use crate::kernel::table::{JoinTable, ProbeScratch};
use crate::partition::{FanOut, Partitioner, Pieces};
use crate::work::Chunks;

/// Maximum size of the single table, as a multiple of [`Tuning::table_bytes`](crate::Tuning): it is shared, lies in a
/// last-level cache and is prefetched, and the other side need not be moved.
const TABLE_TIMES: usize = 16;
/// Maximum bytes of a row and its slots in a table.
const ROW_BYTES_MAX: usize = 32;

impl<C: Matches + 'static> RunningJoin<'_, C> {
    /// Rows of the build side up to which one table is better.
    pub(super) fn one_table_rows(&self) -> usize {
        self.context.tuning().table_bytes * TABLE_TIMES / ROW_BYTES_MAX
    }

    /// Joins by one hash table.
    pub(super) async fn one_table(&mut self, same: impl Same) -> Result<(), PrimitiveError> {
        let pieces = self.deal_build(FanOut::of_bits(0)).await?;
        let table = self.fill_table(pieces).await?;
        let near = table.bytes_filled() <= self.context.tuning().table_bytes;
        self.probe_table(Arc::clone(&table), near, same).await?;
        if self.hands.marked() {
            let hands = Arc::clone(&self.hands);
            let marks = self.context.on_workers("marked rows", move |worker, task| {
                if worker.index() > 0 {
                    return Ok(());
                }
                let rows = table.marked_rows().map(|([_, payload], mark)| (*payload, mark));
                hands.with(task, |hand| hand.build_rows(rows))
            });
            let marks = marks.await?;
            self.keep(marks);
        }
        Ok(())
    }

    async fn fill_table(
        &mut self,
        pieces: Vec<Pieces<2>>,
    ) -> Result<Arc<JoinTable>, PrimitiveError> {
        let (context, marked) = (self.context.clone(), self.hands.marked());
        let pieces = Arc::new(pieces);
        let tables = self.context.on_workers("build", move |worker, task| {
            if worker.index() > 0 {
                return Ok(None);
            }
            let rows = pieces.iter().map(Pieces::total_rows).sum();
            let mut table = JoinTable::new(context.arena(), Some(task.node()), rows, marked)?;
            table.fill(|| pieces.iter().flat_map(|pieces| pieces.blocks(0)));
            Ok(Some(Arc::new(table)))
        });
        let tables = tables.await?;
        let table = self.keep(tables).into_iter().flatten().next();
        table.ok_or_else(|| PrimitiveError::Panicked {
            step: "build".into(),
            message: "no worker has built the table".into(),
        })
    }

    async fn probe_table(
        &mut self,
        table: Arc<JoinTable>,
        near: bool,
        same: impl Same,
    ) -> Result<(), PrimitiveError> {
        let (side, hands) = (Arc::clone(&self.probe), Arc::clone(&self.hands));
        let chunks = Chunks::new(side.lengths(), self.context.tuning().block_rows);
        let probe = self.context.on_workers("probe", move |_, task| {
            hands.with(task, |hand| {
                let mut scratch = ProbeScratch::new();
                let probed = if near { Probed::Near(&table) } else { Probed::Far(&table) };
                side.read(&chunks, task, |block| {
                    hand.probe_rows(block.without_key.iter().map(|payload| (*payload, false)))?;
                    probe_columns(probed, block.keys, block.payloads, &mut scratch, &same, hand)
                })?;
                scratch.flush(|build, probe| hand.pairs(build, probe))
            })
        });
        let probe = probe.await?;
        self.keep(probe);
        Ok(())
    }

    /// Partitions the build side's rows by the hash of their keys; rows without a key go to the consumers. Returns the
    /// pieces by worker.
    pub(super) async fn deal_build(
        &mut self,
        fan_out: FanOut,
    ) -> Result<Vec<Pieces<2>>, PrimitiveError> {
        let (side, hands) = (Arc::clone(&self.build), Arc::clone(&self.hands));
        let chunks = Chunks::new(side.lengths(), self.context.tuning().block_rows);
        let context = self.context.clone();
        let expected = side.rows / self.context.runtime().worker_count();
        let pieces = self.context.on_workers("deal build side", move |_, task| {
            hands.with(task, |hand| {
                let home = Some(task.node());
                let mut partitioner = Partitioner::<2>::new(&context, home, fan_out, expected)?;
                side.read(&chunks, task, |block| {
                    hand.build_rows(block.without_key.iter().map(|payload| (*payload, false)))?;
                    partitioner.extend(block.keys.len(), |row| {
                        let key = block.keys[row];
                        let digit = fan_out.digit(crate::hash::word(key));
                        (digit, [key, block.payloads[row]])
                    })
                })?;
                partitioner.finish()
            })
        });
        let pieces = pieces.await?;
        Ok(self.keep(pieces))
    }

    /// Passes the build side's rows without a key to the consumers, if they are wanted and no other step does it.
    pub(super) async fn without_key_of_build(&mut self) -> Result<(), PrimitiveError> {
        if self.hands.build_alone != UnmatchedRows::Unmatched || !self.build.has_nulls() {
            return Ok(());
        }
        let (side, hands) = (Arc::clone(&self.build), Arc::clone(&self.hands));
        let chunks = Chunks::new(side.lengths(), self.context.tuning().block_rows);
        let rows = self.context.on_workers("rows without a key", move |_, task| {
            hands.with(task, |hand| {
                side.read(&chunks, task, |block| {
                    hand.build_rows(block.without_key.iter().map(|payload| (*payload, false)))
                })
            })
        });
        let rows = rows.await?;
        self.keep(rows);
        Ok(())
    }
}
