//! What node-bound pools cost: Atoll's runtime against a plain tokio runtime, paired.
//!
//! Both run at once in one process with as many threads each; while one is measured the other is
//! idle. Every pair measures both on the same work right after each other, and which comes first
//! changes from pair to pair, so that what else goes on on the machine hits both alike. The ratio is
//! the median of the pairs' ratios, not the ratio of the medians.

use std::fmt;
use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use atoll_placement::{Arena, Kernel, LiveKernel, NodeBuffer};
use atoll_runtime::{Cancelled, Runtime, RuntimeOptions, Task, WorkerId};
use atoll_topology::{Bytes, Machine};

use crate::Spread;
use crate::scan::{SCAN_BLOCK, pieces, read, sum};

/// Turns of the loop that a small task consists of; about a microsecond.
const TASK_TURNS: u64 = 1000;

/// How much is measured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Threads of each runtime; one per usable cpu unless set.
    pub threads: Option<usize>,
    /// Pairs measured, after one that is thrown away.
    pub pairs: usize,
    /// Small tasks in each measurement.
    pub tasks: usize,
    /// Memory that the scan reads.
    pub scan: Bytes,
}

impl Default for Options {
    fn default() -> Self {
        Self { threads: None, pairs: 31, tasks: 20_000, scan: Bytes(256 << 20) }
    }
}

/// What was found, with its conditions.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// Name of the machine.
    pub machine: String,
    /// Nodes with workers.
    pub nodes: usize,
    /// Threads of each runtime.
    pub threads: usize,
    /// Atoll's workers whose binding the kernel confirmed.
    pub threads_bound: usize,
    /// Pairs measured.
    pub pairs: usize,
    /// Bytes scanned, of them local to their reader as counted by Atoll's step.
    pub scanned: (Bytes, Bytes),
    /// One row per kind of work.
    pub rows: Vec<Row>,
}

/// Times of one kind of work, each per unit.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// What was done.
    pub work: &'static str,
    /// What a time is of: `ns/task` or `ms/scan`.
    pub unit: &'static str,
    /// Atoll's times.
    pub atoll: Spread,
    /// tokio's times.
    pub tokio: Spread,
    /// Atoll's time over tokio's, pair by pair: below 1 Atoll is faster.
    pub ratio: Spread,
}

/// Measures both on the machine this process runs on.
pub fn compare(options: &Options) -> anyhow::Result<Comparison> {
    let machine = Arc::new(Machine::discover().context("cannot tell what this machine is")?);
    let kernel: Arc<dyn Kernel> = Arc::new(LiveKernel::new());
    let asked = RuntimeOptions { threads: options.threads, ..RuntimeOptions::default() };
    let atoll = Runtime::start(machine.clone(), kernel.clone(), asked)?;
    let tokio = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(atoll.worker_count())
        .enable_all()
        .build()
        .context("cannot start tokio's threads")?;
    let pieces = pieces(&atoll, &Arena::new(machine, kernel, None), options.scan)?;
    let pairs = options.pairs;
    let rows = vec![
        row(
            "spawn and join",
            per_task(options),
            pairs,
            || spawn_atoll(&atoll, options),
            || spawn_tokio(&tokio, options),
        )?,
        row(
            "step",
            per_task(options),
            pairs,
            || step_atoll(&atoll, options),
            || spawn_tokio(&tokio, options),
        )?,
        row(
            "scan",
            ("ms/scan", 1e3),
            pairs,
            || Ok(read(&atoll, &pieces)?.0),
            || scan_tokio(&tokio, &pieces),
        )?,
    ];
    let bytes = read(&atoll, &pieces)?.1;
    Ok(Comparison {
        machine: atoll.machine().name.clone(),
        nodes: atoll.pools().len(),
        threads: atoll.worker_count(),
        threads_bound: atoll.workers().iter().filter(|worker| worker.binding.is_bound()).count(),
        pairs,
        scanned: bytes,
        rows,
    })
}

/// Unit of the rows of small tasks, and what makes it of seconds.
fn per_task(options: &Options) -> (&'static str, f64) {
    ("ns/task", 1e9 / options.tasks.max(1) as f64)
}

/// Measures one kind of work in pairs.
fn row(
    work: &'static str,
    (unit, scale): (&'static str, f64),
    pairs: usize,
    mut atoll: impl FnMut() -> anyhow::Result<Duration>,
    mut tokio: impl FnMut() -> anyhow::Result<Duration>,
) -> anyhow::Result<Row> {
    let mut times = Vec::with_capacity(pairs);
    for pair in 0..=pairs {
        let time = if pair % 2 == 0 {
            let first = atoll()?;
            (first, tokio()?)
        } else {
            let first = tokio()?;
            (atoll()?, first)
        };
        times.push(time);
    }
    let seconds: Vec<(f64, f64)> =
        times[1..].iter().map(|(a, t)| (a.as_secs_f64(), t.as_secs_f64())).collect();
    Ok(Row {
        work,
        unit,
        atoll: Spread::of(seconds.iter().map(|(atoll, _)| atoll * scale).collect()),
        tokio: Spread::of(seconds.iter().map(|(_, tokio)| tokio * scale).collect()),
        ratio: Spread::of(seconds.iter().map(|(atoll, tokio)| atoll / tokio).collect()),
    })
}

/// The work of a small task: a chain of multiplications that no compiler shortens.
fn small(number: usize) -> u64 {
    (0..TASK_TURNS).fold(number as u64, |value, turn| black_box(value.wrapping_mul(31) ^ turn))
}

fn spawn_atoll(runtime: &Runtime, options: &Options) -> anyhow::Result<Duration> {
    let started = Instant::now();
    runtime.block_on(async {
        let tasks: Vec<_> = (0..options.tasks)
            .map(|number| runtime.spawn_on(WorkerId(number as u32), async move { small(number) }))
            .collect();
        for task in tasks {
            black_box(task.await?);
        }
        Ok(started.elapsed())
    })
}

fn spawn_tokio(runtime: &tokio::runtime::Runtime, options: &Options) -> anyhow::Result<Duration> {
    let started = Instant::now();
    runtime.block_on(async {
        let tasks: Vec<_> =
            (0..options.tasks).map(|number| runtime.spawn(async move { small(number) })).collect();
        for task in tasks {
            black_box(task.await?);
        }
        Ok(started.elapsed())
    })
}

fn step_atoll(runtime: &Runtime, options: &Options) -> anyhow::Result<Duration> {
    let started = Instant::now();
    let tasks = (0..options.tasks).map(|number| {
        Task::on_worker(WorkerId(number as u32), async move |_| Ok::<_, Cancelled>(small(number)))
    });
    black_box(runtime.block_on(runtime.step("small tasks", tasks.collect()).run()).result?);
    Ok(started.elapsed())
}

fn scan_tokio(
    runtime: &tokio::runtime::Runtime,
    pieces: &[Arc<NodeBuffer>],
) -> anyhow::Result<Duration> {
    let started = Instant::now();
    runtime.block_on(async {
        let scan = |piece: Arc<NodeBuffer>| async move {
            piece.as_slice().chunks(SCAN_BLOCK).map(sum).fold(0, u64::wrapping_add)
        };
        let tasks: Vec<_> = pieces.iter().map(|piece| runtime.spawn(scan(piece.clone()))).collect();
        for task in tasks {
            black_box(task.await?);
        }
        Ok(started.elapsed())
    })
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { machine, nodes, threads, threads_bound, pairs, scanned, .. } = self;
        writeln!(
            f,
            "{machine}: {nodes} nodes, {threads} threads each ({threads_bound} of Atoll's bound), \
             {pairs} pairs, median (quartiles)"
        )?;
        writeln!(f, "scan: {} read, {} of it local to its reader", scanned.0, scanned.1)?;
        let head = ["work", "unit", "Atoll", "tokio", "Atoll / tokio"];
        writeln!(
            f,
            "{:<15} {:<8} {:>24} {:>24} {:>20}",
            head[0], head[1], head[2], head[3], head[4]
        )?;
        for Row { work, unit, atoll, tokio, ratio } in &self.rows {
            let (atoll, tokio) = (format!("{atoll:.1}"), format!("{tokio:.1}"));
            writeln!(
                f,
                "{work:<15} {unit:<8} {atoll:>24} {tokio:>24} {:>20}",
                format!("{ratio:.3}")
            )?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{Options, compare};
    use atoll_topology::Bytes;

    #[test]
    fn a_tiny_comparison_measures_every_kind_of_work_and_prints_it_with_units() {
        let options = Options { threads: None, pairs: 3, tasks: 50, scan: Bytes(3 << 20) };
        let found = compare(&options).expect("a comparison");
        assert_eq!(found.rows.len(), 3);
        for row in &found.rows {
            assert!(row.atoll.median > 0.0 && row.tokio.median > 0.0, "{row:?}");
        }
        let text = found.to_string();
        for word in ["ns/task", "ms/scan", "Atoll / tokio", "3 pairs"] {
            assert!(text.contains(word), "{text}");
        }
    }
}
