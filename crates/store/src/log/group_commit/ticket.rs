//! The futures of sessions: room for a record, and its sync. Each can also be waited for on a thread.

use std::future::Future;
use std::mem;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use super::super::{LogError, Position};
use super::CommitShared;
use super::queue::{CommitQueue, WantedRoom};

/// A submitted record. As a future, or by [`wait`](Self::wait), it is released when the record is
/// on disk, or at once if requested, and returns the record's position.
#[derive(Debug)]
pub struct LogTicket {
    shared: Arc<CommitShared>,
    position: Position,
    /// Position up to which the log must be synced before it is released.
    release: Position,
    /// The key of its waker, once it was polled.
    number: Option<u64>,
}

/// A request for room. As a future, or by [`wait`](Self::wait), it returns the room.
#[derive(Debug)]
pub struct RoomRequest {
    /// None once the room was returned.
    shared: Option<Arc<CommitShared>>,
    wanted: WantedRoom,
}

/// Room for a record, to be submitted without waiting for other sessions. Dropping it gives it back.
#[derive(Debug)]
pub struct LogRoom {
    shared: Arc<CommitShared>,
    wanted: WantedRoom,
}

impl LogTicket {
    pub(super) fn new(shared: Arc<CommitShared>, position: Position, release: Position) -> Self {
        Self { shared, position, release, number: None }
    }

    /// The position of the record.
    pub fn position(&self) -> Position {
        self.position
    }

    /// Blocks the thread until the ticket is released.
    pub fn wait(self) -> Result<Position, LogError> {
        let mut queue = self.shared.queue.lock();
        loop {
            if let Some(released) = queue.is_synced(self.release) {
                return released.map(|()| self.position);
            }
            self.shared.done.wait(&mut queue);
        }
    }
}

impl Future for LogTicket {
    type Output = Result<Position, LogError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let shared = Arc::clone(&self.shared);
        let mut queue = shared.queue.lock();
        if let Some(released) = queue.is_synced(self.release) {
            return Poll::Ready(released.map(|()| self.position));
        }
        let number = *self.number.get_or_insert_with(|| queue.number());
        queue.wake(number, Some(self.release), context.waker());
        Poll::Pending
    }
}

impl Drop for LogTicket {
    fn drop(&mut self) {
        if let Some(number) = self.number {
            self.shared.queue.lock().forget_waker(number);
        }
    }
}

impl RoomRequest {
    pub(super) fn new(shared: Arc<CommitShared>, wanted: WantedRoom) -> Self {
        Self { shared: Some(shared), wanted }
    }

    /// Blocks the thread until there is room. [`LogError::NoSpace`] while the disk is full.
    pub fn wait(mut self) -> Result<LogRoom, LogError> {
        let Some(shared) = self.shared.clone() else { return Err(LogError::Closed) };
        let mut queue = shared.queue.lock();
        loop {
            if let Some(answer) = self.answer(&mut queue) {
                return answer;
            }
            shared.done.wait(&mut queue);
        }
    }

    fn answer(&mut self, queue: &mut CommitQueue) -> Option<Result<LogRoom, LogError>> {
        let granted = match self.wanted.is_granted {
            true => Ok(()),
            false => queue.answer(self.wanted.number)?,
        };
        // From here on the answer owns the room, if any.
        let shared = self.shared.take()?;
        let wanted = WantedRoom { is_granted: true, ..self.wanted };
        Some(granted.map(|()| LogRoom { shared, wanted }))
    }
}

impl Future for RoomRequest {
    type Output = Result<LogRoom, LogError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let Some(shared) = self.shared.clone() else { return Poll::Ready(Err(LogError::Closed)) };
        let mut queue = shared.queue.lock();
        if let Some(answer) = self.answer(&mut queue) {
            return Poll::Ready(answer);
        }
        queue.wake(self.wanted.number, None, context.waker());
        Poll::Pending
    }
}

impl Drop for RoomRequest {
    fn drop(&mut self) {
        if let Some(shared) = &self.shared {
            shared.queue.lock().withdraw(self.wanted);
        }
    }
}

impl LogRoom {
    /// Size of the room in the log, in bytes.
    pub(super) fn bytes(&self) -> u64 {
        self.wanted.bytes
    }

    /// Passes the room to a record; returns its size in bytes.
    pub(super) fn take(mut self) -> u64 {
        mem::take(&mut self.wanted.bytes)
    }
}

impl Drop for LogRoom {
    fn drop(&mut self) {
        if self.wanted.bytes > 0 {
            self.shared.queue.lock().withdraw(self.wanted);
        }
    }
}
