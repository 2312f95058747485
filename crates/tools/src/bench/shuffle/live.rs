//! Shuffles on this machine: run, timed, checked, counted.

use std::sync::Arc;

use anyhow::{Context as _, Result, ensure};
use atoll_placement::{Arena, Kernel, LiveKernel};
use atoll_primitives::Context;
use atoll_primitives::shuffle::{Inbox, Integers, Moved, Schedule, Shuffle, ShuffleReport};
use atoll_runtime::{Runtime, RuntimeOptions, THREADS_MAX, WorkerId};
use atoll_topology::{Bytes, Machine};
use serde::Serialize;
use serde_json::json;

use super::references::{self, References};
use super::{ShuffleArgs, variants};
use crate::bench::manifest::is_lab;
use crate::bench::{Curve, Manifest, Measurement, Summary};
use crate::exit::CommandError;
use crate::terminal;

/// Regions that the lab's counter distinguishes.
const REGIONS: usize = atoll_marker::REGIONS as usize;
/// The tag of the pieces' pages.
const TAG: u8 = 1;

/// A run of `bench shuffle`.
#[derive(Debug, Serialize)]
pub(super) struct Results {
    #[serde(skip)]
    pub(super) manifest: Manifest,
    /// Size of all pieces together.
    pub(super) bytes: Bytes,
    pub(super) rows: Vec<PlanRow>,
}

/// A shuffle of this many threads.
#[derive(Debug, Serialize)]
pub(super) struct PlanRow {
    pub(super) threads: usize,
    pub(super) order: &'static str,
    pub(super) moved: &'static str,
    pub(super) coordination: &'static str,
    /// GB/s of the runs.
    pub(super) bandwidth: Summary,
    /// GB/s of each run.
    #[serde(skip)]
    samples: Vec<f64>,
    /// Reference work of the same workers: `read` their data, or `copy` it with memcpy.
    pub(super) reference: &'static str,
    /// GB/s of that.
    pub(super) reference_bandwidth: Option<Summary>,
    /// Median of the runs' shares of it.
    pub(super) share: Option<f64>,
    /// Share of the bytes that was read on the node where they lie.
    pub(super) local: f64,
    /// Arrivals of a migrating thread at a place where another one still was, a run.
    pub(super) convoys: f64,
    /// Workers whose pieces the kernel found on their node.
    pub(super) placed: usize,
    /// In the lab, the region of each step.
    pub(super) regions: Vec<u8>,
}

/// Runs everything that was asked for.
pub(super) fn measure(args: &ShuffleArgs) -> Result<Results, CommandError> {
    let machine = Machine::discover().context("this machine cannot be described")?;
    let machine = Arc::new(machine);
    let threads = match args.threads.is_empty() {
        true => vec![machine.cpus.len().clamp(1, THREADS_MAX)],
        false => args.threads.iter().map(|threads| usize::from(*threads)).collect(),
    };
    let mut manifest = Manifest::new(&machine, args.runs, args.warmup, args.seed);
    let mut rows = Vec::new();
    for threads in threads {
        terminal::say(format_args!("{threads} threads"));
        rows.extend(Bench::start(&machine, threads, args)?.rows(args, rows.len())?);
    }
    manifest.end([]);
    Ok(Results { manifest, bytes: args.bytes, rows })
}

/// Workers, their pieces, and the expected result.
struct Bench {
    context: Context,
    integers: Integers,
    inbox: Option<Inbox>,
    /// None in the lab, whose times say nothing.
    references: Option<References>,
    means: Vec<Option<f64>>,
}

impl Bench {
    fn start(machine: &Arc<Machine>, threads: usize, args: &ShuffleArgs) -> Result<Self> {
        let kernel: Arc<dyn Kernel> = Arc::new(LiveKernel::new());
        let options = RuntimeOptions { threads: Some(threads), ..RuntimeOptions::default() };
        let runtime = Runtime::start(Arc::clone(machine), Arc::clone(&kernel), options);
        let runtime = runtime.with_context(|| format!("{threads} workers cannot be started"))?;
        let context = Context::new(runtime, Arena::new(Arc::clone(machine), kernel, None));
        let wait = context.runtime().clone();
        let count = usize::try_from(args.bytes.0 / 8).context("--bytes is too large")?;
        let integers = wait.block_on(Integers::random(&context, count, args.seed))?;
        let pushes = args.shuffles().iter().any(|shuffle| shuffle.moved == Moved::Pushed);
        let inbox = match pushes {
            true => Some(wait.block_on(Inbox::new(&context, &integers))?),
            false => None,
        };
        let references = match is_lab() {
            true => None,
            false => Some(References::new(&context, &integers, pushes)?),
        };
        let means = references::means(&integers);
        Ok(Self { context, integers, inbox, references, means })
    }

    /// All shuffles in turn, run by run; `before` are the rows that there are already.
    fn rows(&self, args: &ShuffleArgs, before: usize) -> Result<Vec<PlanRow>> {
        let shuffles = args.shuffles();
        let schedules: Vec<Schedule> = shuffles
            .iter()
            .map(|shuffle| Schedule::for_runtime(self.context.runtime(), *shuffle))
            .collect();
        let mut runs: Vec<Runs> = Vec::new();
        for (at, schedule) in schedules.iter().enumerate() {
            let regions = self.first(schedule, before + at, args.warmup)?;
            runs.push(Runs { regions, ..Runs::default() });
        }
        for _ in 0..args.runs {
            let reads = self.references.as_ref().map(References::read).transpose()?;
            let copies = self.references.as_ref().and_then(References::copy).transpose()?;
            for (schedule, runs) in schedules.iter().zip(&mut runs) {
                let is_pushed = schedule.shuffle().moved == Moved::Pushed;
                let report = self.shuffle(schedule)?;
                runs.add(&report, self.integers.bytes(), if is_pushed { copies } else { reads });
            }
        }
        let placed = self.placed(&schedules[0]);
        let rows = shuffles.iter().zip(runs);
        let rows = rows.map(|(shuffle, runs)| runs.row(*shuffle, placed, self));
        rows.collect::<Option<_>>().context("--runs is at least 1")
    }

    /// Runs before those that count: warm-up runs and, in the lab, one that marks every
    /// step.
    fn first(&self, schedule: &Schedule, number: usize, warmup: u32) -> Result<Vec<u8>> {
        if is_lab() && schedule.shuffle().moved != Moved::Pushed {
            return self.counted(schedule, number);
        }
        for _ in 0..warmup {
            self.shuffle(schedule)?;
        }
        Ok(Vec::new())
    }

    /// One run, checked.
    fn shuffle(&self, schedule: &Schedule) -> Result<ShuffleReport> {
        let runtime = self.context.runtime();
        let inbox = self.inbox.as_ref().filter(|_| schedule.shuffle().moved == Moved::Pushed);
        let (means, report) = match inbox {
            Some(inbox) => {
                let pushed = self.integers.push(&self.context, schedule, inbox);
                let report = runtime.block_on(pushed)?;
                (runtime.block_on(inbox.means(&self.context))?, report)
            }
            None => runtime.block_on(self.integers.means(&self.context, schedule))?,
        };
        ensure!(means == self.means, "{} gives other means than a plain sum", schedule.shuffle());
        Ok(report)
    }

    /// The same with a region of the lab's counter open in each step; returns which.
    fn counted(&self, schedule: &Schedule, number: usize) -> Result<Vec<u8>> {
        let first = number * schedule.workers();
        let regions: Vec<u8> = (first..first + schedule.workers())
            .map_while(|region| u8::try_from(region).ok().filter(|_| region < REGIONS))
            .collect();
        for worker in (0..self.integers.workers() as u32).map(WorkerId) {
            atoll_marker::tag(TAG, self.integers.bytes_held(worker));
        }
        let (integers, of_step) = (self.integers.clone(), regions.clone());
        let sums = vec![(0_u128, 0_u64); schedule.workers()];
        let run = schedule.run(&self.context, "counted", sums, move |(sum, count), visit, _| {
            let region = of_step.get(visit.step);
            region.inspect(|region| atoll_marker::open(**region));
            let piece = integers.piece(visit.source, visit.worker);
            *sum += piece.iter().map(|integer| u128::from(*integer)).sum::<u128>();
            *count += piece.len() as u64;
            region.inspect(|region| atoll_marker::close(**region));
            Ok(())
        });
        let sums = self.context.runtime().block_on(run)?.states;
        let mean = |(sum, count): &(u128, u64)| (*count > 0).then(|| *sum as f64 / *count as f64);
        ensure!(sums.iter().map(mean).eq(self.means.iter().copied()), "counted means differ");
        Ok(regions)
    }

    fn placed(&self, schedule: &Schedule) -> usize {
        let workers = (0..schedule.workers() as u32).map(WorkerId);
        let is_placed = |worker: &WorkerId| {
            self.integers.home(*worker).is_some_and(|home| home == schedule.node(*worker))
        };
        workers.filter(is_placed).count()
    }
}

/// Results of the runs of a shuffle.
#[derive(Default)]
struct Runs {
    bandwidths: Vec<f64>,
    references: Vec<f64>,
    local: f64,
    convoys: u64,
    regions: Vec<u8>,
}

impl Runs {
    fn add(&mut self, report: &ShuffleReport, bytes: Bytes, reference: Option<f64>) {
        self.bandwidths.push(bytes.0 as f64 / report.time.as_nanos() as f64);
        self.references.extend(reference);
        let read = report.bytes();
        self.local = read.local().0 as f64 / read.total().0.max(1) as f64;
        self.convoys += report.convoys;
    }

    fn row(self, shuffle: Shuffle, placed: usize, bench: &Bench) -> Option<PlanRow> {
        let shares = self.bandwidths.iter().zip(&self.references).map(|(ours, all)| ours / all);
        let is_pushed = shuffle.moved == Moved::Pushed;
        Some(PlanRow {
            threads: bench.integers.workers(),
            order: shuffle.order.name(),
            moved: shuffle.moved.name(),
            coordination: variants::coordination(shuffle),
            convoys: self.convoys as f64 / self.bandwidths.len() as f64,
            bandwidth: Summary::from_values(self.bandwidths.iter().copied())?,
            reference: if is_pushed { "copy" } else { "read" },
            share: Summary::from_values(shares).map(|shares| shares.median),
            reference_bandwidth: Summary::from_values(self.references),
            samples: self.bandwidths,
            local: self.local,
            placed,
            regions: self.regions,
        })
    }
}

impl Results {
    /// Variant and machine.
    pub(super) fn title(&self) -> String {
        format!("Shuffle of {} of integers on {}", self.bytes, self.manifest.machine.name)
    }

    /// For `bench compare`.
    pub(super) fn measurements(&self) -> Vec<Measurement> {
        let of = |row: &PlanRow| {
            let PlanRow { threads, order, moved, coordination, .. } = row;
            let case = json!({
                "bytes": self.bytes, "threads": threads, "order": order, "moved": moved,
                "coordination": coordination,
            });
            Measurement::rates(&case, "atoll", "GB/s", row.samples.clone())
        };
        self.rows.iter().map(of).collect()
    }

    /// Bandwidth by threads of each variant.
    pub(super) fn curves(&self) -> Vec<Curve> {
        let mut curves: Vec<Curve> = Vec::new();
        for row in &self.rows {
            let name = format!("{}, {}, {}", row.order, row.moved, row.coordination);
            Curve::add(&mut curves, name, (row.threads as f64, row.bandwidth.median));
        }
        curves
    }
}
