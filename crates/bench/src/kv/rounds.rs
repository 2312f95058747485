//! The run: case after case in a process of its own, on the database that its group shares.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use atoll_tools::terminal;

use super::case::{KvAnswer, KvCase, KvRate, KvRequest, KvWork};
use super::engine::{EngineName, EngineOptions};
use super::plan::KvPlan;
use super::{KvArgs, estimate, setup};
use crate::programs::own_command;
use crate::rivals::RivalProcess;
use crate::trials::{
    CaseResult, RunStop, TrialOutcome, TrialResults, Trials, run_groups, until_signal,
};

pub(super) type KvResult = CaseResult<KvCase, KvAnswer>;

/// What a run came to.
#[derive(Debug, Default)]
pub(super) struct KvRun {
    pub(super) results: Vec<KvResult>,
    /// Engines that cannot take part, and why.
    pub(super) missing: BTreeMap<EngineName, String>,
    /// A signal ended it.
    pub(super) is_stopped: bool,
}

impl KvRun {
    /// The engines that took part, with their versions.
    pub(super) fn versions(&self) -> Vec<(String, String)> {
        let answers =
            self.results.iter().filter_map(|it| Some((it.case.engine, it.answer.as_ref()?)));
        answers.map(|(engine, answer)| (engine.name().to_owned(), answer.version.clone())).collect()
    }
}

/// Runs all cases that have no result yet.
pub(super) fn run(plan: &KvPlan, args: &KvArgs, directory: &Path) -> Result<KvRun> {
    let kept = TrialResults::open(&args.results, plan, args.resume)?;
    let lines = plan.lines().into_iter().chain(estimate::words(plan, directory)?);
    lines.for_each(terminal::say);
    until_signal(|stop| {
        let database = Database::default();
        let mut trials = KvTrials { plan, args, directory, stop, database };
        let missing = trials.probe_all();
        let is_there = |group: &Vec<KvCase>| {
            group.first().is_some_and(|case| !missing.contains_key(&case.engine))
        };
        let groups: Vec<Vec<KvCase>> = plan.groups().filter(is_there).collect();
        let TrialOutcome { results, is_stopped } = run_groups(&mut trials, &groups, &kept, stop)?;
        Ok(KvRun { results, missing, is_stopped })
    })
}

/// All that the cases need.
struct KvTrials<'a> {
    plan: &'a KvPlan,
    args: &'a KvArgs,
    directory: &'a Path,
    stop: &'a RunStop,
    database: Database,
}

impl Trials for KvTrials<'_> {
    type Case = KvCase;
    type Answer = KvAnswer;

    fn seconds(&self, case: &KvCase) -> f64 {
        estimate::seconds(self.plan, case)
    }

    /// On a database that was loaded before, or is loaded for it when a run goes on.
    fn measure(&mut self, group: &[KvCase], at: usize) -> Result<KvAnswer> {
        let case = group.get(at).context("a case")?;
        let is_load = |work: KvWork| matches!(work, KvWork::Load { .. });
        if is_load(case.work) {
            self.database.remove()?;
            self.database.directory = Some(self.fresh(case)?);
        } else if self.database.directory.is_none() {
            let load = group[..at].iter().rev().find(|case| is_load(case.work));
            let load = load.context("--load names no order")?;
            let directory = self.fresh(load)?;
            self.database.directory = Some(directory.clone());
            self.ask(load, &directory, false)?;
        }
        let directory = self.database.directory.clone().context("a database")?;
        let is_last = group.get(at + 1).is_none_or(|next| is_load(next.work));
        let answer = self.ask(case, &directory, is_last || is_load(case.work))?;
        if !is_load(case.work) {
            self.database.written += answer.writes.map_or(0, |writes| writes.count);
        }
        Ok(answer)
    }

    fn words(&self, case: &KvCase, answer: &KvAnswer) -> String {
        let rate = |rate: &Option<KvRate>| rate.map_or(0.0, |rate| rate.per_s);
        let (writes, reads) = (rate(&answer.writes), rate(&answer.reads));
        let usage = &answer.usage;
        let cpu = usage.cpu_percent();
        match case.work {
            KvWork::ReadWhileWriting { .. } => {
                format!("{writes:.0} writes/s, {reads:.0} reads/s, {cpu:.0} % cpu")
            }
            _ => format!("{:.2} s, {writes:.0} records/s, {cpu:.0} % cpu", usage.wall_s),
        }
    }

    fn end_group(&mut self) -> Result<()> {
        self.database.remove()
    }
}

impl KvTrials<'_> {
    /// Engines that cannot take part, and why.
    fn probe_all(&self) -> BTreeMap<EngineName, String> {
        let mut missing = BTreeMap::new();
        for engine in &self.plan.engines {
            let probed = self.probe(*engine);
            if self.stop.is_stopped() {
                break;
            }
            if let Err(error) = probed {
                terminal::say(format_args!("without {}: {error:#}", engine.name()));
                missing.insert(*engine, format!("{error:#}"));
            }
        }
        missing
    }

    /// Whether an engine opens a database.
    fn probe(&self, engine: EngineName) -> Result<()> {
        let case = KvCase { engine, arm: "default".to_owned(), run: 0, work: KvWork::Probe };
        let directory = self.fresh(&case)?;
        let done = self.ask(&case, &directory, false);
        fs::remove_dir_all(&directory).context("cannot remove a database")?;
        done.map(|_| ())
    }

    /// An empty directory for the database of a case.
    fn fresh(&self, case: &KvCase) -> Result<PathBuf> {
        let name = format!("{}-{}", case.engine.name(), case.work).replace(' ', "-");
        let directory = self.directory.join(name);
        fs::create_dir(&directory)
            .with_context(|| format!("cannot make {}", directory.display()))?;
        Ok(directory)
    }

    /// Asks a process of its own; a load has written nothing before.
    fn ask(&self, case: &KvCase, directory: &Path, is_checked: bool) -> Result<KvAnswer> {
        let KvPlan { records, seconds, cache_bytes, buffer_bytes, .. } = self.plan;
        let sessions = match case.work {
            KvWork::ReadWhileWriting { readers } => readers + 1,
            _ => 1,
        };
        let request = KvRequest {
            engine: case.engine,
            arm: case.arm.clone(),
            work: case.work,
            records: *records,
            options: EngineOptions {
                directory: directory.to_owned(),
                cache_bytes: *cache_bytes,
                buffer_bytes: *buffer_bytes,
                data_bytes: records.bytes(),
                sessions,
                built: setup::directory()?,
            },
            seconds: *seconds,
            written: self.database.written,
            is_checked,
        };
        let mut command = own_command()?;
        command.arg("kv-worker");
        let patience = Duration::from_secs_f64(self.args.timeout);
        let mut process = RivalProcess::start(case.engine.name(), &mut command, patience)?;
        self.stop.ask(&mut process, &request)
    }
}

/// The database that the cases of a group share.
#[derive(Debug, Default)]
struct Database {
    directory: Option<PathBuf>,
    /// Number of its newest write.
    written: u64,
}

impl Database {
    fn remove(&mut self) -> Result<()> {
        self.written = 0;
        match self.directory.take() {
            Some(directory) => fs::remove_dir_all(&directory)
                .with_context(|| format!("cannot remove {}", directory.display())),
            None => Ok(()),
        }
    }
}
