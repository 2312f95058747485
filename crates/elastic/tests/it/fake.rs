//! Fake threads, units and DBMSs, and a journal in a temporary directory.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use atoll_elastic::actuate::{
    ActuateError, FoundJournal, Journal, JournalDirectory, ThreadCalls, ThreadId, UnitCalls,
};
use atoll_elastic::adapter::{Adapter, AdapterCalls, AdapterError, KnobSetting};
use atoll_process::inspect::{ProcessId, identify};
use atoll_sys::{CallError, Root};
use atoll_topology::CpuSet;

pub(crate) fn set(cpus: &str) -> CpuSet {
    CpuSet::parse(cpus).unwrap()
}

pub(crate) fn process(pid: u32) -> ProcessId {
    ProcessId { pid, start: u64::from(pid) * 10 }
}

#[derive(Debug, Default)]
struct Threads {
    /// Process, start and cpus of each thread.
    threads: BTreeMap<u32, (u32, u64, CpuSet)>,
    /// Cpus that are online and in the cpuset; None for all.
    online: Option<CpuSet>,
    refused: BTreeSet<u32>,
    /// Threads that this one creates as soon as it is bound.
    born: BTreeMap<u32, u32>,
}

/// Threads of a fake kernel.
#[derive(Debug, Default)]
pub(crate) struct FakeThreads {
    state: Mutex<Threads>,
}

impl FakeThreads {
    /// A process with these threads, the first of which has its number, all on these cpus.
    pub(crate) fn with(pid: u32, tids: &[u32], cpus: &str) -> Arc<Self> {
        let fake = Arc::new(Self::default());
        for tid in tids {
            fake.add(pid, *tid, cpus);
        }
        fake
    }

    fn change<T>(&self, change: impl FnOnce(&mut Threads) -> T) -> T {
        change(&mut self.state.lock().unwrap())
    }

    pub(crate) fn add(&self, pid: u32, tid: u32, cpus: &str) {
        self.change(|it| it.threads.insert(tid, (pid, u64::from(tid) * 10, set(cpus))));
    }

    pub(crate) fn end(&self, tid: u32) {
        self.change(|it| it.threads.remove(&tid));
    }

    pub(crate) fn set_cpus(&self, tid: u32, cpus: &str) {
        self.change(|it| it.threads.get_mut(&tid).unwrap().2 = set(cpus));
    }

    pub(crate) fn set_online(&self, cpus: &str) {
        self.change(|it| it.online = Some(set(cpus)));
    }

    pub(crate) fn refuse(&self, tid: u32) {
        self.change(|it| it.refused.insert(tid));
    }

    /// A thread that `maker` creates right before it is bound the first time.
    pub(crate) fn bear(&self, maker: u32, tid: u32) {
        self.change(|it| it.born.insert(maker, tid));
    }

    pub(crate) fn cpus(&self, tid: u32) -> String {
        self.change(|it| it.threads[&tid].2.to_string())
    }
}

impl ThreadCalls for FakeThreads {
    fn threads(&self, process: ProcessId) -> Vec<u32> {
        self.change(|it| {
            let threads = it.threads.iter().filter(|(_, thread)| thread.0 == process.pid);
            threads.map(|(tid, _)| *tid).collect()
        })
    }

    fn thread(&self, tid: u32) -> Option<ThreadId> {
        self.change(|it| it.threads.get(&tid).map(|thread| ThreadId { tid, start: thread.1 }))
    }

    fn affinity(&self, tid: u32) -> Result<CpuSet, CallError> {
        let found = self.change(|it| it.threads.get(&tid).map(|thread| thread.2.clone()));
        found.ok_or(CallError { call: "sched_getaffinity", errno: 3 })
    }

    fn bind(&self, tid: u32, cpus: &CpuSet) -> Result<(), CallError> {
        let fail = |errno| Err(CallError { call: "sched_setaffinity", errno });
        self.change(|it| {
            if it.refused.contains(&tid) {
                return fail(1);
            }
            let Some(thread) = it.threads.get(&tid).cloned() else { return fail(3) };
            if let Some(born) = it.born.remove(&tid) {
                it.threads.insert(born, (thread.0, u64::from(born) * 10, thread.2.clone()));
            }
            let there = it.online.as_ref().map_or_else(|| cpus.clone(), |it| it.intersection(cpus));
            if there.is_empty() {
                return fail(22);
            }
            it.threads.get_mut(&tid).unwrap().2 = there;
            Ok(())
        })
    }
}

/// A fake systemd with one unit.
#[derive(Clone, Debug, Default)]
pub(crate) struct FakeUnits {
    cpus: Arc<Mutex<String>>,
}

impl FakeUnits {
    pub(crate) fn set(&self, cpus: &str) {
        *self.cpus.lock().unwrap() = cpus.to_owned();
    }

    pub(crate) fn cpus(&self) -> String {
        self.cpus.lock().unwrap().clone()
    }
}

impl UnitCalls for FakeUnits {
    fn property(&self, _unit: &str, _name: &str) -> Result<String, ActuateError> {
        Ok(self.cpus())
    }

    fn set_cpus(&self, _unit: &str, cpus: &str) -> Result<(), ActuateError> {
        self.set(&cpus.replace(',', " "));
        Ok(())
    }
}

/// A fake DBMS with the settings `a` and `b`.
#[derive(Debug, Default)]
pub(crate) struct FakeDbms {
    state: Mutex<DbmsState>,
}

#[derive(Debug, Default)]
struct DbmsState {
    values: BTreeMap<String, Option<String>>,
    is_down: bool,
    asked: usize,
}

impl FakeDbms {
    pub(crate) fn with(values: &[(&str, Option<&str>)]) -> Arc<Self> {
        let fake = Self::default();
        let value =
            |(name, value): &(&str, Option<&str>)| ((*name).to_owned(), value.map(str::to_owned));
        fake.state.lock().unwrap().values = values.iter().map(value).collect();
        Arc::new(fake)
    }

    pub(crate) fn set_down(&self, is_down: bool) {
        self.state.lock().unwrap().is_down = is_down;
    }

    /// How often its settings were read.
    pub(crate) fn asked(&self) -> usize {
        self.state.lock().unwrap().asked
    }

    pub(crate) fn value(&self, name: &str) -> Option<String> {
        self.state.lock().unwrap().values[name].clone()
    }

    fn state(&self) -> Result<std::sync::MutexGuard<'_, DbmsState>, AdapterError> {
        let state = self.state.lock().unwrap();
        match state.is_down {
            true => Err(AdapterError { adapter: "fake", reason: "connection refused".to_owned() }),
            false => Ok(state),
        }
    }
}

impl AdapterCalls for FakeDbms {
    fn settings(&self, _: &Adapter) -> Result<Vec<KnobSetting>, AdapterError> {
        self.state.lock().unwrap().asked += 1;
        let setting = |(name, value): (&String, &Option<String>)| KnobSetting {
            name: name.clone(),
            value: value.clone(),
        };
        Ok(self.state()?.values.iter().map(setting).collect())
    }

    fn set(&self, _: &Adapter, settings: &[KnobSetting]) -> Result<(), AdapterError> {
        let mut state = self.state()?;
        for KnobSetting { name, value } in settings {
            state.values.insert(name.clone(), value.clone());
        }
        Ok(())
    }

    fn work(&self, _: &Adapter) -> Result<f64, AdapterError> {
        Ok(0.0)
    }
}

/// A temporary directory of journals.
pub(crate) struct Journals {
    _home: tempfile::TempDir,
    pub(crate) directory: JournalDirectory,
}

impl Journals {
    pub(crate) fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        let directory = JournalDirectory::open(&home.path().join("journals")).unwrap();
        Self { _home: home, directory }
    }

    pub(crate) fn begin(&self) -> Journal {
        let own = identify(&Root::live(), std::process::id()).unwrap();
        self.directory.begin(&Root::live(), own, "test").unwrap()
    }

    pub(crate) fn only(&self) -> FoundJournal {
        let mut found = self.directory.list().unwrap();
        assert_eq!(found.len(), 1);
        found.remove(0)
    }
}
