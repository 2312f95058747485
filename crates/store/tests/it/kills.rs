//! A process that commits is killed at random moments, and its directory of this machine opened again: what it said it
//! had committed is there, and the last transaction whole or not at all.
//!
//! The child is this test binary, started with an environment variable. Its transactions follow from the seed and their
//! number; a thread of it makes checkpoints and folds all the while. `ATOLL_KILLS` and `ATOLL_SEED` set how many
//! kills and which seed (`cargo xtask crash`).

use std::collections::BTreeMap;
use std::env;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use atoll_store::RowId;
use atoll_store::database::{CatalogChange, LockScope, RelationName, TransactionOptions, Written};
use atoll_store::durable::DurableDatabase;
use atoll_store::files::LiveFiles;
use atoll_store::open::OpenOptions;
use atoll_store::table::{
    AppendedChunk, ChunkWriter, Destination, FoldPolicy, Row, RowCodec, TableChange,
};
use atoll_sys::SplitMix64;

use crate::small_database::{SmallDatabase, definition, environment};
use crate::stepped::block_on;

/// The directory of a child.
const DIRECTORY: &str = "ATOLL_KILL_DIRECTORY";
const CHILD: &str = "kills::the_child_commits_until_it_is_killed";
/// Kills unless `ATOLL_KILLS` says otherwise.
const KILLS: u64 = 50;
/// After so many kills a directory is given up for a new one: its model grows.
const KILLS_OF_A_DIRECTORY: u64 = 25;
/// The row that holds the number of the last transaction.
const COUNTER: u64 = 0;

type Model = BTreeMap<u64, String>;

/// What one transaction does.
#[derive(Default)]
struct Transaction {
    put: Model,
    deleted: Vec<u64>,
    /// New rows that are loaded as a chunk.
    loaded: Model,
}

fn number(variable: &str, otherwise: u64) -> u64 {
    env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}

/// The transaction with a number, after those before it.
fn transaction(seed: u64, number: u64, before: &Model) -> Transaction {
    let mut random = SplitMix64::new(seed ^ number.wrapping_mul(0x9e37_79b9));
    let mut made = Transaction::default();
    let value =
        |random: &mut SplitMix64| "v".repeat(random.below(60) as usize) + &number.to_string();
    for _ in 0..random.below(4) {
        let key = 1 + random.below(number * 3 + 3);
        made.put.insert(key, value(&mut random));
    }
    if random.below(9) == 0 {
        let first = 1_000_000 * number;
        let rows = 1 + random.below(300);
        made.loaded = (first..first + rows).map(|key| (key, value(&mut random))).collect();
    }
    if random.below(3) == 0 && !before.is_empty() {
        let at = random.below(before.len() as u64) as usize;
        let key = before.keys().nth(at).copied().unwrap_or(COUNTER);
        if key != COUNTER && !made.put.contains_key(&key) {
            made.deleted.push(key);
        }
    }
    made.put.insert(COUNTER, number.to_string());
    made
}

fn apply(model: &mut Model, transaction: Transaction) {
    transaction.deleted.iter().for_each(|key| drop(model.remove(key)));
    model.extend(transaction.put);
    model.extend(transaction.loaded);
}

fn open(directory: &Path) -> (DurableDatabase, SmallDatabase) {
    let options = OpenOptions { segment_bytes: 1 << 18, ..OpenOptions::default() };
    let files = Arc::new(LiveFiles::create(directory).unwrap());
    let opened = DurableDatabase::open(files, environment(), options).unwrap();
    let database = Arc::clone(opened.database());
    let name = RelationName::new("public", "t");
    let found = database.newest().table_named(&name).map(|(id, _)| id);
    let table = found.unwrap_or_else(|| {
        let (table, definition) = (database.new_table_id("public"), Arc::new(definition()));
        let mut transaction = database.begin(TransactionOptions::default());
        transaction.statement(true).unwrap();
        let create = CatalogChange::CreateTable { name, id: table, definition };
        assert_eq!(block_on(transaction.define(create)).unwrap(), Written::Done);
        block_on(transaction.commit()).unwrap();
        table
    });
    let codec = Arc::new(RowCodec::new(&definition().columns).unwrap());
    (opened, SmallDatabase { database, table, codec })
}

/// What a directory holds.
fn found(small: &SmallDatabase) -> Model {
    let version = small.database.newest();
    let table = version.table(small.table).unwrap();
    let rows: Vec<Row> = table.row_ids().map(|id| table.row(id).unwrap()).collect();
    let batch = small.codec.decode(&rows).unwrap();
    let keys =
        arrow_array::cast::as_primitive_array::<arrow_array::types::Int64Type>(batch.column(0));
    let values = rows.into_iter().map(|row| small.value(row));
    keys.values().iter().map(|key| *key as u64).zip(values).collect()
}

fn commit(opened: &DurableDatabase, small: &SmallDatabase, wanted: &Transaction) {
    let mut transaction = small.database.begin(TransactionOptions::default());
    loop {
        let version = transaction.statement(true).unwrap();
        let table = version.table(small.table).unwrap();
        let mut change = TableChange::default();
        for (key, value) in &wanted.put {
            let row = small.row(*key, value);
            match small.find(&version, *key) {
                Some(id) => drop(change.updated.insert(id, row)),
                None => drop(change.inserted.insert(table.reserve(1), row)),
            }
        }
        let deleted = wanted.deleted.iter().filter_map(|key| small.find(&version, *key));
        change.deleted = deleted.map(RowId::get).collect();
        if !wanted.loaded.is_empty() {
            change.appended = load(opened, small, &wanted.loaded);
        }
        let written = block_on(transaction.write(small.table, change, LockScope::Rows)).unwrap();
        if written == Written::Done {
            break;
        }
    }
    block_on(transaction.commit()).unwrap();
}

fn load(opened: &DurableDatabase, small: &SmallDatabase, rows: &Model) -> Vec<AppendedChunk> {
    let rows: Vec<Row> = rows.iter().map(|(key, value)| small.row(*key, value)).collect();
    let batch = small.codec.decode(&rows).unwrap();
    let version = small.database.newest();
    let table = version.table(small.table).unwrap();
    let schema = Arc::clone(&table.definition().columns);
    let to: Destination = table.destination().clone();
    let mut writer =
        ChunkWriter::new("t".into(), Arc::clone(&schema), to, atoll_topology::NodeId(0), 0);
    writer.write(&batch).unwrap();
    let chunks = writer.finish().unwrap().into_iter().map(Arc::new);
    let appended = chunks.map(|chunk| {
        let file = Some(opened.chunks().write(&chunk, &schema).unwrap().id);
        AppendedChunk { first: table.reserve(chunk.rows), chunk, file }
    });
    let appended: Vec<AppendedChunk> = appended.collect();
    let mut files = appended.iter().filter_map(|chunk| chunk.file);
    files.try_for_each(|file| opened.chunks().sync(file)).unwrap();
    opened.chunks().sync_names().unwrap();
    appended
}

/// Checkpoints and folds until it is told to stop.
fn look_after(opened: &DurableDatabase, small: &SmallDatabase, is_over: &AtomicBool) {
    let policy = FoldPolicy { chunk_rows: 512, changed_share: 4, tail_rows: 40 };
    while !is_over.load(Ordering::Relaxed) {
        let version = small.database.newest();
        for task in version.table(small.table).unwrap().folds(&policy) {
            let folded = task.run().unwrap();
            let fold = |table: &atoll_store::table::TableVersion| {
                Ok(table.with_folded(&folded).unwrap_or_else(|| table.clone()))
            };
            small.database.publish_fold(small.table, fold).unwrap();
        }
        opened.checkpoint().unwrap();
    }
}

#[test]
fn the_child_commits_until_it_is_killed() {
    let Ok(directory) = env::var(DIRECTORY) else { return };
    let seed = number("ATOLL_SEED", 1);
    let (opened, small) = open(Path::new(&directory));
    let mut model = found(&small);
    let mut next = model.get(&COUNTER).map_or(1, |last| last.parse::<u64>().unwrap() + 1);
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| look_after(&opened, &small, &is_over));
        let mut out = std::io::stdout();
        // Ends on its own when nothing reads its output: its parent is gone.
        while writeln!(out, "\nready {}", next - 1).is_ok() {
            let made = transaction(seed, next, &model);
            commit(&opened, &small, &made);
            apply(&mut model, made);
            next += 1;
        }
        is_over.store(true, Ordering::Relaxed);
    });
}

/// Starts a child and kills it after it has said some times that it committed; the last number it said.
fn kill_one(directory: &Path, seed: u64, random: &mut SplitMix64) -> u64 {
    let mut child: Child = Command::new(env::current_exe().unwrap())
        .args(["--exact", CHILD, "--nocapture", "--test-threads=1"])
        .env(DIRECTORY, directory)
        .env("ATOLL_SEED", seed.to_string())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let said = |line: Option<std::io::Result<String>>| -> Option<Option<u64>> {
        let line = line?.ok()?;
        Some(line.strip_prefix("ready ").and_then(|number| number.parse().ok()))
    };
    let (mut last, mut left) = (0, random.below(60));
    // Now and then it is killed before it says anything: while it opens the directory.
    let is_early = random.below(6) == 0;
    while !is_early && left > 0 {
        match said(lines.next()) {
            Some(Some(number)) => (last, left) = (number, left - 1),
            Some(None) => {}
            None => panic!("seed {seed}: the child ended before it was killed"),
        }
    }
    (0..random.below(200_000)).for_each(|_| std::hint::spin_loop());
    child.kill().unwrap();
    child.wait().unwrap();
    while let Some(number) = said(lines.next()) {
        last = number.unwrap_or(last);
    }
    last
}

#[test]
fn committed_changes_survive_every_kill() {
    let (kills, first_seed) = (number("ATOLL_KILLS", KILLS), number("ATOLL_SEED", 1));
    let mut done = 0;
    for seed in first_seed.. {
        let home = tempfile::tempdir().unwrap();
        let directory = home.path().join("data");
        let mut random = SplitMix64::new(seed);
        let (mut model, mut commits) = (Model::new(), 0);
        for _ in 0..KILLS_OF_A_DIRECTORY {
            if done == kills {
                return;
            }
            let acknowledged = kill_one(&directory, seed, &mut random).max(commits);
            let (opened, small) = open(&directory);
            let found = found(&small);
            let there = found.get(&COUNTER).map_or(0, |last| last.parse::<u64>().unwrap());
            assert!(
                (acknowledged..=acknowledged + 1).contains(&there),
                "seed {seed}, kill {done}: {acknowledged} committed, {there} found"
            );
            for number in commits + 1..=there {
                let made = transaction(seed, number, &model);
                apply(&mut model, made);
            }
            assert!(found == model, "seed {seed}, kill {done}: other rows after commit {there}");
            commits = there;
            done += 1;
            drop((opened, small));
        }
    }
}
