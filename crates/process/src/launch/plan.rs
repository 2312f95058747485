//! The plan of a request on a machine. Pure: makes no system calls.

use atoll_placement::{MemoryHome, Policy, Strategy};
use atoll_sys::PolicyMode;
use atoll_topology::{CpuSet, DomainId, Machine, NodeId, NodeSet, SetSpec};

use super::obstacle::{self, Give, Obstacle};
use super::plan_error::LaunchPlanError;
use super::policy::MemoryPolicy;
use super::request::{LaunchRequest, MemoryFlag};
use super::seats::{InstanceSeat, seats};

/// What the kernel will be asked for.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct LaunchPlan {
    /// The instances; one if the program runs alone.
    pub instances: Vec<InstancePlan>,
    /// Requested parts that the plan cannot include.
    pub obstacles: Vec<Obstacle>,
    /// Requests without effect, one sentence each.
    pub notes: Vec<String>,
}

/// Cpus and memory policy of one instance.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct InstancePlan {
    /// Its number, from 0.
    pub index: usize,
    /// Node it belongs to.
    pub node: NodeId,
    /// Domain it belongs to, if there is one instance per domain.
    pub domain: Option<DomainId>,
    /// Cpus its threads are bound to; `None` leaves the affinity unchanged.
    pub cpus: Option<CpuSet>,
    /// Its memory policy; `None` leaves it unchanged.
    pub memory: Option<MemoryPolicy>,
}

impl LaunchPlan {
    /// The plan of a request on a machine.
    pub fn new(machine: &Machine, request: &LaunchRequest) -> Result<Self, LaunchPlanError> {
        let strategy = effective(request)?;
        let request = with_same_replaced(request)?;
        let mut planner = LaunchPlanner { machine, request: &request, obstacles: Vec::new() };
        let strategy = strategy.map(|strategy| planner.allowed(strategy));
        let nodes = planner.cpu_nodes()?;
        if nodes.is_none() && request.cpu_nodes.is_some() && strategy.is_some() {
            return Err(LaunchPlanError::NowhereToStart { obstacles: planner.obstacles });
        }
        let cpus = planner.cpus()?;
        let memory = planner.memory()?;
        let seats = seats(machine, request.instances, nodes.as_ref())?;
        let mut instances = Vec::with_capacity(seats.len());
        for (index, seat) in seats.iter().enumerate() {
            let (bound, policy) = homes(machine, &request, strategy, seat, nodes.as_ref())?;
            instances.push(InstancePlan {
                index,
                node: seat.node,
                domain: seat.domain,
                cpus: narrowed(bound, cpus.as_ref(), index)?,
                memory: if request.memory.is_some() { memory.clone() } else { policy },
            });
        }
        let ignored = request.balancing && !planner.is_bound();
        let note = "--balancing has an effect with --membind only, and is ignored".to_owned();
        let notes = if ignored { vec![note] } else { Vec::new() };
        Ok(Self { instances, obstacles: planner.obstacles, notes })
    }

    /// Whether the plan makes no system calls.
    pub fn is_empty(&self) -> bool {
        self.instances.iter().all(|it| it.cpus.is_none() && it.memory.is_none())
    }
}

fn effective(request: &LaunchRequest) -> Result<Option<Strategy>, LaunchPlanError> {
    match (request.strategy, request.instances) {
        (Some(Strategy::Replicate), _) => Err(LaunchPlanError::Replicate),
        (Some(Strategy::Subset(_)), _) if request.cpu_nodes.is_some() => {
            Err(LaunchPlanError::SubsetOfNodes)
        }
        (None, Some(_)) => Ok(Some(Strategy::Aligned)),
        (strategy, _) => Ok(strategy),
    }
}

/// `same` is the set of the other flag with nodes: there are at most two, `-N` and a policy.
fn with_same_replaced(request: &LaunchRequest) -> Result<LaunchRequest, LaunchPlanError> {
    let mut request = request.clone();
    if request.cpus == Some(SetSpec::Same) {
        return Err(LaunchPlanError::SameAsNothing);
    }
    let threads = request.cpu_nodes.as_mut();
    let memory = request.memory.as_mut().and_then(|memory| memory.nodes.as_mut());
    match (threads, memory) {
        (Some(SetSpec::Same), Some(SetSpec::Same) | None) | (None, Some(SetSpec::Same)) => {
            return Err(LaunchPlanError::SameAsNothing);
        }
        (Some(to @ SetSpec::Same), Some(from)) | (Some(from), Some(to @ SetSpec::Same)) => {
            *to = from.clone();
        }
        _ => {}
    }
    Ok(request)
}

struct LaunchPlanner<'a> {
    machine: &'a Machine,
    request: &'a LaunchRequest,
    obstacles: Vec<Obstacle>,
}

impl LaunchPlanner<'_> {
    /// The strategy, or the default one if it prefers a node that may not be used.
    fn allowed(&mut self, strategy: Strategy) -> Strategy {
        match strategy {
            Strategy::Preferred(node) if self.machine.hidden.nodes.contains(node) => {
                let outside = NodeSet::from_iter([node]);
                self.obstacles.push(obstacle::of_outside_nodes(
                    self.machine,
                    &outside,
                    Give::Memory,
                ));
                Strategy::Default
            }
            _ => strategy,
        }
    }

    /// The nodes of `-N` that have cpus; `None` if it is not given or none of them is usable.
    fn cpu_nodes(&mut self) -> Result<Option<NodeSet>, LaunchPlanError> {
        let Some(spec) = &self.request.cpu_nodes else { return Ok(None) };
        let allowed = self.machine.nodes_with_cpus().map(|node| node.id).collect();
        let set = spec.resolve(&allowed, &self.existing_nodes());
        let found = obstacle::of_nodes(self.machine, &set, Give::Cpus);
        self.kept(spec, set.usable, found)
    }

    fn cpus(&mut self) -> Result<Option<CpuSet>, LaunchPlanError> {
        let Some(spec) = &self.request.cpus else { return Ok(None) };
        let allowed: CpuSet = self.machine.cpus.iter().map(|cpu| cpu.id).collect();
        let set = spec.resolve(&allowed, &allowed.union(&self.machine.hidden.cpus));
        let found = obstacle::of_cpus(self.machine, &set);
        self.kept(spec, set.usable, found)
    }

    fn memory(&mut self) -> Result<Option<MemoryPolicy>, LaunchPlanError> {
        let Some(MemoryFlag { mode, nodes }) = &self.request.memory else { return Ok(None) };
        let balancing = self.request.balancing && self.is_bound();
        let policy = |nodes| MemoryPolicy { mode: *mode, nodes, balancing };
        match nodes {
            None => Ok(Some(policy(NodeSet::new()))),
            Some(spec) => Ok(self.memory_nodes(*mode, spec)?.map(policy)),
        }
    }

    fn memory_nodes(
        &mut self,
        mode: PolicyMode,
        spec: &SetSpec,
    ) -> Result<Option<NodeSet>, LaunchPlanError> {
        let allowed: NodeSet = self.machine.nodes_with_memory().map(|node| node.id).collect();
        let set = spec.resolve(&allowed, &self.existing_nodes());
        let named = set.usable.len() + set.forbidden.len() + set.missing.len();
        if mode == PolicyMode::Preferred && named != 1 {
            return Err(LaunchPlanError::NotOneNode { set: spec.clone() });
        }
        let found = obstacle::of_nodes(self.machine, &set, Give::Memory);
        self.kept(spec, set.usable, found)
    }

    fn existing_nodes(&self) -> NodeSet {
        let known: NodeSet = self.machine.nodes.iter().map(|node| node.id).collect();
        known.union(&self.machine.hidden.nodes)
    }

    fn is_bound(&self) -> bool {
        self.request.memory.as_ref().is_some_and(|memory| memory.mode == PolicyMode::Bind)
    }

    /// The usable part of a set. A set without a usable part is not requested at all.
    fn kept<T>(
        &mut self,
        spec: &SetSpec,
        usable: atoll_topology::IdSet<T>,
        found: Vec<Obstacle>,
    ) -> Result<Option<atoll_topology::IdSet<T>>, LaunchPlanError>
    where
        T: From<u32> + Into<u32> + Copy,
    {
        if usable.is_empty() && found.is_empty() {
            return Err(LaunchPlanError::EmptySet { set: spec.clone() });
        }
        let is_missing = found.iter().any(|it| it.cause.is_no_such());
        if is_missing || usable.is_empty() && found.iter().all(|it| it.cause.is_not_here()) {
            let obstacles = found.into_iter().filter(|it| it.cause.is_not_here()).collect();
            return Err(LaunchPlanError::NotThere { obstacles });
        }
        self.obstacles.extend(found);
        Ok(Some(usable).filter(|set| !set.is_empty()))
    }
}

/// Cpus and policy of an instance by its strategy; `nodes` are those of `-N`. A single program under
/// interleave comprises all parts: its threads are on all nodes, and so is its memory.
fn homes(
    machine: &Machine,
    request: &LaunchRequest,
    strategy: Option<Strategy>,
    seat: &InstanceSeat,
    nodes: Option<&NodeSet>,
) -> Result<(Option<CpuSet>, Option<MemoryPolicy>), LaunchPlanError> {
    let free = || nodes.map(|nodes| cpus_of(machine, nodes));
    let Some(strategy) = strategy else { return Ok((free(), None)) };
    let homes = strategy.home_of(machine, seat.node)?;
    let cpus = match (strategy, homes.cpus) {
        (Strategy::Subset(_), cpus) => cpus,
        (Strategy::Interleave, _) if request.instances.is_none() => free(),
        (_, Some(_)) => Some(seat.cpus.clone()),
        (_, None) => free(),
    };
    match homes.memory {
        MemoryHome::Once(policy) => Ok((cpus, memory_policy(policy))),
        MemoryHome::CopyPerNode(_) => Err(LaunchPlanError::Replicate),
    }
}

fn cpus_of(machine: &Machine, nodes: &NodeSet) -> CpuSet {
    let chosen = machine.nodes.iter().filter(|node| nodes.contains(node.id));
    chosen.fold(CpuSet::new(), |cpus, node| cpus.union(&node.cpus))
}

/// A strategy's policy as a call; the default policy is not set, so that an inherited one stays.
fn memory_policy(policy: Policy) -> Option<MemoryPolicy> {
    let (mode, nodes) = match policy {
        Policy::Default => return None,
        Policy::Local => (PolicyMode::Local, NodeSet::new()),
        Policy::Preferred(node) => (PolicyMode::Preferred, NodeSet::from_iter([node])),
        Policy::Bind(nodes) => (PolicyMode::Bind, nodes),
        Policy::Interleave(nodes) => (PolicyMode::Interleave, nodes),
        Policy::WeightedInterleave(nodes) => (PolicyMode::WeightedInterleave, nodes),
    };
    Some(MemoryPolicy { mode, nodes, balancing: false })
}

fn narrowed(
    bound: Option<CpuSet>,
    cpus: Option<&CpuSet>,
    instance: usize,
) -> Result<Option<CpuSet>, LaunchPlanError> {
    let (Some(seat), Some(cpus)) = (&bound, cpus) else { return Ok(bound.or(cpus.cloned())) };
    let common = seat.intersection(cpus);
    if common.is_empty() {
        return Err(LaunchPlanError::NoCommonCpu {
            cpus: cpus.clone(),
            instance,
            seat: seat.clone(),
        });
    }
    Ok(Some(common))
}
