//! Errors as codes, with a message per thread; panics do not cross the C boundary.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::ffi::{CString, c_char, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};

use atoll_primitives::PrimitiveError;

/// The return codes: `ATOLL_OK` and the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum Code {
    /// Success.
    Ok = 0,
    /// An argument is invalid.
    Invalid = 1,
    /// The function does not support the type.
    Type = 2,
    /// The result overflows its type.
    Overflow = 3,
    /// Out of memory, or the memory limit is reached.
    Memory = 4,
    /// The context's calls were cancelled.
    Cancelled = 5,
    /// A callback ended the call.
    Stopped = 6,
    /// The operating system returned an error.
    System = 7,
    /// A defect of the library.
    Defect = 8,
}

/// Why a call failed.
#[derive(Debug)]
pub(crate) struct CallFailure {
    pub(crate) code: Code,
    pub(crate) text: String,
}

impl CallFailure {
    /// A failure for a reason.
    pub(crate) fn new(code: Code, text: impl ToString) -> Self {
        Self { code, text: text.to_string() }
    }

    /// An invalid argument.
    pub(crate) fn invalid(text: impl ToString) -> Self {
        Self::new(Code::Invalid, text)
    }
}

impl From<PrimitiveError> for CallFailure {
    fn from(error: PrimitiveError) -> Self {
        let code = match &error {
            PrimitiveError::Memory(_) => Code::Memory,
            PrimitiveError::Cancelled(_) => {
                return Self::new(Code::Cancelled, "cancelled by atoll_cancel");
            }
            PrimitiveError::Overflow { .. } => Code::Overflow,
            PrimitiveError::Shape { .. } | PrimitiveError::Arrow(_) => Code::Invalid,
            PrimitiveError::Type { .. } => Code::Type,
            PrimitiveError::NoSuchNode(_) => Code::Invalid,
            PrimitiveError::Panicked { .. } => Code::Defect,
        };
        Self::new(code, error)
    }
}

thread_local! {
    static TEXT: RefCell<CString> = RefCell::default();
    static IN_CALLBACK: Cell<bool> = const { Cell::new(false) };
}

/// Runs the body of a function and returns its code.
pub(crate) fn guard(work: impl FnOnce() -> Result<(), CallFailure>) -> c_int {
    let failure = match catch_unwind(AssertUnwindSafe(work)) {
        Ok(Ok(())) => return Code::Ok as c_int,
        Ok(Err(failure)) => failure,
        Err(panic) => {
            let text = format!("a panic: {}; please report it", said(panic.as_ref()));
            CallFailure::new(Code::Defect, text)
        }
    };
    TEXT.set(c_text(&failure.text));
    failure.code as c_int
}

/// Calls back into the caller's program, which must not call the library.
pub(crate) fn calling_back<T>(call: impl FnOnce() -> T) -> T {
    IN_CALLBACK.set(true);
    let result = call();
    IN_CALLBACK.set(false);
    result
}

/// Rejects a call from a worker, which must not wait for workers.
pub(crate) fn not_in_callback() -> Result<(), CallFailure> {
    match IN_CALLBACK.get() {
        false => Ok(()),
        true => Err(CallFailure::invalid(
            "called from an atoll_block_fn; keep what it is given and go on when the join has \
             returned",
        )),
    }
}

/// A text for C, truncated at a NUL, which our messages do not contain.
pub(crate) fn c_text(text: &str) -> CString {
    let text = text.split('\0').next().unwrap_or_default();
    CString::new(text).unwrap_or_default()
}

fn said(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| Some(panic.downcast_ref::<String>()?)).unwrap_or("without a message")
}

/// The message of this thread's last failed call.
#[unsafe(no_mangle)]
pub extern "C" fn atoll_error() -> *const c_char {
    TEXT.with_borrow(|text| text.as_ptr())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_a_code_and_a_text() {
        assert_eq!(guard(|| panic!("of {}", 7)), Code::Defect as c_int);
        TEXT.with_borrow(|text| {
            assert_eq!(text.to_str().unwrap(), "a panic: of 7; please report it");
        });
    }

    #[test]
    fn a_call_from_a_callback_is_refused() {
        assert_eq!(calling_back(|| guard(not_in_callback)), Code::Invalid as c_int);
        assert_eq!(guard(not_in_callback), Code::Ok as c_int);
    }
}
