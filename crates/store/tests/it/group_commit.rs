//! Group commit with its thread and sessions on threads of their own.

use std::future::Future;
use std::pin::pin;
use std::sync::{Arc, Barrier};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::Duration;

use atoll_store::DatabaseId;
use atoll_store::files::{Files, LiveFiles};
use atoll_store::log::{
    Acknowledgement, GroupCommit, GroupCommitOptions, Log, LogError, LogOptions, Position,
};
use atoll_store::simulated::{Fault, SimulatedFiles};

use crate::support::{FROM_START, create, payload, read};

const SESSIONS: u64 = 8;
const RECORDS: u64 = 50;

/// Long enough that no test sees it end.
const SELDOM: GroupCommitOptions =
    GroupCommitOptions { sync_interval: Duration::from_secs(3600), buffer_bytes_max: 1 << 20 };

fn start(files: &SimulatedFiles) -> GroupCommit {
    GroupCommit::start(create(files).unwrap(), SELDOM).unwrap()
}

/// Commits a record and waits until it is on disk.
fn commit(log: &GroupCommit, payload: &[u8]) -> Result<Position, LogError> {
    let room = log.reserve(payload.len())?.wait()?;
    log.submit(room, payload, Acknowledgement::Synced)?.wait()
}

/// The same, with futures.
async fn commit_async(log: &GroupCommit, payload: &[u8]) -> Result<Position, LogError> {
    let room = log.reserve(payload.len())?.await?;
    log.submit(room, payload, Acknowledgement::Synced)?.await
}

/// Runs a future on this thread.
fn block_on<F: Future>(future: F) -> F::Output {
    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => thread::park(),
        }
    }
}

/// Commits from several sessions, by waiting and by futures in turn; what was acknowledged.
fn run_sessions(log: &GroupCommit) -> Vec<(Position, Vec<u8>)> {
    let session = |number: u64| {
        move || {
            let mut acknowledged = Vec::new();
            for record in 0..RECORDS {
                let payload = payload(number * RECORDS + record, 40 + record as usize);
                let done = match record % 2 {
                    0 => commit(log, &payload),
                    _ => block_on(commit_async(log, &payload)),
                };
                match done {
                    Ok(position) => acknowledged.push((position, payload)),
                    Err(LogError::NoSpace(_)) => {}
                    Err(_) => break,
                }
            }
            acknowledged
        }
    };
    let mut all = thread::scope(|scope| {
        let threads: Vec<_> = (0..SESSIONS).map(|number| scope.spawn(session(number))).collect();
        let joined = threads.into_iter().flat_map(|thread| thread.join().unwrap());
        joined.collect::<Vec<_>>()
    });
    all.sort();
    all
}

#[test]
fn all_sessions_get_their_records_on_disk() {
    let files = SimulatedFiles::new();
    let log = start(&files);
    let acknowledged = run_sessions(&log);
    let statistics = log.statistics();
    assert_eq!(statistics.records, SESSIONS * RECORDS);
    assert!(statistics.syncs <= statistics.records, "{statistics:?}");
    assert_eq!((statistics.bytes, log.synced()), (log.end().0, log.end()));
    assert_eq!(read(&files.crash(1), FROM_START).unwrap(), acknowledged);
    log.close().unwrap();
    assert_eq!(read(&files.crash(2), FROM_START).unwrap(), acknowledged);
}

#[test]
fn sessions_that_wait_together_share_a_sync() {
    let files = SimulatedFiles::new();
    let log = start(&files);
    let rooms: Vec<_> = (0..100).map(|_| log.reserve(10).unwrap().wait().unwrap()).collect();
    // Nothing is synced before something asks for it.
    let tickets: Vec<_> = rooms
        .into_iter()
        .map(|room| log.submit(room, &[1; 10], Acknowledgement::AtOnce).unwrap())
        .collect();
    let last = tickets[99].position();
    for ticket in tickets {
        ticket.wait().unwrap();
    }
    assert_eq!(log.synced(), Position::START);
    log.sync_to(last).unwrap().wait().unwrap();
    let statistics = log.statistics();
    assert_eq!(statistics.records, 100);
    assert!(statistics.syncs <= 2, "{statistics:?}");
}

#[test]
fn dropping_the_log_brings_all_to_disk() {
    let files = SimulatedFiles::new();
    let log = start(&files);
    let room = log.reserve(4).unwrap().wait().unwrap();
    let ticket = log.submit(room, b"last", Acknowledgement::AtOnce).unwrap();
    drop(log);
    assert_eq!(read(&files.crash(1), FROM_START).unwrap()[0].1, b"last");
    ticket.wait().unwrap();
}

#[test]
fn every_call_may_fail_and_no_session_waits_for_ever() {
    let files = SimulatedFiles::new();
    run_sessions(&start(&files));
    // The calls differ from run to run, for so do the batches.
    for call in 0..60 {
        for fault in [Fault::Device, Fault::NoSpace] {
            let files = SimulatedFiles::new();
            let log = start(&files);
            files.fail_at(files.calls() + call, fault);
            let acknowledged = run_sessions(&log);
            let first = log.close();
            let found = read(&files.crash(call), FROM_START).unwrap();
            let is_there = |record| found.contains(record);
            assert!(acknowledged.iter().all(is_there), "{fault:?} at call {call}");
            assert!(!matches!(first, Err(LogError::Panicked)), "{first:?}");
        }
    }
}

#[test]
fn a_failed_sync_answers_tickets_and_whatever_comes_later() {
    let files = SimulatedFiles::new();
    let log = start(&files);
    commit(&log, b"kept").unwrap();
    let early = log.reserve(4).unwrap().wait().unwrap();
    files.cut_power_at(files.calls());
    let first = commit(&log, b"lost").unwrap_err();
    assert!(first.to_string().starts_with("the log stopped when it failed: cannot "), "{first}");
    assert_eq!(log.reserve(4).unwrap_err(), first);
    let late = log.submit(early, b"late", Acknowledgement::AtOnce);
    assert_eq!(late.unwrap_err(), first);
    assert_eq!(log.sync_to(log.end()).unwrap_err(), first);
    assert_eq!(log.close().unwrap_err(), first);
    assert_eq!(read(&files.crash(1), FROM_START).unwrap()[0].1, b"kept");
}

#[test]
fn futures_that_are_dropped_leave_nothing_behind() {
    let files = SimulatedFiles::new();
    let log = start(&files);
    // Room that no segment has yet: the request waits, or is granted meanwhile.
    for _ in 0..20 {
        let mut request = pin!(log.reserve(20_000).unwrap());
        let _ = request.as_mut().poll(&mut Context::from_waker(Waker::noop()));
    }
    let room = log.reserve(20_000).unwrap().wait().unwrap();
    drop(room);
    let room = log.reserve(3).unwrap().wait().unwrap();
    let mut ticket = Box::pin(log.submit(room, b"one", Acknowledgement::Synced).unwrap());
    let _ = ticket.as_mut().poll(&mut Context::from_waker(Waker::noop()));
    drop(ticket);
    commit(&log, b"two").unwrap();
    assert!(files.list("log").unwrap().len() < 15, "room that was given back is kept");
    log.close().unwrap();
    assert_eq!(read(&files.crash(1), FROM_START).unwrap().len(), 2);
}

#[test]
#[should_panic(expected = "a record does not fit the room reserved for it")]
fn a_record_larger_than_its_room_is_an_error_of_the_caller() {
    let log = start(&SimulatedFiles::new());
    let room = log.reserve(4).unwrap().wait().unwrap();
    let _ = log.submit(room, &[0; 100], Acknowledgement::Synced);
}

#[test]
fn a_directory_of_this_machine_takes_records_of_many_sessions() {
    let directory = tempfile::tempdir().unwrap();
    let files: Arc<dyn Files> = Arc::new(LiveFiles::create(directory.path()).unwrap());
    let options = LogOptions { database: DatabaseId([7; 16]), segment_bytes: 1 << 16 };
    let log = Log::create(Arc::clone(&files), options).unwrap();
    let log = GroupCommit::start(log, GroupCommitOptions::default()).unwrap();
    let barrier = Barrier::new(4);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                barrier.wait();
                for number in 0..50 {
                    commit(&log, &payload(number, 1000)).unwrap();
                }
            });
        }
    });
    assert_eq!(log.statistics().records, 200);
    log.close().unwrap();
    let recovery = Log::recover(files, options, FROM_START).unwrap();
    assert_eq!(recovery.finish().unwrap().1.records, 200);
}
