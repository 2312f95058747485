//! A managed target: observe, decide, act, check; and restore its cores in the end.

mod share;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use atoll_process::inspect::{InspectError, ProcessId};
use atoll_sys::thread_cpu_time;
use atoll_topology::{CpuSet, NodeSet};

use crate::actuate::{ActuateError, Actuator, Journal, PageMover};
use crate::adapter::Knob;
use crate::decide::{CoreController, CorePolicy, Decision, Observation, PolicyError};
use crate::mode::{CoreIds, CoreTable, PageQueue, first_cores};
use crate::monitor::{
    LoadKind, LoadMeter, MonitorState, Pressure, TargetSource, Traffic, WorkReading,
};

pub use share::{Grain, ShareAct, ShareError, ShareState, first_shares, shares};

/// Interval of searches for new processes and threads if nothing else is to do.
const CHECK_EVERY: Duration = Duration::from_secs(1);
/// Minimum pause after a search, as a multiple of its cost: a fifth of a percent of a cpu.
const CHECK_COST: u32 = 500;

/// Why a target is no longer managed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SessionError {
    /// The policy.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// The target cannot be observed.
    #[error(transparent)]
    Inspect(#[from] InspectError),
    /// Its cores cannot be given.
    #[error(transparent)]
    Actuate(#[from] ActuateError),
}

/// Result of a look.
#[derive(Clone, Debug, Default)]
pub struct Tick {
    /// The decision; None at the first look.
    pub decision: Option<Decision>,
    /// Cpus of time that the target used.
    pub demand_cpus: Option<f64>,
    /// Notes for the user, a sentence each.
    pub notes: Vec<String>,
    /// Whether the target has ended.
    pub is_ended: bool,
}

/// Assigns cores; without it nothing is changed.
#[derive(Debug)]
pub struct Hand {
    /// The actuator.
    pub actuator: Actuator,
    /// The journal.
    pub journal: Journal,
}

/// A managed target.
pub struct TargetSession {
    name: String,
    policy: CorePolicy,
    table: Arc<CoreTable>,
    offered: CoreIds,
    source: Box<dyn TargetSource>,
    hand: Option<Hand>,
    knob: Option<Knob>,
    mover: Option<PageMover>,
    controller: Option<CoreController>,
    meter: LoadMeter,
    load: LoadKind,
    carried: Option<(Duration, Traffic)>,
    counted: Option<(Duration, f64)>,
    seen: Option<Observation>,
    pages: PageQueue,
    pressure: Pressure,
    processes: Vec<ProcessId>,
    /// Cpus that were given, and the time of the next check.
    applied: Option<(CpuSet, Duration)>,
    told: BTreeSet<String>,
    acts: u64,
}

impl TargetSession {
    /// For a target that may get the cores `offered`.
    pub fn new(
        name: impl Into<String>,
        policy: CorePolicy,
        table: Arc<CoreTable>,
        offered: CoreIds,
        source: Box<dyn TargetSource>,
        hand: Option<Hand>,
    ) -> Result<Self, SessionError> {
        policy.parameters(table.len())?;
        Ok(Self {
            name: name.into(),
            policy,
            table,
            offered,
            source,
            hand,
            knob: None,
            mover: None,
            controller: None,
            meter: LoadMeter::default(),
            load: LoadKind::default(),
            carried: None,
            counted: None,
            seen: None,
            pages: PageQueue::default(),
            pressure: Pressure::default(),
            processes: Vec::new(),
            applied: None,
            told: BTreeSet::new(),
            acts: 0,
        })
    }

    /// Uses another load than cpu time.
    pub fn set_load(&mut self, load: LoadKind) {
        self.load = load;
    }

    /// Makes the DBMS's own knob follow the cores, if anything is changed at all.
    pub fn set_knob(&mut self, knob: Knob) {
        self.knob = Some(knob);
    }

    /// Makes its pages follow its cores, if anything is changed at all.
    pub fn set_mover(&mut self, mover: PageMover) {
        self.mover = Some(mover);
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The decider; None before the second look.
    pub fn controller(&self) -> Option<&CoreController> {
        self.controller.as_ref()
    }

    /// The states of the monitors.
    pub fn monitors(&self) -> Vec<MonitorState> {
        self.source.states()
    }

    /// How cores are given, in words.
    pub fn actuator(&self) -> Option<String> {
        let words = self.hand.as_ref().map(|hand| hand.actuator.words())?;
        let knob = self.knob.as_ref().map(|knob| format!("; threads by {}", knob.adapter().kind()));
        Some(words + &knob.unwrap_or_default())
    }

    /// Pressure on the target.
    pub fn pressure(&self) -> Pressure {
        self.pressure
    }

    /// Its processes at the last look.
    pub fn processes(&self) -> &[ProcessId] {
        &self.processes
    }

    /// The known pages that it accesses.
    pub fn pages(&self) -> &PageQueue {
        &self.pages
    }

    /// How often its cores were changed.
    pub fn acts(&self) -> u64 {
        self.acts
    }

    /// Load of its cores at the last look, percent.
    pub fn load_percent(&self) -> Option<f64> {
        self.seen.map(|seen| seen.load)
    }

    /// Observes, decides and acts. After an error the target must be [restored](Self::finish).
    pub fn tick(&mut self, at: Duration) -> Result<Tick, SessionError> {
        let mut tick = Tick::default();
        self.processes = self.source.processes(at)?;
        if self.processes.is_empty() {
            tick.is_ended = true;
            return Ok(tick);
        }
        self.look_around(at)?;
        let source = &mut self.source;
        let clocks = self.processes.iter().filter_map(|id| Some((*id, source.cpu_time(*id)?)));
        let clocks: Vec<(ProcessId, Duration)> = clocks.collect();
        let Some(demand) = self.meter.demand(at, clocks) else { return Ok(tick) };
        tick.demand_cpus = Some(demand);
        let performance = self.performance(at, demand);
        let mut controller = match self.controller.take() {
            Some(controller) => controller,
            None => self.begin(demand)?,
        };
        let cpus = controller.cpus().len().max(1) as f64;
        let load = match self.load {
            LoadKind::Cpu => demand / cpus * 100.0,
            // Without a new figure the last one remains.
            _ => self.traffic_load(at).or(self.load_percent()).unwrap_or_default(),
        };
        let observation = Observation { at, load, performance };
        let decision = controller.observe(&observation);
        self.seen = Some(observation);
        self.controller = Some(controller);
        self.acts += u64::from(decision.is_act());
        tick.notes = self.act(at, &decision.cpus)?;
        tick.notes.extend(self.bring_along(at, &decision.cpus)?);
        tick.decision = Some(decision);
        Ok(tick)
    }

    /// Reads slowly changing measurements.
    fn look_around(&mut self, at: Duration) -> Result<(), SessionError> {
        if let Some(pages) = self.source.pages(at) {
            if let Some(controller) = &mut self.controller {
                controller.set_pages(pages.clone());
            }
            self.pages = pages;
        }
        if let Some(pressure) = self.source.pressure(at) {
            self.pressure = pressure;
            let most = self.cores_max();
            if let Some(controller) = &mut self.controller {
                controller.set_cores_max(most);
            }
        }
        Ok(())
    }

    /// Most cores: the policy's maximum, limited by quota.
    fn cores_max(&self) -> usize {
        let most = self.policy.cores_max.unwrap_or(self.table.len());
        let each = self.cpus_each();
        let filled = self.pressure.quota_cpus.map(|cpus| (cpus / each).ceil().max(1.0) as usize);
        filled.map_or(most, |filled| most.min(filled))
    }

    /// Hardware threads of a core.
    fn cpus_each(&self) -> f64 {
        let cpus: usize = self.table.iter().map(|core| core.cpus.len()).sum();
        cpus as f64 / self.table.len().max(1) as f64
    }

    /// The load from memory traffic.
    fn traffic_load(&mut self, at: Duration) -> Option<f64> {
        let now = self.source.traffic(at)?;
        let (before_at, before) = self.carried.replace((at, now))?;
        now.load(before, at.saturating_sub(before_at).as_secs_f64(), self.load)
    }

    /// Work per second since the last figure.
    fn performance(&mut self, at: Duration, demand: f64) -> Option<f64> {
        match self.source.work(at) {
            WorkReading::CpuTime => Some(demand),
            WorkReading::Unchanged => None,
            WorkReading::Count(count) => {
                let (before_at, before) = self.counted.replace((at, count))?;
                let elapsed = at.saturating_sub(before_at).as_secs_f64();
                (elapsed > 0.0 && count >= before).then(|| (count - before) / elapsed)
            }
        }
    }

    /// The initial number of cores for this many cpus of work, chosen by the mode.
    pub fn first_cores(&self, demand: f64) -> CoreIds {
        let count = self.policy.cores_for(demand, self.cpus_each(), self.offered.len());
        first_cores(&self.table, &self.offered, &self.pages, self.policy.mode, count)
    }

    fn begin(&self, demand: f64) -> Result<CoreController, SessionError> {
        let given = self.first_cores(demand);
        let free = &self.offered - &given;
        let mut controller = CoreController::new(self.table.clone(), &self.policy, &given, &free)?;
        controller.set_pages(self.pages.clone());
        controller.set_cores_max(self.cores_max());
        Ok(controller)
    }

    /// Assigns the cpus if they have changed, or if a search for new threads is due.
    fn act(&mut self, at: Duration, cpus: &CpuSet) -> Result<Vec<String>, SessionError> {
        let Some(hand) = &mut self.hand else { return Ok(Vec::new()) };
        let is_done =
            self.applied.as_ref().is_some_and(|(applied, check)| applied == cpus && at < *check);
        if is_done {
            return Ok(Vec::new());
        }
        let before = thread_cpu_time();
        let applied = hand.actuator.apply(&mut hand.journal, &self.processes, cpus)?;
        let cost = thread_cpu_time().saturating_sub(before);
        self.applied = Some((cpus.clone(), at + CHECK_EVERY.max(cost * CHECK_COST)));
        let told = &mut self.told;
        Ok(applied.notes.into_iter().filter(|note| told.insert(note.clone())).collect())
    }

    /// Updates the DBMS's threads and the pages.
    fn bring_along(&mut self, at: Duration, cpus: &CpuSet) -> Result<Vec<String>, ActuateError> {
        let Some(hand) = &mut self.hand else { return Ok(Vec::new()) };
        let mut notes = Vec::new();
        if let Some(knob) = &mut self.knob {
            notes.extend(knob.follow(&mut hand.journal, cpus.len())?);
        }
        if let Some(mover) = &mut self.mover {
            let node = |cpu| Some(self.table.of_cpu(cpu)?.node);
            let nodes: NodeSet = cpus.iter().filter_map(node).collect();
            notes.extend(mover.follow(&mut hand.journal, at, &self.processes, &nodes)?);
        }
        let told = &mut self.told;
        Ok(notes.into_iter().filter(|note| told.insert(note.clone())).collect())
    }

    /// The state for sharing cores between targets.
    pub fn share_state(&self, priority: i64) -> Option<ShareState> {
        let controller = self.controller.as_ref()?;
        let seen = self.seen.as_ref()?;
        Some(ShareState {
            priority,
            cores_min: self.policy.cores_min,
            given: controller.given(),
            free: controller.free(),
            is_short: controller.is_short(seen),
            pages: self.pages.clone(),
        })
    }

    /// Carries out a sharing decision.
    pub fn share(&mut self, act: &ShareAct) {
        let Some(controller) = &mut self.controller else { return };
        match act {
            ShareAct::Lend(cores) => controller.lend(cores),
            ShareAct::Recall(cores) => controller.recall(cores),
            ShareAct::Yield => controller.yield_core(),
        }
    }

    /// Restores everything; returns failures. The journal is kept if there are any.
    pub fn finish(&mut self) -> Vec<String> {
        let Some(mut hand) = self.hand.take() else { return Vec::new() };
        let source = &mut self.source;
        let has_ended = self.processes.iter().all(|id| source.cpu_time(*id).is_none());
        let knob = self.knob.take().map(|mut knob| knob.restore(has_ended));
        let mut failed = knob.unwrap_or_default();
        failed.extend(hand.actuator.restore());
        if failed.is_empty() {
            failed.extend(hand.journal.finish().err().map(|error| error.to_string()));
        } else {
            let path = hand.journal.path().display();
            failed.push(format!("the journal {path} is kept for `atoll elastic undo`"));
        }
        failed
    }
}

impl Drop for TargetSession {
    fn drop(&mut self) {
        // The journal still has the failed changes.
        let _ = self.finish();
    }
}
