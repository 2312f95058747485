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
use atoll_runtime::{Cancelled, Runtime, RuntimeOptions, Task, TaskContext, WorkerId};
use atoll_tools::bench::{Document, Form, Manifest, Measurement, Summary, json};
use atoll_tools::bytes;
use atoll_tools::exit::CommandError;
use atoll_topology::{Bytes, Machine};
use clap::Args;
use serde::Serialize;
use serde_json::json as object;

use crate::flags::RunArgs;
use crate::table::table;

/// Turns of the loop that a small task consists of; about a microsecond.
const TASK_TURNS: u64 = 1000;
/// Bytes between two looks at the cancel token: some 25 µs of reading.
const SCAN_BLOCK: usize = 256 << 10;
/// Bytes that one task reads.
const SCAN_PIECE: usize = 4 << 20;

/// What `--help` shows.
pub(crate) const EXAMPLES: &str = "\
Examples:
  atoll bench runtime
  atoll bench runtime --runs 31 --tasks 20000 --json

Both run in one process with as many threads each, in turn; ratios are taken pair by pair.";

/// Arguments of `atoll bench runtime`.
#[derive(Args, Debug)]
pub(crate) struct RuntimeArgs {
    /// Threads of each runtime [default: one for each cpu]
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    /// Small tasks in each measurement
    #[arg(long, value_name = "N", default_value_t = 20_000)]
    tasks: usize,
    /// Memory that the scan reads
    #[arg(long, value_name = "SIZE", default_value = "256MiB", value_parser = bytes::parse)]
    scan: Bytes,
    #[command(flatten)]
    run: RunArgs,
}

/// Measures and writes the results.
pub(crate) fn run(args: &RuntimeArgs) -> Result<(), CommandError> {
    let outputs = args.run.output.outputs(false)?;
    let options = ContestOptions {
        threads: args.threads,
        runs: args.run.runs as usize,
        warmup: args.run.warmup as usize,
        tasks: args.tasks,
        scan: args.scan,
    };
    let (manifest, comparison) = compare(&options)?;
    outputs.write(|form| match form {
        Form::Json => json(&Document {
            benchmark: "runtime",
            manifest: &manifest,
            measurements: comparison.measurements(),
            details: &comparison,
        }),
        _ => Ok(format!("# bench runtime\n\n{manifest}{comparison}")),
    })
}

/// How much is measured.
#[derive(Clone, Debug)]
struct ContestOptions {
    /// Threads of each runtime; one per usable cpu unless set.
    threads: Option<usize>,
    /// Pairs measured.
    runs: usize,
    /// Pairs before them.
    warmup: usize,
    /// Small tasks in each measurement.
    tasks: usize,
    /// Memory that the scan reads.
    scan: Bytes,
}

/// The results.
#[derive(Clone, Debug, Serialize)]
struct RuntimeComparison {
    /// Threads of each runtime.
    threads: usize,
    /// Atoll's workers whose binding the kernel confirmed.
    threads_bound: usize,
    /// Bytes scanned, of them local to their reader as counted by Atoll's step.
    scanned: (Bytes, Bytes),
    /// One for each kind of work.
    rows: Vec<RuntimeRow>,
}

/// Times of one kind of work, each per unit.
#[derive(Clone, Debug, Serialize)]
struct RuntimeRow {
    /// The workload.
    work: &'static str,
    /// Unit of the times: `ns/task` or `ms/scan`.
    unit: &'static str,
    atoll: Summary,
    tokio: Summary,
    /// Atoll's time over tokio's, pair by pair: below 1 Atoll is faster.
    ratio: Summary,
    /// Times of both, pair by pair.
    #[serde(skip)]
    samples: Vec<(f64, f64)>,
}

/// Measures both on the machine this process runs on.
fn compare(options: &ContestOptions) -> anyhow::Result<(Manifest, RuntimeComparison)> {
    let machine = Arc::new(Machine::discover().context("this machine cannot be described")?);
    let mut manifest = Manifest::new(&machine, options.runs as u32, options.warmup as u32, 0);
    let kernel: Arc<dyn Kernel> = Arc::new(LiveKernel::new());
    let asked = RuntimeOptions { threads: options.threads, ..RuntimeOptions::default() };
    let atoll = Runtime::start(machine.clone(), kernel.clone(), asked)?;
    let tokio = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(atoll.worker_count())
        .enable_all()
        .build()
        .context("cannot start tokio's threads")?;
    let pieces = pieces(&atoll, &Arena::new(machine, kernel, None), options.scan)?;
    let rows = vec![
        row(
            "spawn and join",
            per_task(options),
            options,
            || spawn_atoll(&atoll, options),
            || spawn_tokio(&tokio, options),
        )?,
        row(
            "step",
            per_task(options),
            options,
            || step_atoll(&atoll, options),
            || spawn_tokio(&tokio, options),
        )?,
        row(
            "scan",
            ("ms/scan", 1e3),
            options,
            || Ok(read(&atoll, &pieces)?.0),
            || scan_tokio(&tokio, &pieces),
        )?,
    ];
    let scanned = read(&atoll, &pieces)?.1;
    manifest.end([]);
    let threads_bound = atoll.workers().iter().filter(|worker| worker.binding.is_bound()).count();
    let comparison =
        RuntimeComparison { threads: atoll.worker_count(), threads_bound, scanned, rows };
    Ok((manifest, comparison))
}

/// Unit of the rows of small tasks, and what makes it of seconds.
fn per_task(options: &ContestOptions) -> (&'static str, f64) {
    ("ns/task", 1e9 / options.tasks.max(1) as f64)
}

/// Measures one kind of work in pairs.
fn row(
    work: &'static str,
    (unit, scale): (&'static str, f64),
    options: &ContestOptions,
    mut atoll: impl FnMut() -> anyhow::Result<Duration>,
    mut tokio: impl FnMut() -> anyhow::Result<Duration>,
) -> anyhow::Result<RuntimeRow> {
    let mut samples = Vec::with_capacity(options.runs);
    for pair in 0..options.warmup + options.runs {
        let (of_atoll, of_tokio) = if pair % 2 == 0 {
            let first = atoll()?;
            (first, tokio()?)
        } else {
            let first = tokio()?;
            (atoll()?, first)
        };
        if pair >= options.warmup {
            samples.push((of_atoll.as_secs_f64() * scale, of_tokio.as_secs_f64() * scale));
        }
    }
    let of = |value: fn(&(f64, f64)) -> f64| {
        Summary::from_values(samples.iter().map(value)).context("--runs is at least 1")
    };
    Ok(RuntimeRow {
        work,
        unit,
        atoll: of(|pair| pair.0)?,
        tokio: of(|pair| pair.1)?,
        ratio: of(|pair| pair.0 / pair.1)?,
        samples,
    })
}

/// The work of a small task: a chain of multiplications that no compiler shortens.
fn small(number: usize) -> u64 {
    (0..TASK_TURNS).fold(number as u64, |value, turn| black_box(value.wrapping_mul(31) ^ turn))
}

fn spawn_atoll(runtime: &Runtime, options: &ContestOptions) -> anyhow::Result<Duration> {
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

fn spawn_tokio(
    runtime: &tokio::runtime::Runtime,
    options: &ContestOptions,
) -> anyhow::Result<Duration> {
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

fn step_atoll(runtime: &Runtime, options: &ContestOptions) -> anyhow::Result<Duration> {
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

/// Memory to read, dealt to the nodes in turn and filled on them.
fn pieces(runtime: &Runtime, arena: &Arena, bytes: Bytes) -> anyhow::Result<Vec<Arc<NodeBuffer>>> {
    let count = (bytes.0 as usize).div_ceil(SCAN_PIECE);
    let tasks = (0..count).map(|number| {
        let arena = arena.clone();
        let node = runtime.pools()[number % runtime.pools().len()].node();
        Task::on_node(node, async move |_| {
            let mut piece = arena.allocate(Some(node), SCAN_PIECE)?;
            piece.as_mut_slice().fill(number as u8);
            Ok::<_, anyhow::Error>(Arc::new(piece))
        })
    });
    let outcome = runtime.block_on(runtime.step("fill", tasks.collect()).run());
    outcome.result.map_err(|error| anyhow::anyhow!("cannot fill the memory to read: {error:#}"))
}

/// Sum of a block, as 64-bit numbers.
fn sum(block: &[u8]) -> u64 {
    let (words, _) = block.as_chunks::<8>();
    words.iter().fold(0, |sum, word| sum.wrapping_add(u64::from_ne_bytes(*word)))
}

/// Time of reading all pieces, and the bytes: all, and those local to their reader.
fn read(
    runtime: &Runtime,
    pieces: &[Arc<NodeBuffer>],
) -> anyhow::Result<(Duration, (Bytes, Bytes))> {
    let started = Instant::now();
    let tasks = pieces.iter().map(|piece| {
        let piece = piece.clone();
        let home = piece.home().or(piece.wanted()).unwrap_or_default();
        Task::on_node(home, async move |context: TaskContext| read_piece(&context, &piece))
    });
    let outcome = runtime.block_on(runtime.step("scan", tasks.collect()).run());
    black_box(outcome.result?);
    let bytes = &outcome.report.bytes;
    Ok((started.elapsed(), (bytes.total(), bytes.local())))
}

fn read_piece(context: &TaskContext, piece: &NodeBuffer) -> Result<u64, Cancelled> {
    let mut total = 0u64;
    for block in piece.as_slice().chunks(SCAN_BLOCK) {
        context.check()?;
        total = total.wrapping_add(sum(block));
        if let Some(home) = piece.home() {
            context.count_read(home, Bytes(block.len() as u64));
        }
    }
    Ok(total)
}

impl RuntimeComparison {
    /// For `bench compare`.
    fn measurements(&self) -> Vec<Measurement> {
        let of = |row: &RuntimeRow| {
            let case = object!({ "work": row.work, "threads": self.threads });
            let times = |name: &str, of: fn(&(f64, f64)) -> f64| {
                Measurement::times(&case, name, row.unit, row.samples.iter().map(of).collect())
            };
            [times("atoll", |pair| pair.0), times("tokio", |pair| pair.1)]
        };
        self.rows.iter().flat_map(of).collect()
    }
}

impl fmt::Display for RuntimeComparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { threads, threads_bound, scanned, .. } = self;
        writeln!(f, "- {threads} threads each, {threads_bound} of Atoll's bound")?;
        writeln!(f, "- scan: {} read, {} of it local to its reader\n", scanned.0, scanned.1)?;
        let head = ["work", "unit", "atoll", "tokio", "atoll / tokio"].map(str::to_owned);
        let row = |row: &RuntimeRow| {
            let RuntimeRow { work, unit, atoll, tokio, ratio, .. } = row;
            vec![
                (*work).to_owned(),
                (*unit).to_owned(),
                format!("{atoll:.1}"),
                format!("{tokio:.1}"),
                format!("{ratio:.3}"),
            ]
        };
        let rows: Vec<Vec<String>> = self.rows.iter().map(row).collect();
        f.write_str(&table(&head, &rows))
    }
}

#[cfg(test)]
mod tests {
    use super::{ContestOptions, compare};
    use atoll_topology::Bytes;

    #[test]
    fn a_tiny_comparison_measures_every_kind_of_work_and_prints_it_with_units() {
        let options =
            ContestOptions { threads: None, runs: 3, warmup: 1, tasks: 50, scan: Bytes(3 << 20) };
        let (_, found) = compare(&options).expect("a comparison");
        assert_eq!(found.rows.len(), 3);
        for row in &found.rows {
            assert!(row.atoll.median > 0.0 && row.tokio.median > 0.0, "{row:?}");
        }
        let measurements = found.measurements();
        assert_eq!((measurements.len(), measurements[0].samples.len()), (6, 3));
        let text = found.to_string();
        for word in ["ns/task", "ms/scan", "atoll / tokio"] {
            assert!(text.contains(word), "{text}");
        }
    }
}
