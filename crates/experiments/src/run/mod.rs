//! Runs arms: a coordinator, and groups as threads of this process or as separate processes.
//!
//! A repetition has three meetings of all threads and the coordinator:
//!
//! ```text
//! threads      warm up │ wait          │ accesses, migrations, waits for each other │
//! coordinator          │ opens region  │                                            │ closes it
//!                    warm            start                                         done
//! ```
//!
//! so that the region is open exactly while the accesses that are timed are made.

mod group;
mod pace;
mod process;
mod thread;

use std::sync::Arc;

use atoll_placement::Kernel;
use atoll_sys::SharedWords;
use atoll_topology::Machine;
use serde::{Deserialize, Serialize};

use crate::meeting::{ProcessBarrier, WORDS};
use crate::outcome::{Achieved, ArmOutcome, CacheLoads, RepeatedFigure, Slice};
use crate::{Arm, ExperimentError, ExperimentOptions, Plan};
use group::GroupRun;
use process::Processes;
use thread::{Repetition, SliceRun};

pub use process::{PartProgram, serve};

/// The machine and kernel that the experiments use.
#[derive(Clone, Copy, Debug)]
pub struct RunConditions<'a> {
    /// The machine.
    pub machine: &'a Arc<Machine>,
    /// Its kernel.
    pub kernel: &'a Arc<dyn Kernel>,
    /// How its own process is started; without, every group is threads of this process.
    pub program: Option<&'a PartProgram>,
}

/// The work of a group of an arm.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunPart {
    /// The arm.
    pub arm: Arm,
    /// Which of its groups.
    pub group: usize,
    /// Accesses of each thread in a repetition.
    pub accesses: u64,
    /// Repetitions.
    pub repetitions: u32,
    /// Parts that are timed one by one.
    pub slices: u32,
    /// Accesses between two waits for each other; 0 for none.
    pub turn: u64,
    /// Seed of the random places.
    pub seed: u64,
}

/// The two meetings of a run.
#[derive(Clone, Copy, Debug)]
struct RunBarriers<'a> {
    /// All threads and the coordinator.
    all: ProcessBarrier<'a>,
    /// The threads.
    threads: ProcessBarrier<'a>,
}

impl<'a> RunBarriers<'a> {
    const WORDS: usize = 2 * WORDS;

    fn new(shared: &'a SharedWords, arm: &Arm) -> Result<Self, ExperimentError> {
        let all = ProcessBarrier::new(shared, 0, arm.threads() + 1)?;
        Ok(Self { all, threads: ProcessBarrier::new(shared, 1, arm.threads())? })
    }

    fn call_off(&self) {
        self.all.call_off();
        self.threads.call_off();
    }
}

/// Runs the arms one after the other; `progress` hears of each before it begins. An arm that fails
/// has its reason in place of figures.
pub fn run(
    conditions: &RunConditions<'_>,
    plan: &Plan,
    options: &ExperimentOptions,
    progress: &mut dyn FnMut(usize, &Arm),
) -> Vec<ArmOutcome> {
    let mut paces = pace::Paces::default();
    let mut outcomes = Vec::new();
    for (index, arm) in plan.arms.iter().enumerate() {
        progress(index, arm);
        let accesses = match options.accesses_of(arm.experiment) {
            Some(accesses) => Ok(accesses),
            None => paces.accesses(conditions, arm),
        };
        let ran = accesses.and_then(|accesses| {
            let part = part(arm, options, accesses);
            Ok((accesses, run_arm(conditions, &part)?))
        });
        outcomes.push(match ran {
            Ok((accesses, groups)) => outcome(arm, accesses, &groups),
            Err(error) => failed(arm, &error),
        });
    }
    outcomes
}

fn part(arm: &Arm, options: &ExperimentOptions, accesses: u64) -> RunPart {
    RunPart {
        arm: arm.clone(),
        group: 0,
        accesses,
        repetitions: options.repetitions,
        slices: options.slices,
        turn: options.turn,
        seed: options.seed,
    }
}

fn run_arm(
    conditions: &RunConditions<'_>,
    part: &RunPart,
) -> Result<Vec<GroupRun>, ExperimentError> {
    let shared = SharedWords::create(RunBarriers::WORDS)?;
    let meetings = RunBarriers::new(&shared, &part.arm)?;
    match conditions.program {
        Some(program) if part.arm.processes => {
            let mut processes = Processes::start(program, part, &shared)?;
            let coordinated = coordinate(part, meetings, &mut || processes.check());
            if coordinated.is_err() {
                meetings.call_off();
            }
            // A process that failed knows more than the one that waited for it.
            let runs = processes.finish();
            runs.and_then(|runs| coordinated.map(|()| runs))
        }
        _ => in_this_process(conditions, part, meetings),
    }
}

fn in_this_process(
    conditions: &RunConditions<'_>,
    part: &RunPart,
    meetings: RunBarriers<'_>,
) -> Result<Vec<GroupRun>, ExperimentError> {
    std::thread::scope(|scope| {
        let mut groups = Vec::new();
        let mut result = Ok(());
        for group in 0..part.arm.groups.len() {
            let part = RunPart { group, ..part.clone() };
            let thread = std::thread::Builder::new().name(format!("group-{group}"));
            let (machine, kernel) = (conditions.machine, conditions.kernel);
            let started =
                thread.spawn_scoped(scope, move || group::run(machine, kernel, &part, meetings));
            match started {
                Ok(thread) => groups.push(thread),
                Err(error) => {
                    meetings.call_off();
                    result = Err(ExperimentError::Thread(error));
                    break;
                }
            }
        }
        let coordinated = result.and_then(|()| coordinate(part, meetings, &mut || Ok(())));
        let ran =
            groups.into_iter().map(|group| group.join().unwrap_or(Err(ExperimentError::CalledOff)));
        all_or_cause(ran).and_then(|runs| coordinated.map(|()| runs))
    })
}

/// All results, or the first error that is a cause, or any error.
fn all_or_cause<T>(
    results: impl Iterator<Item = Result<T, ExperimentError>>,
) -> Result<Vec<T>, ExperimentError> {
    let (mut values, mut failure) = (Vec::new(), None::<ExperimentError>);
    for result in results {
        match result {
            Ok(value) => values.push(value),
            Err(error) if failure.as_ref().is_none_or(|first| !first.is_cause()) => {
                failure = Some(error);
            }
            Err(_) => {}
        }
    }
    failure.map_or(Ok(values), Err)
}

/// Opens the arm's region around the timed part of each repetition.
fn coordinate(
    part: &RunPart,
    meetings: RunBarriers<'_>,
    watch: &mut dyn FnMut() -> Result<(), ExperimentError>,
) -> Result<(), ExperimentError> {
    for _ in 0..part.repetitions {
        meetings.all.wait_watching(watch)?;
        if let Some(region) = part.arm.region {
            atoll_marker::open(region);
        }
        let done = meetings.all.wait().and_then(|()| meetings.all.wait_watching(watch));
        if let Some(region) = part.arm.region {
            atoll_marker::close(region);
        }
        done?;
    }
    Ok(())
}

fn failed(arm: &Arm, error: &ExperimentError) -> ArmOutcome {
    let failure = Some(error.to_string());
    ArmOutcome { failure, ..outcome(arm, 0, &[]) }
}

fn outcome(arm: &Arm, accesses: u64, groups: &[GroupRun]) -> ArmOutcome {
    let threads = || groups.iter().flat_map(|group| &group.threads);
    let repetitions = threads().map(|thread| thread.repetitions.len()).min().unwrap_or(0);
    let figure = |i: usize| {
        let nanos: u64 = threads().map(|thread| thread.repetitions[i].nanos()).sum();
        nanos as f64 / (accesses as f64 * arm.threads() as f64).max(1.0)
    };
    let runs_ns: Vec<f64> = (0..repetitions).map(figure).collect();
    let every = || threads().flat_map(|thread| &thread.repetitions);
    let mut achieved = Achieved::default();
    groups.iter().for_each(|group| achieved.add(&group.achieved));
    ArmOutcome {
        arm: arm.clone(),
        accesses,
        ns: RepeatedFigure::from_values(runs_ns.clone()),
        runs_ns,
        achieved,
        cache: cache(every().flat_map(|repetition| &repetition.slices)),
        cache_missing: threads().find_map(|thread| thread.cache_missing.clone()),
        migrations_counted: every().map(|repetition| repetition.migrations).sum(),
        switches_counted: every().map(|repetition| repetition.switches).sum(),
        series: series(threads().filter_map(|thread| thread.repetitions.last())),
        failure: None,
    }
}

/// Sums; None if a slice was not counted.
fn cache<'a>(slices: impl Iterator<Item = &'a SliceRun>) -> Option<CacheLoads> {
    let mut sum = None;
    for slice in slices {
        let so_far = sum.unwrap_or(CacheLoads::default());
        let (loads, misses) = slice.llc?;
        sum = Some(CacheLoads { loads: so_far.loads + loads, misses: so_far.misses + misses });
    }
    sum
}

/// The slices of all threads, each taken together.
fn series<'a>(repetitions: impl Iterator<Item = &'a Repetition>) -> Vec<Slice> {
    let threads: Vec<&Repetition> = repetitions.collect();
    let count = threads.iter().map(|thread| thread.slices.len()).min().unwrap_or(0);
    let slice = |i: usize| {
        let each = || threads.iter().map(|thread| &thread.slices[i]);
        let accesses: u64 = each().map(|slice| slice.accesses).sum();
        let nanos: u64 = each().map(|slice| slice.nanos).sum();
        let hit_rate = cache(each()).and_then(CacheLoads::hit_rate);
        Slice { ns: nanos as f64 / (accesses as f64).max(1.0), hit_rate }
    };
    (0..count).map(slice).collect()
}
