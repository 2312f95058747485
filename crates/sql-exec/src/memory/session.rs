//! The memory of one session within the shared limit.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use atoll_topology::Bytes;
use datafusion::common::{Result, resources_datafusion_err};
use datafusion::execution::memory_pool::{
    MemoryConsumer, MemoryLimit, MemoryPool, MemoryReservation,
};

/// The memory that the statements of a session have reserved, and its limit. Clones share their state.
#[derive(Clone, Debug, Default)]
pub struct SessionMemory(Arc<MemoryParts>);

#[derive(Debug)]
struct MemoryParts {
    used: AtomicUsize,
    limit: AtomicUsize,
}

impl Default for MemoryParts {
    fn default() -> Self {
        Self { used: AtomicUsize::new(0), limit: AtomicUsize::new(usize::MAX) }
    }
}

impl SessionMemory {
    /// Bytes that are reserved now.
    pub fn used(&self) -> usize {
        self.0.used.load(Ordering::Relaxed)
    }

    /// Sets the bytes that it may reserve from now on; `None` without its own limit.
    pub fn set_limit(&self, limit: Option<Bytes>) {
        let limit = limit.and_then(|limit| usize::try_from(limit.0).ok());
        self.0.limit.store(limit.unwrap_or(usize::MAX), Ordering::Relaxed);
    }

    /// Adds bytes if the limit allows them; else returns the limit.
    fn try_add(&self, bytes: usize) -> std::result::Result<(), usize> {
        let limit = self.0.limit.load(Ordering::Relaxed);
        let added = self.0.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |used| {
            used.checked_add(bytes).filter(|sum| *sum <= limit)
        });
        added.map(drop).map_err(|_| limit)
    }

    fn add(&self, bytes: usize) {
        self.0.used.fetch_add(bytes, Ordering::Relaxed);
    }

    fn take(&self, bytes: usize) {
        self.0.used.fetch_sub(bytes, Ordering::Relaxed);
    }
}

/// The shared pool with a count and a limit for one session.
#[derive(Debug)]
pub struct SessionPool {
    all: Arc<dyn MemoryPool>,
    memory: SessionMemory,
}

impl SessionPool {
    /// A session's view of the shared pool.
    pub fn new(all: &Arc<dyn MemoryPool>, memory: &SessionMemory) -> Self {
        Self { all: Arc::clone(all), memory: memory.clone() }
    }
}

impl fmt::Display for SessionPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "session({})", self.all)
    }
}

impl MemoryPool for SessionPool {
    fn name(&self) -> &str {
        "session"
    }

    fn register(&self, consumer: &MemoryConsumer) {
        self.all.register(consumer);
    }

    fn unregister(&self, consumer: &MemoryConsumer) {
        self.all.unregister(consumer);
    }

    fn grow(&self, reservation: &MemoryReservation, additional: usize) {
        self.memory.add(additional);
        self.all.grow(reservation, additional);
    }

    fn shrink(&self, reservation: &MemoryReservation, shrink: usize) {
        self.all.shrink(reservation, shrink);
        self.memory.take(shrink);
    }

    fn try_grow(&self, reservation: &MemoryReservation, additional: usize) -> Result<()> {
        self.memory.try_add(additional).map_err(|limit| {
            resources_datafusion_err!(
                "{} has {} and needs {} more, and the session has {} of the {} that atoll.session_memory allows it",
                reservation.consumer().name(),
                Bytes(reservation.size() as u64),
                Bytes(additional as u64),
                Bytes(self.memory.used() as u64),
                Bytes(limit as u64)
            )
        })?;
        let grown = self.all.try_grow(reservation, additional);
        if grown.is_err() {
            self.memory.take(additional);
        }
        grown
    }

    fn reserved(&self) -> usize {
        self.all.reserved()
    }

    fn memory_limit(&self) -> MemoryLimit {
        self.all.memory_limit()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::{Gauge, SharedPool};

    #[test]
    fn a_session_has_its_own_limit_within_the_shared_one() {
        let gauge = Arc::new(Gauge::new(1000, None));
        let all: Arc<dyn MemoryPool> = Arc::new(SharedPool::new(1000, gauge));
        let memory = SessionMemory::default();
        let of = |memory| Arc::new(SessionPool::new(&all, memory)) as Arc<dyn MemoryPool>;
        let (one, other) = (of(&memory), of(&SessionMemory::default()));
        let mine = MemoryConsumer::new("a join").register(&one);
        let others = MemoryConsumer::new("a join").register(&other);
        memory.set_limit(Some(Bytes(300)));
        mine.try_grow(300).unwrap();
        let error = mine.try_grow(1).unwrap_err().to_string();
        assert!(error.contains("a join") && error.contains("atoll.session_memory"), "{error}");
        others.try_grow(700).unwrap();
        memory.set_limit(None);
        // Bytes that the shared pool refuses are not counted.
        let error = mine.try_grow(1).unwrap_err().to_string();
        assert!(!error.contains("atoll.session_memory"), "{error}");
        assert_eq!((memory.used(), all.reserved()), (300, 1000));
        mine.shrink(100);
        assert_eq!((memory.used(), all.reserved()), (200, 900));
        drop(mine);
        assert_eq!((memory.used(), all.reserved()), (0, 700));
    }
}
