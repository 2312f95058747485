//! fjall: an LSM tree in Rust.

use anyhow::Result;
use fjall::{Database, Keyspace, KeyspaceCreateOptions, PersistMode};

use super::engine::{EngineOptions, KvEngine, KvSession};
use super::records::RecordRun;

/// An open database with its one keyspace.
pub(super) struct Fjall {
    database: Database,
    keyspace: Keyspace,
    settings: String,
}

impl Fjall {
    /// Opens the database of a directory, or makes it.
    pub(super) fn open(options: &EngineOptions) -> Result<Self> {
        let (cache, buffer) = (options.cache_bytes, options.buffer_bytes);
        let database = Database::builder(&options.directory).cache_size(cache).open()?;
        let settings = || KeyspaceCreateOptions::default().max_memtable_size(buffer);
        let keyspace = database.keyspace("kv", settings)?;
        let settings = format!("cache {cache} B, memtable {buffer} B, no compression");
        Ok(Self { database, keyspace, settings })
    }
}

impl KvEngine for Fjall {
    fn version(&self) -> String {
        "3.1".to_owned()
    }

    fn settings(&self) -> String {
        self.settings.clone()
    }

    fn session(&self) -> Result<Box<dyn KvSession + '_>> {
        Ok(Box::new(FjallSession(self)))
    }

    fn sync(&self) -> Result<()> {
        Ok(self.database.persist(PersistMode::Buffer)?)
    }
}

/// Sessions have nothing of their own.
struct FjallSession<'a>(&'a Fjall);

impl KvSession for FjallSession<'_> {
    fn load(&mut self, run: &RecordRun) -> Result<()> {
        let mut batch = self.0.database.batch();
        for (key, value) in run.iter() {
            batch.insert(&self.0.keyspace, key, value);
        }
        Ok(batch.commit()?)
    }

    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        Ok(self.0.keyspace.insert(key, value)?)
    }

    fn get(&mut self, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        let found = self.0.keyspace.get(key)?;
        if let Some(found) = &found {
            value.clear();
            value.extend_from_slice(found);
        }
        Ok(found.is_some())
    }

    fn scan(&mut self, visit: &mut dyn FnMut(&[u8], &[u8])) -> Result<()> {
        for record in self.0.keyspace.iter() {
            let (key, value) = record.into_inner()?;
            visit(&key, &value);
        }
        Ok(())
    }
}
