//! LevelDB and its descendants, by `leveldb/c.h` 1.23 and `rocksdb/c.h` 7.8: one shape, two prefixes.

use std::ffi::{c_char, c_int, c_uchar, c_void};
use std::fs;
use std::ptr::null_mut;

use anyhow::{Result, anyhow, ensure};

use super::{Handle, Library, c_bytes, c_functions, c_path, c_text};
use crate::kv::engine::{EngineOptions, KvEngine, KvSession};
use crate::kv::records::RecordRun;

type Errors = *mut *mut c_char;

const NO_COMPRESSION: c_int = 0;

/// Which of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::kv) enum LevelFlavour {
    /// LevelDB, HyperLevelDB, Basho LevelDB.
    Level,
    /// RocksDB as it comes.
    Rocks,
    /// RocksDB with plain tables and hashed prefixes.
    RocksPrefixes,
}

/// What RocksDB's in-memory benchmark of 2014 sets for plain tables.
mod plain {
    pub(super) const PREFIX_BYTES: usize = 12;
    pub(super) const KEY_BYTES: u32 = 16;
    pub(super) const BLOOM_BITS: i32 = 10;
    pub(super) const HASH_RATIO: f64 = 0.75;
    pub(super) const INDEX_SPARSENESS: usize = 16;
}

c_functions! {
    /// `leveldb_…` and `rocksdb_…`
    LevelCalls {
        open(Handle, *const c_char, Errors) -> Handle;
        close(Handle);
        put(Handle, Handle, *const c_void, usize, *const c_void, usize, Errors);
        write(Handle, Handle, Handle, Errors);
        get(Handle, Handle, *const c_void, usize, *mut usize, Errors) -> *mut c_void;
        free(*mut c_void);
        create_iterator(Handle, Handle) -> Handle;
        iter_destroy(Handle);
        iter_valid(Handle) -> c_uchar;
        iter_seek_to_first(Handle);
        iter_next(Handle);
        iter_key(Handle, *mut usize) -> *const c_void;
        iter_value(Handle, *mut usize) -> *const c_void;
        iter_get_error(Handle, Errors);
        writebatch_create() -> Handle;
        writebatch_destroy(Handle);
        writebatch_put(Handle, *const c_void, usize, *const c_void, usize);
        options_create() -> Handle;
        options_set_create_if_missing(Handle, c_uchar);
        options_set_write_buffer_size(Handle, usize);
        options_set_compression(Handle, c_int);
        readoptions_create() -> Handle;
        writeoptions_create() -> Handle;
        cache_create_lru(usize) -> Handle;
    }
}

c_functions! {
    /// What LevelDB alone has.
    OnlyLevel {
        options_set_cache(Handle, Handle);
    }
}

c_functions! {
    /// What RocksDB alone has.
    OnlyRocks {
        block_based_options_create() -> Handle;
        block_based_options_set_block_cache(Handle, Handle);
        options_set_block_based_table_factory(Handle, Handle);
        options_set_plain_table_factory(Handle, u32, c_int, f64, usize);
        slicetransform_create_fixed_prefix(usize) -> Handle;
        options_set_prefix_extractor(Handle, Handle);
        options_set_allow_mmap_reads(Handle, c_uchar);
        options_set_memtable_prefix_bloom_size_ratio(Handle, f64);
    }
}

/// An open database. Options, which are few, live as long as the process.
pub(in crate::kv) struct Level {
    calls: LevelCalls,
    flavour: LevelFlavour,
    version: String,
    settings: String,
    database: Handle,
    reading: Handle,
    writing: Handle,
}

// SAFETY: a database, its options included, may be used by all threads; iterators stay in their sessions.
unsafe impl Send for Level {}
// SAFETY: as above.
unsafe impl Sync for Level {}

impl Level {
    /// Opens the database of a directory, or makes it.
    pub(in crate::kv) fn open(
        library: &Library,
        flavour: LevelFlavour,
        options: &EngineOptions,
    ) -> Result<Self> {
        let prefix = if flavour == LevelFlavour::Level { "leveldb_" } else { "rocksdb_" };
        let calls = LevelCalls::find(library, prefix)?;
        // SAFETY: the calls take nothing.
        let [reading, writing, settings] = unsafe {
            [(calls.readoptions_create)(), (calls.writeoptions_create)(), (calls.options_create)()]
        };
        let (cache, buffer) = (options.cache_bytes, options.buffer_bytes);
        // SAFETY: the options were made above; numbers are of the header's types.
        let cached = unsafe {
            (calls.options_set_create_if_missing)(settings, 1);
            (calls.options_set_write_buffer_size)(settings, buffer as usize);
            (calls.options_set_compression)(settings, NO_COMPRESSION);
            (calls.cache_create_lru)(cache as usize)
        };
        match flavour {
            LevelFlavour::Level => {
                let only = OnlyLevel::find(library, prefix)?;
                // SAFETY: options and cache were made above.
                unsafe { (only.options_set_cache)(settings, cached) };
            }
            LevelFlavour::Rocks => {
                block_based(&OnlyRocks::find(library, prefix)?, settings, cached)
            }
            LevelFlavour::RocksPrefixes => {
                plain_tables(&OnlyRocks::find(library, prefix)?, settings);
            }
        }
        let (path, mut error) = (c_path(&options.directory)?, null_mut());
        // SAFETY: options and path outlive the call, which writes the error.
        let database = unsafe { (calls.open)(settings, path.as_ptr(), &raw mut error) };
        checked(&calls, error)?;
        ensure!(!database.is_null(), "the database did not open, and gave no error");
        let settings = format!("cache {cache} B, write buffer {buffer} B, no compression");
        let version = version(library, flavour);
        Ok(Self { calls, flavour, version, settings, database, reading, writing })
    }
}

fn block_based(only: &OnlyRocks, settings: Handle, cache: Handle) {
    // SAFETY: options and cache are live.
    unsafe {
        let table = (only.block_based_options_create)();
        (only.block_based_options_set_block_cache)(table, cache);
        (only.options_set_block_based_table_factory)(settings, table);
    }
}

fn plain_tables(only: &OnlyRocks, settings: Handle) {
    // SAFETY: the options are live; the transform is given to them.
    unsafe {
        let prefixes = (only.slicetransform_create_fixed_prefix)(plain::PREFIX_BYTES);
        (only.options_set_prefix_extractor)(settings, prefixes);
        (only.options_set_plain_table_factory)(
            settings,
            plain::KEY_BYTES,
            plain::BLOOM_BITS,
            plain::HASH_RATIO,
            plain::INDEX_SPARSENESS,
        );
        (only.options_set_allow_mmap_reads)(settings, 1);
        (only.options_set_memtable_prefix_bloom_size_ratio)(settings, 0.1);
    }
}

/// The version by the library's own word, else by the name of its file.
fn version(library: &Library, flavour: LevelFlavour) -> String {
    c_functions! {
        /// LevelDB's version.
        LevelVersion {
            major_version() -> c_int;
            minor_version() -> c_int;
        }
    }
    if flavour == LevelFlavour::Level
        && let Ok(calls) = LevelVersion::find(library, "leveldb_")
    {
        // SAFETY: the calls take nothing.
        let (major, minor) = unsafe { ((calls.major_version)(), (calls.minor_version)()) };
        return format!("{major}.{minor}");
    }
    let name = library.name.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let stem = name.split(".so").next().unwrap_or_default().to_owned();
    let maps = fs::read_to_string("/proc/self/maps").unwrap_or_default();
    let files = maps.lines().filter_map(|line| line.rsplit('/').next());
    let of_library = |file: &&str| file.starts_with(&stem);
    let version = files.filter(of_library).find_map(|file| file.split(".so.").nth(1));
    version.unwrap_or_default().to_owned()
}

/// The error of a call, if any, which is freed.
fn checked(calls: &LevelCalls, error: *mut c_char) -> Result<()> {
    if error.is_null() {
        return Ok(());
    }
    // SAFETY: an error is a text that the caller frees.
    let text = unsafe {
        let text = c_text(error);
        (calls.free)(error.cast());
        text
    };
    Err(anyhow!(text))
}

impl KvEngine for Level {
    fn version(&self) -> String {
        self.version.clone()
    }

    fn settings(&self) -> String {
        match self.flavour {
            LevelFlavour::RocksPrefixes => format!(
                "plain tables, prefixes of {} B hashed, mmap reads; {}",
                plain::PREFIX_BYTES,
                self.settings
            ),
            _ => self.settings.clone(),
        }
    }

    fn can_scan(&self) -> bool {
        // Plain tables order the keys of one prefix only.
        self.flavour != LevelFlavour::RocksPrefixes
    }

    fn session(&self) -> Result<Box<dyn KvSession + '_>> {
        Ok(Box::new(LevelSession(self)))
    }

    fn sync(&self) -> Result<()> {
        // Closing leaves all that was written in the log or in tables; neither is synced, as while loading.
        Ok(())
    }
}

impl Drop for Level {
    fn drop(&mut self) {
        // SAFETY: sessions borrow the database, so none is left.
        unsafe { (self.calls.close)(self.database) };
    }
}

/// Sessions have nothing of their own.
struct LevelSession<'a>(&'a Level);

impl KvSession for LevelSession<'_> {
    fn load(&mut self, run: &RecordRun) -> Result<()> {
        let Level { calls, database, writing, .. } = self.0;
        let mut error = null_mut();
        // SAFETY: the batch copies keys and values, and is destroyed here.
        unsafe {
            let batch = (calls.writebatch_create)();
            for (key, value) in run.iter() {
                let (key, key_len) = (key.as_ptr().cast(), key.len());
                (calls.writebatch_put)(batch, key, key_len, value.as_ptr().cast(), value.len());
            }
            (calls.write)(*database, *writing, batch, &raw mut error);
            (calls.writebatch_destroy)(batch);
        }
        checked(calls, error)
    }

    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        let Level { calls, database, writing, .. } = self.0;
        let mut error = null_mut();
        let (key, key_len) = (key.as_ptr().cast(), key.len());
        let (value, value_len) = (value.as_ptr().cast(), value.len());
        // SAFETY: key and value outlive the call.
        unsafe {
            (calls.put)(*database, *writing, key, key_len, value, value_len, &raw mut error);
        }
        checked(calls, error)
    }

    fn get(&mut self, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        let Level { calls, database, reading, .. } = self.0;
        let (mut error, mut len) = (null_mut(), 0);
        let (key, key_len) = (key.as_ptr().cast(), key.len());
        // SAFETY: the key outlives the call; what it returns is copied and freed.
        let found = unsafe {
            let found =
                (calls.get)(*database, *reading, key, key_len, &raw mut len, &raw mut error);
            if !found.is_null() {
                value.clear();
                value.extend_from_slice(c_bytes(found, len));
                (calls.free)(found);
            }
            !found.is_null()
        };
        checked(calls, error).map(|()| found)
    }

    fn scan(&mut self, visit: &mut dyn FnMut(&[u8], &[u8])) -> Result<()> {
        let Level { calls, database, reading, .. } = self.0;
        let (mut error, mut key_len, mut value_len) = (null_mut(), 0, 0);
        // SAFETY: key and value live until the iterator moves, which is destroyed here.
        unsafe {
            let iterator = (calls.create_iterator)(*database, *reading);
            (calls.iter_seek_to_first)(iterator);
            while (calls.iter_valid)(iterator) != 0 {
                let key = (calls.iter_key)(iterator, &raw mut key_len);
                let value = (calls.iter_value)(iterator, &raw mut value_len);
                visit(c_bytes(key, key_len), c_bytes(value, value_len));
                (calls.iter_next)(iterator);
            }
            (calls.iter_get_error)(iterator, &raw mut error);
            (calls.iter_destroy)(iterator);
        }
        checked(calls, error)
    }
}
