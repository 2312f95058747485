//! Versions of tables against a naive model: a map from row ids to values.
//!
//! | what is changed | how it is read |
//! |---|---|
//! | rows by themselves, chunks behind and between others, whole entries, everything | the view, as a scan reads it |
//! | in one transaction of several statements | rows and keys, one by one |
//! | while folds are under way | older versions, after everything else |

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Decimal128Type, Float64Type, Int64Type};
use arrow_array::{
    Array, ArrayRef, Decimal128Array, Float64Array, Int64Array, ListArray, RecordBatch,
    StringViewArray,
};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use arrow_select::concat::concat_batches;
use atoll_placement::{Arena, ChunkHome, Strategy as Placement};
use atoll_store::RowId;
use atoll_store::table::{
    AppendedChunk, BLOCK_ROWS, Chunk, ChunkEntry, ChunkWriter, Destination, FoldPolicy, Folded,
    Key, RestoredEntry, Row, RowPosition, Selection, TableChange, TableDefinition, TableError,
    TableSnapshot, TableVersion, Unique,
};
use atoll_sys::SplitMix64;
use atoll_testkit::kernel::SimulatedKernel;
use atoll_testkit::machines;
use atoll_topology::NodeId;
use proptest::prelude::*;

/// Rows of a chunk here, so that a few rows are several of them.
const FEW: usize = 16;
const POLICY: FoldPolicy = FoldPolicy { chunk_rows: FEW, changed_share: 4, tail_rows: 6 };

/// A row of the test's table; `key` is unique.
#[derive(Clone, Debug, PartialEq)]
struct Values {
    key: Option<i64>,
    city: Option<String>,
    amount: Option<i64>,
    price: Option<i128>,
    real: Option<u64>,
    list: Option<Vec<Option<i64>>>,
}

impl Values {
    fn random(key: Option<i64>, random: &mut SplitMix64) -> Self {
        let mut number = |below: u64| match random.next() % 6 {
            0 => None,
            _ => Some((random.next() % below) as i64),
        };
        // Most amounts fit a byte, some nothing less than eight.
        let wide = number(9) == Some(0);
        Self {
            key,
            city: number(40)
                .map(|n| if n > 30 { format!("city number {n}") } else { format!("c{}", n % 5) }),
            amount: number(100).map(|n| if wide { n << 50 } else { n - 50 }),
            price: number(50).map(|n| if wide { i128::from(n) << 90 } else { n.into() }),
            real: number(5).map(|n| [0.0, -1.5, f64::NAN, f64::MAX, 7.0][n as usize].to_bits()),
            list: number(4).map(|n| (0..n).map(|at| (at != 1).then_some(at)).collect()),
        }
    }
}

fn schema() -> SchemaRef {
    let list = DataType::List(Arc::new(Field::new("item", DataType::Int64, true)));
    Arc::new(Schema::new(vec![
        Field::new("key", DataType::Int64, true),
        Field::new("city", DataType::Utf8View, true),
        Field::new("amount", DataType::Int64, true),
        Field::new("price", DataType::Decimal128(38, 2), true),
        Field::new("real", DataType::Float64, true),
        Field::new("list", list, true),
    ]))
}

fn batch(rows: &[Values]) -> RecordBatch {
    let list = |row: &Values| row.list.clone();
    let lists = ListArray::from_iter_primitive::<Int64Type, _, _>(rows.iter().map(list));
    let prices = Decimal128Array::from_iter(rows.iter().map(|row| row.price));
    let columns: Vec<ArrayRef> = vec![
        Arc::new(Int64Array::from_iter(rows.iter().map(|row| row.key))),
        Arc::new(StringViewArray::from_iter(rows.iter().map(|row| row.city.as_deref()))),
        Arc::new(Int64Array::from_iter(rows.iter().map(|row| row.amount))),
        Arc::new(prices.with_precision_and_scale(38, 2).unwrap()),
        Arc::new(Float64Array::from_iter(rows.iter().map(|row| row.real.map(f64::from_bits)))),
        Arc::new(lists),
    ];
    RecordBatch::try_new(schema(), columns).unwrap()
}

fn values(batch: &RecordBatch) -> Vec<Values> {
    let there = |column: usize, row: usize| batch.column(column).is_valid(row).then_some(row);
    let row = |row: usize| Values {
        key: there(0, row).map(|row| batch.column(0).as_primitive::<Int64Type>().value(row)),
        city: there(1, row).map(|row| batch.column(1).as_string_view().value(row).to_owned()),
        amount: there(2, row).map(|row| batch.column(2).as_primitive::<Int64Type>().value(row)),
        price: there(3, row).map(|row| batch.column(3).as_primitive::<Decimal128Type>().value(row)),
        real: there(4, row)
            .map(|row| batch.column(4).as_primitive::<Float64Type>().value(row).to_bits()),
        list: there(5, row).map(|row| {
            batch.column(5).as_list::<i32>().value(row).as_primitive::<Int64Type>().iter().collect()
        }),
    };
    (0..batch.num_rows()).map(row).collect()
}

fn destination() -> Destination {
    let machine = Arc::new(machines::four_nodes());
    let kernel = Arc::new(SimulatedKernel::new(Arc::clone(&machine)));
    let arena = Arena::new(Arc::clone(&machine), kernel, None);
    Destination { machine, arena, strategy: Placement::Aligned }
}

fn unique(columns: Vec<usize>) -> Unique {
    Unique { name: "t_key".into(), columns, is_primary: false }
}

fn empty() -> TableVersion {
    let mut definition = TableDefinition::new(schema(), Placement::Aligned);
    definition.uniques.push(unique(vec![0]));
    TableVersion::new("t".into(), Arc::new(definition), destination()).unwrap()
}

fn chunks(
    version: &TableVersion,
    node: NodeId,
    rows: &[Values],
    chunk_rows: usize,
) -> Vec<Arc<Chunk>> {
    let to = version.destination().clone();
    let writer = ChunkWriter::new("t".into(), schema(), to, node, 0).with_chunk_rows(chunk_rows);
    let mut writer = writer.with_home(ChunkHome::Node(node));
    writer.write(&batch(rows)).unwrap();
    writer.finish().unwrap().into_iter().map(Arc::new).collect()
}

fn encoded(version: &TableVersion, row: &Values) -> Row {
    version.codec().encode(&batch(std::slice::from_ref(row))).unwrap().remove(0)
}

/// The rows of a snapshot with their ids, and the node of each.
fn scanned(view: &TableSnapshot) -> BTreeMap<RowId, (Values, Option<NodeId>)> {
    let mut rows = BTreeMap::new();
    for (number, chunk) in view.chunks.iter().enumerate() {
        for (at, block) in chunk.copies[0].blocks.iter().enumerate() {
            let len = BLOCK_ROWS.min(chunk.rows - at * BLOCK_ROWS);
            let whole = Selection::Range { offset: 0, len };
            let live = view.live(number, at);
            let Some(wanted) = live.map_or(Some(whole.clone()), |live| whole.kept_by(live)) else {
                continue;
            };
            let columns = block.iter().zip(view.schema.fields());
            let columns = columns.map(|(column, f)| column.decode(f.data_type(), &wanted).unwrap());
            let batch = RecordBatch::try_new(Arc::clone(&view.schema), columns.collect()).unwrap();
            for (row, values) in wanted.numbers().into_iter().zip(values(&batch)) {
                let position = RowPosition::new(number, at * BLOCK_ROWS + row as usize);
                let before = rows.insert(view.row_id(position), (values, chunk.copies[0].wanted));
                assert!(before.is_none(), "row {} is there twice", view.row_id(position));
            }
        }
    }
    assert_eq!(rows.len(), view.rows);
    rows
}

/// What is to be there.
#[derive(Clone, Debug, Default)]
struct Model {
    rows: BTreeMap<RowId, Values>,
    /// Nodes of the rows that were put on one.
    homes: BTreeMap<RowId, NodeId>,
}

impl Model {
    /// An id of a row that is there, by chance.
    fn any(&self, random: &mut SplitMix64) -> Option<RowId> {
        let at = random.next() % (self.rows.len() as u64).max(1);
        self.rows.keys().nth(at as usize).copied()
    }

    fn check(&self, version: &TableVersion) {
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
            if let Some(key) = values.key {
                assert_eq!(version.find(0, &key_of(key)), Some(*id), "key {key}");
            }
        }
        let mut ids: Vec<RowId> = version.row_ids().collect();
        ids.sort();
        assert_eq!(ids, self.rows.keys().copied().collect::<Vec<_>>());
        let stored: usize = version.entries().map(|entry| entry.rows()).sum();
        assert_eq!(stored + version.tail().len(), self.rows.len());
    }
}

fn key_of(key: i64) -> Key {
    let mut builder = atoll_store::table::KeyBuilder::default();
    builder.fixed(&key.to_le_bytes());
    builder.finish()
}

/// A table, what is to be in it, and everything under way.
struct Run {
    version: TableVersion,
    model: Model,
    next_key: i64,
    /// Ids that were taken for a chunk that is not there yet.
    reserved: Vec<(RowId, usize)>,
    folds: Vec<Folded>,
    older: Vec<(TableVersion, Model)>,
}

impl Run {
    fn new() -> Self {
        let (version, model) = (empty(), Model::default());
        Self { version, model, next_key: 0, reserved: vec![], folds: vec![], older: vec![] }
    }

    fn new_values(&mut self, random: &mut SplitMix64) -> Values {
        self.next_key += 1;
        Values::random((!random.next().is_multiple_of(8)).then_some(self.next_key), random)
    }

    fn apply(&mut self, change: &TableChange) {
        self.version = self.version.apply(change).unwrap();
    }

    /// A statement of one kind.
    fn statement(&mut self, kind: u8, random: &mut SplitMix64) -> TableChange {
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
        let Some(entry) = self.model.any(random).and_then(|id| self.version.entry_of(id)) else {
            return;
        };
        let ids: Vec<RowId> = self.model.rows.keys().copied().collect();
        let of_entry = ids.into_iter().filter(|id| self.version.entry_of(*id) == Some(entry));
        let ids: Vec<RowId> = of_entry.filter(|_| random.next().is_multiple_of(2)).collect();
        let rows: Vec<Values> = ids.iter().map(|_| self.new_values(random)).collect();
        let updated = vec![(ids.clone(), batch(&rows))];
        change.replaced = self.version.rewrite(entry, updated).unwrap().run().unwrap();
        self.model.rows.extend(ids.into_iter().zip(rows));
    }

    fn step(&mut self, kind: u8, seed: u64) {
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
fn restored(version: &TableVersion) -> TableVersion {
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

/// Appends a chunk of so many rows, whose keys are their numbers.
fn loaded(rows: usize) -> (TableVersion, Model) {
    let mut run = Run::new();
    let mut random = SplitMix64::new(5);
    let mut change = TableChange::default();
    let first = run.version.reserve(rows);
    let all: Vec<Values> =
        (0..rows).map(|row| Values::random(Some(row as i64), &mut random)).collect();
    let chunk = chunks(&run.version, NodeId(2), &all, rows).remove(0);
    change.appended.push(AppendedChunk { first, chunk, file: None });
    let ids = (0..rows as u64).map(|row| RowId::new(first.get() + row));
    run.model.rows = ids.zip(all).collect();
    run.apply(&change);
    (run.version, run.model)
}

#[test]
fn rows_of_every_block_change_and_fold() {
    let (mut version, mut model) = loaded(2 * BLOCK_ROWS + 700);
    let mut random = SplitMix64::new(7);
    for round in 0..3 {
        let mut change = TableChange::default();
        for _ in 0..900 {
            let Some(id) = model.any(&mut random) else { break };
            change.updated.remove(&id);
            if random.next().is_multiple_of(3) {
                change.deleted.insert(id.get());
                model.rows.remove(&id);
            } else {
                let values = Values::random(model.rows[&id].key, &mut random);
                change.updated.insert(id, encoded(&version, &values));
                model.rows.insert(id, values);
            }
        }
        version = version.apply(&change).unwrap();
        let rows: BTreeMap<_, _> =
            scanned(&version.view().unwrap()).into_iter().map(|(id, (v, _))| (id, v)).collect();
        assert!(rows == model.rows, "round {round}");
    }
    let policy = FoldPolicy { changed_share: 8, ..FoldPolicy::default() };
    let tasks = version.folds(&policy);
    assert_eq!(tasks.len(), 1);
    assert_eq!(tasks[0].node(), NodeId(2));
    let folded = tasks.into_iter().next().unwrap().run().unwrap();
    version = version.with_folded(&folded).unwrap();
    assert_eq!((version.deleted_rows(), version.delta_rows()), (0, 0));
    let view = version.view().unwrap();
    assert_eq!(view.chunks.len(), 1);
    assert_eq!(view.chunks[0].copies[0].wanted, Some(NodeId(2)));
    let found = scanned(&view);
    assert!(found.iter().map(|(id, (values, _))| (id, values)).eq(&model.rows));
}

#[test]
fn the_view_is_made_once_and_shares_the_chunks_before() {
    let (version, _) = loaded(FEW);
    let view = version.view().unwrap();
    assert!(Arc::ptr_eq(&view, &version.view().unwrap()));
    let mut change = TableChange::default();
    let row = version.row(RowId::new(3)).unwrap();
    change.updated.insert(RowId::new(3), row);
    let after = version.apply(&change).unwrap().view().unwrap();
    assert_eq!(after.chunks.len(), 2);
    assert!(Arc::ptr_eq(&after.chunks[0], &view.chunks[0]));
    assert_eq!((after.rows, after.deleted_rows()), (FEW, 1));
    assert_eq!(view.deleted_rows(), 0);
}

#[test]
fn folding_restores_the_order_of_rows() {
    let (version, _) = loaded(FEW);
    assert_eq!(version.view().unwrap().rising(), [0]);
    let mut change = TableChange::default();
    (2..9).for_each(|id| {
        change.updated.insert(RowId::new(id), version.row(RowId::new(id)).unwrap());
    });
    let mut version = version.apply(&change).unwrap();
    assert!(version.view().unwrap().rising().is_empty());
    for task in version.folds(&POLICY) {
        version = version.with_folded(&task.run().unwrap()).unwrap();
    }
    assert_eq!(version.view().unwrap().rising(), [0]);
}

#[test]
fn changes_that_do_not_fit_are_refused() {
    let (version, _) = loaded(FEW);
    let row = version.row(RowId::new(1)).unwrap();
    let beyond = RowId::new(FEW as u64);
    let refused = |change: TableChange, what: &str| {
        let error = version.apply(&change).unwrap_err();
        assert!(matches!(&error, TableError::Misfit { table, .. } if table == "t"), "{error}");
        assert!(error.to_string().contains(what), "{error}");
    };
    let mut change = TableChange::default();
    change.deleted.insert(beyond.get());
    refused(change, "row 16 is changed and is not there");
    let updated = BTreeMap::from([(beyond, row.clone())]);
    refused(TableChange { updated, ..TableChange::default() }, "row 16");
    let inserted = BTreeMap::from([(RowId::new(4), row)]);
    refused(TableChange { inserted, ..TableChange::default() }, "row 4 is inserted and is there");
    let chunk = Arc::clone(version.entries().next().unwrap().chunk());
    let appended = vec![AppendedChunk { first: RowId::new(10), chunk, file: None }];
    refused(TableChange { appended, ..TableChange::default() }, "row 10");
}

#[test]
fn a_new_constraint_is_checked_and_has_an_index() {
    let (version, model) = loaded(FEW);
    let mut definition = TableDefinition::clone(version.definition());
    definition.uniques.push(unique(vec![1]));
    let error = version.with_definition(Arc::new(definition.clone())).unwrap_err();
    assert!(matches!(error, TableError::Duplicate { .. }), "{error}");
    definition.uniques[1].columns = vec![1, 0];
    let version = version.with_definition(Arc::new(definition)).unwrap();
    for id in model.rows.keys() {
        if let Some(key) = version.key_of(*id, &[1, 0]) {
            assert_eq!(version.find(1, &key), Some(*id));
        }
        assert!(version.key_of(*id, &[0]).is_some_and(|key| version.find(0, &key) == Some(*id)));
    }
}

#[test]
fn keys_of_many_rows_come_and_go() {
    let rows = 12_000;
    let (mut version, model) = loaded(rows);
    let mut random = SplitMix64::new(13);
    let mut keys: BTreeMap<i64, RowId> =
        model.rows.iter().map(|(id, values)| (values.key.unwrap(), *id)).collect();
    for round in 1..4_i64 {
        let mut change = TableChange::default();
        let mut moved = BTreeMap::new();
        for (key, id) in &keys {
            let (key, id) = (*key, *id);
            match random.next() % 4 {
                0 => drop(change.deleted.insert(id.get())),
                // Keys move on to other rows, and come back.
                1 => {
                    let other = key + if round % 2 == 0 { -1_000_000 } else { 1_000_000 };
                    let values = Values::random(Some(other), &mut random);
                    change.updated.insert(id, encoded(&version, &values));
                    moved.insert(other, id);
                }
                _ => drop(moved.insert(key, id)),
            }
        }
        let gone: Vec<i64> = keys.keys().filter(|key| !moved.contains_key(key)).copied().collect();
        version = version.apply(&change).unwrap();
        keys = moved;
        for (key, id) in &keys {
            assert_eq!(version.find(0, &key_of(*key)), Some(*id), "key {key}");
        }
        assert!(gone.iter().all(|key| version.find(0, &key_of(*key)).is_none()));
    }
}

#[test]
fn many_rows_behind_each_other_become_few_chunks() {
    let mut run = Run::new();
    let mut random = SplitMix64::new(11);
    for _ in 0..200 {
        let change = run.statement(0, &mut random);
        run.apply(&change);
        for task in run.version.folds(&POLICY) {
            run.version = run.version.with_folded(&task.run().unwrap()).unwrap();
        }
    }
    run.model.check(&run.version);
    assert!(run.version.tail().len() < POLICY.tail_rows);
    let chunks = run.version.entries().len();
    assert!(chunks <= 2 * run.model.rows.len() / FEW + 2, "{chunks} chunks");
    let whole: Vec<RecordBatch> =
        run.model.rows.values().map(|v| batch(std::slice::from_ref(v))).collect();
    assert_eq!(concat_batches(&schema(), &whole).unwrap().num_rows(), run.version.rows());
}
