//! The plan of a run: its settings, which results are only resumed with, and its cases in their order.

use anyhow::Result;
use atoll_topology::{Bytes, Machine};
use clap::ValueEnum;
use serde::{Deserialize, Serialize};

use super::DbmsArgs;
use super::case::DbmsCase;
use super::query::{DbmsQuery, QuerySet};
use super::system::SystemName;
use crate::trials::progress::{available_memory, time};
use crate::trials::{turns, unique};

/// Bytes of memory that an instance is assumed to take at scale factor 1: tables in MEMORY take the most.
const INSTANCE_BYTES: f64 = 3.5 * (1_u64 << 30) as f64;
/// The same of buffers.
const BUFFER_BYTES: f64 = 3.0 * (1_u64 << 30) as f64;
/// Bytes of a branch of pgbench, with its accounts.
const BRANCH_BYTES: f64 = 32.0 * (1_u64 << 20) as f64;
/// Seconds that loading an instance is assumed to take at scale factor 1.
const LOAD_SECONDS: f64 = 60.0;
/// Seconds of a start.
const START_SECONDS: f64 = 2.0;

/// Settings of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct DbmsPlan {
    pub(super) machine: String,
    pub(super) systems: Vec<SystemName>,
    pub(super) arms: Vec<String>,
    pub(super) queries: Vec<DbmsQuery>,
    /// `nodes`, `domains` or a number.
    pub(super) instances: String,
    pub(super) scale_factor: f64,
    /// Clients of an instance; `None` for as many as it has cpus.
    pub(super) clients: Option<u32>,
    /// Clients of the first instance by those of the others.
    pub(super) skew: u32,
    /// What as many clients as there are for the query run beside it.
    pub(super) beside: Option<DbmsQuery>,
    /// Branches of pgbench's tables.
    pub(super) pgbench_scale: u32,
    /// Looks at the balance over the time of a query.
    pub(super) samples: u32,
    pub(super) warmup: f64,
    pub(super) seconds: f64,
    /// Statements of each client; `None` if seconds count.
    pub(super) statements: Option<u32>,
    pub(super) repetitions: u32,
    pub(super) seed: u64,
    /// Nodes with memory.
    pub(super) nodes: usize,
}

impl DbmsPlan {
    /// The plan of a command.
    pub(super) fn new(args: &DbmsArgs, machine: &Machine) -> Self {
        let systems = match args.systems.is_empty() {
            true => {
                SystemName::value_variants().iter().copied().filter(|it| it.is_default()).collect()
            }
            false => unique(args.systems.iter().copied()),
        };
        let (warmup, seconds) = match args.statements {
            Some(_) => (0.0, 0.0),
            None => (args.warmup.unwrap_or(args.seconds / 2.0), args.seconds),
        };
        let sets = args.queries.iter().flat_map(|QuerySet(queries)| queries.iter().copied());
        Self {
            machine: machine.name.clone(),
            systems,
            arms: unique(args.arms.iter().map(ToString::to_string)),
            queries: unique(sets),
            instances: args.instances.to_string(),
            scale_factor: args.scale_factor,
            clients: args.clients,
            skew: args.skew,
            beside: args.beside,
            pgbench_scale: args.pgbench_scale,
            samples: args.samples,
            warmup,
            seconds,
            statements: args.statements,
            repetitions: args.repetitions,
            seed: args.seed,
            nodes: machine.nodes_with_memory().count(),
        }
    }

    /// Whether a load is pgbench's.
    pub(super) fn has_pgbench(&self) -> bool {
        self.queries.iter().chain(&self.beside).any(|query| *query == DbmsQuery::Pgbench)
    }

    /// Bytes of pgbench's tables.
    fn pgbench_bytes(&self) -> f64 {
        if self.has_pgbench() { BRANCH_BYTES * f64::from(self.pgbench_scale) } else { 0.0 }
    }

    /// Memory for pages that holds the database of an instance with its indexes.
    pub(super) fn buffer_bytes(&self) -> u64 {
        (BUFFER_BYTES * self.scale_factor + self.pgbench_bytes()) as u64 + (64 << 20)
    }

    /// The cases: those of a system and an arm follow each other, on the same instances; arms take turns.
    pub(super) fn cases(&self) -> impl Iterator<Item = DbmsCase> {
        let turns = turns(&self.systems, self.repetitions, &self.arms);
        turns.flat_map(|(system, run, arm)| {
            let case =
                move |query: &DbmsQuery| DbmsCase { system, arm: arm.clone(), run, query: *query };
            self.queries.iter().map(case)
        })
    }

    /// The number that the lab's counter knows the instances of a system under an arm by: the region of their clients,
    /// and the tag of Atoll's tables. 1 is that of all other processes.
    pub(super) fn lab_number(&self, system: SystemName, arm: &str) -> Option<u8> {
        let system = self.systems.iter().position(|it| *it == system)?;
        let arm = self.arms.iter().position(|it| it == arm)?;
        let number = u8::try_from(system * self.arms.len() + arm + 2).ok()?;
        (number < atoll_marker::REGIONS).then_some(number)
    }

    /// Seconds that a case is expected to take, its part of the load included.
    pub(super) fn case_seconds(&self, instances: usize) -> f64 {
        let start = START_SECONDS * instances as f64 + LOAD_SECONDS * self.scale_factor;
        self.warmup + self.seconds + start / self.queries.len().max(1) as f64
    }

    /// In words, for so many instances.
    pub(super) fn lines(&self, instances: usize) -> Result<Vec<String>> {
        let cases = self.cases().count();
        let all = self.case_seconds(instances) * cases as f64;
        let memory = INSTANCE_BYTES * self.scale_factor + self.pgbench_bytes();
        let memory = (memory * instances as f64) as u64;
        let free = available_memory()?;
        let mut lines = vec![
            format!("{cases} cases, about {}", time(all)),
            format!(
                "{instances} instances with TPC-H at scale factor {} each, up to {} of memory; {} are free",
                self.scale_factor,
                Bytes(memory),
                Bytes(free)
            ),
        ];
        if memory > free {
            lines.push("warning: it may not fit; a smaller --scale-factor is safer".to_owned());
        }
        Ok(lines)
    }
}
