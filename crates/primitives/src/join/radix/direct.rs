//! The join of dense, unique keys: an array of payloads by key.

use std::sync::Arc;

use super::RunningJoin;
use super::probe::{ByWord, Probed, probe_columns};
use super::survey::Survey;
use crate::PrimitiveError;
use crate::join::Matches;
use crate::kernel::direct::Direct;
use crate::kernel::table::ProbeScratch;
use crate::work::Chunks;

/// An array lookup takes only a few cycles, so prefetches are this many times further ahead.
const AHEAD_TIMES: usize = 4;

impl<C: Matches + 'static> RunningJoin<'_, C> {
    /// Joins by an array over `keys` keys; returns false, before any match is consumed, if keys are not unique.
    pub(super) async fn direct(
        &mut self,
        survey: &Survey,
        keys: u64,
    ) -> Result<bool, PrimitiveError> {
        let Some(table) = self.direct_table(survey, keys).await? else { return Ok(false) };
        self.without_key_of_build().await?;
        self.probe_direct(Arc::clone(&table)).await?;
        if self.hands.marked() {
            let hands = Arc::clone(&self.hands);
            let marks = self.context.on_workers("marked rows", move |worker, task| {
                if worker.index() > 0 {
                    return Ok(());
                }
                hands.with(task, |hand| hand.build_rows(table.marked_payloads()))
            });
            let marks = marks.await?;
            self.keep(marks);
        }
        Ok(true)
    }

    async fn direct_table(
        &mut self,
        survey: &Survey,
        keys: u64,
    ) -> Result<Option<Arc<Direct>>, PrimitiveError> {
        let range = (survey.keys.0 as u64, keys as usize);
        let payloads = if survey.rows == 0 { (0, 0) } else { survey.payloads };
        let (arena, marked) = (self.context.arena(), self.hands.marked());
        let Some(mut table) = Direct::new(arena, None, range, payloads, marked)? else {
            return Ok(None);
        };
        table.clear();
        let table = Arc::new(table);
        let side = Arc::clone(&self.build);
        let chunks = Chunks::new(side.lengths(), self.context.tuning().block_rows);
        let shared = Arc::clone(&table);
        let unique = self
            .context
            .on_workers("build", move |_, task| {
                let mut unique = true;
                side.read(&chunks, task, |block| {
                    unique &= shared.insert((block.keys, block.payloads));
                    Ok(())
                })?;
                Ok(unique)
            })
            .await?;
        Ok(self.keep(unique).into_iter().all(|unique| unique).then_some(table))
    }

    async fn probe_direct(&mut self, table: Arc<Direct>) -> Result<(), PrimitiveError> {
        let (side, hands) = (Arc::clone(&self.probe), Arc::clone(&self.hands));
        let tuning = self.context.tuning();
        let (chunks, ahead) =
            (Chunks::new(side.lengths(), tuning.block_rows), AHEAD_TIMES * tuning.prefetch_rows);
        let probe = self.context.on_workers("probe", move |_, task| {
            hands.with(task, |hand| {
                let mut scratch = ProbeScratch::new();
                let probed = Probed::Direct(&table, ahead);
                side.read(&chunks, task, |block| {
                    hand.probe_rows(block.without_key.iter().map(|payload| (*payload, false)))?;
                    probe_columns(probed, block.keys, block.payloads, &mut scratch, &ByWord, hand)
                })?;
                scratch.flush(|build, probe| hand.pairs(build, probe))
            })
        });
        let probe = probe.await?;
        self.keep(probe);
        Ok(())
    }
}
