//! SQLite, by `sqlite3.h` 3.40: a table without row ids, a write-ahead log, a connection for each thread.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::ptr::{null, null_mut};

use anyhow::{Context, Result, anyhow};

use super::{Handle, Library, c_bytes, c_functions, c_path, c_text};
use crate::kv::engine::{EngineOptions, KvEngine, KvSession};
use crate::kv::records::RecordRun;

const READWRITE: c_int = 0x2;
const CREATE: c_int = 0x4;
/// One thread at a time uses a connection.
const NOMUTEX: c_int = 0x8000;
const ROW: c_int = 100;
const DONE: c_int = 101;
const BUSY_MS: c_int = 60_000;

const MAKE: &CStr = c"PRAGMA journal_mode = WAL;
CREATE TABLE IF NOT EXISTS kv (key BLOB PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID";
const PUT: &CStr = c"INSERT OR REPLACE INTO kv VALUES (?1, ?2)";
const GET: &CStr = c"SELECT value FROM kv WHERE key = ?1";
const SCAN: &CStr = c"SELECT key, value FROM kv";
const CHECKPOINT: &CStr = c"PRAGMA wal_checkpoint(TRUNCATE)";

c_functions! {
    /// `sqlite3_…`
    SqliteCalls {
        libversion() -> *const c_char;
        open_v2(*const c_char, *mut Handle, c_int, *const c_char) -> c_int;
        close_v2(Handle) -> c_int;
        errmsg(Handle) -> *const c_char;
        busy_timeout(Handle, c_int) -> c_int;
        exec(Handle, *const c_char, Handle, Handle, *mut *mut c_char) -> c_int;
        prepare_v2(Handle, *const c_char, c_int, *mut Handle, *mut *const c_char) -> c_int;
        bind_blob(Handle, c_int, *const c_void, c_int, Handle) -> c_int;
        step(Handle) -> c_int;
        reset(Handle) -> c_int;
        finalize(Handle) -> c_int;
        column_blob(Handle, c_int) -> *const c_void;
        column_bytes(Handle, c_int) -> c_int;
    }
}

/// A database, which sessions open.
pub(in crate::kv) struct Sqlite {
    calls: SqliteCalls,
    file: CString,
    /// Of each connection.
    cache_kib: u64,
}

impl Sqlite {
    /// Opens the database of a directory, or makes it.
    pub(in crate::kv) fn open(library: &Library, options: &EngineOptions) -> Result<Self> {
        let calls = SqliteCalls::find(library, "sqlite3_")?;
        let file = c_path(&options.directory.join("kv.sqlite"))?;
        let cache_kib = options.cache_bytes / u64::from(options.sessions.max(1)) / 1024;
        let sqlite = Self { calls, file, cache_kib };
        sqlite.connect()?.run(MAKE)?;
        Ok(sqlite)
    }

    fn connect(&self) -> Result<Connection<'_>> {
        let mut connection = Connection { calls: &self.calls, handle: null_mut() };
        let (flags, name) = (READWRITE | CREATE | NOMUTEX, self.file.as_ptr());
        // SAFETY: the name outlives the call, which writes the handle, also if it fails.
        let code = unsafe { (self.calls.open_v2)(name, &raw mut connection.handle, flags, null()) };
        connection.checked(code)?;
        // SAFETY: the connection is open.
        unsafe { (self.calls.busy_timeout)(connection.handle, BUSY_MS) };
        let cache = format!("PRAGMA synchronous = OFF; PRAGMA cache_size = -{}", self.cache_kib);
        connection.run(&CString::new(cache).context("a setting has a NUL in it")?)?;
        Ok(connection)
    }
}

impl KvEngine for Sqlite {
    fn version(&self) -> String {
        // SAFETY: the text is a constant of the library.
        unsafe { c_text((self.calls.libversion)()) }
    }

    fn settings(&self) -> String {
        let cache = self.cache_kib;
        format!("WAL, synchronous = OFF, cache {cache} KiB in each connection, WITHOUT ROWID")
    }

    fn session(&self) -> Result<Box<dyn KvSession + '_>> {
        let connection = self.connect()?;
        let (put, get) = (connection.prepare(PUT)?, connection.prepare(GET)?);
        Ok(Box::new(SqliteSession { put, get, connection }))
    }

    fn sync(&self) -> Result<()> {
        self.connect()?.run(CHECKPOINT)
    }
}

/// An open connection.
struct Connection<'a> {
    calls: &'a SqliteCalls,
    handle: Handle,
}

impl<'a> Connection<'a> {
    fn checked(&self, code: c_int) -> Result<()> {
        match code {
            0 | ROW | DONE => Ok(()),
            // SAFETY: the text lives until the connection's next call.
            _ => Err(anyhow!("SQLite: {}", unsafe { c_text((self.calls.errmsg)(self.handle)) })),
        }
    }

    fn run(&self, sql: &CStr) -> Result<()> {
        // SAFETY: the connection is open, the text outlives the call, and the callback is NULL.
        self.checked(unsafe {
            (self.calls.exec)(self.handle, sql.as_ptr(), null_mut(), null_mut(), null_mut())
        })
    }

    fn prepare(&self, sql: &CStr) -> Result<Statement<'a>> {
        let mut statement = Statement { calls: self.calls, handle: null_mut() };
        let (made, rest) = (&raw mut statement.handle, null_mut());
        // SAFETY: the connection is open; the text outlives the call, which writes the handle.
        self.checked(unsafe {
            (self.calls.prepare_v2)(self.handle, sql.as_ptr(), -1, made, rest)
        })?;
        Ok(statement)
    }
}

impl Drop for Connection<'_> {
    fn drop(&mut self) {
        // SAFETY: the connection is used no more; it closes after its statements.
        unsafe { (self.calls.close_v2)(self.handle) };
    }
}

/// A prepared statement.
struct Statement<'a> {
    calls: &'a SqliteCalls,
    handle: Handle,
}

impl Statement<'_> {
    /// Runs it to the first row with these parameters, which live until it is reset.
    fn start(&mut self, parameters: &[&[u8]]) -> c_int {
        for (at, bytes) in parameters.iter().enumerate() {
            let (at, len) = (at as c_int + 1, bytes.len() as c_int);
            // SAFETY: null stands for SQLITE_STATIC: the bytes outlive the run.
            let code = unsafe {
                (self.calls.bind_blob)(self.handle, at, bytes.as_ptr().cast(), len, null_mut())
            };
            if code != 0 {
                return code;
            }
        }
        self.next()
    }

    fn next(&mut self) -> c_int {
        // SAFETY: the statement is prepared.
        unsafe { (self.calls.step)(self.handle) }
    }

    /// A column of the current row, until the next step.
    fn column(&self, at: c_int) -> &[u8] {
        // SAFETY: the bytes live until the statement's next step or reset, which need it exclusively.
        unsafe {
            let bytes = (self.calls.column_blob)(self.handle, at);
            c_bytes(bytes, (self.calls.column_bytes)(self.handle, at).max(0) as usize)
        }
    }

    /// Ends the run.
    fn reset(&mut self) {
        // SAFETY: the statement is prepared; the code repeats that of the last step.
        unsafe { (self.calls.reset)(self.handle) };
    }
}

impl Drop for Statement<'_> {
    fn drop(&mut self) {
        // SAFETY: the statement is used no more.
        unsafe { (self.calls.finalize)(self.handle) };
    }
}

/// A thread's connection and its statements.
struct SqliteSession<'a> {
    put: Statement<'a>,
    get: Statement<'a>,
    connection: Connection<'a>,
}

impl KvSession for SqliteSession<'_> {
    fn load(&mut self, run: &RecordRun) -> Result<()> {
        self.connection.run(c"BEGIN IMMEDIATE")?;
        run.iter().try_for_each(|(key, value)| self.put(key, value))?;
        self.connection.run(c"COMMIT")
    }

    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        let done = self.connection.checked(self.put.start(&[key, value]));
        self.put.reset();
        done
    }

    fn get(&mut self, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        let code = self.get.start(&[key]);
        if code == ROW {
            value.clear();
            value.extend_from_slice(self.get.column(0));
        }
        let done = self.connection.checked(code);
        self.get.reset();
        done.map(|()| code == ROW)
    }

    fn scan(&mut self, visit: &mut dyn FnMut(&[u8], &[u8])) -> Result<()> {
        let mut scan = self.connection.prepare(SCAN)?;
        let mut code = scan.start(&[]);
        while code == ROW {
            visit(scan.column(0), scan.column(1));
            code = scan.next();
        }
        self.connection.checked(code)
    }
}
