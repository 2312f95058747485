//! Local tables, for few groups: each worker has a table of its own over the rows of its node, and
//! then each merges its share of all tables' groups. Nothing is shuffled but groups.

use std::sync::Arc;

use arrow_array::RecordBatch;
use atoll_runtime::TaskContext;
use atoll_topology::Bytes;

use super::Phase;
use super::feed::{Fed, Feed, KeyForm};
use super::input::{Input, Morsel};
use super::packing::Packing;
use super::plan::Plan;
use super::table::{Cut, Shape, Table};
use crate::{Context, PrimitiveError, TaskFn};

/// Tables with fewer groups than this, added up, are merged by one worker.
const SHARED_GROUPS_MIN: usize = 1 << 14;

/// Part of a range that is merged on its own, binary digits of its words.
const PART_BITS_MIN: u32 = 10;

/// What the tasks share.
pub(super) struct Local {
    pub(super) plan: Plan,
    pub(super) input: Arc<Input>,
    pub(super) form: KeyForm,
    pub(super) shape: Shape,
}

/// Aggregates with a table for each worker.
pub(super) async fn run(
    context: &Context,
    local: Arc<Local>,
) -> Result<(Vec<RecordBatch>, Vec<Phase>), PrimitiveError> {
    let (shared, own) = (Arc::clone(&local), context.clone());
    let (tables, report) =
        context.on_workers("aggregate", move |_, task| shared.table(&own, task)).await?;
    let tables: Vec<Table> = tables.into_iter().flatten().collect();
    let (batches, merge) = merge(context, &local, tables).await?;
    Ok((batches, vec![Phase::of(&report), merge]))
}

impl Local {
    /// One worker's table; none where it got no rows.
    fn table(
        &self,
        context: &Context,
        task: &TaskContext,
    ) -> Result<Option<Table>, PrimitiveError> {
        let node = task.node();
        let tuning = context.tuning();
        let check = || Ok(task.check()?);
        let mut table = None;
        let mut feed = Feed::default();
        while let Some(morsel) = self.input.take(node) {
            let part = &self.input.parts[morsel.part];
            let mut own = match table.take() {
                Some(table) => table,
                None => {
                    let home = Some(node);
                    Table::new(
                        &self.plan,
                        &self.shape,
                        tuning.prefetch_rows,
                        context.arena(),
                        home,
                    )?
                }
            };
            let fed = feed.feed(&mut own, (part, morsel), &self.form, tuning.block_rows, &check)?;
            if let Fed::Outside(start) = fed {
                own = own.into_hashed(&self.plan)?;
                let len = morsel.start + morsel.len - start;
                let rest = Morsel { start, len, ..morsel };
                feed.feed(&mut own, (part, rest), &self.form, tuning.block_rows, &check)?;
            }
            let bytes = (morsel.len * self.input.row_bytes) as u64;
            task.count_read(part.home.unwrap_or(node), Bytes(bytes));
            table = Some(own);
        }
        Ok(table)
    }

    fn packing(&self) -> Option<&Packing> {
        match &self.form {
            KeyForm::Packed(packing) => Some(packing),
            _ => None,
        }
    }

    /// One share of the groups of all tables.
    fn share(
        &self,
        context: &Context,
        task: &TaskContext,
        tables: &[Table],
        (cut, part, parts): (Cut, usize, usize),
    ) -> Result<Option<RecordBatch>, PrimitiveError> {
        let largest = tables.iter().max_by_key(|table| table.groups());
        let Some(largest) = largest else { return Ok(None) };
        let (shape, home) = (largest.part_shape(cut, part, parts), Some(task.node()));
        let prefetch = context.tuning().prefetch_rows;
        let mut own = Table::new(&self.plan, &shape, prefetch, context.arena(), home)?;
        for table in tables {
            let groups = table.part(cut, part, parts);
            own.merge_groups(table, &groups, &|| Ok(task.check()?))?;
            let share = table.memory_bytes() / parts;
            task.count_read(table.home().unwrap_or(task.node()), Bytes(share as u64));
        }
        let batch = own.batch(&self.plan, self.packing())?;
        Ok(Some(batch).filter(|batch| batch.num_rows() > 0))
    }
}

/// Merges the tables, each worker its share of the groups.
async fn merge(
    context: &Context,
    local: &Arc<Local>,
    mut tables: Vec<Table>,
) -> Result<(Vec<RecordBatch>, Phase), PrimitiveError> {
    let workers = context.runtime().worker_count();
    let groups: usize = tables.iter().map(Table::groups).sum();
    let alike = tables.iter().all(|table| table.is_like(&tables[0]) && tables[0].is_like(table));
    let is_range = alike && tables.first().is_some_and(Table::is_dense);
    let cut = if is_range { Cut::Range } else { Cut::Hash };
    let parts = match tables.len() > 1 && groups >= SHARED_GROUPS_MIN {
        true if is_range => {
            let parts_max = (tables[0].groups() >> PART_BITS_MIN).max(1);
            // The range has room on both sides, so some parts have no groups.
            (workers * 4).next_power_of_two().min(parts_max)
        }
        true => workers,
        false => 1,
    };
    let mut tasks: Vec<(_, TaskFn<Option<RecordBatch>>)> = Vec::new();
    if tables.len() == 1 {
        let (table, local) = (tables.remove(0), Arc::clone(local));
        let task = move |_: &TaskContext| table.batch(&local.plan, local.packing()).map(Some);
        tasks.push((None, Box::new(task)));
    } else if !tables.is_empty() {
        let tables = Arc::new(tables);
        for part in 0..parts {
            let (tables, local, context) =
                (Arc::clone(&tables), Arc::clone(local), context.clone());
            let task =
                move |task: &TaskContext| local.share(&context, task, &tables, (cut, part, parts));
            tasks.push((None, Box::new(task)));
        }
    }
    let (batches, report) = context.on_nodes("merge", tasks).await?;
    Ok((batches.into_iter().flatten().collect(), Phase::of(&report)))
}
