//! `bench memory --reproduce kiefer`: the paper's machine in the lab, its caches and the arrays divided
//! alike, and its tables next to ours.

use std::ffi::OsString;
use std::io::stderr;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, anyhow};
use atoll_experiments::published::Published;
use atoll_experiments::reproduce::{Counted, Point, PublishedComparison};
use atoll_experiments::{Arm, ExperimentResults};
use atoll_lab::{Guest, GuestShape, LabError, RunRequest, Streams, flows};
use atoll_model::{Assumption, Assumptions, Costs, Estimate, Figure};
use atoll_simulation::{Counting, Region, Report, Setup};
use atoll_topology::Knowledge;
use clap::ValueEnum;
use serde::{Deserialize, Serialize};

use crate::exit::{CommandError, Exit};

/// Papers whose figures are reproduced.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(super) enum Paper {
    /// Kiefer 2013, table 1 and figure 2
    Kiefer,
}

/// The paper's machine.
const MACHINE: &str = "westmere-ex-4";
/// A machine to run experiments on.
struct Guests {
    experiments: &'static str,
    /// Cpus of each node. Even idle ones slow an emulator down.
    cpus: u32,
    /// Arrays and caches are divided by this; all ratios between them stay.
    scale: u32,
    /// Accesses between two waits of the threads for each other: those of all threads that share a
    /// last-level cache are less than a tenth of its lines. A wait takes an emulator longer than a
    /// thousand accesses.
    turn: u32,
}

/// Experiments 1 to 3 have a thread on each node at most: 64 divides the sets of every cache without
/// remainder, and leaves a single set of the first level. Experiment 4 has a thread of each of four
/// groups there, which share the last-level cache: it has to be large compared with the work of a turn,
/// and turns have to be few.
const GUESTS: [Guests; 2] = [
    Guests { experiments: "1,2,3", cpus: 1, scale: 64, turn: 512 },
    Guests { experiments: "4", cpus: 4, scale: 4, turn: 2048 },
];
/// Accesses of each thread by experiment. In 2 and 3 a thousand for each line of the smaller array: a
/// choice, made knowing that the published 78 % of hits with 200 migrations means some 900; the paper's
/// four billion would take hours. In 1 and 4 as many as the shares need for a digit after the point.
const ACCESSES: &str = "400000,4096000,4096000,200000";
/// Longest run: an emulator on a busy machine is slow.
const TIMEOUT: Duration = Duration::from_secs(1800);

/// A reproduction.
#[derive(Debug, Serialize)]
pub(super) struct Reproduction {
    paper: &'static str,
    machine: &'static str,
    /// Divisor of arrays and caches by experiments.
    scales: Vec<(&'static str, u32)>,
    notes: Vec<String>,
    pub(super) comparison: PublishedComparison,
    counted: Vec<Ours>,
    figures: Vec<Figure>,
    benchmarks: Vec<ExperimentResults>,
}

/// Counts of an arm.
#[derive(Debug, Serialize)]
struct Ours {
    experiment: u8,
    name: String,
    hit_rate: Option<f64>,
    #[serde(flatten)]
    counted: Counted,
}

/// Boots, runs, counts, compares.
pub(super) fn reproduce(paper: Paper) -> Result<Reproduction, CommandError> {
    let Paper::Kiefer = paper;
    let known = atoll_formats::open(MACHINE).map_err(anyhow::Error::from)?;
    let mut all = Reproduced::default();
    for guests in GUESTS {
        all.run(&known, &guests)?;
    }
    let Reproduced { counted, figures, notes, benchmarks } = all;
    let comparison = PublishedComparison::try_from_counts(&counted, Published::kiefer_2013())
        .map_err(anyhow::Error::from)?;
    let ours = |counted: Counted| Ours {
        experiment: counted.arm.experiment,
        name: counted.arm.title(),
        hit_rate: counted.hit_rate(),
        counted,
    };
    Ok(Reproduction {
        paper: "Kiefer 2013, table 1 and figure 2",
        machine: MACHINE,
        scales: GUESTS.iter().map(|guests| (guests.experiments, guests.scale)).collect(),
        notes,
        comparison,
        counted: counted.into_iter().map(ours).collect(),
        figures,
        benchmarks,
    })
}

/// Results of the guests so far.
#[derive(Default)]
struct Reproduced {
    counted: Vec<Counted>,
    figures: Vec<Figure>,
    notes: Vec<String>,
    benchmarks: Vec<ExperimentResults>,
}

impl Reproduced {
    /// Runs experiments in a guest.
    fn run(&mut self, known: &Knowledge, guests: &Guests) -> Result<(), CommandError> {
        let Guests { experiments, cpus, scale, .. } = *guests;
        let shape =
            GuestShape { cpus_per_node: Some(cpus), cache_divisor: scale, ..GuestShape::default() };
        let guest = Guest::try_from_knowledge(known, &shape).map_err(anyhow::Error::from)?;
        let (outcome, results) = in_lab(guest, guests)?;
        let report =
            outcome.report.context("the lab counted nothing").map_err(CommandError::from)?;
        let guest = outcome.guest;
        let costs = Costs::from_knowledge(guest.knowledge(), &assumptions())
            .map_err(anyhow::Error::from)?;
        self.counted.extend(counted(&results, &report, &costs)?);
        self.figures = costs.figures().to_vec();
        let notes = guest.notes().iter().map(|note| format!("experiment {experiments}: {note}"));
        self.notes.extend(notes);
        self.benchmarks.push(results);
        Ok(())
    }
}

/// Assumptions besides the machine file's facts, the same for all rows. Page walks take nothing of
/// their own: nearly every access to either array misses the DTLB, so they are in the fixed cost. A
/// written line that a store takes over moves without a write to memory and costs what a clean one does.
fn assumptions() -> Assumptions {
    let walk = "in the fixed cost: either array is far larger than the DTLB reaches";
    let defaults = Assumptions::default();
    let dirty = "as a clean one: what a store takes over is not written to memory";
    Assumptions {
        walk: Assumption::new(0.0, walk),
        line_dirty: Assumption::new(defaults.line_clean.value, dirty),
        ..defaults
    }
}

/// The part of the benchmark's document that is read.
#[derive(Deserialize)]
struct Printed {
    details: ExperimentResults,
}

fn in_lab(
    guest: Guest,
    guests: &Guests,
) -> Result<(atoll_lab::RunOutcome, ExperimentResults), CommandError> {
    let scale = guests.scale.to_string();
    let words = [
        "bench",
        "memory",
        "--experiment",
        guests.experiments,
        "--json",
        "--runs",
        "1",
        "--scale",
        &scale,
        "--accesses",
        ACCESSES,
        "--turn",
        &guests.turn.to_string(),
    ];
    let mut command = vec![small_binary()?.into_os_string()];
    command.extend(words.map(OsString::from));
    let mut request = RunRequest::new(guest, command);
    request.counting = Some(Counting::Region);
    request.balancing = Some(false);
    request.timeout = TIMEOUT;
    let mut out = Vec::new();
    let streams = Streams { out: &mut out, err: &mut stderr() };
    let outcome = atoll_lab::run(&request, streams).map_err(not_run)?;
    if outcome.code != 0 {
        let message = format!("the benchmark failed in the lab with code {}", outcome.code);
        return Err(CommandError::with(Exit::Own, message));
    }
    let document: Printed =
        serde_json::from_slice(&out).context("the lab's output is not the benchmark's JSON")?;
    Ok((outcome, document.details))
}

fn not_run(error: LabError) -> CommandError {
    CommandError::with(Exit::NotHere, error)
}

/// `atoll-tools` next to this program, which is quick to pack, or this program itself.
fn small_binary() -> anyhow::Result<PathBuf> {
    let own = std::env::current_exe().context("cannot find the program of this process")?;
    let small = own.with_file_name("atoll-tools");
    Ok(if small.is_file() { small } else { own })
}

/// The counts of each arm's region.
fn counted(
    results: &ExperimentResults,
    report: &Report,
    costs: &Costs,
) -> Result<Vec<Counted>, CommandError> {
    if let Some(failure) = &report.calibration.failure {
        return Err(anyhow!("the lab could not count: {failure}").into());
    }
    let mut all = Vec::new();
    for outcome in &results.arms {
        if let Some(failure) = &outcome.failure {
            return Err(anyhow!("{} failed in the lab: {failure}", outcome.arm.title()).into());
        }
        let region = report.regions.iter().find(|it| Some(it.number) == outcome.arm.region);
        let missing = || anyhow!("the lab has no counts of {}", outcome.arm.title());
        let accesses = outcome.accesses * outcome.arm.threads() as u64;
        let accesses = accesses * u64::from(results.manifest.repetitions);
        let region = region.ok_or_else(missing)?;
        all.push(of_region(&outcome.arm, accesses, region, (&report.setup, costs))?);
    }
    Ok(all)
}

fn of_region(
    arm: &Arm,
    accesses: u64,
    region: &Region,
    (setup, costs): (&Setup, &Costs),
) -> Result<Counted, CommandError> {
    let traffic = &region.traffic;
    let estimate =
        Estimate::from_flows(costs, &flows(setup, traffic)).map_err(anyhow::Error::from)?;
    let caches = || traffic.caches.iter();
    let sources = || caches().map(|it| &it.sources);
    let from_caches = sources().flat_map(|it| it.clean.iter().chain(&it.dirty)).sum();
    let from_remote_memory = sources()
        .enumerate()
        .flat_map(|(at, it)| it.memory.iter().enumerate().filter(move |(home, _)| *home != at))
        .map(|(_, lines)| lines)
        .sum();
    let bounds = &estimate.independent;
    let pipes =
        estimate.controllers.iter().map(|it| (it.time.0, format!("memory of node {}", it.node)));
    let links =
        estimate.links.iter().map(|it| (it.time.0, format!("link from {} to {}", it.from, it.to)));
    let busiest = pipes.chain(links).max_by(|a, b| a.0.total_cmp(&b.0));
    Ok(Counted {
        arm: arm.clone(),
        accesses,
        hits_unshared: caches().map(|it| it.llc_hits.modified + it.llc_hits.exclusive).sum(),
        hits_shared: caches().map(|it| it.llc_hits.shared + it.llc_hits.forward).sum(),
        misses: caches().map(|it| it.llc_misses).sum(),
        from_caches,
        from_remote_memory,
        wait_ns: estimate.nodes.iter().map(|node| node.waits.sum().0).sum(),
        busiest_ns: bounds.bandwidth.0,
        busiest: busiest.map(|(_, name)| name).unwrap_or_default(),
        series: series(region),
    })
}

fn series(region: &Region) -> Vec<Point> {
    let mut accesses = 0;
    let point = |slice: &atoll_simulation::RunSlice| {
        accesses += slice.accesses;
        let hits: u64 = slice.llc_hits.iter().sum();
        let all = hits + slice.llc_misses.iter().sum::<u64>();
        let hit_rate = (all > 0).then(|| hits as f64 / all as f64);
        Point { accesses, hit_rate }
    };
    region.series.slices.iter().map(point).collect()
}

impl Reproduction {
    fn divisors(&self) -> String {
        let of =
            |(experiments, scale): &(&str, u32)| format!("{scale} (experiments {experiments})");
        self.scales.iter().map(of).collect::<Vec<_>>().join(" and ")
    }

    /// Whose figures these are.
    fn title(&self) -> String {
        format!("{} on {}, in the lab", self.paper, self.machine)
    }

    /// How ours came about.
    fn conditions(&self) -> String {
        format!(
            "arrays and caches are divided by {}: 16 MB and 128 MB against 24 MB are as in the paper;\n\
             {}\n\
             nothing is timed here: the lab counts what the caches do, the machine model makes times of it",
            self.divisors(),
            self.notes.join("; ")
        )
    }

    /// A picture.
    pub(super) fn svg(&self) -> String {
        let (title, conditions) = (self.title(), self.conditions());
        atoll_experiments::plot::reproduction(&title, &conditions, &self.comparison)
    }

    /// The result as text.
    pub(super) fn text(&self) -> String {
        let mut text = format!("{}\n{}\n\n", self.title(), self.conditions());
        text.push_str(&atoll_experiments::reproduce::text(&self.comparison));
        text.push_str("\nCounted\n");
        for ours in &self.counted {
            text.push_str(&line(ours));
        }
        text.push_str("\nFigures of the machine model\n");
        for figure in &self.figures {
            text.push_str(&figure_line(figure));
        }
        text
    }
}

fn figure_line(figure: &Figure) -> String {
    let Figure { name, least, most, unit, source, origin } = figure;
    let value = match least == most {
        true => format!("{least:.3}"),
        false => format!("{least:.3} to {most:.3}"),
    };
    format!("  {name}: {value} {unit} ({}: {origin})\n", source.name())
}

/// Hit rate, states, sources of an arm.
fn line(ours: &Ours) -> String {
    let percent = |part: u64, whole: u64| match whole {
        0 => "-".to_owned(),
        _ => format!("{:.1} %", part as f64 * 100.0 / whole as f64),
    };
    let it = &ours.counted;
    let hits = it.hits_unshared + it.hits_shared;
    format!(
        "  {} {:<46} hits {:>7}, unshared {:>7}; of misses caches {:>7}, remote {:>7}\n",
        ours.experiment,
        ours.name,
        percent(hits, hits + it.misses),
        percent(it.hits_unshared, hits),
        percent(it.from_caches, it.misses),
        percent(it.from_remote_memory, it.misses),
    )
}
