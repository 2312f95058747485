//! Any changes, and what a map from row ids to values has after them.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::Array;
use arrow_array::cast::AsArray;
use atoll_store::RowId;
use atoll_store::table::{
    AppendedChunk, ChunkEntry, Folded, RestoredEntry, TableChange, TableVersion,
};
use atoll_sys::SplitMix64;
use atoll_topology::NodeId;
use proptest::prelude::*;

use super::fixture::{
    FEW, INDEXES, POLICY, Values, batch, chunks, empty, encoded, key_of, ordered, scanned,
};

/// What is to be there.
#[derive(Clone, Debug, Default)]
pub(super) struct Model {
    pub(super) rows: BTreeMap<RowId, Values>,
    /// Nodes of the rows that were put on one.
    pub(super) homes: BTreeMap<RowId, NodeId>,
}

impl Model {
    /// An id of a row that is there, by chance.
    pub(super) fn any(&self, random: &mut SplitMix64) -> Option<RowId> {
        let at = random.next() % (self.rows.len() as u64).max(1);
        self.rows.keys().nth(at as usize).copied()
    }

    pub(super) fn check(&self, version: &TableVersion) {
        assert_eq!(version.rows(), self.rows.len());
        let found = scanned(&version.view().unwrap());
        let found_rows: Vec<_> = found.iter().map(|(id, (values, _))| (*id, values)).collect();
        let wanted: Vec<_> = self.rows.iter().map(|(id, values)| (*id, values)).collect();
        assert_eq!(found_rows, wanted);
        for (id, home) in self.homes.iter().filter(|(id, _)| self.rows.contains_key(id)) {
            assert_eq!(found[id].1, Some(*home), "home of row {id}");
        }
        for (id, values) in &self.rows {
            assert_eq!(version.row(*id), Some(encoded(version, values)), "row {id}");
            assert!(version.has(*id));
            let city = version.read(&[*id], &[1]).unwrap();
            let city = city[0].as_string_view();
            assert_eq!(city.is_valid(0).then(|| city.value(0)), values.city.as_deref());
            if let Some(key) = values.key {
                assert_eq!(version.find(0, &key_of(key)), Some(*id), "key {key}");
            }
        }
        for (at, columns) in INDEXES.iter().enumerate() {
            let rows: Vec<RowId> = version.rows_between(at, [0; 2], [u64::MAX; 2]).collect();
            let mut wanted = ordered(&self.rows, columns);
            assert_eq!(rows, wanted, "index over {columns:?}");
            for descending in [false, true] {
                let found = version.first_rows(at, None, descending, 3, usize::MAX).unwrap();
                let found = found.expect("no limit");
                assert!(found.len() >= wanted.len().min(3), "{} rows", found.len());
                assert_eq!(found, wanted[..found.len()], "first rows over {columns:?}");
                wanted.reverse();
            }
        }
        let all: Vec<RowId> = self.rows.keys().rev().copied().collect();
        let read = version.read(&all, &[0, 1, 2, 3, 4, 5]).unwrap();
        let rows: Vec<Values> = self.rows.values().rev().cloned().collect();
        assert_eq!(read, batch(&rows).columns());
        let mut ids: Vec<RowId> = version.row_ids().collect();
        ids.sort();
        assert_eq!(ids, self.rows.keys().copied().collect::<Vec<_>>());
        let stored: usize = version.entries().map(|entry| entry.rows()).sum();
        assert_eq!(stored + version.tail().len(), self.rows.len());
    }
}

/// A table, what is to be in it, and everything under way.
pub(super) struct Run {
    pub(super) version: TableVersion,
    pub(super) model: Model,
    pub(super) next_key: i64,
    /// Ids that were taken for a chunk that is not there yet.
    pub(super) reserved: Vec<(RowId, usize)>,
    pub(super) folds: Vec<Folded>,
    pub(super) older: Vec<(TableVersion, Model)>,
}

impl Run {
    pub(super) fn new() -> Self {
        let (version, model) = (empty(), Model::default());
        Self { version, model, next_key: 0, reserved: vec![], folds: vec![], older: vec![] }
    }

    fn new_values(&mut self, random: &mut SplitMix64) -> Values {
        self.next_key += 1;
        Values::random((!random.next().is_multiple_of(8)).then_some(self.next_key), random)
    }

    pub(super) fn apply(&mut self, change: &TableChange) {
        self.version = self.version.apply(change).unwrap();
    }

    /// A statement of one kind.
    pub(super) fn statement(&mut self, kind: u8, random: &mut SplitMix64) -> TableChange {
        let mut change = TableChange::default();
        match kind {
            0 => {
                for _ in 0..1 + random.next() % 5 {
                    let (id, values) = (self.version.reserve(1), self.new_values(random));
                    change.inserted.insert(id, encoded(&self.version, &values));
                    self.model.rows.insert(id, values);
                }
            }
            1 => {
                for _ in 0..1 + random.next() % 4 {
                    let Some(id) = self.model.any(random) else { break };
                    let mut values = self.new_values(random);
                    if random.next().is_multiple_of(2) {
                        values.key = self.model.rows[&id].key;
                    }
                    change.updated.insert(id, encoded(&self.version, &values));
                    self.model.rows.insert(id, values);
                }
            }
            2 => {
                for _ in 0..1 + random.next() % 4 {
                    let Some(id) = self.model.any(random) else { break };
                    change.deleted.insert(id.get());
                    self.model.rows.remove(&id);
                }
            }
            3 => {
                let (first, rows) = match self.reserved.pop() {
                    Some(reserved) if random.next().is_multiple_of(2) => reserved,
                    other => {
                        self.reserved.extend(other);
                        let rows = 1 + (random.next() % 40) as usize;
                        (self.version.reserve(rows), rows)
                    }
                };
                self.append(first, rows, &mut change, random);
            }
            4 => {
                let rows = 1 + (random.next() % 20) as usize;
                self.reserved.push((self.version.reserve(rows), rows));
            }
            5 => self.rewrite(&mut change, random),
            _ => {
                change.truncated = true;
                self.model.rows.clear();
            }
        }
        change
    }

    fn append(
        &mut self,
        first: RowId,
        rows: usize,
        change: &mut TableChange,
        random: &mut SplitMix64,
    ) {
        let node = NodeId((random.next() % 4) as u32);
        let rows: Vec<Values> = (0..rows).map(|_| self.new_values(random)).collect();
        let mut next = first;
        for chunk in chunks(&self.version, node, &rows, FEW) {
            let appended = AppendedChunk { first: next, chunk, file: None };
            next = RowId::new(next.get() + appended.chunk.rows as u64);
            change.appended.push(appended);
        }
        for (at, values) in rows.into_iter().enumerate() {
            let id = RowId::new(first.get() + at as u64);
            self.model.rows.insert(id, values);
            self.model.homes.insert(id, node);
        }
    }

    /// Gives half of the rows of one entry other values.
    fn rewrite(&mut self, change: &mut TableChange, random: &mut SplitMix64) {
        let Some(entry) = self.model.any(random).and_then(|id| self.version.entries_of(&[id])[0])
        else {
            return;
        };
        let ids: Vec<RowId> = self.model.rows.keys().copied().collect();
        let of_entry =
            ids.into_iter().filter(|id| self.version.entries_of(&[*id])[0] == Some(entry));
        let ids: Vec<RowId> = of_entry.filter(|_| random.next().is_multiple_of(2)).collect();
        let rows: Vec<Values> = ids.iter().map(|_| self.new_values(random)).collect();
        let updated = vec![(ids.clone(), batch(&rows))];
        change.replaced = self.version.rewrite(entry, updated).unwrap().run().unwrap();
        self.model.rows.extend(ids.into_iter().zip(rows));
    }

    pub(super) fn step(&mut self, kind: u8, seed: u64) {
        let random = &mut SplitMix64::new(seed);
        match kind {
            0..=19 => {
                let change = self.statement(kind % 6, random);
                self.apply(&change);
            }
            20 => {
                let change = self.statement(6, random);
                self.apply(&change);
            }
            21..=23 => self.transaction(random),
            24..=26 => {
                let tasks = self.version.folds(&POLICY);
                self.folds.extend(tasks.into_iter().map(|task| task.run().unwrap()));
            }
            27..=29 => {
                for folded in std::mem::take(&mut self.folds) {
                    if let Some(after) = self.version.with_folded(&folded) {
                        self.version = after;
                    }
                }
            }
            30 => drop(self.version.view().unwrap()),
            31 => self.older.push((self.version.clone(), self.model.clone())),
            _ => self.version = restored(&self.version),
        }
    }

    /// Several statements that become one change.
    fn transaction(&mut self, random: &mut SplitMix64) {
        let before = self.version.clone();
        let mut whole = TableChange::default();
        for _ in 0..1 + random.next() % 6 {
            let kind = if random.next().is_multiple_of(12) { 6 } else { (random.next() % 6) as u8 };
            let change = self.statement(kind, random);
            self.apply(&change);
            whole.then(change);
        }
        self.model.check(&self.version);
        self.version = before.apply(&whole).unwrap();
    }
}

/// The version put together again from what a checkpoint keeps.
pub(super) fn restored(version: &TableVersion) -> TableVersion {
    let entry = |entry: &Arc<ChunkEntry>| RestoredEntry {
        chunk: Arc::clone(entry.chunk()),
        ids: entry.ids().clone(),
        masked: entry.masked().into_iter().flat_map(|masked| masked.rows()).collect(),
        delta: entry.delta().map(|(id, row)| (id, row.clone())).collect(),
        file: entry.file(),
    };
    TableVersion::restored(
        Arc::clone(version.name()),
        Arc::clone(version.definition()),
        version.destination().clone(),
        version.entries().map(entry).collect(),
        version.tail().map(|(id, row)| (id, row.clone())).collect(),
        version.next_row_id(),
        &atoll_store::workers::OneThread,
    )
    .unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn any_changes_and_folds_leave_what_the_model_has(
        steps in prop::collection::vec((0_u8..33, any::<u64>()), 1..60),
    ) {
        let mut run = Run::new();
        for (kind, seed) in steps {
            run.step(kind, seed);
            run.model.check(&run.version);
        }
        for (version, model) in &run.older {
            model.check(version);
            for (id, _) in run.model.rows.iter().chain(&model.rows) {
                let is_same = run.model.rows.get(id) == model.rows.get(id);
                prop_assert_eq!(run.version.same_row(version, *id), is_same);
            }
            for key in model.rows.values().filter_map(|values| values.key) {
                let found = run.model.rows.iter().find(|(_, values)| values.key == Some(key));
                prop_assert_eq!(run.version.find(0, &key_of(key)), found.map(|(id, _)| *id));
            }
        }
    }
}
