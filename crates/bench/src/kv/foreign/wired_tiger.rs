//! WiredTiger, by `wiredtiger.h` 3.2: a table as a B-tree or as an LSM tree. Its objects are structs of functions.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::ptr::{null, null_mut};

use anyhow::{Context, Result, ensure};

use super::{
    Handle, Library, c_bytes, c_functions, c_path, checked, dotted, method, version_parts,
};
use crate::kv::engine::{EngineOptions, KvEngine, KvSession};
use crate::kv::records::RecordRun;

/// Offsets of the functions in `WT_CONNECTION`, `WT_SESSION` and `WT_CURSOR` on 64-bit machines.
mod at {
    pub(super) const CONNECTION_CLOSE: usize = 16;
    pub(super) const CONNECTION_OPEN_SESSION: usize = 64;
    pub(super) const SESSION_CLOSE: usize = 16;
    pub(super) const SESSION_OPEN_CURSOR: usize = 40;
    pub(super) const SESSION_CREATE: usize = 56;
    pub(super) const SESSION_CHECKPOINT: usize = 216;
    pub(super) const CURSOR_GET_KEY: usize = 32;
    pub(super) const CURSOR_GET_VALUE: usize = 40;
    pub(super) const CURSOR_SET_KEY: usize = 48;
    pub(super) const CURSOR_SET_VALUE: usize = 56;
    pub(super) const CURSOR_NEXT: usize = 80;
    pub(super) const CURSOR_RESET: usize = 96;
    pub(super) const CURSOR_SEARCH: usize = 104;
    pub(super) const CURSOR_INSERT: usize = 120;
}

/// Versions whose structs are laid out so.
const MAJOR_MINOR: (c_int, c_int) = (3, 2);
const NOTFOUND: c_int = -31803;
const ROLLBACK: c_int = -31800;
/// Sessions beside those of this benchmark: the library's own.
const SESSIONS_SPARE: u32 = 100;
const TABLE: &CStr = c"table:kv";

/// How a table is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::kv) enum WiredTigerTable {
    /// B-tree.
    Btree,
    /// LSM tree.
    Lsm,
}

/// `WT_ITEM`
#[repr(C)]
struct Item {
    data: *const c_void,
    size: usize,
    /// Fields of the library's own.
    own: [usize; 3],
}

c_functions! {
    /// `wiredtiger_…`
    WiredTigerCalls {
        open(*const c_char, Handle, *const c_char, *mut Handle) -> c_int;
        strerror(c_int) -> *const c_char;
        version(*mut c_int, *mut c_int, *mut c_int) -> *const c_char;
    }
}

type Close = unsafe extern "C" fn(Handle, *const c_char) -> c_int;
type Act = unsafe extern "C" fn(Handle) -> c_int;
type OpenSession = unsafe extern "C" fn(Handle, Handle, *const c_char, *mut Handle) -> c_int;
type OpenCursor =
    unsafe extern "C" fn(Handle, *const c_char, Handle, *const c_char, *mut Handle) -> c_int;
/// `set_key` and `set_value`
type SetItem = unsafe extern "C" fn(Handle, ...);
/// `get_key` and `get_value`
type GetItem = unsafe extern "C" fn(Handle, ...) -> c_int;

/// An open connection.
pub(in crate::kv) struct WiredTiger {
    calls: WiredTigerCalls,
    connection: Handle,
    settings: String,
}

// SAFETY: a connection may be used by all threads; sessions and cursors stay in theirs.
unsafe impl Send for WiredTiger {}
// SAFETY: as above.
unsafe impl Sync for WiredTiger {}

impl WiredTiger {
    /// Opens the database of a directory, or makes it with such a table.
    pub(in crate::kv) fn open(
        library: &Library,
        table: WiredTigerTable,
        options: &EngineOptions,
    ) -> Result<Self> {
        let calls = WiredTigerCalls::find(library, "wiredtiger_")?;
        let cache = options.cache_bytes;
        let settings = format!("cache {cache} B, no log, no compression");
        let mut tiger = Self { calls, connection: null_mut(), settings };
        let ([found_major, found_minor, _], (major, minor)) =
            (version_parts(tiger.calls.version), MAJOR_MINOR);
        ensure!(
            (found_major, found_minor) == MAJOR_MINOR,
            "WiredTiger {found_major}.{found_minor} is installed; this benchmark knows {major}.{minor}"
        );
        let sessions = options.sessions + SESSIONS_SPARE;
        let config = format!("create,cache_size={cache},session_max={sessions}");
        let (path, config) = (c_path(&options.directory)?, c_string(config)?);
        // SAFETY: path and configuration outlive the call, which writes the handle.
        let opened = unsafe {
            let made = &raw mut tiger.connection;
            (calls.open)(path.as_ptr(), null_mut(), config.as_ptr(), made)
        };
        tiger.checked(opened)?;
        tiger.create(table, options.buffer_bytes)?;
        Ok(tiger)
    }

    fn create(&self, table: WiredTigerTable, buffer: u64) -> Result<()> {
        type Create = unsafe extern "C" fn(Handle, *const c_char, *const c_char) -> c_int;
        let kind = match table {
            WiredTigerTable::Btree => "type=file".to_owned(),
            WiredTigerTable::Lsm => format!("type=lsm,lsm=(chunk_size={})", buffer.max(512 << 10)),
        };
        let config = c_string(format!("key_format=u,value_format=u,{kind}"))?;
        let session = self.open_session()?;
        // SAFETY: the session is open and closed here; the table that exists already is left as it is.
        unsafe {
            let create = method::<Create>(session, at::SESSION_CREATE);
            let code = create(session, TABLE.as_ptr(), config.as_ptr());
            method::<Close>(session, at::SESSION_CLOSE)(session, null());
            self.checked(code)
        }
    }

    fn open_session(&self) -> Result<Handle> {
        let mut session = null_mut();
        // SAFETY: the connection is open; the call writes the handle.
        self.checked(unsafe {
            let open = method::<OpenSession>(self.connection, at::CONNECTION_OPEN_SESSION);
            open(self.connection, null_mut(), null(), &raw mut session)
        })?;
        Ok(session)
    }

    fn checked(&self, code: c_int) -> Result<()> {
        checked("WiredTiger", self.calls.strerror, code)
    }
}

fn c_string(text: String) -> Result<CString> {
    CString::new(text).context("a setting has a NUL in it")
}

impl KvEngine for WiredTiger {
    fn version(&self) -> String {
        dotted(version_parts(self.calls.version))
    }

    fn settings(&self) -> String {
        self.settings.clone()
    }

    fn session(&self) -> Result<Box<dyn KvSession + '_>> {
        let (session, mut cursor) = (self.open_session()?, null_mut());
        // SAFETY: the session is open; the call writes the handle.
        self.checked(unsafe {
            let open = method::<OpenCursor>(session, at::SESSION_OPEN_CURSOR);
            open(session, TABLE.as_ptr(), null_mut(), null(), &raw mut cursor)
        })?;
        Ok(Box::new(WiredTigerSession { tiger: self, session, cursor }))
    }

    fn sync(&self) -> Result<()> {
        let session = self.open_session()?;
        // SAFETY: the session is open and closed here.
        let code = unsafe {
            let code = method::<Close>(session, at::SESSION_CHECKPOINT)(session, null());
            method::<Close>(session, at::SESSION_CLOSE)(session, null());
            code
        };
        self.checked(code)
    }
}

impl Drop for WiredTiger {
    fn drop(&mut self) {
        if !self.connection.is_null() {
            // SAFETY: sessions borrow the connection, so none is left.
            unsafe {
                method::<Close>(self.connection, at::CONNECTION_CLOSE)(self.connection, null())
            };
        }
    }
}

/// A thread's session and its cursor.
struct WiredTigerSession<'a> {
    tiger: &'a WiredTiger,
    session: Handle,
    cursor: Handle,
}

impl WiredTigerSession<'_> {
    /// Calls a function of the cursor that takes nothing.
    fn act(&self, offset: usize) -> c_int {
        // SAFETY: the cursor is open, and its function at this offset takes nothing.
        unsafe { method::<Act>(self.cursor, offset)(self.cursor) }
    }

    fn set(&self, offset: usize, item: &Item) {
        // SAFETY: the formats are raw bytes, so the argument is an item; its bytes live until the next call.
        unsafe { method::<SetItem>(self.cursor, offset)(self.cursor, item as *const Item) }
    }

    fn item(&self, offset: usize) -> Result<Item> {
        let mut item = item(&[]);
        // SAFETY: as for `set`; the call writes the item.
        let code = unsafe { method::<GetItem>(self.cursor, offset)(self.cursor, &raw mut item) };
        self.tiger.checked(code)?;
        Ok(item)
    }
}

impl KvSession for WiredTigerSession<'_> {
    fn load(&mut self, run: &RecordRun) -> Result<()> {
        run.iter().try_for_each(|(key, value)| self.put(key, value))
    }

    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        let (key, value) = (item(key), item(value));
        loop {
            self.set(at::CURSOR_SET_KEY, &key);
            self.set(at::CURSOR_SET_VALUE, &value);
            match self.act(at::CURSOR_INSERT) {
                ROLLBACK => continue,
                code => return self.tiger.checked(code),
            }
        }
    }

    fn get(&mut self, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        let key = item(key);
        let code = loop {
            self.set(at::CURSOR_SET_KEY, &key);
            match self.act(at::CURSOR_SEARCH) {
                ROLLBACK => continue,
                code => break code,
            }
        };
        if code == NOTFOUND {
            return Ok(false);
        }
        self.tiger.checked(code)?;
        let found = self.item(at::CURSOR_GET_VALUE)?;
        value.clear();
        // SAFETY: the bytes live until the cursor is reset.
        value.extend_from_slice(unsafe { c_bytes(found.data, found.size) });
        self.tiger.checked(self.act(at::CURSOR_RESET)).map(|()| true)
    }

    fn scan(&mut self, visit: &mut dyn FnMut(&[u8], &[u8])) -> Result<()> {
        self.tiger.checked(self.act(at::CURSOR_RESET))?;
        loop {
            match self.act(at::CURSOR_NEXT) {
                NOTFOUND => return Ok(()),
                code => self.tiger.checked(code)?,
            }
            let (key, value) = (self.item(at::CURSOR_GET_KEY)?, self.item(at::CURSOR_GET_VALUE)?);
            // SAFETY: both live until the cursor moves.
            unsafe { visit(c_bytes(key.data, key.size), c_bytes(value.data, value.size)) };
        }
    }
}

impl Drop for WiredTigerSession<'_> {
    fn drop(&mut self) {
        // SAFETY: the session is used no more; it closes its cursor.
        unsafe { method::<Close>(self.session, at::SESSION_CLOSE)(self.session, null()) };
    }
}

fn item(bytes: &[u8]) -> Item {
    Item { data: bytes.as_ptr().cast(), size: bytes.len(), own: [0; 3] }
}
