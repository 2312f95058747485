//! The run: for each system and arm instances are started and loaded, and then all their clients run one query after
//! the other.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, ensure};
use atoll_sys::block_signals;
use atoll_tools::terminal;
use atoll_topology::Machine;

use super::DbmsArgs;
use super::arm::DbmsArm;
use super::case::{DbmsAnswer, DbmsCase, DbmsResult, InstanceSeen};
use super::clients::{ClientText, DbmsOutcome, DbmsWork, merge};
use super::data::DbmsData;
use super::instance::{DbmsInstance, Starting, open_for_all};
use super::pgbench::{self, TransactionScript};
use super::plan::DbmsPlan;
use super::query::DbmsQuery;
use super::system::SystemName;
use super::watch::{Watch, balance, migration};
use crate::trials::{RunStop, TrialOutcome, TrialResults, Trials, run_groups, until_signal};

/// Share of the time before the clock starts after which the placement is read back.
const LOOK_AT: f64 = 0.7;
/// Most rows of a result that are kept to be compared with other systems'.
pub(super) const ROWS_MAX: usize = 1000;

/// What a run came to.
#[derive(Debug, Default)]
pub(super) struct DbmsRun {
    pub(super) results: Vec<DbmsResult>,
    /// Systems that cannot take part, and why.
    pub(super) missing: BTreeMap<SystemName, String>,
    /// A signal ended it.
    pub(super) is_stopped: bool,
}

impl DbmsRun {
    /// The systems that took part, with their versions.
    pub(super) fn versions(&self) -> Vec<(String, String)> {
        let answers =
            self.results.iter().filter_map(|it| Some((it.case.system, it.answer.as_ref()?)));
        answers.map(|(system, answer)| (system.name().to_owned(), answer.version.clone())).collect()
    }
}

/// Runs all cases that have no result yet.
pub(super) fn run(
    plan: &DbmsPlan,
    args: &DbmsArgs,
    machine: &Machine,
    directory: &Path,
) -> Result<DbmsRun> {
    let kept = TrialResults::open(&args.results, plan, args.resume)?;
    let patience = Duration::from_secs_f64(args.timeout);
    let mask = block_signals(&[])?;
    let python = args.python.as_deref();
    let starting = Starting { machine, plan, directory, python, patience, mask };
    let instances = starting.plans("default")?.instances.len();
    plan.lines(instances)?.into_iter().for_each(terminal::say);
    open_for_all(directory)?;
    until_signal(|stop| {
        let missing = probe_all(&starting, stop);
        let is_there = |case: &DbmsCase| !missing.contains_key(&case.system);
        let groups: Vec<Vec<DbmsCase>> =
            plan.cases().filter(is_there).map(|case| vec![case]).collect();
        let data = args.data.as_deref().map(DbmsData::made);
        let mut trials = DbmsTrials { starting, stop, instances, data, running: None };
        let TrialOutcome { results, is_stopped } = run_groups(&mut trials, &groups, &kept, stop)?;
        Ok(DbmsRun { results, missing, is_stopped })
    })
}

/// Systems of which not even an empty instance starts, and why.
fn probe_all(starting: &Starting<'_>, stop: &RunStop) -> BTreeMap<SystemName, String> {
    let mut missing = BTreeMap::new();
    for system in &starting.plan.systems {
        if stop.is_stopped() {
            break;
        }
        let probed = starting.plans("default").and_then(|plan| {
            let first = plan.instances.into_iter().next().context("a plan has an instance")?;
            starting.one(*system, "default", first, 1, 1)
        });
        if let Err(error) = probed {
            terminal::say(format_args!("without {}: {error:#}", system.name()));
            missing.insert(*system, format!("{error:#}"));
        }
    }
    missing
}

/// All that the cases need.
struct DbmsTrials<'a> {
    starting: Starting<'a>,
    stop: &'a RunStop,
    /// Number of instances.
    instances: usize,
    /// Made when the first instance is loaded: a run that only shows what was measured needs none.
    data: Option<DbmsData>,
    running: Option<RunningSystem>,
}

/// The instances of a system under an arm.
struct RunningSystem {
    system: SystemName,
    arm: String,
    run: u32,
    /// Why they do not run, if so.
    instances: Result<Vec<DbmsInstance>, String>,
    load_s: f64,
}

impl Trials for DbmsTrials<'_> {
    type Case = DbmsCase;
    type Answer = DbmsAnswer;

    fn seconds(&self, _: &DbmsCase) -> f64 {
        self.starting.plan.case_seconds(self.instances)
    }

    fn measure(&mut self, group: &[DbmsCase], at: usize) -> Result<DbmsAnswer> {
        let case = group.get(at).context("a case")?;
        let is_it = |it: &RunningSystem| {
            (it.system, it.run) == (case.system, case.run) && it.arm == case.arm
        };
        if !self.running.as_ref().is_some_and(is_it) {
            self.end();
            self.running = Some(self.start(case)?);
        }
        let running = self.running.as_mut().context("instances")?;
        let load_s = running.load_s;
        let instances = running.instances.as_mut().map_err(|error| anyhow!("{error}"))?;
        let plan = self.starting.plan;
        let texts = QueryTexts::new(case, plan)?;
        let processes = processes(instances);
        let machine = self.starting.machine;
        let mut answer = self
            .stop
            .with_processes(&processes, || measured(instances, texts, plan, machine, case))?;
        answer.load_s = load_s;
        Ok(answer)
    }

    fn words(&self, case: &DbmsCase, answer: &DbmsAnswer) -> String {
        let beside = self.starting.plan.beside;
        let beside = beside.map(|beside| format!(", {:.2} {beside}/s", answer.beside_per_s));
        format!("{:.2} {}/s{}", answer.per_s, case.query.unit(), beside.unwrap_or_default())
    }
}

impl DbmsTrials<'_> {
    /// Starts and loads the instances of a case.
    fn start(&mut self, case: &DbmsCase) -> Result<RunningSystem> {
        let (starting, plan) = (self.starting, self.starting.plan);
        if self.data.is_none() {
            terminal::say(format_args!("generating TPC-H at scale factor {}", plan.scale_factor));
            let made = DbmsData::make(starting.directory, plan, starting.patience)?;
            self.data = Some(made);
        }
        let data = self.data.as_ref().context("data")?;
        let begun = Instant::now();
        let instances = starting.all(case.system, &case.arm).and_then(|mut instances| {
            let processes = processes(&instances);
            self.stop.with_processes(&processes, || load(&mut instances, data))?;
            Ok(instances)
        });
        let DbmsCase { system, arm, run, .. } = case.clone();
        let instances = instances.map_err(|error| format!("{error:#}"));
        Ok(RunningSystem { system, arm, run, instances, load_s: begun.elapsed().as_secs_f64() })
    }

    /// Ends the instances and removes their files.
    fn end(&mut self) {
        self.running = None;
        let entries = fs::read_dir(self.starting.directory).into_iter().flatten().flatten();
        for entry in entries.filter(|entry| entry.file_name() != "data") {
            // What is left goes with the whole directory.
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// The texts of a query, and of the one beside it, if there is one.
struct QueryTexts {
    own: Vec<ClientText>,
    beside: Vec<ClientText>,
    /// A text of the query that has a result; of pgbench one that reads the accounts.
    first: String,
    has_transactions: bool,
}

impl QueryTexts {
    fn new(case: &DbmsCase, plan: &DbmsPlan) -> Result<Self> {
        let (system, dialect) = (case.system, case.system.dialect());
        let queries = |query: DbmsQuery| query.texts(dialect, plan.seed, plan.scale_factor);
        let texts = |query: DbmsQuery| -> Result<Vec<ClientText>> {
            if query != DbmsQuery::Pgbench {
                return Ok(queries(query)?.into_iter().map(ClientText::Query).collect());
            }
            let name = system.name();
            ensure!(system.has_transactions(), "{name} has no transactions, which pgbench needs");
            let script = TransactionScript::new(dialect, plan.pgbench_scale, plan.seed);
            Ok(vec![ClientText::Transactions(script)])
        };
        Ok(Self {
            own: texts(case.query)?,
            beside: plan.beside.map(texts).transpose()?.unwrap_or_default(),
            first: queries(case.query)?.into_iter().next().context("a query has a text")?,
            has_transactions: [Some(case.query), plan.beside].contains(&Some(DbmsQuery::Pgbench)),
        })
    }

    /// What an instance with so many clients does. Half of them run the query beside it, at least one.
    fn work(&self, clients: u32, plan: &DbmsPlan) -> DbmsWork {
        let beside = if self.beside.is_empty() { 0 } else { (clients / 2).max(1) };
        DbmsWork {
            texts: [&self.own[..], &self.beside].concat(),
            own: self.own.len(),
            clients: clients.saturating_sub(beside).max(1),
            beside,
            warmup: plan.warmup,
            seconds: plan.seconds,
            statements: plan.statements,
        }
    }
}

/// Runs the clients of all instances at once.
fn measured(
    instances: &mut [DbmsInstance],
    texts: QueryTexts,
    plan: &DbmsPlan,
    machine: &Machine,
    case: &DbmsCase,
) -> Result<DbmsAnswer> {
    let mut answer = DbmsAnswer::default();
    for (number, instance) in instances.iter_mut().enumerate() {
        // Also brings the data of each instance into its memory.
        let mut result = instance.engine.answer(&texts.first)?;
        result.values.truncate(ROWS_MAX + 1);
        let is_kept = number == 0 && case.run == 0 && plan.arms.first() == Some(&case.arm);
        answer.first = answer.first.or(Some(result).filter(|_| is_kept));
    }
    let arm = case.arm.parse().map_err(anyhow::Error::msg)?;
    let region = plan.lab_number(case.system, &case.arm);
    let (outcomes, seen) = match plan.statements {
        Some(_) => counted(instances, &texts, plan, machine, region)?,
        None => at_once(instances, &texts, plan, machine, arm)?,
    };
    answer.checks = vec![None; texts.own.len() + texts.beside.len()];
    for (number, (outcome, mut seen)) in outcomes.iter().zip(seen).enumerate() {
        merge(&mut answer.checks, &outcome.checks).with_context(|| format!("instance {number}"))?;
        seen.per_s = outcome.per_s();
        answer.instances.push(seen);
    }
    answer.per_s = answer.instances.iter().map(|it| it.per_s).sum();
    answer.beside_per_s = outcomes.iter().map(DbmsOutcome::beside_per_s).sum();
    answer.repeats = outcomes.iter().map(DbmsOutcome::repeats).sum();
    answer.count = outcomes.iter().flat_map(|it| &it.clients).map(|it| it.count).sum();
    answer.drift = DbmsOutcome::drift(&outcomes);
    if texts.has_transactions {
        for (number, instance) in instances.iter_mut().enumerate() {
            let sums = instance.engine.answer(pgbench::SUMS)?;
            pgbench::check(&sums).with_context(|| format!("instance {number}"))?;
        }
    }
    if let Some(instance) = instances.first() {
        (answer.version, answer.settings) = (instance.engine.version(), instance.engine.settings());
    }
    Ok(answer)
}

/// The processes of instances, with the signals that end them.
fn processes(instances: &[DbmsInstance]) -> Vec<(u32, i32)> {
    instances.iter().map(|it| it.engine.process()).collect()
}

/// Loads all instances at once.
fn load(instances: &mut [DbmsInstance], data: &DbmsData) -> Result<()> {
    thread::scope(|scope| {
        let load = |it: &'_ mut DbmsInstance| it.engine.load(data);
        let loads: Vec<_> = instances.iter_mut().map(|it| scope.spawn(move || load(it))).collect();
        loads.into_iter().try_for_each(|it| it.join().map_err(|_| anyhow!("a load panicked"))?)
    })
}

/// Runs a number of statements of all clients, in a region of the lab's counter. The placement is read back before:
/// statements may be over soon, and reading would count.
fn counted(
    instances: &mut [DbmsInstance],
    texts: &QueryTexts,
    plan: &DbmsPlan,
    machine: &Machine,
    region: Option<u8>,
) -> Result<(Vec<DbmsOutcome>, Vec<InstanceSeen>)> {
    let seen = instances.iter().map(|it| it.seat.seen(machine)).collect();
    region.inspect(|number| atoll_marker::open(*number));
    let outcomes = thread::scope(|scope| {
        let run = |it: &'_ mut DbmsInstance| {
            let work = texts.work(it.seat.clients, plan);
            it.engine.run(&work)
        };
        let running: Vec<_> = instances.iter_mut().map(|it| scope.spawn(move || run(it))).collect();
        let ended = |it: thread::ScopedJoinHandle<'_, Result<DbmsOutcome>>| {
            it.join().map_err(|_| anyhow!("an instance panicked"))?
        };
        running.into_iter().map(ended).collect::<Result<Vec<_>>>()
    });
    region.inspect(|number| atoll_marker::close(*number));
    Ok((outcomes?, seen))
}

/// Runs the clients of all instances; meanwhile moves their threads, where the arm does so, and reads the placement back.
fn at_once(
    instances: &mut [DbmsInstance],
    texts: &QueryTexts,
    plan: &DbmsPlan,
    machine: &Machine,
    arm: DbmsArm,
) -> Result<(Vec<DbmsOutcome>, Vec<InstanceSeen>)> {
    let (engines, seats): (Vec<_>, Vec<_>) =
        instances.iter_mut().map(|it| (&mut it.engine, &it.seat)).unzip();
    let (seats, time) = (&seats, Duration::from_secs_f64(plan.warmup + plan.seconds));
    thread::scope(|scope| {
        let works = seats.iter().map(|seat| texts.work(seat.clients, plan));
        let running: Vec<_> = engines
            .into_iter()
            .zip(works)
            .map(|(engine, work)| scope.spawn(move || engine.run(&work)))
            .collect();
        let moves = arm.moves_every().map(|every| {
            Watch::start(scope, move |end| migration::migrate(seats, machine, every, &end))
        });
        let looks = (plan.samples > 0).then(|| {
            let count = plan.samples;
            Watch::start(scope, move |end| balance::series(seats, machine, count, time, &end))
        });
        thread::sleep(Duration::from_secs_f64(plan.warmup * LOOK_AT));
        let mut seen: Vec<InstanceSeen> = seats.iter().map(|seat| seat.seen(machine)).collect();
        let ended =
            running.into_iter().map(|it| it.join().map_err(|_| anyhow!("an instance panicked"))?);
        let outcomes = ended.collect::<Result<Vec<_>>>()?;
        let moves = moves.map(Watch::end).transpose()?.unwrap_or_default();
        let series = looks.map(Watch::end).transpose()?.transpose()?.unwrap_or_default();
        seen.iter_mut().zip(moves).for_each(|(seen, moves)| seen.migration = Some(moves));
        seen.iter_mut().zip(series).for_each(|(seen, series)| seen.balance = series);
        Ok((outcomes, seen))
    })
}
