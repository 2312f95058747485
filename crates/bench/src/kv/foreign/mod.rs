//! Engines behind C interfaces, whose libraries are loaded at run time.
//!
//! | File | Engines |
//! |---|---|
//! | `lmdb` | LMDB and libmdbx, whose interfaces have one shape |
//! | `level` | LevelDB, HyperLevelDB, Basho LevelDB and RocksDB, whose interfaces have one shape |
//! | `berkeley` | BerkeleyDB |
//! | `wired_tiger` | WiredTiger, LSM and B-tree |
//! | `sqlite` | SQLite |
//!
//! It owns all unsafe code of the crate. Types of functions are written down by hand from the headers of the
//! versions named in each file.

mod berkeley;
mod level;
mod lmdb;
mod sqlite;
mod wired_tiger;

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::path::{Path, PathBuf};
use std::ptr::NonNull;

use anyhow::{Context, Result, anyhow};
use atoll_sys::SharedLibrary;

pub(super) use berkeley::Berkeley;
pub(super) use level::{Level, LevelFlavour};
pub(super) use lmdb::{Lmdb, LmdbFlavour};
pub(super) use sqlite::Sqlite;
pub(super) use wired_tiger::{WiredTiger, WiredTigerTable};

/// A loaded library, and what provides it.
#[derive(Clone, Debug)]
pub(super) struct Library {
    library: SharedLibrary,
    name: PathBuf,
    source: &'static str,
}

impl Library {
    /// Loads the first of these that can be loaded; `source` says how to get the first.
    pub(super) fn load(names: impl Iterator<Item = PathBuf>, source: &'static str) -> Result<Self> {
        let mut first = None;
        for name in names {
            match SharedLibrary::load(&name) {
                Ok(library) => return Ok(Self { library, name, source }),
                Err(error) => first = first.or(Some(error)),
            }
        }
        let error = first.map_or_else(String::new, |error| error.to_string());
        Err(anyhow!("{error}; {source} provides it"))
    }

    fn address(&self, function: &str) -> Result<NonNull<c_void>> {
        self.library.symbol(function).map_err(|error| {
            let (name, source) = (self.name.display(), self.source);
            anyhow!("{name} is of another version than this benchmark knows ({source}): {error}")
        })
    }
}

/// A struct of functions of a library by their names there, which begin with a common prefix.
macro_rules! c_functions {
    ($(#[$about:meta])* $name:ident { $($field:ident($($arg:ty),*) $(-> $result:ty)?;)* }) => {
        $(#[$about])*
        #[derive(Clone, Copy)]
        struct $name { $($field: unsafe extern "C" fn($($arg),*) $(-> $result)?,)* }

        impl $name {
            fn find(library: &$crate::kv::foreign::Library, prefix: &str) -> anyhow::Result<Self> {
                Ok(Self { $($field: {
                    let address = library.address(&format!("{prefix}{}", stringify!($field)))?;
                    // SAFETY: the type is the one in the header of the library.
                    unsafe {
                        std::mem::transmute::<
                            std::ptr::NonNull<std::ffi::c_void>,
                            unsafe extern "C" fn($($arg),*) $(-> $result)?,
                        >(address)
                    }
                },)* })
            }
        }
    };
}

use c_functions;

/// An object of a library.
type Handle = *mut c_void;

/// A method of an object that is a C struct with pointers to functions.
///
/// # Safety
/// At this offset of a live object lies a pointer to a function of type `F`.
unsafe fn method<F: Copy>(object: Handle, offset: usize) -> F {
    // SAFETY: as the caller promises.
    unsafe { object.byte_add(offset).cast::<F>().read() }
}

/// A path for C.
fn c_path(path: &Path) -> Result<CString> {
    CString::new(path.as_os_str().as_encoded_bytes())
        .with_context(|| format!("{} has a NUL in it", path.display()))
}

/// A text of C, copied; empty for none.
///
/// # Safety
/// The text, if any, ends with a NUL and lives during the call.
unsafe fn c_text(text: *const c_char) -> String {
    if text.is_null() {
        return String::new();
    }
    // SAFETY: as the caller promises.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}

/// A call for the version of a library, in three numbers.
type VersionCall = unsafe extern "C" fn(*mut c_int, *mut c_int, *mut c_int) -> *const c_char;

fn version_parts(call: VersionCall) -> [c_int; 3] {
    let mut parts = [0; 3];
    let [major, minor, patch] = parts.each_mut().map(|part| part as *mut c_int);
    // SAFETY: the call writes the three numbers; its text is a constant.
    unsafe { call(major, minor, patch) };
    parts
}

fn dotted(parts: [c_int; 3]) -> String {
    parts.map(|part| part.to_string()).join(".")
}

/// A call for the text of an error.
type ErrorText = unsafe extern "C" fn(c_int) -> *const c_char;

fn checked(engine: &str, text: ErrorText, code: c_int) -> Result<()> {
    if code == 0 {
        return Ok(());
    }
    // SAFETY: the text is a constant of the library, or of this thread.
    Err(anyhow!("{engine}: {}", unsafe { c_text(text(code)) }))
}

/// Bytes of C; empty for none.
///
/// # Safety
/// `bytes` point to `len` initialised bytes that live and do not change for `'a`.
unsafe fn c_bytes<'a>(bytes: *const c_void, len: usize) -> &'a [u8] {
    if bytes.is_null() || len == 0 {
        return &[];
    }
    // SAFETY: as the caller promises.
    unsafe { std::slice::from_raw_parts(bytes.cast(), len) }
}
