//! What must be in a database, as maps; and what is.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, RecordBatch};
use atoll_store::RowId;
use atoll_store::database::{ChangeStep, DatabaseChange, DatabaseVersion, Relation, RelationName};
use atoll_store::table::{BLOCK_ROWS, Row, Selection, TableVersion, order_words};

use super::store::environment;

/// A table: values by key.
pub(super) type ModelTable = BTreeMap<i64, Option<String>>;

/// A database after some commits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ModelState {
    pub(super) tables: BTreeMap<String, ModelTable>,
    pub(super) views: BTreeSet<String>,
    pub(super) sequences: BTreeMap<String, Option<i64>>,
    /// The table [`PREPARED`] as the prepared transaction leaves it, if there is one.
    pub(super) prepared: Option<ModelTable>,
}

/// The table that only prepared transactions change: they lock it.
pub(super) const PREPARED: &str = "prepared";

impl ModelState {
    /// What a version holds, read row by row.
    pub(super) fn from_version(version: &DatabaseVersion) -> Self {
        let mut state = Self { prepared: prepared(version), ..Self::default() };
        for (name, relation) in version.relations() {
            let name = name.name.to_string();
            match relation {
                Relation::Table(id) => {
                    drop(state.tables.insert(name, by_row(version.table(*id).unwrap())));
                }
                Relation::Sequence(id) => {
                    let last = version.sequence(*id).unwrap().last;
                    state.sequences.insert(name, last);
                }
                Relation::View(_) | Relation::External(_) => drop(state.views.insert(name)),
            }
        }
        state
    }
}

fn prepared(version: &DatabaseVersion) -> Option<ModelTable> {
    let (name, _) = version.prepared().next()?;
    let step = ChangeStep::EndPrepared { name: Arc::clone(name), commits: true };
    let change = DatabaseChange { steps: vec![step] };
    let ended = version.apply(&change, environment()).unwrap();
    Some(by_row(ended.table_named(&RelationName::new("public", PREPARED)).unwrap().1))
}

fn by_row(table: &TableVersion) -> ModelTable {
    let rows: Vec<Row> = table.row_ids().map(|id| table.row(id).unwrap()).collect();
    assert_eq!(rows.len(), table.rows());
    let batch = table.codec().decode(&rows).unwrap();
    expect_ordered(table, &batch);
    let (keys, values) = (batch.column(0).as_primitive::<Int64Type>(), batch.column(1));
    let values = values.as_string_view();
    let value = |at| values.is_valid(at).then(|| values.value(at).to_owned());
    (0..rows.len()).map(|at| (keys.value(at), value(at))).collect()
}

/// The indexes hold all rows, these, in their order.
fn expect_ordered(table: &TableVersion, batch: &RecordBatch) {
    for (at, index) in table.definition().indexes.iter().enumerate() {
        let columns: Vec<usize> = index.keys.iter().map(|key| key.column).collect();
        let words = order_words(batch.project(&columns).unwrap().columns()).unwrap();
        let mut rows: Vec<_> = words.into_iter().zip(table.row_ids()).collect();
        rows.sort_unstable();
        let wanted: Vec<RowId> = rows.into_iter().map(|(_, id)| id).collect();
        let found: Vec<RowId> = table.rows_between(at, [0; 2], [u64::MAX; 2]).collect();
        assert_eq!(found, wanted, "index {}", index.name);
    }
}

/// A table as scans read it.
pub(super) fn by_scan(table: &TableVersion) -> ModelTable {
    let view = table.view().unwrap();
    let mut rows = ModelTable::new();
    for (number, chunk) in view.chunks.iter().enumerate() {
        for (at, block) in chunk.copies[0].blocks.iter().enumerate() {
            let all =
                Selection::Range { offset: 0, len: BLOCK_ROWS.min(chunk.rows - at * BLOCK_ROWS) };
            let column = |column: usize| {
                block[column].decode(view.schema.field(column).data_type(), &all).unwrap()
            };
            let (keys, values) = (column(0), column(1));
            let (keys, values) = (keys.as_primitive::<Int64Type>(), values.as_string_view());
            for row in 0..keys.len() {
                if view.live(number, at).is_none_or(|live| live.value(row)) {
                    let value = values.is_valid(row).then(|| values.value(row).to_owned());
                    assert!(rows.insert(keys.value(row), value).is_none(), "a key twice");
                }
            }
        }
    }
    rows
}
