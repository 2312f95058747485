//! Key-value engines behind one trait: how each is opened, and under which names the report has it.

use std::path::PathBuf;

use anyhow::{Result, bail};
use clap::ValueEnum;
use serde::{Deserialize, Serialize};

use super::atoll::AtollStore;
use super::fjall::Fjall;
use super::foreign::{
    Berkeley, Level, LevelFlavour, Library, Lmdb, LmdbFlavour, Sqlite, WiredTiger, WiredTigerTable,
};
use super::records::RecordRun;
use super::redb::Redb;

/// What builds engines that no distribution has.
const SETUP: &str = "'atoll bench kv setup'";

/// An open database, which all threads use. Dropping it closes it.
pub(super) trait KvEngine: Send + Sync {
    /// The version of the engine.
    fn version(&self) -> String;

    /// Settings that matter, in the engine's words.
    fn settings(&self) -> String;

    /// Whether a session can visit all records.
    fn can_scan(&self) -> bool {
        true
    }

    /// What a thread needs for itself.
    fn session(&self) -> Result<Box<dyn KvSession + '_>>;

    /// Brings to disk what closing alone would lose.
    fn sync(&self) -> Result<()>;
}

/// A thread's use of a database.
pub(super) trait KvSession {
    /// Puts records with new keys at once.
    fn load(&mut self, run: &RecordRun) -> Result<()>;

    /// Gives a key that is there a new value.
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()>;

    /// Reads a value; false if the key is not there.
    fn get(&mut self, key: &[u8], value: &mut Vec<u8>) -> Result<bool>;

    /// Visits all records, where the engine can.
    fn scan(&mut self, visit: &mut dyn FnMut(&[u8], &[u8])) -> Result<()>;
}

/// How a database is opened.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct EngineOptions {
    /// A directory of its own, which exists.
    pub(super) directory: PathBuf,
    /// Cache for blocks or pages, for engines that have one.
    pub(super) cache_bytes: u64,
    /// Writes kept in memory before a table is written, for LSM trees.
    pub(super) buffer_bytes: u64,
    /// Bytes of all keys and values.
    pub(super) data_bytes: u64,
    /// Threads that use it.
    pub(super) sessions: u32,
    /// Directory of engines that were built from sources.
    pub(super) built: PathBuf,
}

/// The engines, in the order of the report and then by name.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, ValueEnum, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
#[value(rename_all = "kebab-case")]
pub(super) enum EngineName {
    /// LevelDB
    Leveldb,
    /// Basho LevelDB, built by `setup`
    Basho,
    /// BerkeleyDB
    Berkeleydb,
    /// HyperLevelDB, built by `setup`
    Hyperleveldb,
    /// LMDB
    Lmdb,
    /// RocksDB
    Rocksdb,
    /// RocksDB with plain tables
    Rocksdbpfx,
    /// WiredTiger, LSM tree
    WiredtigerLsm,
    /// WiredTiger, B-tree
    WiredtigerBtree,
    /// libmdbx, built by `setup`
    Libmdbx,
    /// redb
    Redb,
    /// fjall
    Fjall,
    /// SQLite
    Sqlite,
    /// Atoll's tables, through SQL
    Atoll,
}

impl EngineName {
    /// Its name on the command line and in results.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Leveldb => "leveldb",
            Self::Basho => "basho",
            Self::Berkeleydb => "berkeleydb",
            Self::Hyperleveldb => "hyperleveldb",
            Self::Lmdb => "lmdb",
            Self::Rocksdb => "rocksdb",
            Self::Rocksdbpfx => "rocksdbpfx",
            Self::WiredtigerLsm => "wiredtiger-lsm",
            Self::WiredtigerBtree => "wiredtiger-btree",
            Self::Libmdbx => "libmdbx",
            Self::Redb => "redb",
            Self::Fjall => "fjall",
            Self::Sqlite => "sqlite",
            Self::Atoll => "atoll",
        }
    }

    /// Whether resident memory of the process is the file of the database, which must not be counted twice.
    pub(super) fn is_mapped(self) -> bool {
        matches!(self, Self::Lmdb | Self::Libmdbx)
    }

    /// Names of the library's file, the first of which that is there is taken, and what provides it; None if it is
    /// part of this program.
    pub(super) fn library(self) -> Option<(&'static [&'static str], &'static str)> {
        Some(match self {
            Self::Leveldb => {
                (&["libleveldb.so.1d", "libleveldb.so.1"], "Debian's package libleveldb1d")
            }
            Self::Basho => (&["libbasho.so"], SETUP),
            Self::Hyperleveldb => (&["libhyperleveldb.so"], SETUP),
            Self::Libmdbx => (&["libmdbx.so"], SETUP),
            Self::Berkeleydb => (&["libdb-5.3.so"], "Debian's package libdb5.3"),
            Self::Lmdb => (&["liblmdb.so.0", "liblmdb.so"], "Debian's package liblmdb0"),
            Self::Rocksdb | Self::Rocksdbpfx => (
                &["librocksdb.so.7.8", "librocksdb.so.9.10", "librocksdb.so"],
                "Debian's package librocksdb7.8",
            ),
            Self::WiredtigerLsm | Self::WiredtigerBtree => {
                (&["libwiredtiger.so.0"], "Debian's package libwiredtiger0")
            }
            Self::Sqlite => (&["libsqlite3.so.0"], "Debian's package libsqlite3-0"),
            Self::Redb | Self::Fjall | Self::Atoll => return None,
        })
    }

    /// Whether `setup` builds it.
    pub(super) fn is_built(self) -> bool {
        matches!(self, Self::Basho | Self::Hyperleveldb | Self::Libmdbx)
    }

    /// Opens a database, or makes it.
    ///
    /// # Errors
    /// When the library is missing or unknown, and for the engine's own reasons.
    pub(super) fn open(self, options: &EngineOptions) -> Result<Box<dyn KvEngine>> {
        let Some((files, source)) = self.library() else {
            return self.open_own(options);
        };
        let path = |file: &&str| match self.is_built() {
            true => options.built.join(file),
            false => PathBuf::from(file),
        };
        let library = Library::load(files.iter().map(path), source)?;
        let level = |flavour| Level::open(&library, flavour, options);
        let tiger = |table| WiredTiger::open(&library, table, options);
        Ok(match self {
            Self::Leveldb | Self::Basho | Self::Hyperleveldb => {
                Box::new(level(LevelFlavour::Level)?)
            }
            Self::Rocksdb => Box::new(level(LevelFlavour::Rocks)?),
            Self::Rocksdbpfx => Box::new(level(LevelFlavour::RocksPrefixes)?),
            Self::Berkeleydb => Box::new(Berkeley::open(&library, options)?),
            Self::Lmdb => Box::new(Lmdb::open(&library, LmdbFlavour::Lmdb, options)?),
            Self::Libmdbx => Box::new(Lmdb::open(&library, LmdbFlavour::Mdbx, options)?),
            Self::WiredtigerLsm => Box::new(tiger(WiredTigerTable::Lsm)?),
            Self::WiredtigerBtree => Box::new(tiger(WiredTigerTable::Btree)?),
            Self::Sqlite => Box::new(Sqlite::open(&library, options)?),
            Self::Redb | Self::Fjall | Self::Atoll => return self.open_own(options),
        })
    }

    /// Opens one that is part of this program.
    fn open_own(self, options: &EngineOptions) -> Result<Box<dyn KvEngine>> {
        Ok(match self {
            Self::Redb => Box::new(Redb::open(options)?),
            Self::Fjall => Box::new(Fjall::open(options)?),
            Self::Atoll => Box::new(AtollStore::open(options)?),
            other => bail!("{} is a library", other.name()),
        })
    }
}
