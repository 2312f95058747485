//! Whole lives of a directory: after every kill and power cut the database is the one after some commit, no
//! earlier than the last that was acknowledged, and none that was never made.

use atoll_store::checkpoint::{Checkpoint, CheckpointState};
use atoll_store::log::LogError;
use atoll_store::simulated::{Fault, SimulatedFiles};
use atoll_sys::SplitMix64;

use super::changes::{draw, fold};
use super::model::{ModelState, by_scan};
use super::store::{TestStore, is_failed_call};

const HISTORIES: u64 = 250;
const STEPS: u64 = 70;

struct StoreHistory {
    seed: u64,
    random: SplitMix64,
    files: SimulatedFiles,
    /// None when an error stopped the log.
    store: Option<TestStore>,
    checkpoint: Option<Checkpoint>,
    /// The database after each commit that was ordered and not lost since.
    states: Vec<ModelState>,
    /// How many of these are acknowledged.
    synced: usize,
}

impl StoreHistory {
    fn new(seed: u64) -> Self {
        Self {
            seed,
            random: SplitMix64::new(seed),
            files: SimulatedFiles::new(),
            store: None,
            checkpoint: None,
            states: vec![ModelState::default()],
            synced: 0,
        }
    }

    fn run(&mut self) {
        self.stop();
        for _ in 0..STEPS {
            match self.random.below(30) {
                0..12 => self.commit(),
                12..17 => self.sync(),
                17 => self.abort(),
                18..21 => self.fold(),
                21..25 => self.step_checkpoint(),
                25 => self.whole_checkpoint(),
                26 => self.fail_soon(),
                27 => self.fill_disk(),
                28 => self.cut_power_soon(),
                _ => self.stop(),
            }
            if self.store.is_none() {
                self.stop();
            }
        }
        self.stop();
    }

    fn newest(&self) -> &ModelState {
        &self.states[self.states.len() - 1]
    }

    fn commit(&mut self) {
        let Some(store) = &mut self.store else { return };
        let before = &self.states[self.states.len() - 1];
        let Ok(transaction) = draw(store, before, &mut self.random) else { return };
        match store.submit(&transaction.change) {
            Ok(_) => self.states.push(transaction.after),
            Err(LogError::NoSpace(_)) => {}
            Err(_) => self.store = None,
        }
    }

    /// A transaction whose chunks are written and that does not commit.
    fn abort(&mut self) {
        let Some(store) = &self.store else { return };
        let before = &self.states[self.states.len() - 1];
        drop(draw(store, before, &mut self.random));
    }

    fn sync(&mut self) {
        let Some(store) = &mut self.store else { return };
        match store.sync() {
            Ok(_) => self.synced = self.states.len() - 1,
            Err(_) => self.store = None,
        }
    }

    fn fold(&mut self) {
        let Some(store) = &mut self.store else { return };
        fold(store);
        assert_eq!(
            ModelState::from_version(&store.version),
            *self.newest(),
            "seed {}: folded",
            self.seed
        );
    }

    fn step_checkpoint(&mut self) {
        let Some(store) = &self.store else { return };
        if self.checkpoint.is_none() {
            self.checkpoint = store.begin_checkpoint().ok();
        }
        for _ in 0..self.random.below(6) {
            let Some(store) = &self.store else { return };
            let Some(checkpoint) = &mut self.checkpoint else { return };
            match checkpoint.step(store.log.synced()) {
                Ok(CheckpointState::Working) => {}
                Ok(CheckpointState::NeedsLog(_)) => self.sync(),
                Ok(CheckpointState::Done(_)) | Err(_) => self.checkpoint = None,
            }
        }
    }

    fn whole_checkpoint(&mut self) {
        self.checkpoint = None;
        let Some(store) = &mut self.store else { return };
        // One that fails leaves the last one; the log may have stopped.
        let _ = store.checkpoint();
    }

    fn fail_soon(&mut self) {
        let fault = [Fault::Device, Fault::NoSpace, Fault::Late][self.random.below(3) as usize];
        self.files.fail_at(self.files.calls() + self.random.below(12), fault);
    }

    fn fill_disk(&mut self) {
        let space = (self.random.below(2) == 0).then_some(self.random.below(100_000));
        self.files.set_space(space);
    }

    fn cut_power_soon(&mut self) {
        self.files.cut_power_at(self.files.calls() + self.random.below(20));
    }

    /// Ends the process or cuts the power, and opens the directory again, which may be cut off too.
    fn stop(&mut self) {
        (self.store, self.checkpoint) = (None, None);
        loop {
            self.files = match self.random.below(3) {
                0 => self.files.restart(),
                _ => self.files.crash(self.random.next()),
            };
            match self.random.below(4) {
                0 => self.files.cut_power_at(self.random.below(40)),
                1 => self.fail_soon(),
                _ => {}
            }
            match TestStore::open(&self.files) {
                Ok(store) => {
                    self.check(&store);
                    self.store = Some(store);
                    return;
                }
                Err(error) if is_failed_call(&error) => {}
                Err(error) => panic!("seed {}: {error}", self.seed),
            }
        }
    }

    fn check(&mut self, store: &TestStore) {
        let (seed, commits) = (self.seed, store.version.epoch().get() as usize);
        assert!(commits >= self.synced, "seed {seed}: {} synced, {commits} found", self.synced);
        assert!(commits < self.states.len(), "seed {seed}: commits that were never made");
        assert_eq!(ModelState::from_version(&store.version), self.states[commits], "seed {seed}");
        for (id, table) in store.version.tables() {
            let name = &store.version.table_name(id).unwrap().name;
            assert_eq!(by_scan(table), self.states[commits].tables[&**name], "seed {seed}: {name}");
        }
        self.states.truncate(commits + 1);
        // What was read is on disk now.
        self.synced = commits;
    }
}

#[test]
fn acknowledged_commits_survive_and_none_is_applied_by_halves() {
    for seed in 0..HISTORIES {
        StoreHistory::new(seed).run();
    }
}
