//! Shared libraries that a process loads by name while it runs: `dlopen` and `dlsym`.

use std::ffi::{CStr, CString, c_void};
use std::fmt;
use std::path::Path;
use std::ptr::NonNull;

/// A loaded library. It stays loaded until the process ends, so its addresses never dangle.
#[derive(Clone, Copy)]
pub struct SharedLibrary(NonNull<c_void>);

// SAFETY: the handle is only passed to dlsym, which any thread may call.
unsafe impl Send for SharedLibrary {}
// SAFETY: as above; the handle is never written to.
unsafe impl Sync for SharedLibrary {}

impl fmt::Debug for SharedLibrary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SharedLibrary")
    }
}

/// Why a library or a function of it cannot be had, in the dynamic linker's words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct LibraryError(String);

impl SharedLibrary {
    /// Loads a library by its file name, which the dynamic linker looks up, or by its path. Its symbols stay
    /// invisible to other libraries.
    ///
    /// The library's initialisers run: the caller trusts it like the program itself.
    #[doc(alias = "dlopen")]
    pub fn load(name: &Path) -> Result<Self, LibraryError> {
        let bytes = name.as_os_str().as_encoded_bytes();
        let text = CString::new(bytes).map_err(|_| LibraryError("a name with a NUL".to_owned()))?;
        // SAFETY: the name ends with a NUL and outlives the call.
        let handle = unsafe { libc::dlopen(text.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        NonNull::new(handle).map(Self).ok_or_else(reason)
    }

    /// The address of a function or variable.
    #[doc(alias = "dlsym")]
    pub fn symbol(self, name: &str) -> Result<NonNull<c_void>, LibraryError> {
        let text = CString::new(name).map_err(|_| LibraryError("a name with a NUL".to_owned()))?;
        // SAFETY: the handle is of a loaded library, the name ends with a NUL and outlives the call.
        let address = unsafe { libc::dlsym(self.0.as_ptr(), text.as_ptr()) };
        NonNull::new(address).ok_or_else(reason)
    }
}

/// The last error of the dynamic linker in this thread.
fn reason() -> LibraryError {
    // SAFETY: the call takes nothing; its text, if any, ends with a NUL and lives until the thread's next call.
    let text = unsafe { libc::dlerror() };
    if text.is_null() {
        return LibraryError("the dynamic linker gives no reason".to_owned());
    }
    // SAFETY: as above; it is copied before the next call.
    let text = unsafe { CStr::from_ptr(text) };
    LibraryError(text.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_c_library_is_loaded_by_name_and_has_its_functions() {
        let library = SharedLibrary::load(Path::new("libc.so.6")).expect("the C library");
        assert!(library.symbol("malloc").is_ok());
        let error = library.symbol("no_such_function").unwrap_err().to_string();
        assert!(error.contains("no_such_function"), "{error}");
    }

    #[test]
    fn a_missing_library_is_named() {
        let error = SharedLibrary::load(Path::new("libnosuch.so.9")).unwrap_err().to_string();
        assert!(error.contains("libnosuch.so.9"), "{error}");
    }
}
