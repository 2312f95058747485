//! `recommend`: how many cores a program needs and where, after looking for a while, and why.

use std::io::Write;
use std::time::{Duration, Instant};

use atoll_elastic::session::TargetSession;
use atoll_sys::{signal, wait_signal};
use atoll_topology::quantile;
use serde_json::json;

use super::control::{PolicyArgs, TargetArgs};
use super::drive::Drive;
use super::setup::{Surroundings, session_error};
use crate::exit::{CommandError, Exit};

/// Arguments of `recommend`.
#[derive(clap::Args, Debug)]
pub(super) struct RecommendArgs {
    #[command(flatten)]
    target: TargetArgs,
    #[command(flatten)]
    policy: PolicyArgs,
    /// Look for this many seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 5,
          value_parser = clap::value_parser!(u64).range(1..=86_400))]
    over: u64,
    /// One JSON document
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &RecommendArgs) -> Result<(), CommandError> {
    Drive::take_signals()?;
    let surroundings = Surroundings::open()?;
    let target = surroundings.target(&args.target)?;
    let (source, processes) = surroundings.open_target(&target, args.policy.work())?;
    let allowed = surroundings.allowed(&processes, args.policy.cpus())?;
    let (table, offered) = surroundings.table(&allowed);
    let policy = args.policy.policy();
    let name = target.to_string();
    let mut session =
        TargetSession::new(name, policy.clone(), table.clone(), offered, Box::new(source), None)
            .map_err(session_error)?;
    surroundings.set_load(&mut session, args.policy.load())?;
    let began = Instant::now();
    let mut demands = Vec::new();
    while began.elapsed() < Duration::from_secs(args.over) {
        let tick = session.tick(began.elapsed()).map_err(session_error)?;
        if tick.is_ended {
            return Err(CommandError::with(Exit::Statement, "the target has ended"));
        }
        demands.extend(tick.demand_cpus);
        let taken = wait_signal(&[signal::INT, signal::TERM], args.policy.interval());
        if taken.map_err(anyhow::Error::from)?.is_some() {
            return Err(CommandError::quietly(Exit::Interrupted));
        }
    }
    demands.sort_by(f64::total_cmp);
    let at = |share: f64| quantile(&demands, share).unwrap_or_default();
    let (median, high) = (at(0.5), at(0.95));
    let first = session.first_cores(high);
    let cpus = table.cpus(&first);
    let document = json!({
        "target": session.name(),
        "over_seconds": args.over,
        "mode": policy.mode,
        "cores": first.len(),
        "cores_allowed": table.len(),
        "cpus": cpus,
        "demand_cpus_median": median,
        "demand_cpus_p95": high,
        "load_percent_p95": high / cpus.len().max(1) as f64 * 100.0,
        "thmax_percent": policy.thmax,
        "pages": session.pages().in_order().into_iter()
            .map(|(node, pages)| json!({ "node": node.0, "pages": pages })).collect::<Vec<_>>(),
        "monitors": session.monitors(),
    });
    let mut out = std::io::stdout().lock();
    if args.json {
        writeln!(out, "{document:#}")?;
        return Ok(());
    }
    writeln!(
        out,
        "{}: {} of {} cores, cpus {cpus} ({})",
        session.name(),
        first.len(),
        table.len(),
        policy.mode.name()
    )?;
    writeln!(
        out,
        "  it used {median:.2} cpus in the median and {high:.2} in 95 % of {} looks: with so many cores \
         their load is {:.0} %, below {} %",
        demands.len(),
        high / cpus.len().max(1) as f64 * 100.0,
        policy.thmax
    )?;
    for (node, pages) in session.pages().in_order() {
        writeln!(out, "  node {node}: {pages} pages accessed")?;
    }
    for monitor in session.monitors() {
        let source = format!("{:?}", monitor.source).to_lowercase();
        writeln!(out, "  {:<32} {source:<9} {}", monitor.monitor, monitor.says)?;
    }
    Ok(())
}
