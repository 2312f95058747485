//! loom's lock with the face of parking_lot's, for files that are compiled with either.

use loom::sync::MutexGuard;

/// A lock whose every use is a point where another thread may go on.
#[derive(Debug)]
pub struct Mutex<T>(loom::sync::Mutex<T>);

impl<T> Mutex<T> {
    /// An open lock.
    pub fn new(value: T) -> Self {
        Self(loom::sync::Mutex::new(value))
    }

    /// Waits for the lock.
    pub fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(|_| panic!("a thread panicked while it held the lock"))
    }
}
