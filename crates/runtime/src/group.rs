//! A group: the workers of one domain, as one tokio runtime.
//!
//! A tokio runtime's core structures are allocated by the thread that builds it, and a new thread
//! inherits its parent's cpus: so each runtime is built by a thread that has already bound itself to the
//! group's cpus, and its workers are in place before their first allocation.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

use atoll_placement::Kernel;
use atoll_sys::gettid;
use atoll_topology::{CpuSet, DomainId, NodeId};

use crate::error::panic_message;
use crate::layout::GroupPlan;
use crate::reach::GroupReach;
use crate::seat::WorkerSeat;
use crate::{Binding, RuntimeError, Worker, WorkerId};

/// How long a thread that blocks (reads a file, plans a statement) waits for the next such work before it
/// ends. When one ends, the allocator returns memory to the kernel that has been free for a second, so
/// an idle process becomes small.
const BLOCKING_WAIT: Duration = Duration::from_secs(2);

/// How long a started thread may take to report: a thread that has not run for this long never will.
const REPORT_WAIT: Duration = Duration::from_secs(60);

/// The workers of one domain. Tasks spawned on its handle stay on its threads.
#[derive(Debug)]
pub struct WorkerGroup {
    node: NodeId,
    domain: DomainId,
    cpus: CpuSet,
    builder: Binding,
    workers: Vec<Worker>,
    reach: Arc<GroupReach>,
    threads: Threads,
}

impl WorkerGroup {
    /// Node of its pool.
    pub fn node(&self) -> NodeId {
        self.node
    }

    /// Its domain.
    pub fn domain(&self) -> DomainId {
        self.domain
    }

    /// Cpus of the domain.
    pub fn cpus(&self) -> &CpuSet {
        &self.cpus
    }

    /// Its workers, ordered by number.
    pub fn workers(&self) -> &[Worker] {
        &self.workers
    }

    /// Binding of the thread that built the group: the home of tokio's own structures.
    pub fn builder(&self) -> &Binding {
        &self.builder
    }

    /// Where its threads may run now.
    pub(crate) fn reach(&self) -> &GroupReach {
        &self.reach
    }

    /// tokio's handle to its threads.
    pub fn handle(&self) -> &tokio::runtime::Handle {
        &self.threads.handle
    }
}

/// A tokio runtime that shuts down without waiting for its threads, because it may be dropped on one of
/// them or inside another runtime, where waiting is a panic.
#[derive(Debug)]
struct Threads {
    handle: tokio::runtime::Handle,
    runtime: Option<tokio::runtime::Runtime>,
}

impl Drop for Threads {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// Everything needed to start a group.
pub(crate) struct GroupStart<'a> {
    /// The runtime's number in this process.
    pub(crate) runtime: u64,
    /// Position of the group in the runtime.
    pub(crate) group: usize,
    /// Number of its first worker.
    pub(crate) first: WorkerId,
    /// The planned group.
    pub(crate) plan: GroupPlan,
    /// First part of the threads' names.
    pub(crate) name: &'a str,
    /// Stack size of each thread in bytes; tokio's default if `None`.
    pub(crate) stack_bytes: Option<usize>,
    /// Binds the threads.
    pub(crate) kernel: Arc<dyn Kernel>,
}

impl GroupStart<'_> {
    /// Starts the threads and waits until each has bound itself and reported the result.
    pub(crate) fn start(self) -> Result<WorkerGroup, RuntimeError> {
        let (told, reports) = channel();
        let reach = Arc::new(GroupReach::new(self.plan.cpus.clone(), self.kernel.clone()));
        let (builder, threads) = self.build(&reach, told)?;
        let workers = self.collect(&reports)?;
        let GroupPlan { node, domain, cpus, .. } = self.plan;
        Ok(WorkerGroup { node, domain, cpus, builder, workers, reach, threads })
    }

    fn build(
        &self,
        reach: &Arc<GroupReach>,
        told: Sender<Worker>,
    ) -> Result<(Binding, Threads), RuntimeError> {
        let name = format!("{}-n{}d{}", self.name, self.plan.node, self.plan.domain);
        let (workers, stack_bytes) = (self.plan.seats.len(), self.stack_bytes);
        let (kernel, cpus) = (self.kernel.clone(), self.plan.cpus.clone());
        let hooks = Arc::new(self.hooks(Arc::clone(reach), told));
        let thread = thread::Builder::new().name(name.clone()).spawn(move || {
            let binding = Binding::achieve(&*kernel, &cpus);
            let (parking, stopping) = (hooks.clone(), hooks.clone());
            let mut builder = tokio::runtime::Builder::new_multi_thread();
            if let Some(bytes) = stack_bytes {
                builder.thread_stack_size(bytes);
            }
            let runtime = builder
                .worker_threads(workers)
                .thread_name(name)
                .thread_keep_alive(BLOCKING_WAIT)
                .on_thread_start(move || hooks.start())
                .on_thread_park(move || parking.park())
                .on_thread_stop(move || stopping.reach.leave())
                .enable_all()
                .build();
            (binding, runtime)
        });
        let built = thread.map_err(|error| self.failed(error))?.join();
        // tokio panics where the operating system refuses a worker's thread.
        let (binding, runtime) = built.map_err(|panic| self.failed(panic_message(&*panic)))?;
        let runtime = runtime.map_err(|error| self.failed(error))?;
        Ok((binding, Threads { handle: runtime.handle().clone(), runtime: Some(runtime) }))
    }

    fn hooks(&self, reach: Arc<GroupReach>, told: Sender<Worker>) -> ThreadHooks {
        ThreadHooks {
            runtime: self.runtime,
            group: self.group,
            first: self.first,
            plan: self.plan.clone(),
            reach,
            seated: AtomicUsize::new(0),
            told,
        }
    }

    fn collect(&self, reports: &Receiver<Worker>) -> Result<Vec<Worker>, RuntimeError> {
        let mut workers = Vec::with_capacity(self.plan.seats.len());
        for _ in &self.plan.seats {
            workers.push(reports.recv_timeout(REPORT_WAIT).map_err(|_| {
                self.failed(format!("{} of them never ran", self.plan.seats.len() - workers.len()))
            })?);
        }
        workers.sort_by_key(|worker| worker.id);
        Ok(workers)
    }

    fn failed(&self, reason: impl ToString) -> RuntimeError {
        RuntimeError::Start {
            node: self.plan.node,
            domain: self.plan.domain,
            workers: self.plan.seats.len(),
            reason: reason.to_string(),
        }
    }
}

/// The hooks that the threads of a group run first.
///
/// tokio starts workers and blocking threads alike, and decides later which of them runs a worker's
/// loop; only a worker parks. So every thread binds itself when it starts, and the first n
/// to park, which cannot get work before [`GroupStart::start`] has heard of them, are the n
/// workers.
struct ThreadHooks {
    runtime: u64,
    group: usize,
    first: WorkerId,
    plan: GroupPlan,
    reach: Arc<GroupReach>,
    seated: AtomicUsize,
    told: Sender<Worker>,
}

impl ThreadHooks {
    fn start(&self) {
        let binding = self.reach.enter(&self.plan.cpus);
        self.sit(None, &binding);
    }

    fn park(&self) {
        let seat = WorkerSeat::here(self.runtime);
        if seat.is_some_and(|seat| seat.worker.is_none()) {
            let place = self.seated.fetch_add(1, Ordering::Relaxed);
            if let Some(cpus) = self.plan.seats.get(place) {
                self.seat(WorkerId(self.first.0 + place as u32), cpus);
            }
        }
    }

    fn seat(&self, id: WorkerId, cpus: &CpuSet) {
        let binding = self.reach.enter(cpus);
        self.sit(Some(id), &binding);
        let (node, domain, cpus) = (self.plan.node, self.plan.domain, cpus.clone());
        let thread = gettid().cast_unsigned();
        // The receiver is gone when the start has failed at another worker.
        let _ = self.told.send(Worker { id, node, domain, cpus, thread, binding });
    }

    fn sit(&self, worker: Option<WorkerId>, binding: &Binding) {
        let bound = binding.is_bound();
        WorkerSeat { runtime: self.runtime, group: self.group, worker, bound }.take();
    }
}
