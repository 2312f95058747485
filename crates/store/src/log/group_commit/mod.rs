//! One sync for all that wait.
//!
//! A session asks for [room](GroupCommit::reserve), orders its transaction and [submits](GroupCommit::submit)
//! its record, which gives it its position at once; then it waits for its [`LogTicket`], on a thread
//! ([`LogTicket::wait`]) or as a future. A thread named `atoll-log` writes what was submitted, syncs it once
//! and releases all tickets up to there; what is submitted meanwhile waits for the next sync. No other thread
//! writes or syncs the log.
//!
//! Room is asked for first, because a record that was ordered cannot be refused any more: others may have
//! read it. It is granted at once while the disk has space. A session must not wait for another between
//! asking for room and submitting, but for the room itself.
//!
//! [`queue`] decides what is done when, as a state machine without thread, clock or file, which tests
//! step; the thread here only carries out what it says. An error is final for all: tickets that wait, and
//! whatever comes later, get the first error's text.

mod queue;
mod ticket;

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use super::buffer::{CheckedPayload, check_size};
use super::frame::{FrameChecksum, frame_bytes};
use super::writer::LogWriter;
use super::{Log, LogError, Position};
use crate::files::DirectoryLock;
use queue::{CommitQueue, CommitStep};

pub use queue::LogStatistics;
pub use ticket::{LogRoom, LogTicket, RoomRequest};

/// When a record's ticket is released.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Acknowledgement {
    /// When the record is on disk.
    Synced,
    /// At once: a power cut loses at most what was submitted within
    /// [`GroupCommitOptions::sync_interval`].
    AtOnce,
}

/// How records are gathered.
#[derive(Clone, Copy, Debug)]
pub struct GroupCommitOptions {
    /// How long a record that was acknowledged at once may wait for its sync.
    pub sync_interval: Duration,
    /// Bytes of records in memory beyond which room is granted only when some were written.
    pub buffer_bytes_max: usize,
}

impl Default for GroupCommitOptions {
    fn default() -> Self {
        Self { sync_interval: Duration::from_millis(200), buffer_bytes_max: 64 << 20 }
    }
}

/// A log that many sessions write. Dropping it writes and syncs what was submitted.
#[derive(Debug)]
pub struct GroupCommit {
    shared: Arc<CommitShared>,
    checksum: FrameChecksum,
    thread: Option<JoinHandle<()>>,
    _lock: Option<DirectoryLock>,
}

#[derive(Debug)]
struct CommitShared {
    queue: Mutex<CommitQueue>,
    /// The log's thread waits here for something to do.
    work: Condvar,
    /// Threads of sessions wait here for tickets and room.
    done: Condvar,
    /// Transactions that are open and have written.
    writers: AtomicU64,
}

/// A transaction that has written and will submit a record, unless it is rolled back: while it lives, others may be
/// kept for a moment to be synced with it.
#[derive(Debug)]
pub struct OpenWriter(Arc<CommitShared>);

impl Drop for OpenWriter {
    fn drop(&mut self) {
        self.0.writers.fetch_sub(1, Ordering::Relaxed);
    }
}

impl GroupCommit {
    /// Starts the thread.
    pub fn start(log: Log, options: GroupCommitOptions) -> std::io::Result<Self> {
        let Log { buffer, writer } = log;
        let checksum = buffer.checksum();
        let space_end = writer.space().end();
        let queue = CommitQueue::new(buffer, writer.synced(), space_end, options);
        let shared = Arc::new(CommitShared {
            queue: Mutex::new(queue),
            work: Condvar::new(),
            done: Condvar::new(),
            writers: AtomicU64::new(0),
        });
        let of_thread = Arc::clone(&shared);
        let run = move || StopOnPanic(of_thread).run(writer);
        let thread = thread::Builder::new().name("atoll-log".into()).spawn(run)?;
        Ok(Self { shared, checksum, thread: Some(thread), _lock: None })
    }

    /// The same, which keeps the directory locked until its thread has ended.
    pub fn holding(mut self, lock: DirectoryLock) -> Self {
        self._lock = Some(lock);
        self
    }

    /// Tells that a transaction has written.
    pub fn open_writer(&self) -> OpenWriter {
        self.shared.writers.fetch_add(1, Ordering::Relaxed);
        OpenWriter(Arc::clone(&self.shared))
    }

    /// Asks for room for a record of this many bytes.
    pub fn reserve(&self, payload_bytes: usize) -> Result<RoomRequest, LogError> {
        check_size(payload_bytes)?;
        let request = self.shared.queue.lock().reserve(frame_bytes(payload_bytes))?;
        if !request.is_granted {
            self.shared.work.notify_one();
        }
        Ok(RoomRequest::new(Arc::clone(&self.shared), request))
    }

    /// Puts a record behind all that were submitted before. The payload must fit the room; an error
    /// means that the log has stopped.
    ///
    /// # Panics
    /// When the room is too small.
    pub fn submit(
        &self,
        room: LogRoom,
        payload: &[u8],
        acknowledgement: Acknowledgement,
    ) -> Result<LogTicket, LogError> {
        let payload_bytes = frame_bytes(payload.len());
        assert!(payload_bytes <= room.bytes(), "a record does not fit the room reserved for it");
        let payload = CheckedPayload::new(payload, self.checksum)?;
        let mut queue = self.shared.queue.lock();
        let position = queue.submit(room.take(), payload, acknowledgement)?;
        let is_enough = queue.is_enough();
        drop(queue);
        if is_enough {
            self.shared.work.notify_one();
        }
        let release = match acknowledgement {
            Acknowledgement::Synced => position,
            Acknowledgement::AtOnce => Position::START,
        };
        Ok(LogTicket::new(Arc::clone(&self.shared), position, release))
    }

    /// A ticket that is released when the log is on disk up to a position of a record that was submitted;
    /// it is synced now even if nothing else asks for it.
    pub fn sync_to(&self, position: Position) -> Result<LogTicket, LogError> {
        self.shared.queue.lock().sync_to(position)?;
        self.shared.work.notify_one();
        Ok(LogTicket::new(Arc::clone(&self.shared), position, position))
    }

    /// The position behind the last record that was submitted.
    pub fn end(&self) -> Position {
        self.shared.queue.lock().end()
    }

    /// The position up to which the log is on disk.
    pub fn synced(&self) -> Position {
        self.shared.queue.lock().synced()
    }

    /// What was done since the start.
    pub fn statistics(&self) -> LogStatistics {
        self.shared.queue.lock().statistics()
    }

    /// Writes and syncs what was submitted, and ends the thread. The error that stopped the log, if
    /// one did.
    pub fn close(mut self) -> Result<(), LogError> {
        self.end_thread();
        self.shared.queue.lock().failure()
    }

    fn end_thread(&mut self) {
        self.shared.queue.lock().close();
        self.shared.work.notify_one();
        if let Some(thread) = self.thread.take() {
            // A panic stopped the log, and is in the queue as its failure.
            let _ = thread.join();
        }
    }
}

impl Drop for GroupCommit {
    fn drop(&mut self) {
        self.end_thread();
    }
}

/// Stops the log when its thread ends in a way that was not meant, so that no session waits for ever.
struct StopOnPanic(Arc<CommitShared>);

impl StopOnPanic {
    /// What the thread does.
    fn run(self, mut writer: LogWriter) {
        let start = Instant::now();
        loop {
            let mut queue = self.0.queue.lock();
            let step = match queue.next(start.elapsed()) {
                CommitStep::End => return,
                CommitStep::Wait(None) => {
                    self.0.work.wait(&mut queue);
                    continue;
                }
                CommitStep::Wait(Some(until)) => {
                    self.0.work.wait_until(&mut queue, start + until);
                    continue;
                }
                step => step,
            };
            drop(queue);
            let done = step.carry_out(&mut writer);
            let mut queue = self.0.queue.lock();
            queue.set_writers(self.0.writers.load(Ordering::Relaxed));
            let wakers = queue.finished(done, start.elapsed());
            drop(queue);
            self.0.done.notify_all();
            wakers.into_iter().for_each(|waker| waker.wake());
        }
    }
}

impl Drop for StopOnPanic {
    fn drop(&mut self) {
        let wakers = self.0.queue.lock().stop();
        self.0.done.notify_all();
        wakers.into_iter().for_each(|waker| waker.wake());
    }
}
