//! Why a request has no plan.

use atoll_placement::StrategyError;
use atoll_topology::{CpuSet, SetSpec};

use super::obstacle::Obstacle;

/// Why a request has no plan.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LaunchPlanError {
    /// The strategy is not applicable.
    #[error(transparent)]
    Strategy(#[from] StrategyError),
    /// Only the program that holds the data can copy it to every node.
    #[error(
        "replicate is not supported for other programs: only a program itself can keep a copy of \
         its data on every node; try aligned with --instances nodes, or interleave"
    )]
    Replicate,
    /// No usable node has cpus.
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
    /// `--preferred` with other than one node.
    #[error("'{set}' is not one node: --preferred takes exactly one; see --preferred-many")]
    NotOneNode {
        /// The set as given.
        set: SetSpec,
    },
    /// `same` without another set of nodes.
    #[error("'same' means the nodes of another flag, but no other flag names nodes")]
    SameAsNothing,
    /// `!` of the whole set.
    #[error("'{set}' leaves no usable node or cpu")]
    EmptySet {
        /// The set as given.
        set: SetSpec,
    },
    /// No node of `-N` is usable, and instances or a strategy need one.
    #[error("no node of -N is usable: {}", listed(.obstacles))]
    NowhereToStart {
        /// Why each of its nodes is unusable.
        obstacles: Vec<Obstacle>,
    },
    /// Nodes or cpus that the machine does not have, or that lack the requested resource: a
    /// mistake in the command, whereas a refused placement can be skipped.
    #[error("{}", listed(.obstacles))]
    NotThere {
        /// The missing nodes or cpus.
        obstacles: Vec<Obstacle>,
    },
    /// The strategy chooses its nodes itself.
    #[error("subset chooses its nodes itself; leave out -N, or use -N with -i instead of subset")]
    SubsetOfNodes,
}

fn listed(obstacles: &[Obstacle]) -> String {
    obstacles.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}
