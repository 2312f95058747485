//! Looks, decides and acts until the targets end or a signal comes.

use std::time::{Duration, Instant};

use anyhow::Context;
use atoll_elastic::actuate::JournalDirectory;
use atoll_elastic::mode::CoreTable;
use atoll_elastic::session::{Grain, TargetSession, shares};
use atoll_elastic::trace::TraceRow;
use atoll_process::inspect::ProcessId;
use atoll_sys::{TakenSignal, block_signals, signal, wait_signal};

use super::control::HandArgs;
use super::followed::Followed;
use super::metrics::MetricsServer;
use super::record::Recorder;
use super::setup::{Surroundings, session_error};
use super::status::RunStatus;
use crate::exit::CommandError;
use crate::terminal;

/// The status that other commands see is written this often at most.
const STATUS_EVERY: Duration = Duration::from_secs(1);
/// What ends a run or is passed on.
const TAKEN: [i32; 5] = [signal::INT, signal::TERM, signal::HUP, signal::QUIT, signal::CHLD];

/// Why the loop ended.
pub(super) enum DriveEnd {
    /// All targets have ended.
    Targets,
    /// This signal.
    Signal(i32),
    /// The event for which the caller waited.
    Caller,
}

/// The loop and its reports.
pub(super) struct Drive<'a> {
    surroundings: &'a Surroundings,
    pub(super) targets: Vec<Followed>,
    table: std::sync::Arc<CoreTable>,
    grain: Grain,
    interval: Duration,
    recorder: Recorder,
    metrics: Option<MetricsServer>,
    status: Option<(JournalDirectory, ProcessId)>,
    status_at: Duration,
    is_verbose: bool,
    began: Instant,
}

impl<'a> Drive<'a> {
    pub(super) fn new(
        surroundings: &'a Surroundings,
        args: &HandArgs,
        targets: Vec<(TargetSession, i64)>,
        table: std::sync::Arc<CoreTable>,
        interval: Duration,
    ) -> Result<Self, CommandError> {
        let grain = Grain::for_targets(&table, targets.len());
        let status = match args.dry_run {
            true => None,
            false => {
                let path = args.journal.path();
                let directory =
                    JournalDirectory::open(&path).map_err(super::setup::journal_error)?;
                Some((directory, surroundings.own()))
            }
        };
        let follow =
            |(session, priority)| Followed { session, priority, is_new: true, is_over: false };
        Ok(Self {
            surroundings,
            targets: targets.into_iter().map(follow).collect(),
            table,
            grain,
            interval,
            recorder: Recorder::open(args.trace.as_deref())?,
            metrics: args.metrics.map(MetricsServer::open).transpose()?,
            status,
            status_at: Duration::ZERO,
            is_verbose: args.verbose || args.dry_run,
            began: Instant::now(),
        })
    }

    /// Takes signals from now on; to be called before threads are started.
    pub(super) fn take_signals() -> Result<(), CommandError> {
        block_signals(&TAKEN).context("signals cannot be blocked")?;
        Ok(())
    }

    /// Runs. `woken` is called after every wait, with the signal received: it ends the loop, or keeps
    /// the signal from ending it.
    pub(super) fn run(
        &mut self,
        mut woken: impl FnMut(Option<TakenSignal>) -> Result<Woken, CommandError>,
    ) -> Result<DriveEnd, CommandError> {
        let mut next = Instant::now();
        loop {
            self.turn()?;
            if self.targets.iter().all(|target| target.is_over) {
                return Ok(DriveEnd::Targets);
            }
            // A late look is not made up for.
            next = (next + self.interval).max(Instant::now());
            loop {
                let wait = next.saturating_duration_since(Instant::now());
                let taken = wait_signal(&TAKEN, wait).context("signals cannot be waited for")?;
                match (woken(taken)?, taken) {
                    (Woken::End, _) => return Ok(DriveEnd::Caller),
                    (Woken::Leave, Some(taken)) if taken.number != signal::CHLD => {
                        return Ok(DriveEnd::Signal(taken.number));
                    }
                    _ => {}
                }
                if wait.is_zero() || taken.is_none() {
                    break;
                }
            }
        }
    }

    /// One look at every target.
    fn turn(&mut self) -> Result<(), CommandError> {
        let at = self.began.elapsed();
        let mut failed = None;
        for target in self.targets.iter_mut().filter(|target| !target.is_over) {
            match target.session.tick(at) {
                Ok(tick) => {
                    let name = target.session.name().to_owned();
                    for note in &tick.notes {
                        terminal::say(format_args!("note: {name}: {note}"));
                    }
                    if let Some(decision) = &tick.decision {
                        let is_first = std::mem::take(&mut target.is_new);
                        if self.is_verbose && (decision.is_act() || is_first) {
                            say(&name, decision);
                        }
                        let demand = tick.demand_cpus.unwrap_or_default();
                        let row = TraceRow::new(&name, decision, demand);
                        self.recorder.add(row, target.session.processes(), at)?;
                    }
                    if tick.is_ended {
                        target.is_over = true;
                        give_back(&mut target.session);
                    }
                }
                // Safe state first: gives its cores back and goes on with the other targets.
                Err(error) => {
                    target.is_over = true;
                    give_back(&mut target.session);
                    failed = Some(session_error(error));
                }
            }
        }
        self.share();
        self.report(at)?;
        match failed {
            Some(error) if self.targets.iter().all(|target| target.is_over) => Err(error),
            Some(error) => {
                terminal::say_error(error.message.unwrap_or_default());
                Ok(())
            }
            None => Ok(()),
        }
    }

    fn share(&mut self) {
        if self.targets.len() < 2 {
            return;
        }
        let there: Vec<usize> =
            (0..self.targets.len()).filter(|i| !self.targets[*i].is_over).collect();
        let states: Option<Vec<_>> = there
            .iter()
            .map(|i| self.targets[*i].session.share_state(self.targets[*i].priority))
            .collect();
        // Sharing needs two looks at each target.
        for (i, act) in shares(&self.table, self.grain, &states.unwrap_or_default()) {
            self.targets[there[i]].session.share(&act);
        }
    }

    fn report(&mut self, at: Duration) -> Result<(), CommandError> {
        if let Some(metrics) = &mut self.metrics {
            metrics.answer(&self.targets, &self.surroundings.machine);
        }
        if let Some((directory, own)) = &self.status
            && at >= self.status_at
        {
            self.status_at = at + STATUS_EVERY;
            let status = RunStatus::new(&self.targets, at);
            let text = serde_json::to_string(&status).context("a status cannot be written")?;
            directory.put_status(*own, &text).map_err(super::setup::journal_error)?;
        }
        Ok(())
    }

    /// Gives everything back and writes the recording.
    pub(super) fn finish(mut self) -> Result<(), CommandError> {
        for target in &mut self.targets {
            give_back(&mut target.session);
        }
        if let Some((directory, own)) = &self.status {
            directory.remove_status(*own);
        }
        self.recorder.finish()
    }
}

/// The next step after a wait.
pub(super) enum Woken {
    /// Go on despite a signal.
    GoOn,
    /// End, if a signal came.
    Leave,
    /// End.
    End,
}

fn give_back(session: &mut TargetSession) {
    for failed in session.finish() {
        terminal::say(format_args!("warning: {}: {failed}", session.name()));
    }
}

fn say(name: &str, decision: &atoll_elastic::decide::Decision) {
    let rule = decision.fired.last().copied().unwrap_or_default();
    terminal::say(format_args!(
        "{:8.2} s  {name}: {} core{} on cpu{} {} (load {:.0} %; {rule}: {})",
        decision.at_seconds,
        decision.cores,
        if decision.cores == 1 { "" } else { "s" },
        if decision.cpus.len() == 1 { "" } else { "s" },
        decision.cpus,
        decision.load,
        decision.rule
    ));
}
