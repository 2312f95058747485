//! The queue, stepped without a thread and with a clock of the test's own.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use atoll_sys::SplitMix64;

use super::queue::{CommitQueue, CommitStep, WantedRoom};
use super::{Acknowledgement, GroupCommitOptions};
use crate::DatabaseId;
use crate::log::buffer::CheckedPayload;
use crate::log::frame::{FrameChecksum, frame_bytes};
use crate::log::writer::LogWriter;
use crate::log::{Log, LogError, LogOptions, Position, RecoveryStart};
use crate::simulated::{Fault, SimulatedFiles};

const OPTIONS: LogOptions = LogOptions { database: DatabaseId([7; 16]), segment_bytes: 8192 };
const INTERVAL: Duration = Duration::from_millis(100);
/// Longer than a write waits for open transactions.
const GATHERED: Duration = Duration::from_millis(2);

/// A queue and its files.
struct SteppedCommit {
    files: SimulatedFiles,
    queue: CommitQueue,
    writer: LogWriter,
    now: Duration,
}

impl SteppedCommit {
    fn new(buffer_bytes_max: usize) -> Self {
        let files = SimulatedFiles::new();
        let Log { buffer, writer } = Log::create(Arc::new(files.clone()), OPTIONS).unwrap();
        let options = GroupCommitOptions { sync_interval: INTERVAL, buffer_bytes_max };
        let queue = CommitQueue::new(buffer, writer.synced(), writer.space().end(), options);
        let mut commit = Self { files, queue, writer, now: Duration::ZERO };
        commit.run();
        commit
    }

    /// Does one step; returns its name, or None if the queue waits or ends.
    fn step(&mut self) -> Option<&'static str> {
        let step = self.queue.next(self.now);
        let name = match &step {
            CommitStep::Write(_) => "write",
            CommitStep::Sync => "sync",
            CommitStep::Reserve(_) => "reserve",
            CommitStep::Wait(_) | CommitStep::End => return None,
        };
        let outcome = step.carry_out(&mut self.writer);
        self.queue.finished(outcome, self.now);
        Some(name)
    }

    fn run(&mut self) -> Vec<&'static str> {
        std::iter::from_fn(|| self.step()).collect()
    }

    fn submit(&mut self, payload: &[u8], acknowledgement: Acknowledgement) -> Position {
        let wanted = self.queue.reserve(frame_bytes(payload.len())).unwrap();
        assert!(wanted.is_granted);
        self.put(wanted, payload, acknowledgement).unwrap()
    }

    fn put(
        &mut self,
        wanted: WantedRoom,
        payload: &[u8],
        acknowledgement: Acknowledgement,
    ) -> Result<Position, LogError> {
        let payload =
            CheckedPayload::new(payload, FrameChecksum::for_database(OPTIONS.database)).unwrap();
        self.queue.submit(wanted.bytes, payload, acknowledgement)
    }

    fn payloads(&self, files: &SimulatedFiles) -> Vec<Vec<u8>> {
        let start = RecoveryStart::default();
        let mut recovery = Log::recover(Arc::new(files.clone()), OPTIONS, start).unwrap();
        let mut payloads = Vec::new();
        while let Some(record) = recovery.next_record().unwrap() {
            payloads.push(record.payload.to_vec());
        }
        payloads
    }
}

#[test]
fn waiting_records_are_written_together_and_synced_once() {
    let mut commit = SteppedCommit::new(1 << 20);
    let positions: Vec<Position> =
        (0..10).map(|number| commit.submit(&[number; 10], Acknowledgement::Synced)).collect();
    assert_eq!(commit.queue.is_synced(positions[0]), None);
    assert_eq!(commit.run(), ["write", "sync", "reserve"]);
    assert!(positions.iter().all(|position| commit.queue.is_synced(*position) == Some(Ok(()))));
    let statistics = commit.queue.statistics();
    assert_eq!((statistics.records, statistics.syncs), (10, 1));
    assert_eq!(statistics.bytes, positions[9].0);
    assert_eq!(commit.payloads(&commit.files.crash(1)).len(), 10);
}

#[test]
fn sessions_that_were_released_have_a_moment_to_submit_again() {
    let mut commit = SteppedCommit::new(1 << 20);
    for number in 0..3 {
        commit.submit(&[number], Acknowledgement::Synced);
    }
    assert_eq!(commit.step(), Some("write"));
    // A sync of a second: a quarter of it may be waited.
    let step = commit.queue.next(commit.now);
    let outcome = step.carry_out(&mut commit.writer);
    commit.now += Duration::from_secs(1);
    let until = commit.now + Duration::from_millis(250);
    commit.queue.finished(outcome, commit.now);
    assert_eq!(commit.run(), ["reserve"]);
    commit.submit(b"first", Acknowledgement::Synced);
    commit.submit(b"second", Acknowledgement::Synced);
    assert!(!commit.queue.is_enough());
    assert!(matches!(commit.queue.next(commit.now), CommitStep::Wait(Some(at)) if at == until));
    commit.submit(b"third", Acknowledgement::Synced);
    assert!(commit.queue.is_enough());
    assert_eq!(commit.step(), Some("write"));
    let step = commit.queue.next(commit.now);
    let outcome = step.carry_out(&mut commit.writer);
    commit.now += Duration::from_secs(1);
    commit.queue.finished(outcome, commit.now);
    // The others do not return: the wait ends with the time, also for those that come later.
    commit.submit(b"alone", Acknowledgement::Synced);
    assert_eq!(commit.run(), ["reserve"]);
    commit.now += Duration::from_millis(250);
    assert_eq!(commit.run(), ["write", "sync", "reserve"]);
    commit.submit(b"later", Acknowledgement::Synced);
    assert!(commit.queue.is_enough());
}

#[test]
fn a_part_of_many_open_transactions_is_waited_for_unless_they_do_not_come() {
    let mut commit = SteppedCommit::new(1 << 20);
    let sync = Duration::from_micros(100);
    commit.queue.set_writers(15);
    let synced = |commit: &mut SteppedCommit| {
        commit.submit(b"one", Acknowledgement::Synced);
        commit.now += GATHERED;
        while commit.step() != Some("write") {}
        let step = commit.queue.next(commit.now);
        assert!(matches!(step, CommitStep::Sync));
        let outcome = step.carry_out(&mut commit.writer);
        commit.now += sync;
        commit.queue.finished(outcome, commit.now);
        commit.run();
    };
    synced(&mut commit);
    // A quarter of them, and eight times the time of the sync.
    let until = commit.now + 8 * sync;
    for _ in 0..2 {
        commit.submit(b"one of many", Acknowledgement::Synced);
        assert!(!commit.queue.is_enough());
        assert!(matches!(commit.queue.next(commit.now), CommitStep::Wait(Some(at)) if at == until));
    }
    commit.submit(b"the third", Acknowledgement::Synced);
    assert_eq!(commit.run()[..2], ["write", "sync"]);
    // One alone comes: for a while none is waited for.
    synced(&mut commit);
    commit.submit(b"alone", Acknowledgement::Synced);
    assert!(!commit.queue.is_enough());
    commit.now += GATHERED;
    assert_eq!(commit.step(), Some("write"));
    let mut at_once = 0;
    loop {
        synced(&mut commit);
        commit.submit(b"alone", Acknowledgement::Synced);
        if !commit.queue.is_enough() {
            break;
        }
        assert_eq!(commit.run()[..2], ["write", "sync"]);
        at_once += 1;
    }
    assert!((5..=64).contains(&at_once), "{at_once}");
}

#[test]
fn records_submitted_during_a_write_wait_for_the_next_sync() {
    let mut commit = SteppedCommit::new(1 << 20);
    commit.submit(b"first", Acknowledgement::Synced);
    assert_eq!(commit.step(), Some("write"));
    let second = commit.submit(b"second", Acknowledgement::Synced);
    assert_eq!(commit.step(), Some("sync"));
    assert_eq!(commit.queue.is_synced(second), None);
    assert_eq!(commit.run(), ["reserve", "write", "sync", "reserve"]);
    assert_eq!(commit.queue.is_synced(second), Some(Ok(())));
}

#[test]
fn records_acknowledged_at_once_are_synced_when_the_interval_is_over() {
    let mut commit = SteppedCommit::new(1 << 20);
    commit.submit(b"first", Acknowledgement::AtOnce);
    assert_eq!(commit.run(), ["reserve", "write", "reserve"][1..]);
    commit.now = INTERVAL / 2;
    let end = commit.submit(b"second", Acknowledgement::AtOnce);
    assert_eq!(commit.run(), ["write", "reserve"]);
    assert!(matches!(commit.queue.next(commit.now), CommitStep::Wait(Some(INTERVAL))));
    commit.now = INTERVAL;
    // Also when there is always more to write.
    commit.submit(b"third", Acknowledgement::AtOnce);
    assert_eq!(commit.run(), ["sync", "write", "reserve"]);
    assert_eq!(commit.queue.is_synced(end), Some(Ok(())));
}

#[test]
fn a_session_that_wants_a_position_synced_does_not_wait_for_the_interval() {
    let mut commit = SteppedCommit::new(1 << 20);
    let first = commit.submit(b"first", Acknowledgement::AtOnce);
    commit.queue.sync_to(first).unwrap();
    assert_eq!(commit.run(), ["write", "sync", "reserve"]);
    let second = commit.submit(b"second", Acknowledgement::AtOnce);
    commit.run();
    commit.queue.sync_to(second).unwrap();
    assert_eq!(commit.run(), ["sync"]);
    // While it is being written.
    let third = commit.submit(b"third", Acknowledgement::AtOnce);
    let step = commit.queue.next(commit.now);
    assert!(matches!(step, CommitStep::Write(_)));
    commit.queue.sync_to(third).unwrap();
    let outcome = step.carry_out(&mut commit.writer);
    commit.queue.finished(outcome, commit.now);
    assert_eq!(commit.step(), Some("sync"));
    assert_eq!(commit.queue.is_synced(third), Some(Ok(())));
    commit.queue.sync_to(third).unwrap();
    assert_eq!(commit.run(), ["reserve"]);
}

#[test]
fn closing_writes_and_syncs_submitted_records() {
    let mut commit = SteppedCommit::new(1 << 20);
    commit.submit(b"first", Acknowledgement::AtOnce);
    commit.queue.close();
    assert_eq!(commit.queue.reserve(8).unwrap_err(), LogError::Closed);
    assert_eq!(commit.run(), ["write", "sync"]);
    assert!(matches!(commit.queue.next(commit.now), CommitStep::End));
    assert_eq!(commit.payloads(&commit.files.crash(1)), [b"first"]);
}

#[test]
fn a_thread_that_ends_by_a_panic_answers_all() {
    let mut commit = SteppedCommit::new(1 << 20);
    let position = commit.submit(b"lost", Acknowledgement::Synced);
    let request = commit.queue.reserve(20_000).unwrap();
    commit.queue.stop();
    let panicked = LogError::Panicked.stop();
    assert_eq!(commit.queue.is_synced(position), Some(Err(panicked.clone())));
    assert_eq!(commit.queue.answer(request.number), Some(Err(panicked.clone())));
    assert_eq!(commit.queue.reserve(8).unwrap_err(), panicked);
}

#[test]
fn room_beyond_the_space_is_granted_when_the_space_is_made() {
    let mut commit = SteppedCommit::new(1 << 20);
    let small = commit.queue.reserve(100).unwrap();
    assert!(small.is_granted);
    let large = commit.queue.reserve(20_000).unwrap();
    let later = commit.queue.reserve(8).unwrap();
    assert!(!large.is_granted && !later.is_granted, "the order is kept");
    assert_eq!(commit.queue.answer(large.number), None);
    assert_eq!(commit.run(), ["reserve", "reserve"]);
    assert_eq!(commit.queue.answer(later.number), Some(Ok(())));
    // Given back before it was looked at.
    commit.queue.withdraw(large);
    commit.queue.withdraw(WantedRoom { is_granted: true, ..later });
    commit.put(small, &[1; 70], Acknowledgement::Synced).unwrap();
    commit.run();
    assert!(commit.queue.reserve(20_000).unwrap().is_granted);
}

#[test]
fn no_room_is_granted_while_too_much_waits_in_memory() {
    let mut commit = SteppedCommit::new(100);
    commit.submit(&[1; 200], Acknowledgement::Synced);
    let wanted = commit.queue.reserve(100).unwrap();
    assert!(!wanted.is_granted);
    assert_eq!(commit.step(), Some("write"));
    assert_eq!(commit.queue.answer(wanted.number), None);
    commit.run();
    assert_eq!(commit.queue.answer(wanted.number), Some(Ok(())));
}

#[test]
fn a_full_disk_refuses_room_and_keeps_what_was_ordered() {
    let mut commit = SteppedCommit::new(1 << 20);
    commit.files.set_space(Some(8192));
    let position = commit.submit(&[1; 100], Acknowledgement::Synced);
    commit.run();
    assert_eq!(commit.queue.is_synced(position), Some(Ok(())));
    let refused = commit.queue.reserve(8).unwrap();
    assert_eq!(commit.run(), ["reserve"]);
    let answer = commit.queue.answer(refused.number);
    assert!(matches!(answer, Some(Err(LogError::NoSpace(_)))), "{answer:?}");
    commit.files.set_space(None);
    let granted = commit.queue.reserve(8).unwrap();
    commit.run();
    assert_eq!(commit.queue.answer(granted.number), Some(Ok(())));
    commit.queue.failure().unwrap();
}

/// What the sessions of a random run know about their records.
#[derive(Default)]
struct SessionRecords {
    /// Payloads of all submitted records by position.
    submitted: BTreeMap<Position, Vec<u8>>,
    /// Unused room.
    rooms: Vec<WantedRoom>,
    requests: Vec<WantedRoom>,
}

/// Random sessions, faults and times: every record whose ticket was released survives a power cut, in
/// order; after an error all tickets are answered.
#[test]
fn released_records_survive_random_sessions() {
    for seed in 0..1500 {
        let mut random = SplitMix64::new(seed);
        let mut commit = SteppedCommit::new(500);
        let mut sessions = SessionRecords::default();
        let calls = commit.files.calls();
        match random.below(3) {
            0 => commit.files.fail_at(calls + random.below(40), Fault::Device),
            1 => commit.files.fail_at(calls + random.below(40), Fault::NoSpace),
            _ => {}
        }
        for _ in 0..80 {
            act(&mut commit, &mut sessions, &mut random);
        }
        let is_closed = random.below(2) == 0;
        if is_closed {
            commit.queue.close();
            commit.run();
        }
        let released = commit.queue.synced();
        if is_closed && commit.queue.failure().is_ok() {
            assert_eq!(released, commit.queue.end(), "seed {seed}");
        }
        let found = commit.payloads(&commit.files.crash(seed));
        let all: Vec<Vec<u8>> = sessions.submitted.values().cloned().collect();
        let count = sessions.submitted.range(..=released).count();
        assert!(all.starts_with(&found) && found.len() >= count, "seed {seed}");
        for position in sessions.submitted.keys() {
            let answer = commit.queue.is_synced(*position);
            let is_answered = *position <= released || commit.queue.failure().is_err();
            assert_eq!(answer.is_some(), is_answered, "seed {seed}");
        }
    }
}

fn act(commit: &mut SteppedCommit, sessions: &mut SessionRecords, random: &mut SplitMix64) {
    match random.below(8) {
        0..3 => {
            let bytes = if random.below(10) == 0 { random.below(9000) } else { random.below(60) };
            if let Ok(wanted) = commit.queue.reserve(frame_bytes(bytes as usize)) {
                let list = match wanted.is_granted {
                    true => &mut sessions.rooms,
                    false => &mut sessions.requests,
                };
                list.push(wanted);
            }
        }
        3..5 => {
            let Some(room) = sessions.rooms.pop() else { return };
            let bytes = (room.bytes - frame_bytes(0)) as usize;
            let payload: Vec<u8> = (0..bytes).map(|_| random.next() as u8).collect();
            let acknowledgement = match random.below(3) {
                0 => Acknowledgement::AtOnce,
                _ => Acknowledgement::Synced,
            };
            if let Ok(position) = commit.put(room, &payload, acknowledgement) {
                sessions.submitted.insert(position, payload);
            }
        }
        5 => {
            commit.now += INTERVAL / 4;
            let answered = |wanted: &mut WantedRoom| match commit.queue.answer(wanted.number) {
                None => true,
                Some(Ok(())) => {
                    sessions.rooms.push(WantedRoom { is_granted: true, ..*wanted });
                    false
                }
                Some(Err(_)) => false,
            };
            sessions.requests.retain_mut(answered);
        }
        _ => drop(commit.step()),
    }
}
