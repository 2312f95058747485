//! Sets up the session of a target: the cores that it may have, how they are given, the journal.

use std::sync::Arc;

use anyhow::Context;
use atoll_elastic::actuate::{
    ActuateError, Actuator, AffinityActuator, FoundJournal, GroupActuator, GroupPlan, Journal,
    JournalDirectory, LivePageCalls, LiveThreads, LiveUnits, PageMover, ThreadCalls, Undone,
    UnitActuator, UnitCalls, undo,
};
use atoll_elastic::adapter::{Adapter, Knob, LiveAdapters, undo_knobs};
use atoll_elastic::mode::{CoreIds, CoreTable};
use atoll_elastic::monitor::{
    ElasticTarget, LiveTarget, LoadKind, MonitorSource, TargetProcesses, WorkKind,
};
use atoll_elastic::session::{Hand, SessionError, TargetSession};
use atoll_process::inspect::{InspectError, ProcessId, identify};
use atoll_sys::Root;
use atoll_topology::{Allowed, CpuSet, Machine};

use super::control::{ActuatorChoice, HandArgs, TargetArgs};
use crate::exit::{CommandError, Exit};
use crate::terminal;

/// The whole machine and its kernel.
pub(super) struct Surroundings {
    pub(super) root: Root,
    pub(super) machine: Machine,
    threads: Arc<LiveThreads>,
    own: ProcessId,
}

impl Surroundings {
    pub(super) fn open() -> Result<Self, CommandError> {
        let root = Root::live();
        // A target may run where this process may not.
        let machine = Machine::discover_at(&root, &Allowed::everything())
            .context("cannot discover this machine")?;
        let own = identify(&root, std::process::id()).map_err(inspect_error)?;
        let threads = Arc::new(LiveThreads::new(root.clone()));
        Ok(Self { root, machine, threads, own })
    }

    /// This process, which writes the journals.
    pub(super) fn own(&self) -> ProcessId {
        self.own
    }

    /// The cpus that the flags name.
    pub(super) fn target(&self, args: &TargetArgs) -> Result<ElasticTarget, CommandError> {
        Ok(match (&args.pid, &args.cgroup, &args.unit) {
            (Some(pid), ..) => ElasticTarget::Process(*pid),
            (_, Some(path), _) => ElasticTarget::Cgroup(path.clone()),
            (.., Some(unit)) => {
                let group = LiveUnits
                    .property(unit, "ControlGroup")
                    .map_err(|error| CommandError::with(Exit::NotHere, error))?;
                if group.is_empty() {
                    let message = format!("{unit} has no control group: it does not run");
                    return Err(CommandError::with(Exit::Statement, message));
                }
                ElasticTarget::Unit { unit: unit.clone(), group }
            }
            _ => {
                return Err(CommandError::with(
                    Exit::Usage,
                    "name a target: --pid, --cgroup or --unit",
                ));
            }
        })
    }

    /// The cpus that the target may use without Atoll, restricted to those the user allows.
    pub(super) fn allowed(
        &self,
        processes: &[ProcessId],
        only: Option<&CpuSet>,
    ) -> Result<CpuSet, CommandError> {
        let mut allowed = CpuSet::new();
        for process in processes {
            let cpus = self.threads.affinity(process.pid).unwrap_or_default();
            allowed = allowed.union(&cpus);
        }
        let there: CpuSet = self.machine.cpus.iter().map(|cpu| cpu.id).collect();
        let may = allowed.intersection(&there);
        let wanted = only.map_or_else(|| may.clone(), |only| only.intersection(&may));
        if wanted.is_empty() {
            let only = only.map(ToString::to_string).unwrap_or_default();
            let message = format!("the target may run on none of cpus {only}; it may on {may}");
            return Err(CommandError::with(Exit::NotHere, message));
        }
        Ok(wanted)
    }

    /// A target and its processes now.
    pub(super) fn open_target(
        &self,
        target: &ElasticTarget,
        work: WorkKind,
    ) -> Result<(LiveTarget, Vec<ProcessId>), CommandError> {
        let mut processes =
            TargetProcesses::open(self.root.clone(), target.clone()).map_err(inspect_error)?;
        let now = processes.now(std::time::Duration::ZERO).map_err(inspect_error)?;
        if now.contains(&self.own) {
            let message = format!("{target} holds this process itself; name one that does not");
            return Err(CommandError::with(Exit::Usage, message));
        }
        let live = LiveTarget::open(&self.root, &self.machine, target.clone(), work);
        Ok((live.map_err(inspect_error)?, now))
    }

    /// The cores of a target.
    pub(super) fn table(&self, allowed: &CpuSet) -> (Arc<CoreTable>, CoreIds) {
        let table = Arc::new(CoreTable::new(&self.machine, allowed));
        let ids = table.ids();
        (table, ids)
    }

    /// How cores are given to a target; None if nothing is to be changed.
    pub(super) fn hand(
        &self,
        args: &HandArgs,
        target: &ElasticTarget,
        name: &str,
        processes: &[ProcessId],
        allowed: &CpuSet,
    ) -> Result<Option<Hand>, CommandError> {
        if args.dry_run {
            return Ok(None);
        }
        let directory = self.journals(&args.journal.path())?;
        let begin = || directory.begin(&self.root, self.own, name).map_err(journal_error);
        if args.actuator != ActuatorChoice::Affinity {
            let mut journal = begin()?;
            match self.group(target, processes, allowed, &mut journal) {
                Ok(actuator) => return Ok(Some(Hand { actuator, journal })),
                Err(error) => {
                    let _ = journal.finish();
                    if args.actuator == ActuatorChoice::Cpuset {
                        return Err(act_error(error));
                    }
                    if args.verbose {
                        terminal::say(format_args!("note: threads are bound one by one: {error}"));
                    }
                }
            }
        }
        let actuator = Actuator::Affinity(AffinityActuator::new(self.threads.clone()));
        Ok(Some(Hand { actuator, journal: begin()? }))
    }

    /// A cpuset that holds the target and leaves it all of its cpus, which shows that it works.
    fn group(
        &self,
        target: &ElasticTarget,
        processes: &[ProcessId],
        allowed: &CpuSet,
        journal: &mut Journal,
    ) -> Result<Actuator, ActuateError> {
        let calls = self.threads.clone();
        let plan = match target {
            ElasticTarget::Unit { unit, .. } => {
                return Ok(Actuator::Unit(UnitActuator::new(Arc::new(LiveUnits), unit)));
            }
            ElasticTarget::Cgroup(path) => GroupPlan::named(&self.root, path)?,
            ElasticTarget::Process(_) => GroupPlan::below(&self.root, processes, self.own)?,
        };
        let mut actuator = Actuator::Group(GroupActuator::new(self.root.clone(), calls, plan));
        match actuator.apply(journal, processes, allowed) {
            Ok(_) => Ok(actuator),
            Err(error) => {
                actuator.restore();
                Err(error)
            }
        }
    }

    /// The directory of the journals, after undoing killed runs.
    pub(super) fn journals(
        &self,
        path: &std::path::Path,
    ) -> Result<JournalDirectory, CommandError> {
        let directory = JournalDirectory::open(path).map_err(journal_error)?;
        for journal in directory.list().map_err(journal_error)? {
            if journal.is_live(&self.root) {
                continue;
            }
            let (undone, is_left) = self.undo(&journal);
            if undone != Undone::default() {
                let target = journal.target();
                terminal::say(format_args!(
                    "note: a run for {target} was killed; it was undone first"
                ));
            }
            for failed in undone.left.into_iter().chain(undone.failed) {
                terminal::say(format_args!("warning: {failed}"));
            }
            if !is_left {
                directory.remove(&journal.name).map_err(journal_error)?;
            }
        }
        Ok(directory)
    }

    /// Undoes the rest of a journal; returns whether some of it remains, so that the journal must be kept.
    pub(super) fn undo(&self, journal: &FoundJournal) -> (Undone, bool) {
        let is_stale = journal.is_stale(&self.root);
        let knobs = undo_knobs(&LiveAdapters, journal, is_stale);
        let mut undone = match is_stale {
            true => Undone::default(),
            false => undo(&self.root, &*self.threads, &LiveUnits, journal),
        };
        undone.knobs = knobs.count;
        undone.failed.extend(knobs.failed);
        (undone, knobs.is_left)
    }

    /// Lets the memory of a session's target follow its cores, if requested.
    pub(super) fn set_mover(&self, session: &mut TargetSession, args: &HandArgs) {
        if args.migrate_memory {
            let nodes = self.machine.nodes.iter().filter(|node| node.memory.0 > 0);
            let all = nodes.map(|node| node.id).collect();
            session.set_mover(PageMover::new(Arc::new(LivePageCalls), all));
        }
    }

    /// Lets a session measure the load, if possible.
    pub(super) fn set_load(
        &self,
        session: &mut TargetSession,
        load: LoadKind,
    ) -> Result<(), CommandError> {
        let traffic = session.monitors().into_iter().find(|it| it.monitor.contains("traffic"));
        match traffic.filter(|it| load.is_traffic() && it.source == MonitorSource::Absent) {
            Some(absent) => Err(CommandError::with(Exit::NotHere, absent.says)),
            None => {
                session.set_load(load);
                Ok(())
            }
        }
    }
}

/// Has the DBMS's own knob follow the cores of a session.
pub(super) fn set_knob(session: &mut TargetSession, dbms: Option<Adapter>) {
    if let Some(adapter) = dbms {
        session.set_knob(Knob::new(adapter, Arc::new(LiveAdapters)));
    }
}

pub(super) fn inspect_error(error: InspectError) -> CommandError {
    CommandError::with(Exit::Statement, error)
}

pub(super) fn journal_error(error: atoll_elastic::actuate::JournalError) -> CommandError {
    CommandError::with(Exit::Own, error)
}

pub(super) fn act_error(error: ActuateError) -> CommandError {
    let exit = match &error {
        ActuateError::Journal(_) => Exit::Own,
        ActuateError::NoGroup { .. } | ActuateError::Unit { .. } => Exit::NotHere,
        _ => Exit::Placement,
    };
    CommandError::with(exit, error)
}

pub(super) fn session_error(error: SessionError) -> CommandError {
    match error {
        SessionError::Policy(error) => CommandError::with(Exit::Usage, error),
        SessionError::Inspect(error) => inspect_error(error),
        SessionError::Actuate(error) => act_error(error),
        error => CommandError::with(Exit::Own, error),
    }
}
