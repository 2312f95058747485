//! Single cases, with the sizes and places that are expected.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_select::concat::concat_batches;
use atoll_store::RowId;
use atoll_store::table::{
    AppendedChunk, BLOCK_ROWS, FoldPolicy, TableChange, TableDefinition, TableError, TableVersion,
};
use atoll_sys::SplitMix64;
use atoll_topology::NodeId;

use super::fixture::{
    FEW, POLICY, Values, batch, chunks, encoded, index, key_of, ordered, scanned, schema, unique,
};
use super::model::{Model, Run};

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
    let rising = |version: &TableVersion| version.view().unwrap().rising().collect::<Vec<_>>();
    assert_eq!(rising(&version), [0]);
    let mut change = TableChange::default();
    (2..9).for_each(|id| {
        change.updated.insert(RowId::new(id), version.row(RowId::new(id)).unwrap());
    });
    let mut version = version.apply(&change).unwrap();
    assert!(rising(&version).is_empty());
    let view = version.view().unwrap();
    let chains = &view.rising_columns()[0];
    assert_eq!((chains.column, &chains.chains[..]), (0, &[vec![0], vec![1]][..]));
    for task in version.folds(&POLICY) {
        version = version.with_folded(&task.run().unwrap()).unwrap();
    }
    assert_eq!(rising(&version), [0]);
}

#[test]
fn rows_are_appended_between_the_ids_of_a_chunk_that_the_same_transaction_rewrote() {
    let mut run = Run::new();
    let mut random = SplitMix64::new(9);
    let mut inserted = TableChange::default();
    let mut reserved = Vec::new();
    for id in (0..12).map(|_| run.version.reserve(1)) {
        let values = Values::random(Some(id.get() as i64), &mut random);
        match id.get() {
            3 | 4 | 7 => reserved.push((id, values)),
            _ => {
                inserted.inserted.insert(id, encoded(&run.version, &values));
                run.model.rows.insert(id, values);
            }
        }
    }
    run.apply(&inserted);
    for task in run.version.folds(&POLICY) {
        run.version = run.version.with_folded(&task.run().unwrap()).unwrap();
    }
    assert_eq!(run.version.entries().len(), 1);

    let before = run.version.clone();
    let one = *run.model.rows.keys().next().unwrap();
    let entry = before.entries_of(&[one])[0].unwrap();
    let values = Values::random(Some(100), &mut random);
    let updated = vec![(vec![one], batch(std::slice::from_ref(&values)))];
    let replaced = before.rewrite(entry, updated).unwrap().run().unwrap();
    run.model.rows.insert(one, values);
    let mut whole = TableChange { replaced, ..TableChange::default() };
    run.apply(&whole);
    let mut later = TableChange::default();
    for (id, values) in reserved {
        let chunk = chunks(&before, NodeId(1), std::slice::from_ref(&values), FEW).remove(0);
        later.appended.push(AppendedChunk { first: id, chunk, file: None });
        run.model.rows.insert(id, values);
    }
    run.apply(&later);
    run.model.check(&run.version);
    whole.then(later);
    run.model.check(&before.apply(&whole).unwrap());
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
    refused(change, "changed row 16 does not exist");
    let updated = BTreeMap::from([(beyond, row.clone())]);
    refused(TableChange { updated, ..TableChange::default() }, "row 16");
    let inserted = BTreeMap::from([(RowId::new(4), row)]);
    refused(TableChange { inserted, ..TableChange::default() }, "inserted row 4 already exists");
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
fn a_new_index_holds_all_rows_and_one_that_is_dropped_none() {
    let (version, model) = loaded(3 * FEW);
    let mut definition = TableDefinition::clone(version.definition());
    definition.indexes = vec![index(&[0]), index(&[2, 1])];
    let version = version.with_definition(Arc::new(definition)).unwrap();
    for (at, columns) in [&[0][..], &[2, 1]].into_iter().enumerate() {
        let rows: Vec<RowId> = version.rows_between(at, [0; 2], [u64::MAX; 2]).collect();
        assert_eq!(rows, ordered(&model.rows, columns));
    }
    let change = TableChange { truncated: true, ..TableChange::default() };
    let empty = version.apply(&change).unwrap();
    assert_eq!(empty.rows_between(0, [0; 2], [u64::MAX; 2]).count(), 0);
    assert!(empty.index_bytes() < version.index_bytes());
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
