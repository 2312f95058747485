//! The client of a session: its input and output, and the interruption of its statements.

use std::future::{Future, pending};
use std::io;
use std::pin::pin;

use atoll_sql::activity::{ActiveSession, Interrupt};
use atoll_sql::{Session, StatementWait};
use bytes::BytesMut;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use super::failure::{End, Failure};
use super::stream::ClientStream;
use crate::wire::{ErrorFields, FrontendMessage, Output, next_kind, take_message};

/// Bytes of messages that queue while a statement runs. The rest stays in the socket until it has ended.
const WAITING_MAX: usize = 1 << 20;

/// Output bytes that are buffered before they are sent.
const SEND_MIN: usize = 64 << 10;

/// Sizes of the next read: for a new statement, and for the rest of a long message.
const READ_FIRST: usize = 512;
const READ_MORE: usize = 64 << 10;

/// The two directions of a connection.
#[derive(Debug)]
pub(crate) struct Channel {
    pub(crate) stream: ClientStream,
    pub(crate) input: BytesMut,
    pub(crate) output: Output,
}

impl Channel {
    pub(crate) fn new(stream: ClientStream) -> Self {
        Self { stream, input: BytesMut::new(), output: Output::default() }
    }

    /// Reads more; an error if the client disconnected.
    pub(crate) async fn read(&mut self) -> Result<(), End> {
        let room = if self.input.is_empty() { READ_FIRST } else { READ_MORE };
        self.input.reserve(room);
        match self.stream.read_buf(&mut self.input).await {
            Ok(0) | Err(_) => Err(End::Gone),
            Ok(_) => Ok(()),
        }
    }

    /// Reads more if `may_read`; detects a disconnected client in any case.
    async fn heed(&mut self, may_read: bool) -> Result<(), End> {
        if may_read {
            return self.read().await;
        }
        self.stream.closed().await;
        Err(End::Gone)
    }

    /// Sends all output.
    pub(crate) async fn send(&mut self) -> Result<(), End> {
        while !self.output.unsent().is_empty() {
            let sent = self.stream.write(self.output.unsent()).await;
            match sent {
                Ok(0) | Err(_) => return Err(End::Gone),
                Ok(count) => self.output.advance(count),
            }
        }
        self.stream.flush().await.map_err(|_: io::Error| End::Gone)
    }

    /// Sends the output if there is much of it.
    pub(crate) async fn send_much(&mut self) -> Result<(), End> {
        if self.has_much() { self.send().await } else { Ok(()) }
    }

    fn has_much(&self) -> bool {
        self.output.unsent().len() >= SEND_MIN
    }

    /// The next message in the input.
    pub(crate) fn take(&mut self) -> Result<Option<FrontendMessage>, End> {
        Ok(take_message(&mut self.input, self.output.encoding)?)
    }
}

/// A client whose session has begun.
#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) channel: Channel,
    pub(crate) active: ActiveSession,
    /// The deadline of the statement.
    pub(crate) deadline: Option<Instant>,
    /// Cancelled when the server stops: idle sessions end.
    pub(crate) stopping: CancellationToken,
    /// Rows that the statement returned or changed.
    rows: u64,
}

impl Client {
    pub(crate) fn new(
        channel: Channel,
        active: ActiveSession,
        stopping: CancellationToken,
    ) -> Self {
        Self { channel, active, deadline: None, stopping, rows: 0 }
    }

    /// Sends the tag of a completed statement.
    pub(crate) fn complete(&mut self, tag: &str) {
        self.rows += rows_of_tag(tag);
        self.channel.output.command_complete(tag);
    }

    /// Counts rows of a suspended statement.
    pub(crate) fn add_rows(&mut self, rows: usize) {
        self.rows += rows as u64;
    }

    /// Rows of the statement so far.
    pub(crate) fn rows(&self) -> u64 {
        self.rows
    }

    /// Starts another statement.
    pub(crate) fn forget_rows(&mut self) {
        self.rows = 0;
    }

    pub(crate) fn output(&mut self) -> &mut Output {
        &mut self.channel.output
    }

    /// The next message. While waiting for it, the session can be terminated, and ends when the server stops. The
    /// notifications of `listening` are sent when they arrive.
    pub(crate) async fn message(
        &mut self,
        idle_until: Option<Instant>,
        listening: Option<&Session>,
    ) -> Result<FrontendMessage, End> {
        loop {
            if listening.is_some_and(Session::take_lost_notifications) {
                return Err(End::lost_notifications());
            }
            if let Some(message) = self.channel.take()? {
                return Ok(message);
            }
            if self.channel.input.is_empty() {
                self.channel.input = BytesMut::new();
                self.channel.output.shrink();
            }
            tokio::select! {
                read = self.channel.read() => read?,
                () = self.active.terminated() => return Err(End::terminated()),
                () = self.stopping.cancelled() => return Err(End::stopped()),
                () = until(idle_until) => return Err(End::idle_in_transaction()),
                session = notified(listening) => {
                    self.tell_notifications(session);
                    self.send_idle().await?;
                }
            }
        }
    }

    /// Writes the notifications that have arrived.
    pub(crate) fn tell_notifications(&mut self, session: &Session) {
        for notification in session.take_notifications() {
            self.channel.output.notification(&notification);
        }
    }

    /// Sends the output of an idle session, which can be terminated meanwhile.
    async fn send_idle(&mut self) -> Result<(), End> {
        tokio::select! {
            biased;
            sent = self.channel.send() => sent,
            () = self.active.terminated() => Err(End::terminated()),
            () = self.stopping.cancelled() => Err(End::stopped()),
        }
    }

    /// The next message of COPY data.
    pub(crate) async fn copy_message(&mut self) -> Result<FrontendMessage, Failure> {
        loop {
            if let Some(message) = self.channel.take()? {
                return Ok(message);
            }
            let _waits = self.active.watch().waiting(StatementWait::Client);
            tokio::select! {
                biased;
                interrupt = self.active.interrupted() => return Err(interrupted(interrupt)),
                () = until(self.deadline) => return Err(timed_out().into()),
                () = self.stopping.cancelled() => return Err(End::stopped().into()),
                read = self.channel.read() => read?,
            }
        }
    }

    /// The kind of the next message, if it has arrived.
    pub(crate) fn next_kind(&self) -> Option<u8> {
        next_kind(&self.channel.input)
    }

    /// Runs a statement's work. It is dropped when the client disconnects, when it is cancelled, or when it times out.
    pub(crate) async fn unless_ended<T>(
        &mut self,
        work: impl Future<Output = T>,
    ) -> Result<T, Failure> {
        let mut work = pin!(work);
        loop {
            let may_read = self.channel.input.len() < WAITING_MAX;
            tokio::select! {
                biased;
                done = &mut work => return Ok(done),
                interrupt = self.active.interrupted() => return Err(interrupted(interrupt)),
                () = until(self.deadline) => return Err(timed_out().into()),
                read = self.channel.heed(may_read) => read?,
            }
        }
    }

    /// Sends the output if there is much of it.
    pub(crate) async fn send_much(&mut self) -> Result<(), Failure> {
        if self.channel.has_much() { self.send().await } else { Ok(()) }
    }

    /// Sends the output. While the client does not read, the statement can be cancelled.
    pub(crate) async fn send(&mut self) -> Result<(), Failure> {
        let _waits = self.active.watch().waiting(StatementWait::Client);
        tokio::select! {
            biased;
            sent = self.channel.send() => Ok(sent?),
            interrupt = self.active.interrupted() => Err(interrupted(interrupt)),
            () = until(self.deadline) => Err(timed_out().into()),
        }
    }
}

/// The row count in a tag such as `INSERT 0 3`.
pub(crate) fn rows_of_tag(tag: &str) -> u64 {
    tag.rsplit(' ').next().and_then(|count| count.parse().ok()).unwrap_or_default()
}

/// Waits for a deadline; forever if there is none.
pub(crate) async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => sleep_until(deadline).await,
        None => pending().await,
    }
}

/// Waits for notifications of a session; without a session, forever.
async fn notified(listening: Option<&Session>) -> &Session {
    match listening {
        Some(session) => {
            session.notified().await;
            session
        }
        None => pending().await,
    }
}

fn interrupted(interrupt: Interrupt) -> Failure {
    match interrupt {
        Interrupt::Terminate => Failure::Ends(End::terminated()),
        Interrupt::Cancel => canceled().into(),
    }
}

/// The error of a cancelled statement.
pub(crate) fn canceled() -> ErrorFields {
    ErrorFields::error("57014", "canceling statement due to user request")
}

/// The error of a statement that timed out.
pub(crate) fn timed_out() -> ErrorFields {
    ErrorFields::error("57014", "canceling statement due to statement timeout")
}
