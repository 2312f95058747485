//! A case: a system under an arm, whose instances' clients run one query; and what it found.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::query::DbmsQuery;
use super::system::SystemName;
use super::watch::balance::BalanceSample;
use super::watch::migration::MigrationSeen;
use crate::check::Check;
use crate::protocol::Answer;
use crate::trials::{CaseResult, TrialCase};

pub(super) type DbmsResult = CaseResult<DbmsCase, DbmsAnswer>;

/// A case by its settings.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct DbmsCase {
    pub(super) system: SystemName,
    /// The placement strategy.
    pub(super) arm: String,
    /// Repetition, from 0.
    pub(super) run: u32,
    pub(super) query: DbmsQuery,
}

impl fmt::Display for DbmsCase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { system, arm, query, .. } = self;
        write!(f, "{}, {arm}, {query}", system.name())
    }
}

impl TrialCase for DbmsCase {
    fn key(&self) -> String {
        let Self { system, arm, run, query } = self;
        format!("{} {arm} {run} {query}", system.name())
    }
}

/// What a case found.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct DbmsAnswer {
    pub(super) version: String,
    pub(super) settings: String,
    /// Seconds in which all instances were loaded.
    pub(super) load_s: f64,
    /// Queries a second of all clients of all instances.
    pub(super) per_s: f64,
    /// The same of the query beside it.
    pub(super) beside_per_s: f64,
    /// Transactions that failed and were run again, of both.
    pub(super) repeats: u64,
    /// Queries that ended while the clock ran.
    pub(super) count: u64,
    /// Queries in the second half of the time by those in the first half, if there are enough.
    pub(super) drift: Option<f64>,
    /// The result of each text that was run, the same in all instances.
    pub(super) checks: Vec<Option<Check>>,
    /// The whole result of the first text, from the first case of a system.
    pub(super) first: Option<Answer>,
    pub(super) instances: Vec<InstanceSeen>,
}

/// An instance, with its placement as the kernel reports it while clients run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct InstanceSeen {
    /// The node that it belongs to.
    pub(super) node: u32,
    pub(super) clients: u32,
    pub(super) per_s: f64,
    /// What was asked for.
    pub(super) asked: String,
    /// What the kernel refused or could not be read, and why.
    pub(super) obstacles: Vec<String>,
    /// Bytes of resident memory on each node, beside those of the program and its libraries.
    pub(super) nodes: BTreeMap<u32, u64>,
    /// Bytes of resident memory under each policy, in the kernel's words.
    pub(super) policies: BTreeMap<String, u64>,
    /// Cpus on which its threads may run.
    pub(super) cpus: String,
    /// Threads by the node on which they ran last.
    pub(super) threads: BTreeMap<u32, u32>,
    /// What came of moving its threads, where the arm does so.
    pub(super) migration: Option<MigrationSeen>,
    /// Looks over the whole time, if they were asked for.
    pub(super) balance: Vec<BalanceSample>,
}

impl InstanceSeen {
    /// Share of its memory on its own node.
    pub(super) fn local_share(&self) -> Option<f64> {
        let all: u64 = self.nodes.values().sum();
        let own = self.nodes.get(&self.node).copied().unwrap_or_default();
        (all > 0).then(|| own as f64 / all as f64)
    }
}
