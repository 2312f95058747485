//! Random histories of a log against a list of what was appended: after every kill and power cut all that
//! was synced is there, in order, and of the rest a beginning.

use std::fmt::Debug;

use atoll_store::log::{Log, LogError, Position, RecoveryStart};
use atoll_store::simulated::{Fault, SimulatedFiles};
use atoll_sys::SplitMix64;

use crate::support::{FROM_START, Records, create, payload, read, reopen};

const HISTORIES: u64 = 3000;
const STEPS: u64 = 60;

struct LogHistory {
    seed: u64,
    random: SplitMix64,
    files: SimulatedFiles,
    /// None when an error stopped it.
    log: Option<Log>,
    /// All records that were appended and not lost since.
    records: Records,
    /// How many of them were written and synced.
    written: usize,
    synced: usize,
    /// The checkpoint, and how many records it holds.
    start: RecoveryStart,
    held: usize,
}

impl LogHistory {
    fn new(seed: u64) -> Self {
        let files = SimulatedFiles::new();
        let log = Some(create(&files).unwrap());
        let random = SplitMix64::new(seed);
        let (records, start) = (Records::new(), FROM_START);
        Self { seed, random, files, log, records, written: 0, synced: 0, start, held: 0 }
    }

    fn run(&mut self) {
        for _ in 0..STEPS {
            match self.random.below(20) {
                0..8 => self.append(),
                8..11 => self.write(),
                11..14 => self.sync(),
                14..16 => self.checkpoint(),
                16 => self.fail_soon(),
                17 => self.fill_disk(),
                _ => self.cut_power(),
            }
            if self.log.is_none() || self.random.below(12) == 0 {
                self.stop();
            }
        }
        self.stop();
    }

    /// Takes the outcome of a call whose errors stop the log.
    fn stopped_by<T: Debug>(&mut self, outcome: Result<T, LogError>) -> Option<T> {
        if outcome.is_err()
            && let Some(mut log) = self.log.take()
        {
            self.expect_stopped(&mut log);
        }
        outcome.ok()
    }

    /// A log that failed gives the same error for ever.
    fn expect_stopped(&self, log: &mut Log) {
        let first = log.append(b"more").unwrap_err();
        assert!(matches!(first, LogError::Stopped(_)), "seed {}: {first}", self.seed);
        assert_eq!(log.write().unwrap_err(), first, "seed {}", self.seed);
        assert_eq!(log.sync().unwrap_err(), first, "seed {}", self.seed);
    }

    fn append(&mut self) {
        let bytes = match self.random.below(20) {
            0 => self.random.below(20_000),
            1..5 => self.random.below(3000),
            _ => self.random.below(80),
        };
        // Some payloads are zeros, as preallocated space is.
        let bytes = bytes as usize;
        let payload = match self.random.below(5) {
            0 => vec![0; bytes],
            _ => payload(self.random.next(), bytes),
        };
        let Some(log) = &mut self.log else { return };
        let appended = log.append(&payload);
        if matches!(appended, Err(LogError::NoSpace(_))) {
            return;
        }
        if let Some(position) = self.stopped_by(appended) {
            self.records.push((position, payload));
        }
    }

    fn write(&mut self) {
        let Some(log) = &mut self.log else { return };
        let written = log.write();
        if self.stopped_by(written).is_some() {
            self.written = self.records.len();
        }
    }

    fn sync(&mut self) {
        let Some(log) = &mut self.log else { return };
        let synced = log.sync();
        if let Some(position) = self.stopped_by(synced) {
            self.synced = self.written;
            assert_eq!(position, self.position(self.synced), "seed {}", self.seed);
        }
    }

    /// The position behind so many records.
    fn position(&self, count: usize) -> Position {
        count.checked_sub(1).map_or(Position::START, |last| self.records[last].0)
    }

    fn checkpoint(&mut self) {
        let more = self.random.below((self.synced - self.held) as u64 + 1) as usize;
        self.held += more;
        let from = self.position(self.held);
        // A checkpoint may know more than where it ends.
        let synced = if self.random.below(2) == 0 { from } else { self.position(self.synced) };
        self.start = RecoveryStart { from, synced };
        if let Some(log) = &self.log {
            // Files that could not be removed are removed at the next checkpoint.
            let _ = log.truncate_before(from);
        }
    }

    fn fail_soon(&mut self) {
        let fault = [Fault::Device, Fault::NoSpace, Fault::Late][self.random.below(3) as usize];
        self.files.fail_at(self.files.calls() + self.random.below(8), fault);
    }

    fn fill_disk(&mut self) {
        let space = (self.random.below(2) == 0).then_some(self.random.below(40_000));
        self.files.set_space(space);
    }

    /// The power goes at a later call, or has gone.
    fn cut_power(&mut self) {
        match self.random.below(3) {
            0 => self.files.cut_power_at(self.files.calls() + self.random.below(12)),
            _ => self.stop(),
        }
    }

    /// Ends the process or cuts the power, and opens the log again, which may be cut off too.
    fn stop(&mut self) {
        self.log = None;
        loop {
            self.files = match self.random.below(3) {
                0 => self.files.restart(),
                _ => self.files.crash(self.random.next()),
            };
            match self.random.below(4) {
                0 => self.files.cut_power_at(self.random.below(30)),
                1 => self.fail_soon(),
                _ => {}
            }
            match reopen(&self.files, self.start) {
                Ok((log, found, report)) => {
                    self.check(&found, report.end);
                    self.log = Some(log);
                    return;
                }
                Err(LogError::File(_) | LogError::NoSpace(_)) => {}
                Err(error) => panic!("seed {}: {error}", self.seed),
            }
        }
    }

    fn check(&mut self, found: &Records, end: Position) {
        let (seed, count) = (self.seed, self.held + found.len());
        assert!(count >= self.synced, "seed {seed}: {} synced, {count} found", self.synced);
        assert!(count <= self.records.len(), "seed {seed}: records that were never appended");
        assert_eq!(*found, self.records[self.held..count], "seed {seed}");
        assert_eq!(end, self.position(count), "seed {seed}");
        self.records.truncate(count);
        // What was read is on disk now.
        (self.written, self.synced) = (count, count);
        for crash in 0..2 {
            let found = read(&self.files.crash(crash), self.start).unwrap();
            assert_eq!(found.len(), count - self.held, "seed {seed}: recovery did not sync");
        }
    }
}

#[test]
fn every_history_keeps_what_was_synced_and_invents_nothing() {
    for seed in 0..HISTORIES {
        LogHistory::new(seed).run();
    }
}
