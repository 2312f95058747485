//! The collected rows of all inputs, and their assignment to outputs.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use atoll_runtime::WorkerId;
use atoll_topology::NodeId;

use super::decision::{Collecting, Dealing};
use super::{Merging, Stage};
use crate::PrimitiveError;
use crate::aggregate::Variant;
use crate::aggregate::key_records::KeyRecords;
use crate::aggregate::reader::{Groups, Reader};
use crate::aggregate::records::DealtRecords;
use crate::aggregate::table::{GroupTable, Pieced, TableShape};
use crate::aggregate::variants::{local, migrate, migrate_copy, naive, ring};
use crate::shuffle::Schedule;

/// A piece with more than this many times the average is shared by outputs.
const LARGE: usize = 4;
/// A piece smaller than this is not shared, rows.
const SHARED_ROWS_MIN: usize = 1 << 18;

/// The collected rows of one input.
#[derive(Debug)]
pub struct Collected(pub(super) Kept);

#[derive(Debug)]
pub(in crate::aggregate) enum Kept {
    Nothing,
    Table(Box<GroupTable>),
    /// Tables whose groups are in piece order, and rows partitioned into the same pieces.
    Pieced {
        tables: Vec<Pieced>,
        rows: Option<Box<KeyRecords>>,
    },
    Dealt(Box<DealtRecords>),
}

/// The collected rows of all inputs.
#[derive(Debug)]
pub struct Gathered {
    stage: Arc<Stage>,
    inputs: Vec<Collected>,
    source: GroupSource,
    /// Who reads from whom and when, if that is scheduled.
    schedule: Option<Schedule>,
    parts: Vec<PiecePart>,
    /// How many parts were taken.
    taken: AtomicUsize,
    /// Tables of the parts of a piece, until all parts are read.
    shared: Mutex<BTreeMap<usize, Vec<GroupTable>>>,
}

/// What pieces are read from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::aggregate) enum GroupSource {
    /// The only table, read directly.
    OneTable(usize),
    /// Tables to merge.
    Tables {
        /// Groups of the largest.
        groups: usize,
        merging: MergedBy,
    },
    /// Records, with about this many groups in each piece.
    Records { dealing: Dealing, groups: usize },
}

/// The groups of tables that form a piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::aggregate) enum MergedBy {
    All,
    /// A part of the range of words.
    Range,
    /// The piece.
    Piece,
}

/// A whole piece, or the `part`-th of `parts` parts of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::aggregate) struct PiecePart {
    pub(in crate::aggregate) piece: usize,
    /// How many pieces there are.
    pub(in crate::aggregate) pieces: usize,
    pub(in crate::aggregate) part: usize,
    pub(in crate::aggregate) parts: usize,
}

impl Collected {
    /// Node that holds it.
    pub(in crate::aggregate) fn home(&self) -> Option<NodeId> {
        match &self.0 {
            Kept::Nothing => None,
            Kept::Table(table) => table.home(),
            Kept::Pieced { rows: Some(rows), .. } => rows.home(),
            Kept::Pieced { tables, .. } => tables.first().and_then(|first| first.table.home()),
            Kept::Dealt(dealt) => dealt.home,
        }
    }

    pub(in crate::aggregate) fn kept(&self) -> &Kept {
        &self.0
    }
}

impl Gathered {
    /// The rows of all inputs, each of them finished.
    pub fn new(stage: Arc<Stage>, inputs: Vec<Collected>) -> Self {
        let dealt = || {
            inputs.iter().filter_map(|input| match &input.0 {
                Kept::Dealt(dealt) => Some(&**dealt),
                _ => None,
            })
        };
        let (source, parts) = match dealt().next() {
            Some(_) => records(&stage, &dealt().collect::<Vec<_>>(), inputs.len()),
            None => tables(&stage, &inputs),
        };
        let (schedule, taken, shared) = (None, AtomicUsize::new(0), Mutex::default());
        Self { stage, inputs, source, schedule, parts, taken, shared }
    }

    /// The same, read along the shuffle of the runtime's workers, each of which is an input and an output. Finding it
    /// requires a search over the machine's links, which takes time.
    pub(in crate::aggregate) fn scheduled(self) -> Self {
        let runtime = self.stage.context.runtime();
        let shuffle = match self.variant() {
            Variant::Auto | Variant::Local => return self,
            Variant::Naive => naive::SHUFFLE,
            Variant::Ring => ring::SHUFFLE,
            Variant::Migrate => migrate::SHUFFLE,
            Variant::MigrateCopy => migrate_copy::SHUFFLE,
        };
        let schedule = Some(Schedule::for_runtime(runtime, shuffle));
        Self { schedule, ..self }
    }

    /// The stage.
    pub fn stage(&self) -> &Arc<Stage> {
        &self.stage
    }

    pub(in crate::aggregate) fn inputs(&self) -> &[Collected] {
        &self.inputs
    }

    /// Who visits whom and when, if that is scheduled and threads migrate.
    pub(in crate::aggregate) fn travels(&self) -> Option<&Schedule> {
        let is_dealt = matches!(self.source, GroupSource::Records { .. });
        let migrates = matches!(self.variant(), Variant::Migrate | Variant::MigrateCopy);
        self.schedule.as_ref().filter(|_| is_dealt && migrates)
    }

    fn variant(&self) -> Variant {
        self.stage.chosen().map_or(Variant::Local, |(variant, _)| variant)
    }

    /// Creates the reader of an output.
    pub(in crate::aggregate) fn reader(
        &self,
        output: usize,
        home: Option<NodeId>,
    ) -> Box<dyn Reader> {
        match (self.source, self.variant()) {
            (GroupSource::OneTable(_) | GroupSource::Tables { .. }, _) => {
                local::reader(output, home)
            }
            (_, Variant::Naive) => naive::reader(output, home),
            (_, Variant::Migrate) => migrate::reader(output, home, self.own_pieces(output)),
            (_, Variant::MigrateCopy) => {
                migrate_copy::reader(output, home, self.own_pieces(output))
            }
            (_, Variant::Auto | Variant::Local | Variant::Ring) => ring::reader(output, home),
        }
    }

    /// The input whose turn it is at an output, by the schedule of the workers, or by `otherwise` without one.
    pub(in crate::aggregate) fn source_of(
        &self,
        output: usize,
        turn: usize,
        otherwise: impl Fn(usize, usize) -> usize,
    ) -> usize {
        match &self.schedule {
            Some(schedule) => schedule.visit(WorkerId(output as u32), turn).source.index(),
            None => otherwise(output, turn) % self.inputs.len().max(1),
        }
    }

    /// Takes the next free part.
    pub(in crate::aggregate) fn take_part(&self) -> Option<PiecePart> {
        self.parts.get(self.taken.fetch_add(1, Ordering::Relaxed)).copied()
    }

    /// The input's table, if it is the only one.
    pub(in crate::aggregate) fn only_table(&self) -> Option<Groups> {
        match self.source {
            GroupSource::OneTable(at) => Some(Groups::Input(at)),
            _ => None,
        }
    }

    /// The table of an input.
    pub(in crate::aggregate) fn table_of(&self, input: usize) -> Option<&GroupTable> {
        match &self.inputs[input].0 {
            Kept::Table(table) => Some(table),
            _ => None,
        }
    }

    /// Pieces for an output that has its own, so that all outputs have about as many rows.
    fn own_pieces(&self, output: usize) -> Vec<PiecePart> {
        let mut loads = vec![0; self.stage.outputs];
        let mut own = Vec::new();
        for part in self.parts.iter().filter(|part| part.part == 0) {
            let least = (0..loads.len()).min_by_key(|at| loads[*at]).unwrap_or(0);
            loads[least] += self.rows(part.piece);
            if least == output {
                own.push(PiecePart { parts: 1, ..*part });
            }
        }
        own
    }

    fn rows(&self, piece: usize) -> usize {
        let rows = self.inputs.iter().map(|input| match &input.0 {
            Kept::Dealt(dealt) => dealt.rows(piece),
            _ => 0,
        });
        rows.sum()
    }

    /// A table for a part, reusing the memory of a finished one if it fits.
    pub(in crate::aggregate) fn table(
        &self,
        of: PiecePart,
        home: Option<NodeId>,
        spare: Option<GroupTable>,
    ) -> Result<GroupTable, PrimitiveError> {
        let shape = match self.source {
            GroupSource::Records { dealing, groups } => dealing.shape(of.piece, groups),
            GroupSource::Tables { groups, merging } => {
                local::shape(&self.inputs, merging, of, groups).unwrap_or(TableShape::One)
            }
            GroupSource::OneTable(_) => unreachable!("the only table is read as it is"),
        };
        let is_dense = matches!(shape, TableShape::Dense { .. });
        if let Some(mut spare) = spare.filter(|spare| spare.is_dense() == is_dense) {
            spare.restart(if let TableShape::Dense { min, .. } = shape { min } else { 0 })?;
            return Ok(spare);
        }
        self.stage.table(home, &shape)
    }

    /// How tables are merged.
    pub(in crate::aggregate) fn merging(&self) -> MergedBy {
        match self.source {
            GroupSource::Tables { merging, .. } => merging,
            _ => MergedBy::All,
        }
    }

    /// Adds the table of a part of a piece; returns the merged table after the last part.
    pub(in crate::aggregate) fn join_parts(
        &self,
        of: PiecePart,
        table: GroupTable,
    ) -> Result<Option<GroupTable>, PrimitiveError> {
        if of.parts == 1 {
            return Ok(Some(table));
        }
        let all = {
            let mut shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
            let tables = shared.entry(of.piece).or_default();
            tables.push(table);
            match tables.len() == of.parts {
                true => shared.remove(&of.piece).unwrap_or_default(),
                false => return Ok(None),
            }
        };
        let mut tables = all.into_iter();
        let Some(mut whole) = tables.next() else { return Ok(None) };
        tables.try_for_each(|part| whole.merge(&part, &|| self.stage.check()))?;
        Ok(Some(whole))
    }
}

/// Pieces of records, the largest first, and large ones in parts.
fn records(stage: &Stage, dealt: &[&DealtRecords], inputs: usize) -> (GroupSource, Vec<PiecePart>) {
    let Some((dealing, expected)) = stage.decision.get().and_then(|decision| {
        let Collecting::Records(dealing) = decision.collecting else { return None };
        Some((dealing, decision.groups))
    }) else {
        unreachable!("records come of a decision")
    };
    let pieces = dealing.fan_out().partitions();
    let rows = |piece: usize| dealt.iter().map(|dealt| dealt.rows(piece)).sum::<usize>();
    let mut sized: Vec<(usize, usize)> =
        (0..pieces).map(|piece| (piece, rows(piece))).filter(|(_, rows)| *rows > 0).collect();
    sized.sort_unstable_by_key(|(piece, rows)| (std::cmp::Reverse(*rows), *piece));
    let all: usize = sized.iter().map(|(_, rows)| rows).sum();
    let even = all.div_ceil(pieces.max(inputs * LARGE));
    let parts = sized.iter().flat_map(|(piece, rows)| {
        let is_large = stage.outputs > 1 && *rows > SHARED_ROWS_MIN && *rows > even * LARGE;
        let (piece, parts) = (*piece, if is_large { stage.outputs * 2 } else { 1 });
        (0..parts).map(move |part| PiecePart { piece, pieces, part, parts })
    });
    let parts = parts.collect();
    // A wrong estimate cannot exceed the number of rows.
    let most = sized.first().map_or(0, |(_, rows)| *rows);
    (GroupSource::Records { dealing, groups: (expected / pieces).min(most) }, parts)
}

/// Parts of tables: everything at once, or each piece of their groups.
fn tables(stage: &Stage, inputs: &[Collected]) -> (GroupSource, Vec<PiecePart>) {
    let (mut groups, mut ranged, mut with_table) = (0, Vec::new(), Vec::new());
    for (at, input) in inputs.iter().enumerate() {
        match &input.0 {
            Kept::Nothing | Kept::Dealt(_) => continue,
            Kept::Table(table) => {
                groups = groups.max(table.groups());
                ranged.push(&**table);
                with_table.push(at);
            }
            Kept::Pieced { tables, .. } => {
                groups += tables.iter().map(|full| full.table.groups()).sum::<usize>();
                with_table.push(at);
            }
        }
    }
    let parts = |pieces: usize| -> Vec<PiecePart> {
        (0..pieces).map(|piece| PiecePart { piece, pieces, part: 0, parts: 1 }).collect()
    };
    let is_pieced = inputs.iter().any(|input| matches!(&input.0, Kept::Pieced { .. }));
    let have_range = ranged.iter().all(|table| table.has_range_of(ranged[0]));
    let merged = |merging| GroupSource::Tables { groups, merging };
    match (stage.merging.get(), &with_table[..]) {
        (_, []) => (merged(MergedBy::All), Vec::new()),
        _ if is_pieced => {
            let pieces = stage.decision.get().map_or(1, |decision| decision.fan_out.partitions());
            (merged(MergedBy::Piece), parts(pieces))
        }
        (_, [only]) => (GroupSource::OneTable(*only), parts(1)),
        (Some(Merging::Range(pieces)), _) if have_range => {
            (merged(MergedBy::Range), parts(*pieces))
        }
        _ => (merged(MergedBy::All), parts(1)),
    }
}
