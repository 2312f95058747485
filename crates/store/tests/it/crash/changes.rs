//! Transactions of every kind, drawn at random, with what they make of the model.

use std::collections::BTreeSet;
use std::sync::Arc;

use atoll_store::data_file::DataFileError;
use atoll_store::database::{
    CatalogChange, ChangeStep, DatabaseChange, DatabaseVersion, KeptLock, PreparedTransaction,
    Relation, RelationName, SequenceDefinition, StoredStatement,
};
use atoll_store::lock::LockMode;
use atoll_store::table::{AppendedChunk, FoldPolicy, TableChange, TableVersion};
use atoll_store::{ChunkFileId, RowId, SequenceId, TableId};
use atoll_sys::SplitMix64;

use super::model::{ModelState, ModelTable, PREPARED};
use super::store::{TestStore, batch, chunks, columns, definition};

/// A transaction that is ready to be ordered, and the database after it.
pub(super) struct Transaction {
    pub(super) change: DatabaseChange,
    pub(super) after: ModelState,
}

pub(super) fn fold_policy() -> FoldPolicy {
    FoldPolicy { chunk_rows: 64, changed_share: 4, tail_rows: 12 }
}

fn name(name: &str) -> RelationName {
    RelationName::new("public", name)
}

/// A random transaction; an error where the files of its chunks were not written.
pub(super) fn draw(
    store: &TestStore,
    before: &ModelState,
    random: &mut SplitMix64,
) -> Result<Transaction, DataFileError> {
    let mut drawing = Drawing {
        store,
        version: (*store.version).clone(),
        random,
        change: DatabaseChange::default(),
        after: before.clone(),
    };
    for _ in 0..=drawing.random.below(3) {
        drawing.step()?;
    }
    Ok(Transaction { change: drawing.change, after: drawing.after })
}

struct Drawing<'a> {
    store: &'a TestStore,
    /// With all that was drawn so far.
    version: DatabaseVersion,
    random: &'a mut SplitMix64,
    change: DatabaseChange,
    after: ModelState,
}

impl Drawing<'_> {
    fn step(&mut self) -> Result<(), DataFileError> {
        let tables = self.after.tables.keys().filter(|name| *name != PREPARED);
        let tables: Vec<String> = tables.cloned().collect();
        if tables.is_empty() || (tables.len() < 4 && self.random.below(12) == 0) {
            self.create_table();
            return Ok(());
        }
        let table = tables[self.random.below(tables.len() as u64) as usize].clone();
        let (id, version) = self.version.table_named(&name(&table)).unwrap();
        let version = Arc::clone(version);
        match self.random.below(28) {
            0..6 => self.insert(&table, id, &version),
            6..11 => self.update(&table, id, &version),
            11..14 => self.delete(&table, id, &version),
            14..17 => self.load(&table, id, &version)?,
            17..19 => self.rewrite(&table, id, &version)?,
            19 => self.truncate(&table, id),
            20 => self.catalog(&table, id),
            21..24 => self.sequence(),
            _ => self.two_phase()?,
        }
        Ok(())
    }

    fn add(&mut self, step: ChangeStep) {
        let one = DatabaseChange { steps: vec![step.clone()] };
        self.version = self.version.apply(&one, super::store::environment()).unwrap();
        self.change.push(step);
    }

    /// Prepares a transaction over a table of its own, or ends the prepared one.
    fn two_phase(&mut self) -> Result<(), DataFileError> {
        let prepared = self.version.prepared().next().map(|(name, _)| Arc::clone(name));
        if let Some(name) = prepared {
            let (commits, rows) = (self.random.below(2) == 0, self.after.prepared.take().unwrap());
            if commits {
                self.after.tables.insert(PREPARED.to_owned(), rows);
            }
            self.add(ChangeStep::EndPrepared { name, commits });
            return Ok(());
        }
        let Some((id, _)) = self.version.table_named(&name(PREPARED)) else {
            self.create_table_named(PREPARED.to_owned());
            return Ok(());
        };
        let before = self.after.tables[PREPARED].clone();
        let (version, change) = (self.version.clone(), std::mem::take(&mut self.change));
        for _ in 0..=self.random.below(2) {
            let table = Arc::clone(self.version.table(id).unwrap());
            match self.random.below(5) {
                0 | 1 => self.insert(PREPARED, id, &table),
                2 => self.update(PREPARED, id, &table),
                3 => self.delete(PREPARED, id, &table),
                _ => self.load(PREPARED, id, &table)?,
            }
        }
        self.version = version;
        let change = std::mem::replace(&mut self.change, change);
        self.after.prepared = self.after.tables.insert(PREPARED.to_owned(), before);
        let locks = vec![KeptLock::Table(id, LockMode::Exclusive)];
        let prepared = PreparedTransaction { owner: "admin".into(), prepared_at: 7, change, locks };
        self.add(ChangeStep::Prepare("transfer".into(), Arc::new(prepared)));
        Ok(())
    }

    fn create_table(&mut self) {
        let number = self.version.contents().next_table.get().max(1);
        self.create_table_named(format!("t{number}"));
    }

    fn create_table_named(&mut self, table: String) {
        let id = TableId::new(self.version.contents().next_table.get().max(1));
        let name = name(&table);
        self.add(ChangeStep::Catalog(CatalogChange::CreateTable {
            name,
            id,
            definition: definition(),
        }));
        self.after.tables.insert(table, ModelTable::new());
    }

    /// New rows with keys that the table does not have.
    fn new_rows(&mut self, table: &str, count: u64) -> ModelTable {
        let mut rows = ModelTable::new();
        for _ in 0..count {
            let key = self.random.below(400) as i64;
            if !self.after.tables[table].contains_key(&key) {
                rows.insert(key, self.value());
            }
        }
        rows
    }

    fn value(&mut self) -> Option<String> {
        match self.random.below(6) {
            0 => None,
            1 => Some("x".repeat(self.random.below(300) as usize)),
            _ => Some(format!("value {}", self.random.below(1000))),
        }
    }

    fn insert(&mut self, table: &str, id: TableId, version: &TableVersion) {
        let count = 1 + self.random.below(8);
        let rows = self.new_rows(table, count);
        let encoded = version.codec().encode(&batch(rows.iter().map(|(k, v)| (*k, v)))).unwrap();
        let first = version.reserve(encoded.len()).get();
        let ids = (first..).map(RowId::new);
        let change = TableChange { inserted: ids.zip(encoded).collect(), ..TableChange::default() };
        self.add(ChangeStep::Table(id, change));
        self.after.tables.get_mut(table).unwrap().extend(rows);
    }

    /// Some keys of a table, each with its row.
    fn some_rows(&mut self, table: &str, version: &TableVersion, most: u64) -> Vec<(i64, RowId)> {
        let keys: Vec<i64> = self.after.tables[table].keys().copied().collect();
        let mut chosen = BTreeSet::new();
        for _ in 0..self.random.below(most + 1).min(keys.len() as u64) {
            chosen.insert(keys[self.random.below(keys.len() as u64) as usize]);
        }
        let find = |key: i64| {
            let probe = batch([(key, &None)].into_iter());
            let wanted = version.codec().keys_of(&probe, &[0]).unwrap()[0].clone().unwrap();
            (
                key,
                version.find(0, &wanted).unwrap_or_else(|| panic!("key {key} is not in the index")),
            )
        };
        chosen.into_iter().map(find).collect()
    }

    fn update(&mut self, table: &str, id: TableId, version: &TableVersion) {
        let rows = self.some_rows(table, version, 8);
        let new: ModelTable = rows.iter().map(|(key, _)| (*key, self.value())).collect();
        let encoded = version.codec().encode(&batch(new.iter().map(|(k, v)| (*k, v)))).unwrap();
        let updated = rows.iter().map(|(_, row)| *row).zip(encoded).collect();
        self.add(ChangeStep::Table(id, TableChange { updated, ..TableChange::default() }));
        self.after.tables.get_mut(table).unwrap().extend(new);
    }

    fn delete(&mut self, table: &str, id: TableId, version: &TableVersion) {
        let rows = self.some_rows(table, version, 10);
        let deleted = rows.iter().map(|(_, row)| row.get()).collect();
        self.add(ChangeStep::Table(id, TableChange { deleted, ..TableChange::default() }));
        let model = self.after.tables.get_mut(table).unwrap();
        rows.iter().for_each(|(key, _)| drop(model.remove(key)));
    }

    /// A bulk load: its chunks are in files before its record is.
    fn load(
        &mut self,
        table: &str,
        id: TableId,
        version: &TableVersion,
    ) -> Result<(), DataFileError> {
        let count = 1 + self.random.below(60);
        let rows = self.new_rows(table, count);
        let node = self.random.below(2) as u32;
        let mut change = TableChange::default();
        for chunk in chunks(&batch(rows.iter().map(|(k, v)| (*k, v))), node) {
            let file = self.store.checkpoints.chunks().write(&chunk, &columns())?.id;
            let first = version.reserve(chunk.rows);
            change.appended.push(AppendedChunk { first, chunk, file: Some(file) });
        }
        self.sync(change.appended.iter().filter_map(|chunk| chunk.file))?;
        self.add(ChangeStep::Table(id, change));
        self.after.tables.get_mut(table).unwrap().extend(rows);
        Ok(())
    }

    /// Brings files of chunks to the disk, before a record names them.
    fn sync(&self, files: impl Iterator<Item = ChunkFileId>) -> Result<(), DataFileError> {
        let chunks = self.store.checkpoints.chunks();
        files.into_iter().try_for_each(|file| chunks.sync(file))?;
        Ok(chunks.sync_names()?)
    }

    /// A mass update of rows of one chunk.
    fn rewrite(
        &mut self,
        table: &str,
        id: TableId,
        version: &TableVersion,
    ) -> Result<(), DataFileError> {
        let rows = self.some_rows(table, version, 30);
        let entry = rows.iter().find_map(|(_, row)| version.entries_of(&[*row])[0]);
        let Some(entry) = entry else { return Ok(()) };
        let rows: Vec<_> = rows
            .into_iter()
            .filter(|(_, row)| version.entries_of(&[*row])[0] == Some(entry))
            .collect();
        let new: ModelTable = rows.iter().map(|(key, _)| (*key, self.value())).collect();
        let batch = batch(new.iter().map(|(k, v)| (*k, v)));
        let ids = rows.iter().map(|(_, row)| *row).collect();
        let replaced = version.rewrite(entry, vec![(ids, batch)]).unwrap().run().unwrap();
        let mut change = TableChange::default();
        for mut replaced in replaced {
            let chunks = self.store.checkpoints.chunks();
            replaced.file = Some(chunks.write(&replaced.chunk, &columns())?.id);
            change.replaced.push(replaced);
        }
        self.sync(change.replaced.iter().filter_map(|chunk| chunk.file))?;
        self.add(ChangeStep::Table(id, change));
        self.after.tables.get_mut(table).unwrap().extend(new);
        Ok(())
    }

    fn truncate(&mut self, table: &str, id: TableId) {
        let change = TableChange { truncated: true, ..TableChange::default() };
        self.add(ChangeStep::Table(id, change));
        self.after.tables.insert(table.to_owned(), ModelTable::new());
    }

    fn catalog(&mut self, table: &str, id: TableId) {
        let change = match self.random.below(4) {
            0 => {
                self.after.tables.remove(table);
                CatalogChange::Drop { name: name(table) }
            }
            1 => {
                let to = format!("renamed_{table}");
                if self.after.tables.contains_key(&to) || table.len() > 40 {
                    return;
                }
                let rows = self.after.tables.remove(table).unwrap();
                self.after.tables.insert(to.clone(), rows);
                CatalogChange::Rename { from: name(table), to: name(&to) }
            }
            2 => {
                let column = format!("value{}", self.random.below(9));
                let mut definition = definition().with_names(&["key", &column]);
                definition.indexes.retain(|_| self.random.below(3) > 0);
                CatalogChange::SetDefinition { table: id, definition: Arc::new(definition) }
            }
            _ => {
                let view = format!("v{}", self.random.below(3));
                self.after.views.insert(view.clone());
                let statement = Arc::new(StoredStatement {
                    sql: format!("SELECT * FROM {table}").into(),
                    schema: "public".into(),
                    options: "".into(),
                });
                CatalogChange::CreateView { name: name(&view), statement }
            }
        };
        self.add(ChangeStep::Catalog(change));
    }

    fn sequence(&mut self) {
        let sequence = format!("s{}", self.random.below(2));
        let found = self.version.relation(&name(&sequence)).cloned();
        match found {
            Some(Relation::Sequence(id)) => {
                let last = self.random.below(1000) as i64;
                self.add(ChangeStep::Sequence(id, last));
                self.after.sequences.insert(sequence, Some(last));
            }
            _ => {
                let id = SequenceId::new(self.version.contents().next_sequence.get().max(1));
                let definition = Arc::new(SequenceDefinition::default());
                let name = name(&sequence);
                self.add(ChangeStep::Catalog(CatalogChange::CreateSequence {
                    name,
                    id,
                    definition,
                }));
                self.after.sequences.insert(sequence, None);
            }
        }
    }
}

/// Folds some of the database, as the background does.
pub(super) fn fold(store: &mut TestStore) {
    let mut contents = store.version.contents();
    for (_, table) in &mut contents.tables {
        for task in table.folds(&fold_policy()) {
            let folded = task.run().unwrap();
            if let Some(after) = table.with_folded(&folded) {
                *table = Arc::new(after);
            }
        }
    }
    store.version = Arc::new(DatabaseVersion::from_contents(contents).unwrap());
}
