//! Instances of a system: each started by a thread that has its placement, which all its threads and processes
//! inherit; and that placement read back.

use std::path::Path;
use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use atoll_process::launch::{InstancePlan, LaunchPlan, LaunchRequest, LiveCalls, apply};
use atoll_sys::SignalMask;
use atoll_topology::{CpuSet, Machine};

use super::arm::DbmsArm;
use super::case::InstanceSeen;
use super::plan::DbmsPlan;
use super::system::{DbmsEngine, InstanceOptions, SystemName};
use crate::trials::ServerLooks;
use crate::trials::placement::{self, PlacementSeen};

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
    pub(super) process: u32,
    pub(super) plan: InstancePlan,
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
        let arm: DbmsArm = arm.parse().map_err(anyhow::Error::msg)?;
        let strategy = arm.strategy();
        let instances = Some(self.plan.instances.parse()?);
        let request =
            LaunchRequest { strategy: Some(strategy), instances, ..LaunchRequest::default() };
        Ok(LaunchPlan::new(self.machine, &request)?)
    }

    /// Starts all instances of a system under an arm, one after the other.
    pub(super) fn all(&self, system: SystemName, arm: &str) -> Result<Vec<DbmsInstance>> {
        let LaunchPlan { instances, obstacles, .. } = self.plans(arm)?;
        let count = instances.len();
        let start = |(number, plan): (usize, InstancePlan)| {
            let skew = if number == 0 { self.plan.skew } else { 1 };
            let mut started = self.one(system, arm, plan, count, skew)?;
            started.seat.obstacles.extend(obstacles.iter().map(ToString::to_string));
            Ok(started)
        };
        instances.into_iter().enumerate().map(start).collect()
    }

    /// Starts an instance of so many, which has `skew` times the clients of others.
    pub(super) fn one(
        &self,
        system: SystemName,
        arm: &str,
        plan: InstancePlan,
        count: usize,
        skew: u32,
    ) -> Result<DbmsInstance> {
        let cpus = self.cpus(&plan).len();
        let sharing = count.div_ceil(self.machine.nodes_with_cpus().count().max(1));
        let threads = match plan.domain {
            Some(_) => cpus,
            None => (cpus / sharing).max(1),
        };
        let clients = self.plan.clients.unwrap_or(u32::try_from(threads)?).saturating_mul(skew);
        let options = InstanceOptions {
            cpus: plan.cpus.clone(),
            threads,
            is_placed: arm != "default",
            clients,
            buffer_bytes: self.plan.buffer_bytes(),
            directory: tempfile::Builder::new()
                .prefix(system.name())
                .tempdir_in(self.directory)?
                .keep(),
            python: self.python.map(Path::to_owned),
            patience: self.patience,
            lab: self.plan.lab_number(system, arm),
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
            asked: placement::asked(&self.plan),
            obstacles: self.obstacles.clone(),
            ..InstanceSeen::default()
        };
        if let Err(error) = self.read_back(machine, &mut seen) {
            seen.obstacles.push(format!("its placement cannot be read: {error:#}"));
        }
        seen
    }

    fn read_back(&self, machine: &Machine, seen: &mut InstanceSeen) -> Result<()> {
        let PlacementSeen { nodes, policies, cpus, threads, obstacles, .. } =
            ServerLooks::new(machine, self.process)?.finish().seen;
        seen.obstacles.extend(obstacles);
        (seen.nodes, seen.policies, seen.cpus, seen.threads) = (nodes, policies, cpus, threads);
        Ok(())
    }
}
