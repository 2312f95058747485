//! Flags of `run`: numactl's, and what goes beyond them.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use atoll_placement::Strategy;
use atoll_process::launch::{Instances, LaunchRequest, MemoryFlag, Program};
use atoll_sys::PolicyMode;
use atoll_topology::SetSpec;

/// Longest grace: a day.
const GRACE_SECONDS_MAX: f64 = 86_400.0;

/// The programs to start, and where.
#[derive(clap::Args, Debug)]
pub struct LaunchArgs {
    /// Run on the cpus of these nodes; with --placement or --instances: the nodes to use
    #[arg(short = 'N', long, value_name = "NODES", alias = "cpubind", short_alias = 'c')]
    #[arg(help_heading = NUMACTL, overrides_with = "cpunodebind")]
    cpunodebind: Option<SetSpec>,

    /// Run on these cpus (of those that the other flags leave)
    #[arg(short = 'C', long, value_name = "CPUS", help_heading = NUMACTL)]
    #[arg(overrides_with = "physcpubind")]
    physcpubind: Option<SetSpec>,

    /// Take memory from these nodes only; when they are full, the kernel kills the program
    #[arg(short = 'm', long, value_name = "NODES", group = "policy", help_heading = NUMACTL)]
    membind: Option<SetSpec>,

    /// Spread memory page by page over these nodes
    #[arg(short = 'i', long, value_name = "NODES", group = "policy", help_heading = NUMACTL)]
    interleave: Option<SetSpec>,

    /// As --interleave, by the weights in /sys/kernel/mm/mempolicy (Linux 6.9)
    #[arg(short = 'w', long, value_name = "NODES", group = "policy", help_heading = NUMACTL)]
    weighted_interleave: Option<SetSpec>,

    /// Prefer memory of this node, others when it is full
    #[arg(short = 'p', long, value_name = "NODE", group = "policy", help_heading = NUMACTL)]
    preferred: Option<SetSpec>,

    /// Prefer memory of these nodes, others when they are full (Linux 5.15)
    #[arg(short = 'P', long, value_name = "NODES", group = "policy", help_heading = NUMACTL)]
    preferred_many: Option<SetSpec>,

    /// Take memory from the node of the cpu that touches it first
    #[arg(short = 'l', long, group = "policy", help_heading = NUMACTL)]
    localalloc: bool,

    /// Leave automatic NUMA balancing on among the nodes of --membind (Linux 5.12)
    #[arg(short = 'b', long, help_heading = NUMACTL)]
    balancing: bool,

    /// Ask for cpus and memory outside of the affinity mask and the cpuset too
    #[arg(short = 'a', long, help_heading = NUMACTL)]
    all: bool,

    /// Strategy: default, aligned, ahead(k), farthest, interleave, spread, subset(k), local,
    /// preferred(n), weighted-interleave
    #[arg(long, value_name = "STRATEGY", group = "policy", help_heading = BEYOND)]
    placement: Option<Strategy>,

    /// Number of instances to start, or one for each of the `nodes` or `domains`; aligned by
    /// default. {i}, {node}, {domain} and {cpus} are replaced by each instance's values in ARGS and
    /// --env
    #[arg(long, value_name = "N|nodes|domains", help_heading = BEYOND)]
    instances: Option<Instances>,

    /// Set a variable of the program's environment
    #[arg(long, value_name = "NAME=VALUE", value_parser = variable, help_heading = BEYOND)]
    env: Vec<(OsString, OsString)>,

    /// Write the output of each instance to DIR/0.log, DIR/1.log, …
    #[arg(long, value_name = "DIR", help_heading = BEYOND)]
    logs: Option<PathBuf>,

    /// After stopping instances, kill those still running after this time
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = time)]
    #[arg(help_heading = BEYOND)]
    grace: Duration,

    /// Show what will be asked of the kernel and which obstacles there are; start nothing
    #[arg(long, help_heading = BEYOND)]
    dry_run: bool,

    /// Start nothing if any part of the placement is refused or at risk
    #[arg(long, help_heading = BEYOND)]
    strict: bool,

    /// Report the result: pages by node, migrations, faults [to stderr, or to FILE]
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true)]
    #[arg(help_heading = BEYOND)]
    report: Option<Option<PathBuf>>,

    /// --dry-run and --report as JSON
    #[arg(long, help_heading = BEYOND)]
    json: bool,

    /// The program and its arguments
    #[arg(value_name = "CMD", required = true, trailing_var_arg = true)]
    command: Vec<OsString>,
}

const NUMACTL: &str = "As in numactl (NODES and CPUS: 0-3,8  +0-1  !0  all  same)";
const BEYOND: &str = "Beyond numactl";

/// Where the report goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ReportTo {
    Stderr,
    File(PathBuf),
}

impl LaunchArgs {
    pub(super) fn request(&self) -> LaunchRequest {
        LaunchRequest {
            instances: self.instances,
            strategy: self.placement,
            cpu_nodes: self.cpunodebind.clone(),
            cpus: self.physcpubind.clone(),
            memory: self.memory(),
            balancing: self.balancing,
        }
    }

    /// The one policy; that there is one at most clap has checked.
    fn memory(&self) -> Option<MemoryFlag> {
        let with_nodes = [
            (PolicyMode::Bind, &self.membind),
            (PolicyMode::Interleave, &self.interleave),
            (PolicyMode::WeightedInterleave, &self.weighted_interleave),
            (PolicyMode::Preferred, &self.preferred),
            (PolicyMode::PreferredMany, &self.preferred_many),
        ];
        let local = || MemoryFlag { mode: PolicyMode::Local, nodes: None };
        let given = with_nodes.into_iter().find(|(_, nodes)| nodes.is_some());
        given
            .map(|(mode, nodes)| MemoryFlag { mode, nodes: nodes.clone() })
            .or_else(|| self.localalloc.then(local))
    }

    /// The program as given, placeholders and all.
    pub(super) fn program(&self) -> Program {
        let mut words = self.command.iter().cloned();
        Program {
            name: words.next().unwrap_or_default(),
            arguments: words.collect(),
            environment: self.env.clone(),
        }
    }

    /// Whether what exists counts as allowed (`--all`): the kernel then decides.
    pub(super) fn is_beyond_allowed(&self) -> bool {
        self.all
    }

    pub(super) fn is_several(&self) -> bool {
        self.instances.is_some()
    }

    pub(super) fn is_dry(&self) -> bool {
        self.dry_run
    }

    pub(super) fn is_strict(&self) -> bool {
        self.strict
    }

    pub(super) fn is_json(&self) -> bool {
        self.json
    }

    pub(super) fn grace(&self) -> Duration {
        self.grace
    }

    pub(super) fn logs(&self) -> Option<PathBuf> {
        self.logs.clone()
    }

    pub(super) fn report(&self) -> Option<ReportTo> {
        let to = self.report.clone()?;
        Some(to.map_or(ReportTo::Stderr, ReportTo::File))
    }
}

fn variable(text: &str) -> Result<(OsString, OsString), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.into(), value.into())),
        _ => Err("expected NAME=VALUE".to_owned()),
    }
}

/// `10s`, `500ms`, `2m`, or seconds without a unit.
pub(crate) fn time(text: &str) -> Result<Duration, String> {
    let units = [("ms", 0.001), ("s", 1.0), ("m", 60.0), ("", 1.0)];
    let expected = || "expected a time such as 10s, 500ms or 2m, of a day at most".to_owned();
    let (number, unit) = units
        .iter()
        .find_map(|(suffix, unit)| Some((text.strip_suffix(suffix)?, unit)))
        .ok_or_else(expected)?;
    match number.trim().parse::<f64>() {
        Ok(number) if (0.0..=GRACE_SECONDS_MAX).contains(&(number * unit)) => {
            Ok(Duration::from_secs_f64(number * unit))
        }
        _ => Err(expected()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_has_a_unit_or_is_in_seconds_and_is_a_day_at_most() {
        for (text, millis) in [("10s", 10_000), ("500ms", 500), ("2m", 120_000), ("1.5", 1500)] {
            assert_eq!(time(text), Ok(Duration::from_millis(millis)), "{text}");
        }
        for text in ["", "s", "-1s", "nan", "inf", "1e300", "2000m", "10 hours", "1h"] {
            assert!(time(text).is_err(), "{text}");
        }
    }
}
