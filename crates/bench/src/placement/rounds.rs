//! Case after case: the server is started, loaded and stopped.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result};
use atoll_tools::terminal;
use atoll_topology::Machine;
use serde::{Deserialize, Serialize};

use super::load;
use super::plan::{PlacementCase, PlacementPlan};
use super::server::PlacedServer;
use super::verdict::{self, Rules};
use super::{PlacementArgs, report::figure};
use crate::trials::placement;
use crate::trials::{
    CaseResult, PlacementSeen, RunStop, ServerPlacement, TrialOutcome, TrialResults, Trials,
    run_groups, until_signal,
};

/// Seconds that starting and stopping are expected to take beside a load.
const CASE_SECONDS: f64 = 1.0;

pub(super) type PlacementResult = CaseResult<PlacementCase, PlacementAnswer>;
pub(super) type PlacementRun = TrialOutcome<PlacementCase, PlacementAnswer>;

/// What a case found.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct PlacementAnswer {
    /// The metric, or the seconds of the load.
    pub(super) value: f64,
    pub(super) load_seconds: f64,
    /// Until the server was ready.
    pub(super) ready_seconds: f64,
    pub(super) placement: ServerPlacement,
    /// What went wrong after the load.
    pub(super) problem: Option<String>,
}

/// Measures all cases that have no result yet, until every verdict is clear.
pub(super) fn run(
    plan: &PlacementPlan,
    args: &PlacementArgs,
    machine: &Machine,
) -> Result<PlacementRun> {
    let kept = TrialResults::of(&args.results, plan)?;
    let mut name = tempfile::Builder::new();
    let home = name.prefix("atoll-bench-").tempdir().context("cannot create a directory")?;
    let groups: Vec<Vec<PlacementCase>> = plan.cases(args.repetitions).map(|it| vec![it]).collect();
    let words = format!(
        "{} under {}: at most {} rounds",
        plan.server.first().map_or("", String::as_str),
        plan.arms.join(", "),
        args.repetitions
    );
    terminal::say(words);
    until_signal(|stop| {
        let asked = BTreeMap::new();
        let home = home.path();
        let mut trials = PlacementTrials { plan, args, machine, home, stop, asked };
        run_groups(&mut trials, &groups, &kept, stop)
    })
}

/// All that the cases need.
struct PlacementTrials<'a> {
    plan: &'a PlacementPlan,
    args: &'a PlacementArgs,
    machine: &'a Machine,
    /// Holds what the programs write.
    home: &'a Path,
    stop: &'a RunStop,
    /// What is asked of the kernel for each arm.
    asked: BTreeMap<String, PlacementSeen>,
}

impl Trials for PlacementTrials<'_> {
    type Case = PlacementCase;
    type Answer = PlacementAnswer;

    fn seconds(&self, _: &PlacementCase) -> f64 {
        CASE_SECONDS
    }

    /// Not of an arm that failed in this run, and no round after every verdict is clear.
    fn is_wanted(&self, case: &PlacementCase, so_far: &[PlacementResult]) -> bool {
        let has_failed = so_far.iter().any(|it| it.case.arm == case.arm && it.error.is_some());
        !has_failed && !verdict::is_clear(self.plan, &Rules::new(self.args), so_far, case.round)
    }

    fn measure(&mut self, group: &[PlacementCase], at: usize) -> Result<PlacementAnswer> {
        let case = group.get(at).context("a case")?;
        let asked = match self.asked.get(&case.arm) {
            Some(asked) => asked.clone(),
            None => placement::planned(self.machine, &case.arm)?,
        };
        self.asked.insert(case.arm.clone(), asked.clone());
        let begun = Instant::now();
        let (args, home) = (self.args, self.home);
        let mut server = PlacedServer::start(args, &case.arm, self.machine, home, self.stop)?;
        server.wait_ready(args, home, self.stop)?;
        let ready_seconds = begun.elapsed().as_secs_f64();
        let done = load::run(args, &mut server, home, self.stop)?;
        let problem = server.stop().err().map(|error| format!("{error:#}"));
        let mut placement = done.placement;
        placement.seen.asked = asked.asked;
        placement.seen.obstacles.splice(0..0, asked.obstacles);
        Ok(PlacementAnswer {
            value: done.value,
            load_seconds: done.seconds,
            ready_seconds,
            placement,
            problem,
        })
    }

    fn words(&self, _: &PlacementCase, answer: &PlacementAnswer) -> String {
        let shares = answer.placement.seen.shares();
        let shares = if shares.is_empty() { "unknown".to_owned() } else { shares };
        format!("{} {}, pages on {shares}", figure(answer.value), self.plan.unit())
    }
}
