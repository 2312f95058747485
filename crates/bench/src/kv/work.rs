//! The work on an open database: loading it, and reading while writing.

use std::collections::BTreeMap;
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, ensure};
use atoll_sys::{SplitMix64, getcpu};

use super::case::KvRate;
use super::engine::{KvEngine, KvSession};
use super::records::{Contents, Records, key};
use crate::latency::LatencyHistogram;

/// Records of a batch, as `db_bench` puts them.
const RUN: u64 = 1000;

/// What reading while writing came to.
#[derive(Debug)]
pub(super) struct Mixed {
    pub(super) writes: KvRate,
    pub(super) reads: KvRate,
    /// Readers on each node at their end.
    pub(super) readers: BTreeMap<u32, u32>,
    /// Number of the newest write.
    pub(super) written: u64,
}

/// What a thread did.
#[derive(Debug, Default)]
struct ThreadWork {
    latencies: LatencyHistogram,
    seconds: f64,
    node: u32,
    /// Number of the newest write that it saw or did.
    newest: u64,
}

/// Puts all records, by one thread; the rate.
pub(super) fn load(engine: &dyn KvEngine, records: &Records, is_random: bool) -> Result<KvRate> {
    let mut session = engine.session()?;
    let (start, mut latencies) = (Instant::now(), LatencyHistogram::default());
    for first in (0..records.count).step_by(RUN as usize) {
        let run = records.run(first..(first + RUN).min(records.count), is_random);
        let before = Instant::now();
        session.load(&run)?;
        latencies.add(before.elapsed());
    }
    let per_s = records.count as f64 / start.elapsed().as_secs_f64().max(1e-9);
    Ok(KvRate { count: records.count, per_s, latency: latencies.percentiles(), corrected: None })
}

/// One writer and some readers for so long; `written` is the number of the newest write before.
pub(super) fn read_while_writing(
    engine: &dyn KvEngine,
    records: &Records,
    readers: u32,
    time: Duration,
    written: u64,
) -> Result<Mixed> {
    let ready = Arc::new(Barrier::new(readers as usize + 1));
    let (writer, readers) = thread::scope(|scope| {
        let writer = scope.spawn(|| timed(engine, &ready, time, Writer::new(records, written)));
        let start = |number: u32| {
            let ready = &ready;
            scope.spawn(move || timed(engine, ready, time, Reader::new(records, number)))
        };
        let readers: Vec<_> = (0..readers).map(start).collect();
        let ended: Vec<_> = readers.into_iter().map(|reader| reader.join()).collect();
        (writer.join(), ended)
    });
    let joined = |done: thread::Result<Result<ThreadWork>>| {
        done.map_err(|_| anyhow!("a thread panicked")).and_then(|done| done)
    };
    let writer = joined(writer).context("the writer")?;
    let readers = readers.into_iter().map(joined).collect::<Result<Vec<_>>>();
    let readers = readers.context("a reader")?;
    let newest = readers.iter().map(|it| it.newest).max().unwrap_or_default();
    ensure!(newest <= writer.newest, "write {newest} was read before it was written");
    let mut nodes = BTreeMap::new();
    readers.iter().for_each(|it| *nodes.entry(it.node).or_default() += 1);
    let (written, writes) = (writer.newest, rate(&[writer]));
    Ok(Mixed { writes, reads: rate(&readers), readers: nodes, written })
}

/// All records of a database: one after the other, or by their keys where the engine has no order.
pub(super) fn contents(engine: &dyn KvEngine, records: &Records) -> Result<Contents> {
    let (mut session, mut contents) = (engine.session()?, Contents::default());
    if engine.can_scan() {
        session.scan(&mut |key, value| contents.add(key, value))?;
        return Ok(contents);
    }
    let mut value = Vec::with_capacity(records.value_bytes);
    for number in 0..records.count {
        let key = key(number);
        ensure!(session.get(&key, &mut value)?, "record {number} is not there");
        contents.add(&key, &value);
    }
    Ok(contents)
}

/// Repeats an act from the moment at which all threads are ready.
fn timed(
    engine: &dyn KvEngine,
    ready: &Barrier,
    time: Duration,
    mut act: impl ThreadAct,
) -> Result<ThreadWork> {
    let session = engine.session();
    // Also without a session: the others wait for this thread.
    ready.wait();
    let (mut session, mut work) = (session?, ThreadWork::default());
    let start = Instant::now();
    let mut before = start;
    while before - start < time {
        act.act(&mut *session)?;
        let now = Instant::now();
        work.latencies.add(now - before);
        before = now;
    }
    work.seconds = (before - start).as_secs_f64();
    work.node = getcpu().map(|at| at.node).unwrap_or_default();
    work.newest = act.newest();
    Ok(work)
}

/// Rates of all threads summed, and their latencies together.
fn rate(threads: &[ThreadWork]) -> KvRate {
    let (mut latencies, mut corrected) = (LatencyHistogram::default(), LatencyHistogram::default());
    let mut per_s = 0.0;
    for work in threads {
        let count = work.latencies.count();
        per_s += count as f64 / work.seconds.max(1e-9);
        latencies.merge(&work.latencies);
        let mean = Duration::from_secs_f64(work.seconds / count.max(1) as f64);
        corrected.merge(&work.latencies.corrected(mean));
    }
    let (latency, corrected) = (latencies.percentiles(), corrected.percentiles());
    KvRate { count: latencies.count(), per_s, latency, corrected }
}

/// What a thread does again and again.
trait ThreadAct {
    fn act(&mut self, session: &mut dyn KvSession) -> Result<()>;

    /// Number of the newest write that it saw or did.
    fn newest(&self) -> u64;
}

/// Gives random records new values, each with the number of the write.
struct Writer<'a> {
    records: &'a Records,
    random: SplitMix64,
    value: Vec<u8>,
    written: u64,
}

impl<'a> Writer<'a> {
    fn new(records: &'a Records, written: u64) -> Self {
        let (random, value) =
            (SplitMix64::new(records.seed ^ written), vec![0; records.value_bytes]);
        Self { records, random, value, written }
    }
}

impl ThreadAct for Writer<'_> {
    fn act(&mut self, session: &mut dyn KvSession) -> Result<()> {
        let number = self.random.below(self.records.count);
        self.records.fill(number, self.written + 1, &mut self.value);
        session.put(&key(number), &self.value)?;
        self.written += 1;
        Ok(())
    }

    fn newest(&self) -> u64 {
        self.written
    }
}

/// Reads random records, each of which must be there.
struct Reader<'a> {
    records: &'a Records,
    random: SplitMix64,
    value: Vec<u8>,
    newest: u64,
}

impl<'a> Reader<'a> {
    fn new(records: &'a Records, number: u32) -> Self {
        let random = SplitMix64::new(records.seed.wrapping_add(u64::from(number) + 1));
        Self { records, random, value: Vec::with_capacity(records.value_bytes), newest: 0 }
    }
}

impl ThreadAct for Reader<'_> {
    fn act(&mut self, session: &mut dyn KvSession) -> Result<()> {
        let number = self.random.below(self.records.count);
        ensure!(session.get(&key(number), &mut self.value)?, "record {number} is not there");
        self.newest = self.newest.max(self.records.write_of(number, &self.value)?);
        Ok(())
    }

    fn newest(&self) -> u64 {
        self.newest
    }
}
