//! BerkeleyDB, by `db.h` 5.3: a B-tree with transactions and a log. Its objects are structs of functions.

use std::ffi::{c_char, c_int, c_void};
use std::ptr::{null, null_mut};

use anyhow::{Result, ensure};

use super::{
    Handle, Library, c_bytes, c_functions, c_path, checked, dotted, method, version_parts,
};
use crate::kv::engine::{EngineOptions, KvEngine, KvSession};
use crate::kv::records::RecordRun;

/// Offsets of the functions in `DB_ENV`, `DB`, `DBC` and `DB_TXN` on 64-bit machines.
mod at {
    pub(super) const ENV_CLOSE: usize = 488;
    pub(super) const ENV_LOG_SET_CONFIG: usize = 1112;
    pub(super) const ENV_OPEN: usize = 1328;
    pub(super) const ENV_SET_CACHESIZE: usize = 1632;
    pub(super) const ENV_SET_FLAGS: usize = 1728;
    pub(super) const ENV_SET_LK_DETECT: usize = 1800;
    pub(super) const ENV_SET_LK_MAX_LOCKERS: usize = 1808;
    pub(super) const ENV_SET_LK_MAX_LOCKS: usize = 1816;
    pub(super) const ENV_SET_LK_MAX_OBJECTS: usize = 1824;
    pub(super) const ENV_SET_TX_MAX: usize = 2000;
    pub(super) const ENV_TXN_BEGIN: usize = 2040;
    pub(super) const ENV_TXN_CHECKPOINT: usize = 2048;
    pub(super) const DB_CLOSE: usize = 568;
    pub(super) const DB_CURSOR: usize = 584;
    pub(super) const DB_GET: usize = 632;
    pub(super) const DB_OPEN: usize = 1008;
    pub(super) const DB_PUT: usize = 1024;
    pub(super) const DBC_CLOSE: usize = 352;
    pub(super) const DBC_GET: usize = 392;
    pub(super) const TXN_ABORT: usize = 232;
    pub(super) const TXN_COMMIT: usize = 240;
}

/// Versions whose structs are laid out so.
const MAJOR_MINOR: (c_int, c_int) = (5, 3);
const CREATE: u32 = 0x1;
const RECOVER: u32 = 0x2;
const THREAD: u32 = 0x20;
const INIT_LOCK: u32 = 0x100;
const INIT_LOG: u32 = 0x200;
const INIT_MPOOL: u32 = 0x400;
const INIT_TXN: u32 = 0x2000;
const PRIVATE: u32 = 0x1_0000;
const TXN_NOSYNC: u32 = 0x1;
const AUTO_COMMIT: u32 = 0x100;
const LOG_AUTO_REMOVE: u32 = 0x1;
const DETECT_DEFAULT: u32 = 0x1;
const FORCE: u32 = 0x1;
const BTREE: c_int = 1;
const NEXT: u32 = 16;
const USERMEM: u32 = 0x800;
const NOTFOUND: c_int = -30988;
const DEADLOCK: c_int = -30993;
const BUFFER_SMALL: c_int = -30999;
const MODE: c_int = 0o644;
const GIB: u64 = 1 << 30;
/// Locks of a run of records and of all readers at once.
const LOCKS: u32 = 100_000;

/// `DBT`
#[repr(C)]
struct Thing {
    data: *mut c_void,
    size: u32,
    ulen: u32,
    dlen: u32,
    doff: u32,
    app_data: *mut c_void,
    flags: u32,
}

c_functions! {
    /// `db_…`
    BerkeleyCalls {
        env_create(*mut Handle, u32) -> c_int;
        create(*mut Handle, Handle, u32) -> c_int;
        strerror(c_int) -> *const c_char;
        version(*mut c_int, *mut c_int, *mut c_int) -> *const c_char;
    }
}

type Close = unsafe extern "C" fn(Handle, u32) -> c_int;
type SetNumber = unsafe extern "C" fn(Handle, u32) -> c_int;
type SetFlag = unsafe extern "C" fn(Handle, u32, c_int) -> c_int;
type Access = unsafe extern "C" fn(Handle, Handle, *mut Thing, *mut Thing, u32) -> c_int;

/// An open database in an environment of its own.
pub(in crate::kv) struct Berkeley {
    calls: BerkeleyCalls,
    env: Handle,
    database: Handle,
    cache: u64,
}

// SAFETY: both handles are opened with DB_THREAD; cursors and transactions stay in one call.
unsafe impl Send for Berkeley {}
// SAFETY: as above.
unsafe impl Sync for Berkeley {}

impl Berkeley {
    /// Opens the database of a directory, or makes it.
    pub(in crate::kv) fn open(library: &Library, options: &EngineOptions) -> Result<Self> {
        let calls = BerkeleyCalls::find(library, "db_")?;
        let (env, database, cache) = (null_mut(), null_mut(), options.cache_bytes);
        let mut berkeley = Self { calls, env, database, cache };
        let found = version_parts(berkeley.calls.version);
        let (major, minor) = MAJOR_MINOR;
        ensure!(
            (found[0], found[1]) == MAJOR_MINOR,
            "BerkeleyDB {}.{} is installed; this benchmark knows {major}.{minor}",
            found[0],
            found[1]
        );
        berkeley.open_environment(options)?;
        berkeley.open_table()?;
        Ok(berkeley)
    }

    fn open_environment(&mut self, options: &EngineOptions) -> Result<()> {
        type SetCache = unsafe extern "C" fn(Handle, u32, u32, c_int) -> c_int;
        type Open = unsafe extern "C" fn(Handle, *const c_char, u32, c_int) -> c_int;
        let path = c_path(&options.directory)?;
        let (whole, rest) = ((self.cache / GIB) as u32, (self.cache % GIB) as u32);
        let flags =
            CREATE | RECOVER | THREAD | INIT_LOCK | INIT_LOG | INIT_MPOOL | INIT_TXN | PRIVATE;
        // SAFETY: the first call makes the environment; then functions lie at the offsets of this version.
        unsafe {
            let made = (self.calls.env_create)(&raw mut self.env, 0);
            self.checked(made)?;
            let env = self.env;
            self.checked(method::<SetCache>(env, at::ENV_SET_CACHESIZE)(env, whole, rest, 1))?;
            self.checked(method::<SetFlag>(env, at::ENV_SET_FLAGS)(env, TXN_NOSYNC, 1))?;
            let logs = method::<SetFlag>(env, at::ENV_LOG_SET_CONFIG);
            self.checked(logs(env, LOG_AUTO_REMOVE, 1))?;
            let detect = method::<SetNumber>(env, at::ENV_SET_LK_DETECT);
            self.checked(detect(env, DETECT_DEFAULT))?;
            for most in
                [at::ENV_SET_LK_MAX_LOCKERS, at::ENV_SET_LK_MAX_LOCKS, at::ENV_SET_LK_MAX_OBJECTS]
            {
                self.checked(method::<SetNumber>(env, most)(env, LOCKS))?;
            }
            let most = method::<SetNumber>(env, at::ENV_SET_TX_MAX);
            self.checked(most(env, options.sessions.saturating_add(100)))?;
            self.checked(method::<Open>(env, at::ENV_OPEN)(env, path.as_ptr(), flags, MODE))
        }
    }

    fn open_table(&mut self) -> Result<()> {
        type Open = unsafe extern "C" fn(
            Handle,
            Handle,
            *const c_char,
            *const c_char,
            c_int,
            u32,
            c_int,
        ) -> c_int;
        let flags = CREATE | THREAD | AUTO_COMMIT;
        // SAFETY: the environment is open; the name is a constant; the offset is that of this version.
        unsafe {
            let made = (self.calls.create)(&raw mut self.database, self.env, 0);
            self.checked(made)?;
            let (db, name) = (self.database, c"kv.db".as_ptr());
            let open = method::<Open>(db, at::DB_OPEN);
            self.checked(open(db, null_mut(), name, null(), BTREE, flags, MODE))
        }
    }

    fn checked(&self, code: c_int) -> Result<()> {
        checked("BerkeleyDB", self.calls.strerror, code)
    }

    /// Puts a record in a transaction, or in one of its own without one.
    fn write(&self, txn: Handle, key: &[u8], value: &[u8]) -> c_int {
        let (mut key, mut value) = (thing(key), thing(value));
        // SAFETY: the database is open; key and value outlive the call, which copies them.
        unsafe {
            let put = method::<Access>(self.database, at::DB_PUT);
            put(self.database, txn, &raw mut key, &raw mut value, 0)
        }
    }

    /// All records of a run in one transaction; the code of the first call that fails.
    fn try_load(&self, run: &RecordRun) -> c_int {
        type Begin = unsafe extern "C" fn(Handle, Handle, *mut Handle, u32) -> c_int;
        type Abort = unsafe extern "C" fn(Handle) -> c_int;
        let mut txn = null_mut();
        // SAFETY: the environment is open, and the transaction ends in this function.
        unsafe {
            let begin = method::<Begin>(self.env, at::ENV_TXN_BEGIN);
            let code = begin(self.env, null_mut(), &raw mut txn, 0);
            if code != 0 {
                return code;
            }
            let codes = run.iter().map(|(key, value)| self.write(txn, key, value));
            match codes.into_iter().find(|code| *code != 0) {
                None => method::<Close>(txn, at::TXN_COMMIT)(txn, 0),
                Some(code) => {
                    method::<Abort>(txn, at::TXN_ABORT)(txn);
                    code
                }
            }
        }
    }

    /// Does it again while it is the victim of a deadlock.
    fn retried(&self, mut act: impl FnMut() -> c_int) -> c_int {
        loop {
            match act() {
                DEADLOCK => continue,
                code => return code,
            }
        }
    }
}

impl KvEngine for Berkeley {
    fn version(&self) -> String {
        dotted(version_parts(self.calls.version))
    }

    fn settings(&self) -> String {
        format!("cache {} B in private memory, transactions, DB_TXN_NOSYNC", self.cache)
    }

    fn session(&self) -> Result<Box<dyn KvSession + '_>> {
        Ok(Box::new(BerkeleySession(self)))
    }

    fn sync(&self) -> Result<()> {
        type Checkpoint = unsafe extern "C" fn(Handle, u32, u32, u32) -> c_int;
        // SAFETY: the environment is open.
        self.checked(unsafe {
            method::<Checkpoint>(self.env, at::ENV_TXN_CHECKPOINT)(self.env, 0, 0, FORCE)
        })
    }
}

impl Drop for Berkeley {
    fn drop(&mut self) {
        // SAFETY: sessions borrow the database, so none is left; a handle that was made is closed once.
        unsafe {
            if !self.database.is_null() {
                method::<Close>(self.database, at::DB_CLOSE)(self.database, 0);
            }
            if !self.env.is_null() {
                method::<Close>(self.env, at::ENV_CLOSE)(self.env, 0);
            }
        }
    }
}

/// Sessions have nothing of their own.
struct BerkeleySession<'a>(&'a Berkeley);

impl KvSession for BerkeleySession<'_> {
    fn load(&mut self, run: &RecordRun) -> Result<()> {
        self.0.checked(self.0.retried(|| self.0.try_load(run)))
    }

    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.0.checked(self.0.retried(|| self.0.write(null_mut(), key, value)))
    }

    fn get(&mut self, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        let database = self.0.database;
        loop {
            value.resize(value.capacity().max(1), 0);
            let (mut wanted, mut found) = (thing(key), room(value));
            // SAFETY: the key outlives the call, which writes at most `ulen` bytes of the value.
            let code = self.0.retried(|| unsafe {
                let get = method::<Access>(database, at::DB_GET);
                get(database, null_mut(), &raw mut wanted, &raw mut found, 0)
            });
            match code {
                NOTFOUND => return Ok(false),
                BUFFER_SMALL => value.reserve(found.size as usize),
                code => {
                    self.0.checked(code)?;
                    value.truncate(found.size as usize);
                    return Ok(true);
                }
            }
        }
    }

    fn scan(&mut self, visit: &mut dyn FnMut(&[u8], &[u8])) -> Result<()> {
        type Cursor = unsafe extern "C" fn(Handle, Handle, *mut Handle, u32) -> c_int;
        type Step = unsafe extern "C" fn(Handle, *mut Thing, *mut Thing, u32) -> c_int;
        type End = unsafe extern "C" fn(Handle) -> c_int;
        let (berkeley, database, mut cursor) = (self.0, self.0.database, null_mut());
        // SAFETY: keys and values are in the cursor's memory until it moves; it is closed here.
        unsafe {
            let open = method::<Cursor>(database, at::DB_CURSOR);
            berkeley.checked(open(database, null_mut(), &raw mut cursor, 0))?;
            let step = method::<Step>(cursor, at::DBC_GET);
            let code = loop {
                let (mut key, mut value) = (thing(&[]), thing(&[]));
                let code = step(cursor, &raw mut key, &raw mut value, NEXT);
                if code != 0 {
                    break code;
                }
                visit(
                    c_bytes(key.data, key.size as usize),
                    c_bytes(value.data, value.size as usize),
                );
            };
            method::<End>(cursor, at::DBC_CLOSE)(cursor);
            if code == NOTFOUND { Ok(()) } else { berkeley.checked(code) }
        }
    }
}

/// Bytes that the library reads.
fn thing(bytes: &[u8]) -> Thing {
    let (data, size) = (bytes.as_ptr().cast_mut().cast(), bytes.len() as u32);
    Thing { data, size, ulen: 0, dlen: 0, doff: 0, app_data: null_mut(), flags: 0 }
}

/// Bytes that the library writes.
fn room(bytes: &mut [u8]) -> Thing {
    let ulen = bytes.len() as u32;
    Thing { data: bytes.as_mut_ptr().cast(), ulen, flags: USERMEM, ..thing(&[]) }
}
