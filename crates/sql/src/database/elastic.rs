//! `SET atoll.cores = 'elastic'`: the common workers get as many cores as their load needs, near the memory that they
//! read, by the Petri net of `atoll_elastic`.

use std::convert::Infallible;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Weak};
use std::thread;
use std::time::{Duration, Instant};

use atoll_elastic::decide::CorePolicy;
use atoll_elastic::mode::PageQueue;
use atoll_elastic::monitor::{
    MonitorSource, MonitorState, Pressure, TargetSource, Traffic, WorkReading,
};
use atoll_elastic::session::TargetSession;
use atoll_process::inspect::{InspectError, ProcessId};
use atoll_runtime::{ByteMatrix, Runtime};
use atoll_sys::thread_cpu_time_of;
use atoll_topology::NodeId;
use datafusion::common::{Result, exec_datafusion_err};
use parking_lot::Mutex;

use super::pools::{PoolsState, Workers};
use atoll_sql_common::settings::CoresSetting;

/// Time between two checks: a statement that needs more cores gets one after three.
const INTERVAL: Duration = Duration::from_millis(20);
/// How often the bytes read are queried.
const PAGES_EVERY: Duration = Duration::from_millis(500);
/// The size of a page; only the proportions of the nodes matter.
const PAGE_BYTES: u64 = 4096;

/// The thread that adds and removes cores, until this is dropped.
#[derive(Debug)]
pub(super) struct ElasticCores {
    _until_dropped: Sender<Infallible>,
}

impl ElasticCores {
    /// Follows the common workers.
    pub(super) fn start(state: Weak<Mutex<PoolsState>>) -> Result<Self> {
        let (sender, stopped) = channel::<Infallible>();
        let follow = move || {
            let (begun, mut cores) = (Instant::now(), CoreFollower::new(state, own_workers));
            while stopped.recv_timeout(INTERVAL) == Err(RecvTimeoutError::Timeout)
                && cores.look(begun.elapsed())
            {}
        };
        let thread = thread::Builder::new().name("atoll-elastic".to_owned()).spawn(follow);
        thread.map_err(|error| {
            exec_datafusion_err!("cannot start the thread for elastic cores: {error}")
        })?;
        Ok(Self { _until_dropped: sender })
    }
}

/// Makes the source of measurements of the workers.
type Source = fn(&Runtime) -> Box<dyn TargetSource>;

/// Observes the common workers, decides, and confines them.
struct CoreFollower {
    state: Weak<Mutex<PoolsState>>,
    source: Source,
    followed: Option<(Workers, TargetSession)>,
}

impl CoreFollower {
    fn new(state: Weak<Mutex<PoolsState>>, source: Source) -> Self {
        Self { state, source, followed: None }
    }

    /// One check; whether to continue.
    fn look(&mut self, at: Duration) -> bool {
        let Some(state) = self.state.upgrade() else { return false };
        let common = state.lock().common.clone();
        let looked = self
            .session(&common)
            .and_then(|session| session.tick(at).map_err(|error| exec_datafusion_err!("{error}")));
        let mut state = state.lock();
        // Another session may have asked for other cores, or made a pool.
        if state.cores != CoresSetting::Elastic {
            return false;
        }
        if !state.common.is(&common) {
            return true;
        }
        let decided = looked.and_then(|tick| {
            if let Some(decision) = tick.decision
                && decision.cpus != common.runtime().cpus_given()
            {
                state.confine(&decision.cpus)?;
                state.why = Some(decision.rule.to_owned());
            }
            Ok(())
        });
        if let Err(error) = &decided {
            state.give_all(error);
        }
        decided.is_ok()
    }

    /// The session of these workers; a new one if the workers changed.
    fn session(&mut self, common: &Workers) -> Result<&mut TargetSession> {
        let followed = match self.followed.take() {
            Some(followed) if followed.0.is(common) => followed,
            _ => {
                let table = Arc::new(common.core_table());
                let (offered, source) = (table.ids(), (self.source)(common.runtime()));
                let policy = CorePolicy::default();
                let session = TargetSession::new("atoll", policy, table, offered, source, None);
                (common.clone(), session.map_err(|error| exec_datafusion_err!("{error}"))?)
            }
        };
        Ok(&mut self.followed.insert(followed).1)
    }
}

/// The workers of this process, thread by thread.
struct OwnWorkers {
    runtime: Runtime,
    read: ByteMatrix,
    pages_at: Duration,
}

fn own_workers(runtime: &Runtime) -> Box<dyn TargetSource> {
    let read = runtime.traffic();
    Box::new(OwnWorkers { runtime: runtime.clone(), read, pages_at: Duration::ZERO })
}

impl TargetSource for OwnWorkers {
    /// Their threads, each as a process.
    fn processes(&mut self, _: Duration) -> Result<Vec<ProcessId>, InspectError> {
        let threads = self.runtime.threads().into_iter();
        Ok(threads.map(|pid| ProcessId { pid, start: 0 }).collect())
    }

    fn cpu_time(&mut self, thread: ProcessId) -> Option<Duration> {
        thread_cpu_time_of(thread.pid).ok()
    }

    fn work(&mut self, _: Duration) -> WorkReading {
        WorkReading::CpuTime
    }

    /// The bytes read since the last call, by home.
    fn pages(&mut self, at: Duration) -> Option<PageQueue> {
        if at < self.pages_at {
            return None;
        }
        self.pages_at = at + PAGES_EVERY;
        let now = self.runtime.traffic();
        let before = std::mem::replace(&mut self.read, now.clone());
        let of = |matrix: &ByteMatrix, home: NodeId| -> u64 {
            now.nodes().iter().map(|reader| matrix.get(*reader, home).0).sum()
        };
        let pages = |home: &NodeId| {
            let bytes = of(&now, *home).saturating_sub(of(&before, *home));
            (*home, bytes.div_ceil(PAGE_BYTES))
        };
        Some(PageQueue::of_nodes(now.nodes().iter().map(pages))).filter(|pages| pages.total() > 0)
    }

    fn pressure(&mut self, _: Duration) -> Option<Pressure> {
        None
    }

    fn traffic(&mut self, _: Duration) -> Option<Traffic> {
        None
    }

    fn states(&self) -> Vec<MonitorState> {
        let state =
            |monitor, source, says: &str| MonitorState { monitor, source, says: says.to_owned() };
        vec![
            state("cpu load", MonitorSource::Real, "the cpu clock of each worker"),
            state("performance", MonitorSource::Fallback, "time used on cpus"),
            state("pages accessed", MonitorSource::Real, "bytes that scans read, by home"),
        ]
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use atoll_runtime::RuntimeOptions;
    use atoll_testkit::kernel::SimulatedKernel;
    use atoll_testkit::machines;

    use super::*;
    use crate::database::{Database, DatabaseOptions};

    /// Hundredths of a cpu that all workers together use.
    static DEMAND: AtomicU64 = AtomicU64::new(0);

    /// Workers that use as much time as the test says, all of it in one thread.
    struct ToldWorkers {
        used: Duration,
        at: Duration,
    }

    impl TargetSource for ToldWorkers {
        fn processes(&mut self, at: Duration) -> Result<Vec<ProcessId>, InspectError> {
            let cpus = DEMAND.load(Ordering::Relaxed) as f64 / 100.0;
            self.used += (at - std::mem::replace(&mut self.at, at)).mul_f64(cpus);
            Ok(vec![ProcessId { pid: 1, start: 0 }])
        }

        fn cpu_time(&mut self, _: ProcessId) -> Option<Duration> {
            Some(self.used)
        }

        fn work(&mut self, _: Duration) -> WorkReading {
            WorkReading::CpuTime
        }

        fn pages(&mut self, _: Duration) -> Option<PageQueue> {
            None
        }

        fn pressure(&mut self, _: Duration) -> Option<Pressure> {
            None
        }

        fn traffic(&mut self, _: Duration) -> Option<Traffic> {
            None
        }

        fn states(&self) -> Vec<MonitorState> {
            Vec::new()
        }
    }

    fn told(_: &Runtime) -> Box<dyn TargetSource> {
        Box::new(ToldWorkers { used: Duration::ZERO, at: Duration::ZERO })
    }

    fn four_nodes() -> Database {
        let machine = Arc::new(machines::four_nodes());
        let kernel = Arc::new(SimulatedKernel::new(Arc::clone(&machine)));
        let runtime = Runtime::start(machine, kernel, RuntimeOptions::default()).unwrap();
        Database::start(runtime, DatabaseOptions::default()).unwrap()
    }

    #[test]
    fn cores_follow_the_load_and_the_pools_and_one_is_always_left() {
        let database = four_nodes();
        let pools = database.pools();
        let there = pools.reports()[0].cores;
        pools.state().lock().cores = CoresSetting::Elastic;
        let mut follower = CoreFollower::new(Arc::downgrade(pools.state()), told);
        let mut at = Duration::ZERO;
        let mut cores_under = |hundredths: u64| {
            DEMAND.store(hundredths, Ordering::Relaxed);
            for _ in 0..400 {
                at += INTERVAL;
                assert!(follower.look(at), "{at:?}");
                let report = &pools.reports()[0];
                assert!((1..=there).contains(&report.cores), "{report:?}");
            }
            pools.reports()[0].cores
        };
        assert_eq!(cores_under(0), 1);
        let busy = cores_under(300);
        assert!((4..=6).contains(&busy), "{busy} cores for three cpus' worth of work");
        assert!(pools.reports()[0].why.is_some());
        assert_eq!(cores_under(0), 1);
        // The common workers changed: the new ones are followed as well.
        pools.create("reports", machines::four_nodes().nodes[1].cpus.clone()).unwrap();
        assert_eq!(cores_under(0), 1);
        let report = &pools.reports()[0];
        assert!(!report.nodes.contains(NodeId(1)), "{report:?}");
        pools.remove("reports").unwrap();
        assert_eq!(cores_under(0), 1);
        // A setting of all cores ends it.
        pools.set_cores(CoresSetting::All).unwrap();
        assert!(!follower.look(Duration::from_secs(3600)));
        assert_eq!(pools.reports()[0].cores, there);
    }

    #[test]
    fn workers_have_clocks_and_what_they_read_has_homes() {
        let database = four_nodes();
        let mut source = own_workers(database.runtime());
        let threads = source.processes(Duration::ZERO).unwrap();
        assert!(threads.len() >= database.runtime().worker_count());
        assert!(threads.iter().all(|thread| source.cpu_time(*thread).is_some()));
        assert!(source.pages(Duration::ZERO).is_none());
    }
}
