//! The run: case after case in a process of its own, each result kept at once; Ctrl-C ends it cleanly.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};
use atoll_sys::{block_signals, kill_process, set_signal_mask, signal, wait_signal};
use atoll_tools::terminal;

use super::case::{KvAnswer, KvCase, KvRate, KvRequest, KvWork};
use super::engine::{EngineName, EngineOptions};
use super::estimate::{self, Progress};
use super::plan::KvPlan;
use super::results::{KvResult, KvResults};
use super::{KvArgs, setup};
use crate::programs::own_command;
use crate::rivals::RivalProcess;

/// Signals that end the run.
const ENDING: [i32; 3] = [signal::INT, signal::TERM, signal::HUP];
/// Time between two looks whether the run is over.
const LOOK: Duration = Duration::from_millis(50);

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
    let results = KvResults::open(&args.results, plan, args.resume)?;
    let lines = plan.lines().into_iter().chain(estimate::words(plan, directory)?);
    lines.for_each(terminal::say);
    let stop = Stop::default();
    let before = block_signals(&ENDING).context("signals cannot be blocked")?;
    let run = thread::scope(|scope| {
        scope.spawn(|| stop.watch());
        // Also after a panic: the scope waits for the thread.
        let _over = Over(&stop.is_over);
        Runner { plan, args, results: &results, directory, stop: &stop }.run()
    });
    set_signal_mask(before).context("signals cannot be unblocked")?;
    run
}

/// Ends the process of the current case when a signal comes.
#[derive(Debug, Default)]
struct Stop {
    is_stopped: AtomicBool,
    is_over: AtomicBool,
    /// Number of the current process; 0 between cases.
    process: AtomicU32,
}

/// Sets a flag when it is dropped.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Stop {
    fn watch(&self) {
        while !self.is_over.load(Ordering::Relaxed) {
            if matches!(wait_signal(&ENDING, LOOK), Ok(Some(_))) {
                self.is_stopped.store(true, Ordering::SeqCst);
            }
            let process = self.process.load(Ordering::SeqCst);
            if self.is_stopped() && process != 0 {
                // It may end on its own at the same moment.
                let _ = kill_process(process.cast_signed(), signal::KILL);
            }
        }
    }

    fn is_stopped(&self) -> bool {
        self.is_stopped.load(Ordering::SeqCst)
    }
}

/// All that the cases need.
struct Runner<'a> {
    plan: &'a KvPlan,
    args: &'a KvArgs,
    results: &'a KvResults,
    directory: &'a Path,
    stop: &'a Stop,
}

impl Runner<'_> {
    fn run(&self) -> Result<KvRun> {
        let mut run = KvRun::default();
        for engine in &self.plan.engines {
            let probed = self.probe(*engine);
            if self.stop.is_stopped() {
                break;
            }
            if let Err(error) = probed {
                terminal::say(format_args!("without {}: {error:#}", engine.name()));
                run.missing.insert(*engine, format!("{error:#}"));
            }
        }
        let is_there = |group: &Vec<KvCase>| {
            group.first().is_some_and(|case| !run.missing.contains_key(&case.engine))
        };
        let groups: Vec<Vec<KvCase>> = self.plan.groups().filter(is_there).collect();
        let expected = groups.iter().flatten().map(|case| estimate::seconds(self.plan, case)).sum();
        let mut progress = Progress::new(expected);
        for group in &groups {
            if !self.stop.is_stopped() {
                self.group(group, &mut run, &mut progress)?;
            }
        }
        run.is_stopped = self.stop.is_stopped();
        Ok(run)
    }

    /// Whether an engine opens a database.
    fn probe(&self, engine: EngineName) -> Result<()> {
        let case = KvCase { engine, arm: "default".to_owned(), run: 0, work: KvWork::Probe };
        let directory = self.fresh(&case)?;
        let done = self.ask(&case, &directory, 0, false);
        fs::remove_dir_all(&directory).context("cannot remove a database")?;
        done.map(|_| ())
    }

    /// The cases of one engine and arm, which share a database.
    fn group(&self, group: &[KvCase], run: &mut KvRun, progress: &mut Progress) -> Result<()> {
        let mut database = Database::default();
        for (at, case) in group.iter().enumerate() {
            if self.stop.is_stopped() {
                break;
            }
            let seconds = estimate::seconds(self.plan, case);
            if let Some(result) = self.results.get(case)? {
                progress.skip(seconds);
                run.results.push(result);
                continue;
            }
            let result = self.case(case, &group[..at], group.get(at + 1), &mut database)?;
            if self.stop.is_stopped() && result.answer.is_none() {
                break;
            }
            self.results.put(&result)?;
            let left = progress.add(seconds);
            terminal::say(format_args!("{} ({left} left)", line(&result)));
            let is_failed = result.error.is_some();
            run.results.push(result);
            if is_failed {
                break;
            }
        }
        database.remove()
    }

    /// Measures a case, on a database that was loaded before, or is loaded for it when a run goes on.
    fn case(
        &self,
        case: &KvCase,
        before: &[KvCase],
        next: Option<&KvCase>,
        database: &mut Database,
    ) -> Result<KvResult> {
        let is_load = |work: KvWork| matches!(work, KvWork::Load { .. });
        if is_load(case.work) {
            database.remove()?;
            database.directory = Some(self.fresh(case)?);
        } else if database.directory.is_none() {
            let load = before.iter().rev().find(|case| is_load(case.work));
            let load = load.context("--load names no order")?;
            let directory = self.fresh(load)?;
            database.directory = Some(directory.clone());
            if let Err(error) = self.ask(load, &directory, 0, false) {
                return Ok(failed(case, &error));
            }
        }
        let directory = database.directory.clone().context("a database")?;
        let is_last = next.is_none_or(|next| is_load(next.work));
        let is_checked = is_last || is_load(case.work);
        Ok(match self.ask(case, &directory, database.written, is_checked) {
            Ok(answer) => {
                if !is_load(case.work) {
                    database.written += answer.writes.map_or(0, |writes| writes.count);
                }
                KvResult { case: case.clone(), answer: Some(answer), error: None }
            }
            Err(error) => failed(case, &error),
        })
    }

    /// An empty directory for the database of a case.
    fn fresh(&self, case: &KvCase) -> Result<PathBuf> {
        let name = format!("{}-{}", case.engine.name(), case.work).replace(' ', "-");
        let directory = self.directory.join(name);
        fs::create_dir(&directory)
            .with_context(|| format!("cannot make {}", directory.display()))?;
        Ok(directory)
    }

    fn ask(
        &self,
        case: &KvCase,
        directory: &Path,
        written: u64,
        is_checked: bool,
    ) -> Result<KvAnswer> {
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
            written,
            is_checked,
        };
        let mut command = own_command()?;
        command.arg("kv-worker");
        let patience = Duration::from_secs_f64(self.args.timeout);
        let mut process = RivalProcess::start(case.engine.name(), &mut command, patience)?;
        self.stop.process.store(process.pid(), Ordering::SeqCst);
        let answer = process.ask::<KvAnswer>(&request);
        self.stop.process.store(0, Ordering::SeqCst);
        answer?.map_err(anyhow::Error::msg)
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

fn failed(case: &KvCase, error: &anyhow::Error) -> KvResult {
    KvResult { case: case.clone(), answer: None, error: Some(format!("{error:#}")) }
}

/// A result in a line.
fn line(result: &KvResult) -> String {
    let KvResult { case, answer, error } = result;
    let Some(answer) = answer else {
        return format!("{case}: failed: {}", error.as_deref().unwrap_or_default());
    };
    let rate = |rate: &Option<KvRate>| rate.map_or(0.0, |rate| rate.per_s);
    let (writes, reads) = (rate(&answer.writes), rate(&answer.reads));
    let usage = &answer.usage;
    let cpu = usage.cpu_percent();
    match case.work {
        KvWork::ReadWhileWriting { .. } => {
            format!("{case}: {writes:.0} writes/s, {reads:.0} reads/s, {cpu:.0} % cpu")
        }
        _ => format!("{case}: {:.2} s, {writes:.0} records/s, {cpu:.0} % cpu", usage.wall_s),
    }
}
