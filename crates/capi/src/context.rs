//! Contexts: workers, memory with its limit, a cancel token.

use std::ffi::c_int;
use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};

use atoll_placement::{Arena, FixedBudget, Kernel, LiveKernel};
use atoll_primitives::{PrimitiveError, Tuning};
use atoll_runtime::{CancelToken, Runtime, RuntimeOptions};
use atoll_topology::Bytes;

use crate::failure::{CallFailure, Code, guard, not_in_callback};
use crate::foreign;

/// `atoll_context`.
#[derive(Debug)]
pub struct Context {
    context: atoll_primitives::Context,
    limit: Arc<FixedBudget>,
    /// Parent of the tokens of running calls.
    calls: Mutex<CancelToken>,
}

impl Context {
    fn open(threads: u32) -> Result<Self, CallFailure> {
        let known =
            atoll_formats::store::live().map_err(|error| CallFailure::new(Code::System, error))?;
        let knowledge = Arc::new(known.knowledge);
        let tuning = Tuning::from_knowledge(&knowledge);
        let machine = Arc::new(knowledge.machine.clone());
        let kernel: Arc<dyn Kernel> = Arc::new(LiveKernel::new());
        let threads = (threads > 0).then_some(threads as usize);
        let options = RuntimeOptions { threads, ..RuntimeOptions::default() };
        let runtime = Runtime::start(Arc::clone(&machine), Arc::clone(&kernel), options);
        let runtime = runtime.map_err(|error| {
            let asked = matches!(error, atoll_runtime::RuntimeError::Threads { .. });
            CallFailure::new(if asked { Code::Invalid } else { Code::System }, error)
        })?;
        let limit = Arc::new(FixedBudget::new(Bytes(u64::MAX)));
        let arena = Arena::new(machine, kernel, Some(Arc::clone(&limit) as _));
        let context = atoll_primitives::Context::new(runtime, arena)
            .with_tuning(tuning)
            .with_knowledge(knowledge);
        Ok(Self { context, limit, calls: Mutex::default() })
    }

    /// The context of a call's primitives: the same workers and memory, with a separate cancel token.
    fn of_call(&self) -> Result<atoll_primitives::Context, CallFailure> {
        not_in_callback()?;
        let calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(self.context.clone().with_cancel(calls.child()))
    }

    fn cancel(&self) {
        let mut calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *calls).cancel();
    }
}

/// The same for a context that the caller names.
///
/// # Safety
/// As [`named`].
pub(crate) unsafe fn of_call(
    context: *const Context,
) -> Result<atoll_primitives::Context, CallFailure> {
    // SAFETY: as the caller promises.
    unsafe { named(context) }?.of_call()
}

/// A context that the caller names.
///
/// # Safety
/// Null, or a context from `atoll_open` that is not closed.
unsafe fn named<'a>(context: *const Context) -> Result<&'a Context, CallFailure> {
    if context.is_null() {
        return Err(CallFailure::invalid("context: null pointer; open one with atoll_open"));
    }
    // SAFETY: as the caller promises.
    unsafe { foreign::one("context", context) }
}

/// Waits for a primitive on the calling thread.
pub(crate) fn wait<T>(
    context: &atoll_primitives::Context,
    primitive: impl Future<Output = Result<T, PrimitiveError>>,
) -> Result<T, CallFailure> {
    Ok(context.runtime().block_on(primitive)?)
}

/// Starts workers.
///
/// # Safety
/// As atoll.h says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn atoll_open(threads: u32, context: *mut *mut Context) -> c_int {
    guard(|| {
        foreign::check("context", context.cast_const(), 1)?;
        // SAFETY: not null and aligned; the caller's room for a pointer.
        unsafe { *context = std::ptr::null_mut() };
        let opened = Box::new(Context::open(threads)?);
        // SAFETY: the same.
        unsafe { *context = Box::into_raw(opened) };
        Ok(())
    })
}

/// Ends the workers and frees the context.
///
/// # Safety
/// As atoll.h says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn atoll_close(context: *mut Context) {
    guard(|| {
        if !context.is_null() {
            // SAFETY: made of a box by atoll_open, and given back once, the caller's promise.
            drop(unsafe { Box::from_raw(context) });
        }
        Ok(())
    });
}

/// Number of workers.
///
/// # Safety
/// As atoll.h says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn atoll_threads(context: *const Context) -> u32 {
    // SAFETY: the caller's promise.
    let context = unsafe { context.as_ref() };
    context.map_or(0, |context| context.context.runtime().worker_count() as u32)
}

/// Sets the memory limit.
///
/// # Safety
/// As atoll.h says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn atoll_set_memory_limit(context: *mut Context, bytes: u64) -> c_int {
    guard(|| {
        // SAFETY: the caller's promise.
        unsafe { named(context) }?.limit.set_limit(Bytes(if bytes == 0 {
            u64::MAX
        } else {
            bytes
        }));
        Ok(())
    })
}

/// Memory in use.
///
/// # Safety
/// As atoll.h says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn atoll_memory_used(context: *const Context) -> u64 {
    // SAFETY: the caller's promise.
    let context = unsafe { context.as_ref() };
    context.map_or(0, |context| context.limit.used().0)
}

/// Cancels the running calls.
///
/// # Safety
/// As atoll.h says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn atoll_cancel(context: *mut Context) {
    // SAFETY: the caller's promise. A shared reference: calls are under way.
    if let Some(context) = unsafe { context.cast_const().as_ref() } {
        context.cancel();
    }
}
