//! Assigns tasks to groups by their addresses.

use std::collections::BTreeMap;

use atoll_topology::NodeId;

use super::StepError;
use super::task::{Task, TaskBody, TaskTarget};
use crate::{Runtime, WorkerId};

/// A step whose tasks are assigned to groups.
pub(super) struct DealtStep<T, E> {
    pub(super) name: String,
    pub(super) tasks: Vec<DealtTask<T, E>>,
    /// Tasks for a node without workers.
    pub(super) rehomed: usize,
}

/// A task with its group.
pub(super) struct DealtTask<T, E> {
    /// Position of the group in the runtime.
    pub(super) group: usize,
    /// The worker it is addressed to; `None` if it is addressed to a node.
    pub(super) worker: Option<WorkerId>,
    pub(super) body: TaskBody<T, E>,
}

/// Deals a step's tasks. Those for a node take turns over its groups, from the first in each step,
/// so that a task finds in its domain's cache what the same task of the previous step left there.
pub(super) fn deal<T, E>(
    runtime: &Runtime,
    name: String,
    tasks: Vec<Task<T, E>>,
) -> Result<DealtStep<T, E>, StepError<E>> {
    let mut dealer = Dealer { runtime, places: BTreeMap::new(), rehomed: 0 };
    let mut dealt = Vec::with_capacity(tasks.len());
    for (number, Task { target, body }) in tasks.into_iter().enumerate() {
        match dealer.group(target) {
            Ok((group, worker)) => dealt.push(DealtTask { group, worker, body }),
            Err(node) => return Err(no_such_node(runtime, name, number, node)),
        }
    }
    Ok(DealtStep { name, tasks: dealt, rehomed: dealer.rehomed })
}

struct Dealer<'a> {
    runtime: &'a Runtime,
    /// Number of tasks assigned to each pool.
    places: BTreeMap<NodeId, usize>,
    rehomed: usize,
}

impl Dealer<'_> {
    /// Group and worker of a target. Returns the node as an error if the machine does not have it.
    fn group(&mut self, target: TaskTarget) -> Result<(usize, Option<WorkerId>), NodeId> {
        match target {
            TaskTarget::Node(node) => {
                let pool = self.runtime.pool_nearest(node).ok_or(node)?;
                self.rehomed += usize::from(pool.node() != node);
                let place = self.places.entry(pool.node()).or_default();
                *place += 1;
                Ok((pool.dealt(*place - 1), None))
            }
            TaskTarget::Worker(worker) => {
                let worker = WorkerId(worker.0 % self.runtime.worker_count() as u32);
                Ok((self.runtime.group_of(worker), Some(worker)))
            }
        }
    }
}

fn no_such_node<E>(runtime: &Runtime, step: String, task: usize, node: NodeId) -> StepError<E> {
    let nodes = runtime.machine().nodes.iter().map(|node| node.id).collect();
    StepError::NoSuchNode { step, task, node, nodes }
}
