//! Run after run on one process, which a first run of each setting warms up.

use anyhow::{Context, Result};
use atoll_topology::Machine;

use super::ElasticArgs;
use super::plan::{ElasticCase, ElasticPlan, ElasticSetting};
use super::report::{ElasticResult, ModeRun};
use super::target::Target;
use crate::trials::{RunStop, TrialOutcome, TrialResults, Trials, run_groups, until_signal};

/// Measures all runs that have no result yet.
pub(super) fn run(
    plan: &ElasticPlan,
    args: &ElasticArgs,
    machine: &Machine,
) -> Result<TrialOutcome<ElasticCase, ModeRun>> {
    let kept = TrialResults::of(&args.results, plan)?;
    let groups: Vec<Vec<ElasticCase>> = plan.cases().map(|case| vec![case]).collect();
    let mut is_all_kept = true;
    for case in groups.iter().flatten() {
        let found: Option<ElasticResult> = kept.get(case)?;
        is_all_kept &= found.is_some();
    }
    until_signal(|stop| {
        let mut trials = ElasticTrials { plan, args, machine, stop, target: None };
        if !is_all_kept {
            // What keeps the first process from loading would keep all others.
            match trials.start() {
                Err(_) if stop.is_stopped() => {}
                started => started?,
            }
        }
        run_groups(&mut trials, &groups, &kept, stop)
    })
}

/// All that the runs need.
struct ElasticTrials<'a> {
    plan: &'a ElasticPlan,
    args: &'a ElasticArgs,
    machine: &'a Machine,
    stop: &'a RunStop,
    /// The process, and the setting that it is warm for; `None` after a run that failed.
    target: Option<(Target<'a>, Option<ElasticSetting>)>,
}

impl Trials for ElasticTrials<'_> {
    type Case = ElasticCase;
    type Answer = ModeRun;

    /// Queries, for the pace of earlier runs tells their time.
    fn seconds(&self, case: &ElasticCase) -> f64 {
        case.setting.queries(&self.plan.queries)
    }

    fn measure(&mut self, group: &[ElasticCase], at: usize) -> Result<ModeRun> {
        let case = group.get(at).context("a run")?;
        if self.target.is_none() {
            self.start()?;
        }
        let (mut target, warm) = self.target.take().context("a process")?;
        if warm != Some(case.setting) {
            target.warm_up(self.machine, self.plan, &case.setting)?;
        }
        let done = target.run(self.machine, self.plan, case)?;
        self.target = Some((target, Some(case.setting)));
        done.map_err(anyhow::Error::msg)
    }

    fn words(&self, _: &ElasticCase, run: &ModeRun) -> String {
        let rate = run.answer.queries_per_hour();
        match run.is_cores_unknown {
            true => format!("{rate:.0} queries/h"),
            false => format!("{rate:.0} queries/h on {:.1} cores", run.followed.cores_mean),
        }
    }
}

impl ElasticTrials<'_> {
    fn start(&mut self) -> Result<()> {
        self.target = Some((Target::start(self.plan, self.args, self.stop)?, None));
        Ok(())
    }
}
