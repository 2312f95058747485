//! Group commit: one sync for all waiting sessions.
//!
//! A session requests [room](GroupCommit::reserve), orders its transaction and [submits](GroupCommit::submit)
//! its record, which returns the position at once; then it waits for its [`LogTicket`], on a thread
//! ([`LogTicket::wait`]) or as a future. A thread named `atoll-log` writes the submitted records, syncs them once
//! and releases all tickets up to there; records submitted meanwhile wait for the next sync. No other thread
//! writes or syncs the log.
//!
//! Room is requested first because an ordered record cannot be refused any more: others may have
//! read it. It is granted at once while the disk has space. Between requesting room and submitting, a session must
//! not wait for another session, except for the room itself.
//!
//! [`queue`] decides what to do and when, as a state machine without thread, clock or file, which tests
//! step; the thread here only carries out the decisions. An error is final: all waiting tickets, and
//! all later calls, get the first error's text.

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
    /// At once: a power cut loses at most the records submitted within
    /// [`GroupCommitOptions::sync_interval`].
    AtOnce,
}

/// Options of group commit.
#[derive(Clone, Copy, Debug)]
pub struct GroupCommitOptions {
    /// Maximum delay of the sync of a record that was acknowledged at once.
    pub sync_interval: Duration,
    /// Bytes of records in memory beyond which room is granted only after some were written.
    pub buffer_bytes_max: usize,
}

impl Default for GroupCommitOptions {
    fn default() -> Self {
        Self { sync_interval: Duration::from_millis(200), buffer_bytes_max: 64 << 20 }
    }
}

/// A log shared by many sessions. Dropping it writes and syncs all submitted records.
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
    /// The log's thread waits here for work.
    work: Condvar,
    /// Session threads wait here for tickets and room.
    done: Condvar,
    /// Number of open transactions that have written.
    writers: AtomicU64,
}

/// A transaction that has written and will submit a record, unless it is rolled back: while it lives, other records may
/// wait a moment to be synced with it.
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

    /// The same, and keeps the directory locked until the thread has ended.
    pub fn holding(mut self, lock: DirectoryLock) -> Self {
        self._lock = Some(lock);
        self
    }

    /// Announces that a transaction has written.
    pub fn open_writer(&self) -> OpenWriter {
        self.shared.writers.fetch_add(1, Ordering::Relaxed);
        OpenWriter(Arc::clone(&self.shared))
    }

    /// Requests room for a record of this many bytes.
    pub fn reserve(&self, payload_bytes: usize) -> Result<RoomRequest, LogError> {
        check_size(payload_bytes)?;
        let request = self.shared.queue.lock().reserve(frame_bytes(payload_bytes))?;
        if !request.is_granted {
            self.shared.work.notify_one();
        }
        Ok(RoomRequest::new(Arc::clone(&self.shared), request))
    }

    /// Submits a record after all earlier ones. The payload must fit the room; an error
    /// means that the log has stopped.
    ///
    /// # Panics
    /// If the room is too small.
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

    /// A ticket that is released when the log is on disk up to the position of a submitted record;
    /// the record is synced now even if nothing else requests it.
    pub fn sync_to(&self, position: Position) -> Result<LogTicket, LogError> {
        self.shared.queue.lock().sync_to(position)?;
        self.shared.work.notify_one();
        Ok(LogTicket::new(Arc::clone(&self.shared), position, position))
    }

    /// The position after the last submitted record.
    pub fn end(&self) -> Position {
        self.shared.queue.lock().end()
    }

    /// The position up to which the log is on disk.
    pub fn synced(&self) -> Position {
        self.shared.queue.lock().synced()
    }

    /// Statistics since the start.
    pub fn statistics(&self) -> LogStatistics {
        self.shared.queue.lock().statistics()
    }

    /// Writes and syncs all submitted records, and ends the thread. Returns the error that stopped the log, if
    /// any.
    pub fn close(mut self) -> Result<(), LogError> {
        self.end_thread();
        self.shared.queue.lock().failure()
    }

    fn end_thread(&mut self) {
        self.shared.queue.lock().close();
        self.shared.work.notify_one();
        if let Some(thread) = self.thread.take() {
            // The panic stopped the log and is its failure in the queue.
            let _ = thread.join();
        }
    }
}

impl Drop for GroupCommit {
    fn drop(&mut self) {
        self.end_thread();
    }
}

/// Stops the log if its thread ends unexpectedly, so that no session waits forever.
struct StopOnPanic(Arc<CommitShared>);

impl StopOnPanic {
    /// The loop of the thread.
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
