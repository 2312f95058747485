//! The whole loop over a modelled system: a load on fake threads, with its clock and pages.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use atoll_elastic::actuate::{Actuator, AffinityActuator};
use atoll_elastic::decide::CorePolicy;
use atoll_elastic::mode::{CoreTable, Mode, PageQueue};
use atoll_elastic::monitor::{
    LoadKind, MonitorState, Pressure, TargetSource, Traffic, WorkReading,
};
use atoll_elastic::session::{Grain, Hand, SessionError, TargetSession, first_shares, shares};
use atoll_process::inspect::{InspectError, ProcessId};
use atoll_testkit::machines;
use atoll_topology::{CpuSet, NodeId};

use crate::fake::{FakeThreads, Journals, process, set};

const STEP: Duration = Duration::from_millis(100);

/// A server with a thread for each cpu that it would use.
#[derive(Debug)]
struct Model {
    threads: Arc<FakeThreads>,
    demand: f64,
    pages: BTreeMap<NodeId, u64>,
    pressure: Pressure,
    is_there: bool,
    used: Duration,
    at: Duration,
}

/// The model as the session sees it.
#[derive(Clone, Debug)]
struct ModelledTarget {
    pid: u32,
    model: Arc<Mutex<Model>>,
}

impl ModelledTarget {
    fn new(pid: u32, demand: f64, pages: &[(u32, u64)]) -> Self {
        let threads = FakeThreads::with(pid, &[pid, pid + 1, pid + 2], "0-15");
        let pages = pages.iter().map(|(node, pages)| (NodeId(*node), *pages)).collect();
        let model = Model {
            threads,
            demand,
            pages,
            pressure: Pressure::default(),
            is_there: true,
            used: Duration::ZERO,
            at: Duration::ZERO,
        };
        Self { pid, model: Arc::new(Mutex::new(model)) }
    }

    fn change<T>(&self, change: impl FnOnce(&mut Model) -> T) -> T {
        change(&mut self.model.lock().unwrap())
    }

    fn threads(&self) -> Arc<FakeThreads> {
        self.change(|model| model.threads.clone())
    }

    fn cpus(&self) -> CpuSet {
        set(&self.threads().cpus(self.pid))
    }
}

impl TargetSource for ModelledTarget {
    fn processes(&mut self, at: Duration) -> Result<Vec<ProcessId>, InspectError> {
        let cpus = self.cpus().len() as f64;
        self.change(|model| {
            let elapsed = at.saturating_sub(model.at);
            model.at = at;
            model.used += elapsed.mul_f64(model.demand.min(cpus));
        });
        let is_there = self.change(|model| model.is_there);
        Ok(if is_there { vec![process(self.pid)] } else { Vec::new() })
    }

    fn cpu_time(&mut self, _process: ProcessId) -> Option<Duration> {
        Some(self.change(|model| model.used))
    }

    fn work(&mut self, _at: Duration) -> WorkReading {
        WorkReading::CpuTime
    }

    fn pages(&mut self, _at: Duration) -> Option<PageQueue> {
        Some(PageQueue::of_nodes(self.change(|model| model.pages.clone())))
    }

    fn pressure(&mut self, _at: Duration) -> Option<Pressure> {
        Some(self.change(|model| model.pressure))
    }

    fn traffic(&mut self, at: Duration) -> Option<Traffic> {
        // Half of it is remote.
        let total = at.as_millis() as u64 * 1000;
        Some(Traffic { total, local: total / 2 })
    }

    fn states(&self) -> Vec<MonitorState> {
        Vec::new()
    }
}

fn table() -> Arc<CoreTable> {
    let machine = machines::four_nodes();
    let all = machine.cpus.iter().map(|cpu| cpu.id).collect();
    Arc::new(CoreTable::new(&machine, &all))
}

fn session(
    journals: &Journals,
    target: &ModelledTarget,
    policy: CorePolicy,
    offered: &atoll_elastic::mode::CoreIds,
) -> TargetSession {
    let actuator = Actuator::Affinity(AffinityActuator::new(target.threads()));
    let hand = Hand { actuator, journal: journals.begin() };
    let source = Box::new(target.clone());
    TargetSession::new("target", policy, table(), offered.clone(), source, Some(hand)).unwrap()
}

/// Looks this often; time continues.
fn looks(session: &mut TargetSession, from: u32, count: u32) -> u32 {
    for i in from..from + count {
        session.tick(STEP * i).unwrap();
    }
    from + count
}

#[test]
fn a_load_that_rises_and_falls_is_followed_on_the_node_of_its_data() {
    let journals = Journals::new();
    let target = ModelledTarget::new(100, 0.3, &[(2, 5000), (0, 100)]);
    let mut session = session(&journals, &target, CorePolicy::default(), &table().ids());
    let at = looks(&mut session, 0, 5);
    assert_eq!(target.cpus().to_string(), "8");
    target.change(|model| model.demand = 2.5);
    // Reacts within a second: ten looks.
    let at = looks(&mut session, at, 10);
    assert!(target.cpus().len() > 1);
    let at = looks(&mut session, at, 100);
    assert_eq!(target.cpus().to_string(), "8-11");
    target.change(|model| model.demand = 0.1);
    looks(&mut session, at, 100);
    assert_eq!(target.cpus().len(), 1);
    assert!(session.finish().is_empty());
    assert_eq!(target.cpus().to_string(), "0-15");
    assert!(journals.directory.list().unwrap().is_empty());
}

#[test]
fn a_target_gets_as_many_cores_as_its_load_needs_at_once() {
    let journals = Journals::new();
    let target = ModelledTarget::new(100, 6.0, &[]);
    let policy = CorePolicy { mode: Mode::Sparse, ..CorePolicy::default() };
    let mut session = session(&journals, &target, policy, &table().ids());
    looks(&mut session, 0, 2);
    assert_eq!(target.cpus().to_string(), "0-2,4-5,8-9,12-13");
}

#[test]
fn the_load_may_be_that_of_the_interconnect() {
    let journals = Journals::new();
    let target = ModelledTarget::new(100, 2.0, &[]);
    let mut session = session(&journals, &target, CorePolicy::default(), &table().ids());
    session.set_load(LoadKind::Interconnect);
    looks(&mut session, 0, 10);
    assert_eq!(session.load_percent(), Some(50.0));
}

#[test]
fn a_quota_bounds_the_cores() {
    let journals = Journals::new();
    let target = ModelledTarget::new(100, 9.0, &[]);
    target.change(|model| model.pressure.quota_cpus = Some(2.5));
    let mut session = session(&journals, &target, CorePolicy::default(), &table().ids());
    looks(&mut session, 0, 60);
    assert_eq!(target.cpus().len(), 3);
}

#[test]
fn an_ended_target_is_reported_and_a_failing_one_is_restored() {
    let journals = Journals::new();
    let target = ModelledTarget::new(100, 1.0, &[]);
    let mut session = session(&journals, &target, CorePolicy::default(), &table().ids());
    looks(&mut session, 0, 5);
    target.threads().refuse(101);
    target.change(|model| model.demand = 9.0);
    let error = (5..30).find_map(|i| session.tick(STEP * i).err()).unwrap();
    assert!(matches!(error, SessionError::Actuate(_)), "{error}");
    let failed = session.finish();
    assert!(failed[0].contains("thread 101 still runs on cpus"), "{failed:?}");
    assert!(failed.last().unwrap().contains("is kept for `atoll elastic undo`"));
    assert_eq!(target.cpus().to_string(), "0-15");
    let ended = ModelledTarget::new(200, 1.0, &[]);
    ended.change(|model| model.is_there = false);
    let mut session = self::session(&journals, &ended, CorePolicy::default(), &table().ids());
    assert!(session.tick(STEP).unwrap().is_ended);
}

#[test]
fn two_targets_have_disjoint_nodes_and_the_overloaded_one_gets_what_the_other_leaves() {
    let (journals, table) = (Journals::new(), table());
    let oltp = ModelledTarget::new(100, 1.0, &[(1, 500)]);
    let olap = ModelledTarget::new(200, 20.0, &[(1, 900), (3, 800)]);
    let pages =
        |target: &ModelledTarget| PageQueue::of_nodes(target.change(|model| model.pages.clone()));
    let grain = Grain::for_targets(&table, 2);
    let wanted = [(10, 1, pages(&oltp)), (1, 1, pages(&olap))];
    let first = first_shares(&table, grain, &wanted).unwrap();
    let mut sessions = [
        (session(&journals, &oltp, CorePolicy::default(), &first[0]), 10),
        (session(&journals, &olap, CorePolicy::default(), &first[1]), 1),
    ];
    let mut turns = |from: u32, count: u32| {
        for i in from..from + count {
            for (session, _) in &mut sessions {
                session.tick(STEP * i).unwrap();
            }
            let states: Option<Vec<_>> =
                sessions.iter().map(|(session, priority)| session.share_state(*priority)).collect();
            for (target, act) in shares(&table, grain, &states.unwrap_or_default()) {
                sessions[target].0.share(&act);
            }
            let both = oltp.cpus().intersection(&olap.cpus());
            assert!(i < 2 || both.is_empty(), "both on {both}");
        }
    };
    turns(0, 300);
    assert_eq!(oltp.cpus().to_string(), "4-5");
    assert_eq!(olap.cpus().to_string(), "0-3,8-15");
    // The target of higher priority needs more now: the other yields a node.
    oltp.change(|model| model.demand = 5.0);
    turns(300, 300);
    assert_eq!((oltp.cpus().len(), olap.cpus().len()), (8, 8));
}
