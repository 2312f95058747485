//! `manage`: the targets of a file share the cores of this machine.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context;
use atoll_elastic::adapter::Adapter;
use atoll_elastic::config::{ElasticConfig, TargetConfig};
use atoll_elastic::monitor::{ElasticTarget, LiveTarget, TargetSource, WorkKind};
use atoll_elastic::session::{Grain, TargetSession, first_shares};
use atoll_process::inspect::ProcessId;
use atoll_topology::CpuSet;
use clap::ValueHint;

use super::attach::{ended, until};
use super::control::{HandArgs, TargetArgs, work};
use super::drive::Drive;
use super::setup::{Surroundings, session_error, set_knob};
use crate::exit::{CommandError, Exit};
use crate::terminal;

/// Arguments of `manage`.
#[derive(clap::Args, Debug)]
pub(super) struct ManageArgs {
    /// The file
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    file: PathBuf,
    #[command(flatten)]
    hand: HandArgs,
    /// End after this many seconds
    #[arg(long = "for", value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..))]
    seconds: Option<u64>,
}

/// A target that was found.
struct FoundTarget<'a> {
    config: &'a TargetConfig,
    target: ElasticTarget,
    source: LiveTarget,
    processes: Vec<ProcessId>,
    allowed: CpuSet,
    dbms: Option<Adapter>,
}

pub(super) fn run(args: &ManageArgs) -> Result<(), CommandError> {
    Drive::take_signals()?;
    let text =
        std::fs::read_to_string(&args.file).with_context(|| format!("{}", args.file.display()))?;
    let config = ElasticConfig::parse(&text).map_err(|error| usage(args, error))?;
    let surroundings = Surroundings::open()?;
    if !args.hand.dry_run {
        surroundings.journals(&args.hand.journal.path())?;
    }
    let mut found = Vec::new();
    for target in &config.targets {
        found.push(find(&surroundings, args, target)?);
    }
    let all = found.iter().fold(CpuSet::new(), |all, target| all.union(&target.allowed));
    let (table, _) = surroundings.table(&all);
    let grain = Grain::for_targets(&table, found.len());
    let mut wanted = Vec::new();
    for target in &mut found {
        let pages = target.source.pages(Duration::ZERO).unwrap_or_default();
        wanted.push((target.config.priority, target.config.policy.cores_min, pages));
    }
    let shares = first_shares(&table, grain, &wanted).map_err(|error| usage(args, error))?;
    if grain != Grain::Node {
        terminal::say(format_args!(
            "note: {} nodes for {} targets: they share the machine by {}",
            table.nodes().len(),
            found.len(),
            if grain == Grain::Domain { "last-level cache" } else { "core" }
        ));
    }
    let mut sessions = Vec::new();
    for (target, offered) in found.into_iter().zip(shares) {
        let FoundTarget { config, target, source, processes, allowed, dbms: target_dbms } = target;
        let hand = surroundings.hand(&args.hand, &target, &config.name, &processes, &allowed)?;
        let policy = config.policy.clone();
        let mut session = TargetSession::new(
            config.name.clone(),
            policy,
            table.clone(),
            offered,
            Box::new(source),
            hand,
        )
        .map_err(session_error)?;
        set_knob(&mut session, target_dbms);
        surroundings.set_mover(&mut session, &args.hand);
        sessions.push((session, config.priority));
    }
    let interval = Duration::from_millis(config.interval_ms);
    let mut drive = Drive::new(&surroundings, &args.hand, sessions, table, interval)?;
    let ran = drive.run(until(args.seconds));
    let finished = drive.finish();
    ended(ran?)?;
    finished
}

fn find<'a>(
    surroundings: &Surroundings,
    args: &ManageArgs,
    config: &'a TargetConfig,
) -> Result<FoundTarget<'a>, CommandError> {
    let args_of =
        TargetArgs { pid: config.pid, cgroup: config.cgroup.clone(), unit: config.unit.clone() };
    let wrong = |error: String| usage(args, format!("target '{}': {error}", config.name));
    let named = config.work.as_deref().map(WorkKind::named).transpose().map_err(wrong)?;
    let dbms = config.dbms.as_deref().map(Adapter::named).transpose().map_err(wrong)?;
    let target = surroundings.target(&args_of)?;
    let (source, processes) = surroundings.open_target(&target, work(named, dbms.clone()))?;
    let allowed = surroundings.allowed(&processes, None)?;
    Ok(FoundTarget { config, target, source, processes, allowed, dbms })
}

fn usage(args: &ManageArgs, error: impl std::fmt::Display) -> CommandError {
    CommandError::with(Exit::Usage, format!("{}: {error}", args.file.display()))
}
