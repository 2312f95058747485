//! Instances of a system: each started by a thread that has its placement, which all its threads and processes
//! inherit; and that placement read back.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use atoll_process::inspect::{
    LivePages, MappingKind, NodeMap, ProcessSource, WatchOptions, Watcher, descendants, identify,
};
use atoll_process::launch::{InstancePlan, LaunchPlan, LaunchRequest, LiveCalls, apply};
use atoll_sys::{Root, SignalMask};
use atoll_topology::{CpuSet, Machine};

use super::case::InstanceSeen;
use super::plan::DbmsPlan;
use super::system::{DbmsEngine, InstanceOptions, SystemName};
use crate::trials::placement;

/// A running instance.
pub(super) struct DbmsInstance {
    pub(super) engine: Box<dyn DbmsEngine>,
    pub(super) seat: InstanceSeat,
    /// The thread that started it ends when this is dropped, and with it the kernel ends the instance's processes.
    _hold: Sender<()>,
}

/// Where an instance is to be.
pub(super) struct InstanceSeat {
    /// Its first process.
    process: u32,
    plan: InstancePlan,
    pub(super) clients: u32,
    obstacles: Vec<String>,
}

/// What all instances of a run are started with.
#[derive(Clone, Copy)]
pub(super) struct Starting<'a> {
    pub(super) machine: &'a Machine,
    pub(super) plan: &'a DbmsPlan,
    pub(super) directory: &'a Path,
    pub(super) python: Option<&'a Path>,
    pub(super) patience: Duration,
    pub(super) mask: SignalMask,
}

impl Starting<'_> {
    /// The placement of each instance under an arm.
    pub(super) fn plans(&self, arm: &str) -> Result<LaunchPlan> {
        let strategy = placement::strategy(arm).map_err(anyhow::Error::msg)?;
        let instances = Some(self.plan.instances.parse()?);
        let request =
            LaunchRequest { strategy: Some(strategy), instances, ..LaunchRequest::default() };
        Ok(LaunchPlan::new(self.machine, &request)?)
    }

    /// Starts all instances of a system under an arm, one after the other.
    pub(super) fn all(&self, system: SystemName, arm: &str) -> Result<Vec<DbmsInstance>> {
        let LaunchPlan { instances, obstacles, .. } = self.plans(arm)?;
        let count = instances.len();
        let start = |plan: InstancePlan| {
            let mut started = self.one(system, arm, plan, count)?;
            started.seat.obstacles.extend(obstacles.iter().map(ToString::to_string));
            Ok(started)
        };
        instances.into_iter().map(start).collect()
    }

    /// Starts an instance of so many.
    pub(super) fn one(
        &self,
        system: SystemName,
        arm: &str,
        plan: InstancePlan,
        count: usize,
    ) -> Result<DbmsInstance> {
        let cpus = self.cpus(&plan).len();
        let sharing = count.div_ceil(self.machine.nodes_with_cpus().count().max(1));
        let threads = match plan.domain {
            Some(_) => cpus,
            None => (cpus / sharing).max(1),
        };
        let clients = self.plan.clients.unwrap_or(u32::try_from(threads)?);
        let options = InstanceOptions {
            cpus: plan.cpus.clone(),
            threads,
            is_placed: arm != "default",
            clients,
            scale_factor: self.plan.scale_factor,
            directory: tempfile::Builder::new()
                .prefix(system.name())
                .tempdir_in(self.directory)?
                .keep(),
            python: self.python.map(Path::to_owned),
            patience: self.patience,
            mask: self.mask,
        };
        open_for_all(&options.directory)?;
        let (engine, obstacles, hold) = placed(plan.clone(), move || system.start(options))?;
        let process = engine.process().0;
        let seat = InstanceSeat { process, plan, clients, obstacles };
        Ok(DbmsInstance { engine, seat, _hold: hold })
    }

    /// The cpus of the node or domain that an instance belongs to.
    fn cpus(&self, plan: &InstancePlan) -> CpuSet {
        let domain = self.machine.domains.iter().find(|it| Some(it.id) == plan.domain);
        let node = || self.machine.node(plan.node).map(|node| node.cpus.clone());
        domain.map(|it| it.cpus.clone()).or_else(node).unwrap_or_default()
    }
}

/// Lets the users that servers run as reach their own directories below this one.
pub(super) fn open_for_all(directory: &Path) -> Result<()> {
    use std::os::unix::fs::PermissionsExt;
    let permissions = std::fs::Permissions::from_mode(0o711);
    std::fs::set_permissions(directory, permissions)
        .with_context(|| format!("the permissions of {}", directory.display()))
}

type PlacedEngine = (Box<dyn DbmsEngine>, Vec<String>, Sender<()>);

/// Calls `start` in a thread with the placement of an instance, which stays until the sender is dropped.
fn placed(
    plan: InstancePlan,
    start: impl FnOnce() -> Result<Box<dyn DbmsEngine>> + Send + 'static,
) -> Result<PlacedEngine> {
    let (answer, answered) = channel();
    let (hold, held) = channel::<()>();
    let run = move || {
        let obstacles: Vec<String> =
            apply(&plan, &LiveCalls).iter().map(ToString::to_string).collect();
        let started = start().map(|engine| (engine, obstacles));
        if answer.send(started).is_ok() {
            // No message is ever sent: this returns when the other end is dropped.
            let _ = held.recv();
        }
    };
    thread::Builder::new().name("instance".to_owned()).spawn(run).context("no thread")?;
    let (engine, obstacles) = answered.recv().map_err(|_| anyhow!("starting it panicked"))??;
    Ok((engine, obstacles, hold))
}

impl InstanceSeat {
    /// Its placement, as the kernel reports it.
    pub(super) fn seen(&self, machine: &Machine) -> InstanceSeen {
        let mut seen = InstanceSeen {
            node: u32::from(self.plan.node),
            clients: self.clients,
            asked: asked(&self.plan),
            obstacles: self.obstacles.clone(),
            ..InstanceSeen::default()
        };
        if let Err(error) = self.read_back(machine, &mut seen) {
            seen.obstacles.push(format!("its placement cannot be read: {error:#}"));
        }
        seen
    }

    fn read_back(&self, machine: &Machine, seen: &mut InstanceSeen) -> Result<()> {
        let root = Root::live();
        let nodes = NodeMap::read(&root, machine);
        let own = identify(&root, self.process)?;
        let all = descendants(&root, &[own])?;
        let source = ProcessSource::new(&root, &LivePages, machine, &nodes);
        let snapshot = Watcher::new(&all, WatchOptions::default()).look(&source, Duration::ZERO)?;
        for (node, bytes) in snapshot.bytes_of(|kind| kind != MappingKind::Program) {
            if let Some(node) = node {
                seen.nodes.insert(u32::from(node), bytes);
            }
        }
        let mut cpus = CpuSet::new();
        for (_, thread) in snapshot.threads() {
            cpus = cpus.union(&thread.cpus_allowed);
            if let Some(node) = thread.node {
                *seen.threads.entry(u32::from(node)).or_default() += 1;
            }
        }
        seen.cpus = cpus.to_string();
        seen.policies = policies(&snapshot.processes);
        let missing = snapshot.missing.iter().map(|it| format!("{}: needs {}", it.what, it.need));
        seen.obstacles.extend(missing);
        Ok(())
    }
}

/// Bytes under each policy. Memory that several processes share counts for each of them.
fn policies(processes: &[atoll_process::inspect::Process]) -> BTreeMap<String, u64> {
    let mut all = BTreeMap::new();
    let memories = processes.iter().filter_map(|process| process.memory.as_ref());
    for used in memories.flat_map(|memory| memory.policies.iter().flatten()) {
        if used.bytes > 0 {
            *all.entry(used.policy.clone()).or_default() += used.bytes;
        }
    }
    all
}

/// What a plan asks of the kernel, in words.
fn asked(plan: &InstancePlan) -> String {
    let cpus = plan.cpus.as_ref().map(|cpus| format!("threads on cpus {cpus}"));
    let memory = plan.memory.as_ref().map(|policy| format!("memory {policy}"));
    let (cpus, memory) = (cpus.as_deref(), memory.as_deref());
    format!("{}, {}", cpus.unwrap_or("threads free"), memory.unwrap_or("no memory policy"))
}
