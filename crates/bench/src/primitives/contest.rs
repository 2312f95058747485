//! Atoll, rival, Atoll, rival, … in one run: both meet the same machine, and each pair has a ratio.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use atoll_tools::terminal;
use atoll_tools::workload::{ColumnTable, Rig};

use super::bandwidth::{Bandwidth, Meter};
use crate::check::Check;
use crate::flags::Resident;
use crate::rivals::columns::{ColumnEngine, RivalOperation};
use crate::rivals::files::Files;
use crate::rivals::{self, Rival};

/// Settings of the runs.
#[derive(Clone, Debug)]
pub(crate) struct ContestSettings {
    pub(crate) rivals: Vec<Rival>,
    /// Pairs with each rival.
    pub(crate) runs: u32,
    /// Runs of each before them.
    pub(crate) warmup: u32,
    pub(crate) seed: u64,
    /// Interpreter that the user named.
    pub(crate) python: Option<PathBuf>,
    /// Longest time a rival may take for one reply.
    pub(crate) patience: Duration,
    pub(crate) resident: Resident,
}

/// The outcome of a run of Atoll.
#[derive(Clone, Debug, Default)]
pub(crate) struct ContestOutcome {
    pub(crate) seconds: f64,
    pub(crate) check: Check,
    /// The variant chosen, and why.
    pub(crate) note: Option<String>,
    /// Seconds of its phases.
    pub(crate) phases: Vec<(String, f64)>,
}

/// A run of something in this process.
pub(crate) type Run<'a> = Box<dyn FnMut() -> Result<ContestOutcome> + 'a>;

/// Something in this process that takes part: a variant of Atoll, or a function of the standard library.
pub(crate) struct Own<'a> {
    pub(crate) name: String,
    pub(crate) run: Run<'a>,
}

/// The contest.
pub(crate) struct Contest<'a> {
    /// For messages: `2^20 groups of dense keys, 2 threads`.
    pub(crate) title: String,
    /// The rivals' query and their tables; None if no rival can do it.
    pub(crate) query: Option<(RivalOperation, Vec<(&'static str, &'a ColumnTable)>)>,
    /// The result expected of all engines.
    pub(crate) expected: Check,
    /// Variants of Atoll.
    pub(crate) ours: Vec<Own<'a>>,
    /// Rivals in this process.
    pub(crate) here: Vec<Own<'a>>,
}

/// Runs of one variant.
#[derive(Clone, Debug, Default)]
pub(crate) struct OurRuns {
    pub(crate) name: String,
    /// Position of the rival that ran right after it, and the outcome of the run.
    pub(crate) runs: Vec<(Option<usize>, ContestOutcome)>,
}

/// Runs of one rival.
#[derive(Clone, Debug, Default)]
pub(crate) struct RivalRuns {
    pub(crate) name: String,
    /// Empty for competitors in this process.
    pub(crate) version: String,
    /// Which of its ways to run a query was the fastest; empty if it has only one.
    pub(crate) way: String,
    pub(crate) seconds: Vec<f64>,
    /// Its error message, if it failed.
    pub(crate) failure: Option<String>,
}

/// All runs.
#[derive(Clone, Debug, Default)]
pub(crate) struct ContestRuns {
    pub(crate) ours: Vec<OurRuns>,
    pub(crate) rivals: Vec<RivalRuns>,
    pub(crate) bandwidths: Vec<Bandwidth>,
}

/// Runs a contest.
///
/// # Errors
/// When a result is wrong, Atoll fails, or a rival's process does not keep to the protocol. A
/// rival that cannot run a case is not an error: its words are in the result.
pub(crate) fn run(
    meter: &Meter<'_>,
    settings: &ContestSettings,
    contest: Contest<'_>,
) -> Result<ContestRuns> {
    let rig = meter.rig;
    let Contest { title, query, expected, ours, here } = contest;
    let mut rounds = Rounds {
        meter,
        title,
        expected,
        measured: ContestRuns {
            ours: ours.iter().map(|own| OurRuns { name: own.name.clone(), runs: vec![] }).collect(),
            ..ContestRuns::default()
        },
        ours,
    };
    rounds.warm_up(settings.warmup)?;
    let here = rounds.enter(here, settings.warmup)?;
    rounds.run(here, settings.runs)?;
    if let Some((operation, tables)) = query {
        let bytes = tables.iter().map(|(_, table)| table.bytes()).sum();
        let together = settings.resident.together(bytes, settings.rivals.len(), rig);
        for rivals in settings.rivals.chunks(together.max(1)) {
            let opponents = rounds.start(rig, settings, rivals, (operation, &tables))?;
            rounds.run(opponents, settings.runs)?;
        }
    }
    if rounds.measured.bandwidths.is_empty() {
        rounds.run_alone(settings.runs)?;
    }
    Ok(rounds.measured)
}

/// A contest under way.
struct Rounds<'a> {
    meter: &'a Meter<'a>,
    title: String,
    expected: Check,
    ours: Vec<Own<'a>>,
    measured: ContestRuns,
}

/// What runs right after Atoll.
enum Opponent<'a> {
    Here(Own<'a>),
    Process(ColumnEngine, RivalOperation),
}

/// An opponent and its position among the rivals.
type Entered<'a> = (usize, Opponent<'a>);

impl<'a> Rounds<'a> {
    /// Runs of each variant whose times do not count.
    fn warm_up(&mut self, runs: u32) -> Result<()> {
        for own in self.ours.iter_mut() {
            own.warm_up(runs, self.expected, &self.title)?;
        }
        Ok(())
    }

    /// Rivals in this process, warmed up.
    fn enter(&mut self, here: Vec<Own<'a>>, warmup: u32) -> Result<Vec<Entered<'a>>> {
        let mut entered = Vec::new();
        for mut own in here {
            own.warm_up(warmup, self.expected, &self.title)?;
            let rival = RivalRuns { name: own.name.clone(), ..RivalRuns::default() };
            self.measured.rivals.push(rival);
            entered.push((entered.len(), Opponent::Here(own)));
        }
        Ok(entered)
    }

    /// Runs of each variant, without an opponent.
    fn run_alone(&mut self, runs: u32) -> Result<()> {
        for _ in 0..runs {
            self.run_ours(None)?;
            self.measured.bandwidths.push(self.meter.measure()?);
        }
        Ok(())
    }

    /// Pairs of each variant with each opponent, in turn.
    fn run(&mut self, mut opponents: Vec<Entered<'_>>, runs: u32) -> Result<()> {
        for _ in 0..runs {
            if opponents.is_empty() {
                return Ok(());
            }
            let mut still = Vec::new();
            for (position, mut opponent) in opponents {
                self.run_ours(Some(position))?;
                if self.run_rival(position, &mut opponent)? {
                    still.push((position, opponent));
                }
            }
            opponents = still;
            self.measured.bandwidths.push(self.meter.measure()?);
        }
        Ok(())
    }

    fn run_ours(&mut self, rival: Option<usize>) -> Result<()> {
        for (own, measured) in self.ours.iter_mut().zip(&mut self.measured.ours) {
            let outcome = (own.run)()?;
            outcome.check.expect(self.expected, &own.name, &self.title)?;
            measured.runs.push((rival, outcome));
        }
        Ok(())
    }

    /// Whether it could.
    fn run_rival(&mut self, position: usize, opponent: &mut Opponent<'_>) -> Result<bool> {
        let ran = match opponent {
            Opponent::Here(own) => (own.run)().map(|it| Ok((it.seconds, it.check)))?,
            Opponent::Process(driver, operation) => {
                driver.run(*operation)?.map(|ran| (ran.seconds, ran.check))
            }
        };
        let rival = &mut self.measured.rivals[position];
        match ran {
            Ok((seconds, check)) => {
                check.expect(self.expected, &rival.name, &self.title)?;
                rival.seconds.push(seconds);
                Ok(true)
            }
            Err(failure) => Ok(rival.failed(failure)),
        }
    }

    /// Starts engines and loads the same data into each; those that could, warmed up.
    fn start(
        &mut self,
        rig: &Rig,
        settings: &ContestSettings,
        rivals: &[Rival],
        (operation, tables): (RivalOperation, &[(&'static str, &ColumnTable)]),
    ) -> Result<Vec<Entered<'static>>> {
        let say = &mut |what: &str| terminal::say(what);
        let python = rivals::python(settings.python.as_deref(), say)?;
        let start =
            |rival: &Rival| ColumnEngine::start(*rival, &python, rig.threads, settings.patience);
        let drivers: Vec<ColumnEngine> = rivals.iter().map(start).collect::<Result<_>>()?;
        let files = Files::write(tables)?;
        let mut loaded = Vec::new();
        for mut driver in drivers {
            loaded.push((driver.load(&files)?, driver));
        }
        drop(files);
        let mut ready = Vec::new();
        for (loaded, mut driver) in loaded {
            let warm = match loaded {
                Ok(()) => driver.warm(operation, settings.warmup)?,
                Err(failure) => Err(failure),
            };
            let (name, version) = (driver.rival.name().to_owned(), driver.version.clone());
            let mut rival = RivalRuns { name, version, ..RivalRuns::default() };
            let is_ready = match warm {
                Ok(way) => {
                    rival.way = way;
                    true
                }
                Err(failure) => rival.failed(failure),
            };
            if is_ready {
                ready.push((self.measured.rivals.len(), Opponent::Process(driver, operation)));
            }
            self.measured.rivals.push(rival);
        }
        Ok(ready)
    }
}

impl Own<'_> {
    fn warm_up(&mut self, runs: u32, expected: Check, title: &str) -> Result<()> {
        for _ in 0..runs {
            (self.run)()?.check.expect(expected, &self.name, title)?;
        }
        Ok(())
    }
}

impl RivalRuns {
    /// Notes that it could not, and says so; false.
    fn failed(&mut self, failure: String) -> bool {
        terminal::say(format_args!("warning: {} failed: {failure}", self.name));
        self.failure = Some(failure);
        false
    }
}
