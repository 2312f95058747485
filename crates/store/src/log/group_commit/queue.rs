//! The decisions of group commit: a state machine that its caller steps.
//!
//! [`CommitQueue::next`] decides the next step, [`CommitStep::carry_out`] applies it to the files, and
//! [`CommitQueue::finished`] takes the outcome. In this order:
//!
//! 1. Written records are synced if a ticket waits for them, a record has waited for the interval, or
//!    the log is being closed.
//! 2. Space is made: for the first session waiting for room, and ahead of the records.
//! 3. Submitted records are written once the sessions released by the last sync have
//!    submitted again, or had a quarter of that sync's time to do so: on a slow disk one sync for all is worth
//!    more than an early one for some. If many open transactions have written, some of them
//!    get several syncs' time: a sync also costs the cpus that they run on.

use std::collections::{HashMap, VecDeque};
use std::mem;
use std::task::Waker;
use std::time::Duration;

use super::super::buffer::{CheckedPayload, LogBatch, LogBuffer};
use super::super::writer::LogWriter;
use super::super::{LogError, Position};
use super::{Acknowledgement, GroupCommitOptions};

/// Buffers of written batches above this size are freed.
const SPARE_BYTES_MAX: usize = 4 << 20;
/// One in this many transactions that have written is waited for, for this many times the last sync's time and no
/// longer than this.
const WRITERS_FOR_EACH: u64 = 4;
const GATHERING_SYNCS: u32 = 8;
const GATHERING_MAX: Duration = Duration::from_millis(1);
/// Syncs without such a wait after one in which not all of them came, doubled after each in a row: they wait for
/// their clients, or for one another.
const SYNCS_SKIPPED: u32 = 16;
const SYNCS_SKIPPED_MAX: u32 = 1024;

/// Statistics since the log was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogStatistics {
    /// Number of records on disk.
    pub records: u64,
    /// Their size in the log, in bytes.
    pub bytes: u64,
    /// Number of syncs.
    pub syncs: u64,
}

/// The next step.
#[derive(Debug)]
pub(super) enum CommitStep {
    Write(LogBatch),
    Sync,
    /// Make space for records up to a position.
    Reserve(Position),
    /// Wait for work, until a time at most.
    Wait(Option<Duration>),
    End,
}

/// The outcome of a step.
#[derive(Debug)]
pub(super) enum CommitOutcome {
    Written(LogBatch, Result<(), LogError>),
    Synced(Result<Position, LogError>),
    /// With the position up to which there is space.
    Reserved(Result<(), LogError>, Position),
}

/// A request for room.
#[derive(Clone, Copy, Debug)]
pub(super) struct WantedRoom {
    pub(super) number: u64,
    pub(super) bytes: u64,
    pub(super) is_granted: bool,
}

/// How long the next write waits for other records.
#[derive(Clone, Copy, Debug)]
struct Gathering {
    /// Until this many tickets wait for records of the buffer, or until this time.
    tickets: u64,
    until: Duration,
    /// Whether it waits for open transactions rather than for released sessions.
    is_for_writers: bool,
}

/// Records between the sessions and the log's thread.
#[derive(Debug)]
pub(super) struct CommitQueue {
    options: GroupCommitOptions,
    buffer: LogBuffer,
    /// The buffer of the last batch.
    spare: Vec<u8>,
    written: Position,
    synced: Position,
    /// Number of tickets that wait for records of the buffer, and for written records.
    waiting_for_buffer: u64,
    waiting_for_sync: u64,
    /// When the last sync began, and what the next write waits for.
    sync_began: Duration,
    gathering: Option<Gathering>,
    /// Number of open transactions that have written, and number of syncs until they are waited for again.
    writers: u64,
    syncs_to_skip: u32,
    syncs_skipped: u32,
    /// When the oldest unsynced record was written.
    unsynced_since: Option<Duration>,
    /// Bytes of room granted but not used yet.
    promised: u64,
    space_end: Position,
    /// Whether the disk was full when space was last made.
    is_full: bool,
    /// Whether space should be made ahead of the records.
    is_space_wanted: bool,
    /// Sessions waiting for room, oldest first, and the answers for those already served.
    requests: VecDeque<WantedRoom>,
    answers: HashMap<u64, Result<(), LogError>>,
    /// Waiting futures, by the number of their ticket or request: for a position, or for any change.
    wakers: HashMap<u64, (Option<Position>, Waker)>,
    number_next: u64,
    records_unsynced: u64,
    statistics: LogStatistics,
    failure: Option<LogError>,
    is_closing: bool,
}

impl CommitStep {
    pub(super) fn carry_out(self, writer: &mut LogWriter) -> CommitOutcome {
        match self {
            Self::Write(batch) => {
                let written = writer.write(&batch);
                CommitOutcome::Written(batch, written)
            }
            Self::Reserve(end) => {
                let reserved = writer.reserve(end);
                CommitOutcome::Reserved(reserved, writer.space().end())
            }
            Self::Sync | Self::Wait(_) | Self::End => CommitOutcome::Synced(writer.sync()),
        }
    }
}

impl CommitQueue {
    pub(super) fn new(
        buffer: LogBuffer,
        synced: Position,
        space_end: Position,
        options: GroupCommitOptions,
    ) -> Self {
        Self {
            options,
            // A log may arrive with records that are only written or appended.
            written: buffer.start(),
            waiting_for_sync: u64::from(buffer.start() > synced),
            synced,
            waiting_for_buffer: u64::from(buffer.bytes() > 0),
            sync_began: Duration::ZERO,
            gathering: None,
            writers: 0,
            syncs_to_skip: 0,
            syncs_skipped: 0,
            buffer,
            spare: Vec::new(),
            unsynced_since: None,
            promised: 0,
            space_end,
            is_full: false,
            is_space_wanted: true,
            requests: VecDeque::new(),
            answers: HashMap::new(),
            wakers: HashMap::new(),
            number_next: 0,
            records_unsynced: 0,
            statistics: LogStatistics::default(),
            failure: None,
            is_closing: false,
        }
    }

    pub(super) fn end(&self) -> Position {
        self.buffer.end()
    }

    pub(super) fn synced(&self) -> Position {
        self.synced
    }

    pub(super) fn statistics(&self) -> LogStatistics {
        self.statistics
    }

    /// A number for a ticket or a request.
    pub(super) fn number(&mut self) -> u64 {
        self.number_next += 1;
        self.number_next
    }

    /// The error that stopped the log.
    pub(super) fn failure(&self) -> Result<(), LogError> {
        self.failure.clone().map_or(Ok(()), Err)
    }

    fn check_open(&self) -> Result<(), LogError> {
        self.failure()?;
        if self.is_closing { Err(LogError::Closed) } else { Ok(()) }
    }

    /// Requests room for this many bytes.
    pub(super) fn reserve(&mut self, bytes: u64) -> Result<WantedRoom, LogError> {
        self.check_open()?;
        let is_free = self.requests.is_empty() && !self.is_full && !self.is_crowded();
        let is_granted = is_free && self.end().after(self.promised + bytes) <= self.space_end;
        let wanted = WantedRoom { number: self.number(), bytes, is_granted };
        match is_granted {
            true => self.promised += bytes,
            false => self.requests.push_back(wanted),
        }
        Ok(wanted)
    }

    /// The answer to a request, if there is one.
    pub(super) fn answer(&mut self, number: u64) -> Option<Result<(), LogError>> {
        let answer = self.answers.remove(&number);
        answer.or_else(|| self.failure.clone().map(Err))
    }

    /// Withdraws a request, or returns the room granted to it.
    pub(super) fn withdraw(&mut self, wanted: WantedRoom) {
        self.wakers.remove(&wanted.number);
        let answer = self.answers.remove(&wanted.number);
        self.requests.retain(|other| other.number != wanted.number);
        if wanted.is_granted || answer.is_some_and(|answer| answer.is_ok()) {
            self.promised -= wanted.bytes;
        }
    }

    pub(super) fn submit(
        &mut self,
        room: u64,
        payload: CheckedPayload<'_>,
        acknowledgement: Acknowledgement,
    ) -> Result<Position, LogError> {
        self.promised -= room;
        self.check_open()?;
        self.waiting_for_buffer += u64::from(acknowledgement == Acknowledgement::Synced);
        Ok(self.buffer.append(payload, self.synced))
    }

    /// Requests a sync up to a position as soon as possible.
    pub(super) fn sync_to(&mut self, position: Position) -> Result<(), LogError> {
        self.failure()?;
        // It may be in the buffer, in a batch being written, or written.
        self.waiting_for_buffer += u64::from(position > self.written);
        self.waiting_for_sync += u64::from(position > self.synced);
        Ok(())
    }

    /// Whether the log is on disk up to a position. Returns the error that stopped the log if it never will
    /// be.
    pub(super) fn is_synced(&self, position: Position) -> Option<Result<(), LogError>> {
        if self.synced >= position {
            return Some(Ok(()));
        }
        self.failure.clone().map(Err)
    }

    /// Wakes a waker when the log is synced up to a position, or at any change.
    pub(super) fn wake(&mut self, number: u64, until: Option<Position>, waker: &Waker) {
        self.wakers.insert(number, (until, waker.clone()));
    }

    pub(super) fn forget_waker(&mut self, number: u64) {
        self.wakers.remove(&number);
    }

    /// Accepts no more records; submitted ones are written and synced.
    pub(super) fn close(&mut self) {
        self.is_closing = true;
    }

    /// The step at this time.
    pub(super) fn next(&mut self, now: Duration) -> CommitStep {
        if self.failure.is_some() {
            return if self.is_closing { CommitStep::End } else { CommitStep::Wait(None) };
        }
        if self.is_sync_due(now) {
            self.sync_began = now;
            return CommitStep::Sync;
        }
        if let Some(end) = self.space_to_make() {
            return CommitStep::Reserve(end);
        }
        if let Some(until) = self.gather_until(now) {
            return CommitStep::Wait(Some(until));
        }
        if self.buffer.bytes() > 0 {
            self.waiting_for_sync += mem::take(&mut self.waiting_for_buffer);
            return CommitStep::Write(self.buffer.take(mem::take(&mut self.spare)));
        }
        match self.is_closing {
            true => CommitStep::End,
            false => CommitStep::Wait(self.sync_time()),
        }
    }

    /// Until when the next write waits for sessions that may submit soon. Returns None if it need not wait, and
    /// from then on.
    fn gather_until(&mut self, now: Duration) -> Option<Duration> {
        let gathering = self.gathering?;
        let has_come = self.is_enough();
        if !has_come && now < gathering.until {
            return Some(gathering.until);
        }
        if gathering.is_for_writers {
            let longer = (self.syncs_skipped * 2).clamp(SYNCS_SKIPPED, SYNCS_SKIPPED_MAX);
            self.syncs_skipped = if has_come { 0 } else { longer };
            self.syncs_to_skip = self.syncs_skipped;
        }
        self.gathering = None;
        None
    }

    /// What the next write waits for, after a sync of this duration that released this many tickets.
    fn gather(&mut self, tickets: u64, took: Duration, now: Duration) -> Gathering {
        let (writers, quarter) = (self.writers / WRITERS_FOR_EACH, took / 4);
        let is_for_writers = writers > tickets && self.syncs_to_skip == 0;
        self.syncs_to_skip = self.syncs_to_skip.saturating_sub(1);
        let (tickets, time) = match is_for_writers {
            true => (writers, quarter.max(GATHERING_MAX.min(took * GATHERING_SYNCS))),
            false => (tickets, quarter),
        };
        Gathering { tickets, until: now + time, is_for_writers }
    }

    /// Sets the number of open transactions that have written.
    pub(super) fn set_writers(&mut self, writers: u64) {
        self.writers = writers;
    }

    /// Whether the submitted records should be written now.
    pub(super) fn is_enough(&self) -> bool {
        let has_all = |gathering: Gathering| self.waiting_for_buffer >= gathering.tickets;
        self.gathering.is_none_or(has_all) || self.is_closing || self.is_crowded()
    }

    fn is_sync_due(&self, now: Duration) -> bool {
        let is_wanted = self.waiting_for_sync > 0 || self.is_closing;
        self.written > self.synced
            && (is_wanted || self.sync_time().is_some_and(|time| time <= now))
    }

    fn sync_time(&self) -> Option<Duration> {
        self.unsynced_since.map(|since| since + self.options.sync_interval)
    }

    /// Whether there are too many records in memory.
    fn is_crowded(&self) -> bool {
        self.buffer.bytes() > self.options.buffer_bytes_max
    }

    fn space_to_make(&self) -> Option<Position> {
        let promised = self.end().after(self.promised);
        match self.requests.front().filter(|_| !self.is_crowded()) {
            Some(first) => Some(promised.after(first.bytes)),
            None => (self.is_space_wanted && !self.is_closing).then_some(promised),
        }
    }

    /// Takes the outcome of a step; returns the wakers to wake.
    pub(super) fn finished(&mut self, outcome: CommitOutcome, now: Duration) -> Vec<Waker> {
        match outcome {
            CommitOutcome::Written(batch, written) => self.finish_write(batch, written, now),
            CommitOutcome::Synced(synced) => self.finish_sync(synced, now),
            CommitOutcome::Reserved(reserved, end) => self.finish_reserve(reserved, end),
        }
        self.take_wakers()
    }

    fn finish_write(&mut self, batch: LogBatch, written: Result<(), LogError>, now: Duration) {
        if let Err(error) = written {
            self.failure = Some(error.stop());
            return;
        }
        self.written = batch.end();
        self.unsynced_since.get_or_insert(now);
        self.records_unsynced += batch.records;
        self.is_space_wanted = true;
        if batch.bytes.capacity() <= SPARE_BYTES_MAX {
            self.spare = batch.bytes;
        }
    }

    fn finish_sync(&mut self, synced: Result<Position, LogError>, now: Duration) {
        let synced = match synced {
            Ok(synced) => synced,
            Err(error) => {
                self.failure = Some(error.stop());
                return;
            }
        };
        self.statistics.syncs += 1;
        self.statistics.bytes += synced.0 - self.synced.0;
        self.statistics.records += mem::take(&mut self.records_unsynced);
        self.synced = synced;
        let tickets = self.waiting_for_buffer + mem::take(&mut self.waiting_for_sync);
        self.gathering = Some(self.gather(tickets, now.saturating_sub(self.sync_began), now));
        self.unsynced_since = None;
    }

    fn finish_reserve(&mut self, reserved: Result<(), LogError>, end: Position) {
        self.space_end = end;
        self.is_space_wanted = false;
        self.is_full = matches!(reserved, Err(LogError::NoSpace(_)));
        if let Err(error) = &reserved
            && !self.is_full
        {
            self.failure = Some(error.stop());
            return;
        }
        self.answer_first(reserved);
    }

    /// Answers the first session waiting for room.
    fn answer_first(&mut self, reserved: Result<(), LogError>) {
        let Some(first) = self.requests.front().copied() else { return };
        let has_space = self.end().after(self.promised + first.bytes) <= self.space_end;
        if reserved.is_ok() && !has_space {
            // Others submitted meanwhile, or it arrived after the step began: its turn is next.
            return;
        }
        if reserved.is_ok() {
            self.promised += first.bytes;
        }
        self.requests.pop_front();
        self.answers.insert(first.number, reserved);
    }

    /// Stops the log when its thread ends; returns the wakers to wake.
    pub(super) fn stop(&mut self) -> Vec<Waker> {
        if !self.is_closing || self.synced < self.end() {
            self.failure.get_or_insert(LogError::Panicked.stop());
        }
        self.requests.clear();
        self.take_wakers()
    }

    fn take_wakers(&mut self) -> Vec<Waker> {
        let (synced, has_failed) = (self.synced, self.failure.is_some());
        let is_due = |_: &u64, (until, _): &mut (Option<Position>, Waker)| {
            has_failed || until.is_none_or(|until| until <= synced)
        };
        self.wakers.extract_if(is_due).map(|(_, (_, waker))| waker).collect()
    }
}
