//! Sessions on threads over a data directory whose power goes at some call: what was acknowledged is there
//! afterwards, what was answered was on disk, and no transaction is there in part.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use atoll_store::SequenceId;
use atoll_store::checkpoint::CheckpointState;
use atoll_store::database::{
    CatalogChange, Database, Durability, SequenceDefinition, TransactionOptions, Written,
};
use atoll_store::log::{GroupCommit, GroupCommitOptions};
use atoll_store::open::{OpenOptions, Opening};
use atoll_store::simulated::SimulatedFiles;
use atoll_sys::SplitMix64;

use crate::small_database::{Result, SmallDatabase, environment, name};
use crate::stepped::block_on;

const KEYS: u64 = 4;

/// A database over a directory, and what holds the directory.
struct OpenDirectory {
    database: Arc<Database>,
    checkpoints: Arc<atoll_store::checkpoint::Checkpoints>,
    _lock: atoll_store::files::DirectoryLock,
}

fn open(files: &SimulatedFiles) -> OpenDirectory {
    let options = OpenOptions {
        schemas: vec!["public".into()],
        segment_bytes: 1 << 16,
        create: true,
        ..OpenOptions::default()
    };
    let opening = Opening::begin(Arc::new(files.clone()), environment(), options).unwrap();
    let chunks = opening.tasks().into_iter().map(|task| task.run()).collect();
    let opened = opening.finish(chunks, &atoll_store::workers::OneThread).unwrap();
    let log = GroupCommit::start(opened.log.unwrap(), GroupCommitOptions::default()).unwrap();
    let database = Database::start(opened.version, environment(), Some(log));
    OpenDirectory { database, checkpoints: opened.checkpoints, _lock: opened.lock }
}

/// The table of a database that was opened again.
fn reopened(directory: &OpenDirectory) -> SmallDatabase {
    let database = Arc::clone(&directory.database);
    let version = database.newest();
    let (table, stored) = version.table_named(&name("t")).unwrap();
    let codec = Arc::clone(stored.codec());
    SmallDatabase { database, table, codec }
}

/// The answers that a session received.
#[derive(Default)]
struct Answers {
    /// Values whose commits were acknowledged, with the keys that they are in.
    acknowledged: Vec<(u64, [u64; 2])>,
    /// The same for all that were tried.
    tried: Vec<(u64, [u64; 2])>,
    lists: Vec<(u64, String)>,
    numbers: Vec<i64>,
}

struct CrashSessions {
    small: SmallDatabase,
    sequence: SequenceId,
    next: AtomicU64,
}

impl CrashSessions {
    fn new(directory: &OpenDirectory) -> Self {
        let small = SmallDatabase::over(Arc::clone(&directory.database));
        let sequence = small.database.new_sequence_id("public");
        let mut transaction = small.database.begin(TransactionOptions::default());
        transaction.statement(true).unwrap();
        let definition = Arc::new(SequenceDefinition::default());
        let create = CatalogChange::CreateSequence { name: name("s"), id: sequence, definition };
        assert_eq!(block_on(transaction.define(create)).unwrap(), Written::Done);
        block_on(transaction.commit()).unwrap();
        (0..KEYS).for_each(|key| small.set(key, "0"));
        Self { small, sequence, next: AtomicU64::new(1) }
    }

    /// One session, until an error of the log ends it.
    async fn run(&self, mut random: SplitMix64, answers: &mut Answers) -> Result<()> {
        for _ in 0..40 {
            match random.below(4) {
                0 => self.read(&mut random, answers).await?,
                1 => self.number(answers).await?,
                _ => self.write(&mut random, answers).await?,
            }
        }
        Ok(())
    }

    async fn write(&self, random: &mut SplitMix64, answers: &mut Answers) -> Result<()> {
        let value = self.next.fetch_add(1, Ordering::Relaxed);
        let first = random.below(KEYS - 1);
        let keys = [first, first + 1 + random.below(KEYS - 1 - first)];
        let mut transaction = self.small.database.begin(TransactionOptions::default());
        for key in keys {
            let append = |before: &str| format!("{before} {value}");
            assert!(self.small.update(&mut transaction, key, append).await?);
        }
        answers.tried.push((value, keys));
        transaction.commit().await?;
        answers.acknowledged.push((value, keys));
        Ok(())
    }

    /// Reads as a statement that only reads, or as one that is about to write.
    async fn read(&self, random: &mut SplitMix64, answers: &mut Answers) -> Result<()> {
        let key = random.below(KEYS);
        let mut transaction = self.small.database.begin(TransactionOptions::default());
        let version = transaction.statement(random.below(2) == 0)?;
        let list = self.small.get(&version, key).unwrap();
        let row = self.small.find(&version, key).unwrap();
        if random.below(2) == 0 || !transaction.is_settled_row(self.small.table, row) {
            transaction.settled().await?;
        }
        answers.lists.push((key, list));
        Ok(())
    }

    async fn number(&self, answers: &mut Answers) -> Result<()> {
        let mut transaction = self.small.database.begin(TransactionOptions::default());
        let number = transaction.next_value(self.sequence).await?;
        transaction.settled().await?;
        answers.numbers.push(number);
        Ok(())
    }
}

fn values(list: &str) -> Vec<u64> {
    list.split_whitespace().map(|value| value.parse().unwrap()).collect()
}

/// Looks for all that was answered in what is there after the crash.
fn check(directory: &OpenDirectory, sequence: SequenceId, answers: &[Answers], seed: u64) {
    let small = reopened(directory);
    let lists: Vec<String> = (0..KEYS).map(|key| small.committed(key).unwrap()).collect();
    let has = |value: u64, key: u64| values(&lists[key as usize]).contains(&value);
    for answers in answers {
        for (value, keys) in &answers.acknowledged {
            assert!(keys.iter().all(|key| has(*value, *key)), "{value} is lost, seed {seed}");
        }
        for (value, [one, two]) in &answers.tried {
            assert_eq!(has(*value, *one), has(*value, *two), "half of {value}, seed {seed}");
        }
        for (key, list) in &answers.lists {
            let now = &lists[*key as usize];
            assert!(now.starts_with(list), "'{list}' was shown, '{now}' is there, seed {seed}");
        }
    }
    let given = answers.iter().flat_map(|answers| answers.numbers.iter().copied());
    let mut given: Vec<i64> = given.collect();
    given.sort_unstable();
    assert!(given.windows(2).all(|pair| pair[0] < pair[1]), "a number twice, seed {seed}");
    let mut transaction = small.database.begin(TransactionOptions::default());
    let next = block_on(transaction.next_value(sequence)).unwrap();
    assert!(given.last().is_none_or(|last| *last < next), "{next} comes twice, seed {seed}");
}

#[test]
fn answered_commits_survive_a_power_cut_at_any_call() {
    let mut acknowledged = 0;
    for seed in 0..60 {
        let mut random = SplitMix64::new(seed);
        let files = SimulatedFiles::new();
        let directory = open(&files);
        let sessions = CrashSessions::new(&directory);
        files.cut_power_at(files.calls() + random.below(120));
        let answers: Vec<Answers> = thread::scope(|scope| {
            let run = |seed| {
                let mut answers = Answers::default();
                let _ = block_on(sessions.run(SplitMix64::new(seed), &mut answers));
                answers
            };
            let threads: Vec<_> =
                (0..4).map(|thread| scope.spawn(move || run(seed * 10 + thread))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        acknowledged += answers.iter().map(|answers| answers.acknowledged.len()).sum::<usize>();
        let sequence = sessions.sequence;
        drop((sessions, directory));
        check(&open(&files.crash(seed)), sequence, &answers, seed);
    }
    assert!(acknowledged > 100, "{acknowledged}");
}

#[test]
fn a_failed_sync_is_the_error_of_all_later_writes_and_reads_go_on() {
    let files = SimulatedFiles::new();
    let directory = open(&files);
    let small = SmallDatabase::over(Arc::clone(&directory.database));
    small.set(1, "kept");
    files.cut_power_at(files.calls());
    let write = |value: &'static str| {
        let mut transaction = small.database.begin(TransactionOptions::default());
        block_on(small.update(&mut transaction, 1, |_| value.to_owned()))?;
        block_on(transaction.commit())
    };
    let first = write("lost").unwrap_err();
    assert_eq!(first.sqlstate(), "58030");
    assert_eq!(write("later").unwrap_err().message(), first.message());
    assert_eq!(small.committed(1).unwrap(), "kept");
}

#[test]
fn without_a_log_commits_survive_from_the_next_checkpoint_on() {
    let files = SimulatedFiles::new();
    let directory = open(&files);
    let database = &directory.database;
    let small = SmallDatabase::over(Arc::clone(database));
    small.set(1, "logged");
    block_on(database.set_durability(Durability::Off)).unwrap();
    small.set(1, "not logged");
    assert_eq!(small.committed(1).unwrap(), "not logged");
    let after_crash = |seed| reopened(&open(&files.crash(seed))).committed(1).unwrap();
    assert_eq!(after_crash(1), "logged");
    let refused = block_on(database.set_durability(Durability::Fsync)).unwrap_err();
    assert_eq!(refused.sqlstate(), "55000");
    thread::scope(|scope| {
        let paused = block_on(database.pause_commits());
        let waiting = scope.spawn(|| small.set(2, "waits"));
        let mut checkpoint = directory.checkpoints.begin(|| paused.version()).unwrap();
        loop {
            match checkpoint.step(database.synced()).unwrap() {
                CheckpointState::Working => {}
                CheckpointState::NeedsLog(position) => {
                    block_on(database.sync_to(position)).unwrap();
                }
                CheckpointState::Done(_) => break,
            }
        }
        assert_eq!(small.committed(2), None);
        paused.resume(Durability::Fsync);
        waiting.join().unwrap();
    });
    small.set(3, "logged again");
    let again = open(&files.crash(2));
    let small = reopened(&again);
    let found = [1, 2, 3].map(|key| small.committed(key).unwrap());
    assert_eq!(found, ["not logged", "waits", "logged again"]);
}
