//! Why a request has no plan.

use atoll_placement::StrategyError;
use atoll_topology::{CpuSet, SetSpec};

use super::obstacle::Obstacle;

/// Why a request has no plan.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LaunchPlanError {
    /// The strategy has no answer.
    #[error(transparent)]
    Strategy(#[from] StrategyError),
    /// Copies on every node are made by the program that holds the data.
    #[error(
        "replicate is not supported for other programs: only a program itself can keep a copy of \
         its data on every node; try aligned with --instances nodes, or interleave"
    )]
    Replicate,
    /// No node that may be used has cpus.
    #[error("no node of machine '{machine}' that may be used has cpus; check -N and the cpuset")]
    NoCpus {
        /// Name of the machine.
        machine: String,
    },
    /// The sets have no cpu in common.
    #[error(
        "none of the cpus {cpus} is among those of instance {instance} ({seat}); leave out -C, or \
         choose cpus there"
    )]
    NoCommonCpu {
        /// Cpus of `-C`.
        cpus: CpuSet,
        /// The instance.
        instance: usize,
        /// Its cpus by node, domain or strategy.
        seat: CpuSet,
    },
    /// `--preferred` takes one node.
    #[error("'{set}' is not one node: --preferred takes exactly one; see --preferred-many")]
    NotOneNode {
        /// The set as given.
        set: SetSpec,
    },
    /// `same` without another set of nodes.
    #[error("'same' stands for the nodes of another flag, and no other flag names nodes")]
    SameAsNothing,
    /// `!` of everything.
    #[error("'{set}' leaves no node or cpu of those that may be used")]
    EmptySet {
        /// The set as given.
        set: SetSpec,
    },
    /// Nothing of `-N` can be used, and instances or a strategy were to be dealt out over it.
    #[error("nothing can be started there: {}", listed(.obstacles))]
    NowhereToStart {
        /// Why each of its nodes cannot be used.
        obstacles: Vec<Obstacle>,
    },
    /// Nodes or cpus that the machine does not have, or of which none has what it is to give: a
    /// mistake in the command, where a placement that is refused may still be done without.
    #[error("{}", listed(.obstacles))]
    NotThere {
        /// What is not there.
        obstacles: Vec<Obstacle>,
    },
    /// The strategy chooses its nodes itself.
    #[error("subset chooses its nodes itself; leave out -N, or use -N with -i instead of subset")]
    SubsetOfNodes,
}

fn listed(obstacles: &[Obstacle]) -> String {
    obstacles.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}
