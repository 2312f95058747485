//! The plan of a run: its settings, which results are only resumed with, and its cases in their order.

use std::fmt;

use atoll_placement::Strategy;
use atoll_topology::Machine;
use serde::{Deserialize, Serialize};

use super::{BetterName, PlacementArgs};
use crate::trials::TrialCase;

/// Settings of a run. Rounds may be added to it later.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct PlacementPlan {
    pub(super) machine: String,
    /// Nodes with memory.
    pub(super) nodes: usize,
    pub(super) server: Vec<String>,
    pub(super) ready: Option<String>,
    pub(super) load: String,
    /// The regular expression; `None` is the time of the load.
    pub(super) metric: Option<String>,
    pub(super) better: BetterName,
    /// `default` is the first.
    pub(super) arms: Vec<String>,
}

/// The server under an arm, in a round.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct PlacementCase {
    pub(super) arm: String,
    /// From 1.
    pub(super) round: u32,
}

impl PlacementPlan {
    /// The plan of a command.
    pub(super) fn new(args: &PlacementArgs, machine: &Machine) -> Self {
        let usual = if args.metric.is_some() { BetterName::More } else { BetterName::Less };
        let mut arms = vec![Strategy::Default.to_string()];
        for arm in args.arms.iter().map(ToString::to_string) {
            if !arms.contains(&arm) {
                arms.push(arm);
            }
        }
        Self {
            machine: machine.name.clone(),
            nodes: machine.nodes_with_memory().count(),
            server: args.server.clone(),
            ready: args.ready.clone(),
            load: args.load.clone(),
            metric: args.metric.as_ref().map(ToString::to_string),
            better: args.better.unwrap_or(usual),
            arms,
        }
    }

    /// The cases of this many rounds, forward and backward in turn.
    pub(super) fn cases(&self, rounds: u32) -> impl Iterator<Item = PlacementCase> {
        (1..=rounds).flat_map(move |round| {
            let mut arms: Vec<&String> = self.arms.iter().collect();
            if round.is_multiple_of(2) {
                arms.reverse();
            }
            arms.into_iter().map(move |arm| PlacementCase { arm: arm.clone(), round })
        })
    }

    /// What is measured, for tables.
    pub(super) fn unit(&self) -> &'static str {
        if self.metric.is_some() { "metric" } else { "s" }
    }
}

impl fmt::Display for PlacementCase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "round {}, {}", self.round, self.arm)
    }
}

impl TrialCase for PlacementCase {
    fn key(&self) -> String {
        format!("{} {}", self.arm, self.round)
    }
}
