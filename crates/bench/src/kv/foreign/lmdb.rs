//! LMDB and libmdbx, by `lmdb.h` 0.9 and `mdbx.h` 0.14: a B-tree in one file that is mapped into memory.

use std::ffi::{c_char, c_int, c_uint, c_void};
use std::ptr::{null, null_mut};

use anyhow::Result;

use super::{Handle, Library, c_bytes, c_functions, c_path, checked, dotted, version_parts};
use crate::kv::engine::{EngineOptions, KvEngine, KvSession};
use crate::kv::records::RecordRun;

const NOSYNC: c_uint = 0x1_0000;
/// libmdbx's word for what LMDB calls NOSYNC.
const UTTERLY_NOSYNC: c_uint = 0x11_0000;
/// `MDBX_LOG_ERROR`, and what leaves other settings of a log as they are.
const LOG_ERROR: c_int = 1;
const UNCHANGED: c_int = -1;
/// `MDBX_RESULT_TRUE`
const RESULT_TRUE: c_int = -1;
const RDONLY: c_uint = 0x2_0000;
const WRITEMAP: c_uint = 0x8_0000;
const NOTLS: c_uint = 0x20_0000;
const CREATE: c_uint = 0x4_0000;
const APPEND: c_uint = 0x2_0000;
const FIRST: c_int = 0;
const NEXT: c_int = 8;
const NOTFOUND: c_int = -30798;
const MODE: c_uint = 0o644;
/// Slots for readers beside those of this benchmark.
const READERS_SPARE: u32 = 16;

/// Which of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::kv) enum LmdbFlavour {
    /// LMDB
    Lmdb,
    /// libmdbx
    Mdbx,
}

/// `MDB_val`, whose length is the first word, or `MDBX_val`, whose length is the second.
#[repr(C)]
#[derive(Clone, Copy)]
struct Value([*const c_void; 2]);

c_functions! {
    /// `mdb_…` and `mdbx_…`
    LmdbCalls {
        strerror(c_int) -> *const c_char;
        env_create(*mut Handle) -> c_int;
        env_set_maxreaders(Handle, c_uint) -> c_int;
        env_open(Handle, *const c_char, c_uint, c_uint) -> c_int;
        env_close(Handle);
        txn_begin(Handle, Handle, c_uint, *mut Handle) -> c_int;
        txn_commit(Handle) -> c_int;
        txn_abort(Handle);
        txn_reset(Handle);
        txn_renew(Handle) -> c_int;
        dbi_open(Handle, *const c_char, c_uint, *mut c_uint) -> c_int;
        get(Handle, c_uint, *mut Value, *mut Value) -> c_int;
        put(Handle, c_uint, *mut Value, *mut Value, c_uint) -> c_int;
        cursor_open(Handle, c_uint, *mut Handle) -> c_int;
        cursor_get(Handle, *mut Value, *mut Value, c_int) -> c_int;
        cursor_close(Handle);
    }
}

c_functions! {
    /// What LMDB alone has.
    OnlyLmdb {
        version(*mut c_int, *mut c_int, *mut c_int) -> *const c_char;
        env_set_mapsize(Handle, usize) -> c_int;
        env_sync(Handle, c_int) -> c_int;
    }
}

c_functions! {
    /// What libmdbx alone has.
    OnlyMdbx {
        setup_debug(c_int, c_int, isize) -> c_int;
        env_set_geometry(Handle, isize, isize, isize, isize, isize, isize) -> c_int;
        env_sync_ex(Handle, bool, bool) -> c_int;
    }
}

/// What differs.
#[derive(Clone, Copy)]
enum Only {
    Lmdb(OnlyLmdb),
    Mdbx(OnlyMdbx),
}

/// An open database.
pub(in crate::kv) struct Lmdb {
    calls: LmdbCalls,
    only: Only,
    version: String,
    env: Handle,
    table: c_uint,
}

// SAFETY: an environment may be used by all threads; transactions stay in the session that began them.
unsafe impl Send for Lmdb {}
// SAFETY: as above.
unsafe impl Sync for Lmdb {}

impl Lmdb {
    /// Opens the database of a directory, or makes it.
    pub(in crate::kv) fn open(
        library: &Library,
        flavour: LmdbFlavour,
        options: &EngineOptions,
    ) -> Result<Self> {
        let (calls, only, version) = match flavour {
            LmdbFlavour::Lmdb => {
                let only = OnlyLmdb::find(library, "mdb_")?;
                (
                    LmdbCalls::find(library, "mdb_")?,
                    Only::Lmdb(only),
                    dotted(version_parts(only.version)),
                )
            }
            LmdbFlavour::Mdbx => {
                let only = OnlyMdbx::find(library, "mdbx_")?;
                // SAFETY: plain numbers; the library stops telling on stderr what it does.
                unsafe { (only.setup_debug)(LOG_ERROR, UNCHANGED, UNCHANGED as isize) };
                (LmdbCalls::find(library, "mdbx_")?, Only::Mdbx(only), mdbx_version(library)?)
            }
        };
        let mut lmdb = Self { calls, only, version, env: null_mut(), table: 0 };
        let path = c_path(&options.directory)?;
        let readers = options.sessions + READERS_SPARE;
        // SAFETY: arguments are of the header's types and outlive the calls; the handle is made by the first one.
        unsafe {
            let made = (calls.env_create)(&raw mut lmdb.env);
            lmdb.checked(made)?;
            lmdb.limit(options.data_bytes)?;
            lmdb.checked((calls.env_set_maxreaders)(lmdb.env, readers))?;
            let flags = lmdb.nosync() | WRITEMAP | NOTLS;
            lmdb.checked((calls.env_open)(lmdb.env, path.as_ptr(), flags, MODE))?;
        }
        let txn = lmdb.begin(0)?;
        // SAFETY: the transaction has begun and ends here.
        unsafe {
            let opened = (calls.dbi_open)(txn, null(), CREATE, &raw mut lmdb.table);
            lmdb.checked(opened)?;
            lmdb.checked((calls.txn_commit)(txn))?;
        }
        Ok(lmdb)
    }

    /// Sets the largest size of the file. It is sparse: address space costs nothing.
    fn limit(&self, data_bytes: u64) -> Result<()> {
        let most = data_bytes.saturating_mul(8).max(1 << 30) as usize;
        // SAFETY: the environment was made and is not open; -1 stands for the default.
        self.checked(unsafe {
            match self.only {
                Only::Lmdb(only) => (only.env_set_mapsize)(self.env, most),
                Only::Mdbx(only) => {
                    (only.env_set_geometry)(self.env, -1, -1, most.cast_signed(), -1, -1, -1)
                }
            }
        })
    }

    fn nosync(&self) -> c_uint {
        match self.only {
            Only::Lmdb(_) => NOSYNC,
            Only::Mdbx(_) => UTTERLY_NOSYNC,
        }
    }

    fn value(&self, bytes: &[u8]) -> Value {
        let (start, len) =
            (bytes.as_ptr().cast::<c_void>(), std::ptr::without_provenance(bytes.len()));
        Value(match self.only {
            Only::Lmdb(_) => [len, start],
            Only::Mdbx(_) => [start, len],
        })
    }

    /// The bytes of a value.
    ///
    /// # Safety
    /// The library wrote it, and its bytes do not change for `'a`.
    unsafe fn bytes<'a>(&self, Value([first, second]): Value) -> &'a [u8] {
        let (start, len) = match self.only {
            Only::Lmdb(_) => (second, first),
            Only::Mdbx(_) => (first, second),
        };
        // SAFETY: as the caller promises.
        unsafe { c_bytes(start, len.addr()) }
    }

    fn begin(&self, flags: c_uint) -> Result<Handle> {
        let mut txn = null_mut();
        // SAFETY: the environment is open; the call writes the handle.
        self.checked(unsafe { (self.calls.txn_begin)(self.env, null_mut(), flags, &raw mut txn) })?;
        Ok(txn)
    }

    fn checked(&self, code: c_int) -> Result<()> {
        let engine = match self.only {
            Only::Lmdb(_) => "LMDB",
            Only::Mdbx(_) => "libmdbx",
        };
        checked(engine, self.calls.strerror, code)
    }

    /// Puts records in one transaction.
    fn write<'r>(
        &self,
        records: impl Iterator<Item = (&'r [u8], &'r [u8])>,
        flags: c_uint,
    ) -> Result<()> {
        let txn = self.begin(0)?;
        for (key, value) in records {
            let (mut key, mut value) = (self.value(key), self.value(value));
            // SAFETY: the transaction has begun; key and value outlive the call, which copies them.
            let code =
                unsafe { (self.calls.put)(txn, self.table, &raw mut key, &raw mut value, flags) };
            if let Err(error) = self.checked(code) {
                // SAFETY: the transaction has begun and is not used again.
                unsafe { (self.calls.txn_abort)(txn) };
                return Err(error);
            }
        }
        // SAFETY: the transaction has begun and is not used again.
        self.checked(unsafe { (self.calls.txn_commit)(txn) })
    }
}

impl KvEngine for Lmdb {
    fn version(&self) -> String {
        self.version.clone()
    }

    fn settings(&self) -> String {
        match self.only {
            Only::Lmdb(_) => {
                "MDB_NOSYNC, MDB_WRITEMAP, as the report's db_bench has it by default".to_owned()
            }
            Only::Mdbx(_) => "MDBX_UTTERLY_NOSYNC, MDBX_WRITEMAP".to_owned(),
        }
    }

    fn session(&self) -> Result<Box<dyn KvSession + '_>> {
        let reading = self.begin(RDONLY)?;
        // SAFETY: the transaction has begun; it is renewed before each use.
        unsafe { (self.calls.txn_reset)(reading) };
        Ok(Box::new(LmdbSession { lmdb: self, reading }))
    }

    fn sync(&self) -> Result<()> {
        // SAFETY: the environment is open.
        let code = unsafe {
            match self.only {
                Only::Lmdb(only) => (only.env_sync)(self.env, 1),
                Only::Mdbx(only) => (only.env_sync_ex)(self.env, true, false),
            }
        };
        // libmdbx: there was nothing to be written.
        if code == RESULT_TRUE { Ok(()) } else { self.checked(code) }
    }
}

impl Drop for Lmdb {
    fn drop(&mut self) {
        if !self.env.is_null() {
            // SAFETY: sessions borrow the environment, so none is left.
            unsafe { (self.calls.env_close)(self.env) };
        }
    }
}

/// A thread's reading transaction, renewed for each read.
struct LmdbSession<'a> {
    lmdb: &'a Lmdb,
    reading: Handle,
}

impl KvSession for LmdbSession<'_> {
    fn load(&mut self, run: &RecordRun) -> Result<()> {
        self.lmdb.write(run.iter(), if run.is_ascending() { APPEND } else { 0 })
    }

    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.lmdb.write(std::iter::once((key, value)), 0)
    }

    fn get(&mut self, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        let (lmdb, calls) = (self.lmdb, &self.lmdb.calls);
        let (mut key, mut found) = (lmdb.value(key), lmdb.value(&[]));
        // SAFETY: the transaction was reset; the value is in the map until the transaction is reset again.
        unsafe {
            self.lmdb.checked((calls.txn_renew)(self.reading))?;
            let code = (calls.get)(self.reading, self.lmdb.table, &raw mut key, &raw mut found);
            if code == 0 {
                value.clear();
                value.extend_from_slice(lmdb.bytes(found));
            }
            (calls.txn_reset)(self.reading);
            match code {
                NOTFOUND => Ok(false),
                code => self.lmdb.checked(code).map(|()| true),
            }
        }
    }

    fn scan(&mut self, visit: &mut dyn FnMut(&[u8], &[u8])) -> Result<()> {
        let (lmdb, calls) = (self.lmdb, &self.lmdb.calls);
        let (mut cursor, mut key, mut value) = (null_mut(), lmdb.value(&[]), lmdb.value(&[]));
        // SAFETY: the transaction was reset; key and value are in the map until it is reset again.
        unsafe {
            lmdb.checked((calls.txn_renew)(self.reading))?;
            lmdb.checked((calls.cursor_open)(self.reading, lmdb.table, &raw mut cursor))?;
            let mut step = FIRST;
            let code = loop {
                let code = (calls.cursor_get)(cursor, &raw mut key, &raw mut value, step);
                if code != 0 {
                    break code;
                }
                visit(lmdb.bytes(key), lmdb.bytes(value));
                step = NEXT;
            };
            (calls.cursor_close)(cursor);
            (calls.txn_reset)(self.reading);
            if code == NOTFOUND { Ok(()) } else { lmdb.checked(code) }
        }
    }
}

impl Drop for LmdbSession<'_> {
    fn drop(&mut self) {
        // SAFETY: the transaction is used no more.
        unsafe { (self.lmdb.calls.txn_abort)(self.reading) };
    }
}

/// The version, which begins the constant `mdbx_version`.
fn mdbx_version(library: &Library) -> Result<String> {
    let start = library.address("mdbx_version")?.cast::<[u16; 3]>();
    // SAFETY: the header declares a constant that begins with at least three such numbers.
    let parts = unsafe { start.read() };
    Ok(parts.map(|part| part.to_string()).join("."))
}
