//! redb: a B-tree with copies on write, in Rust.

use anyhow::Result;
use redb::{Database, Durability, ReadableDatabase, ReadableTable, TableDefinition};

use super::engine::{EngineOptions, KvEngine, KvSession};
use super::records::RecordRun;

const TABLE: TableDefinition<'static, &[u8], &[u8]> = TableDefinition::new("kv");

/// An open database.
pub(super) struct Redb {
    database: Database,
    cache: u64,
}

impl Redb {
    /// Opens the database of a directory, or makes it.
    pub(super) fn open(options: &EngineOptions) -> Result<Self> {
        let cache = options.cache_bytes;
        let mut builder = Database::builder();
        builder.set_cache_size(cache as usize);
        let redb = Self { database: builder.create(options.directory.join("kv.redb"))?, cache };
        redb.write(std::iter::empty(), Durability::Immediate)?;
        Ok(redb)
    }

    /// Puts records in one transaction.
    fn write<'r>(
        &self,
        records: impl Iterator<Item = (&'r [u8], &'r [u8])>,
        durability: Durability,
    ) -> Result<()> {
        let mut transaction = self.database.begin_write()?;
        transaction.set_durability(durability)?;
        let mut table = transaction.open_table(TABLE)?;
        for (key, value) in records {
            table.insert(key, value)?;
        }
        drop(table);
        Ok(transaction.commit()?)
    }
}

impl KvEngine for Redb {
    fn version(&self) -> String {
        "4.6".to_owned()
    }

    fn settings(&self) -> String {
        format!("cache {} B, Durability::None", self.cache)
    }

    fn session(&self) -> Result<Box<dyn KvSession + '_>> {
        Ok(Box::new(RedbSession(self)))
    }

    fn sync(&self) -> Result<()> {
        self.write(std::iter::empty(), Durability::Immediate)
    }
}

/// Sessions have nothing of their own: each read has a transaction.
struct RedbSession<'a>(&'a Redb);

impl KvSession for RedbSession<'_> {
    fn load(&mut self, run: &RecordRun) -> Result<()> {
        self.0.write(run.iter(), Durability::None)
    }

    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.0.write(std::iter::once((key, value)), Durability::None)
    }

    fn get(&mut self, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        let table = self.0.database.begin_read()?.open_table(TABLE)?;
        let found = table.get(key)?;
        if let Some(found) = &found {
            value.clear();
            value.extend_from_slice(found.value());
        }
        Ok(found.is_some())
    }

    fn scan(&mut self, visit: &mut dyn FnMut(&[u8], &[u8])) -> Result<()> {
        let table = self.0.database.begin_read()?.open_table(TABLE)?;
        for record in table.iter()? {
            let (key, value) = record?;
            visit(key.value(), value.value());
        }
        Ok(())
    }
}
