//! Resources of every primitive: workers, memory, a cancel token, and tuning.

use std::sync::Arc;

use atoll_placement::Arena;
use atoll_runtime::{CancelToken, Runtime, StepOutcome, StepReport, Task, TaskContext, WorkerId};
use atoll_topology::{Knowledge, NodeId};

use crate::{PrimitiveError, Tuning};

/// Work of one task of a step.
pub type TaskFn<T> = Box<dyn FnOnce(&TaskContext) -> Result<T, PrimitiveError> + Send>;

/// Workers, memory (with its budget), a cancel token, and tuning. Clones share them.
#[derive(Clone, Debug)]
pub struct Context {
    runtime: Runtime,
    arena: Arena,
    cancel: CancelToken,
    tuning: Arc<Tuning>,
    knowledge: Arc<Knowledge>,
}

impl Context {
    /// A context over these workers and this memory with default tuning and a new cancel token. It knows the machine's
    /// topology but no measurements.
    pub fn new(runtime: Runtime, arena: Arena) -> Self {
        let knowledge = Arc::new(Knowledge::from_machine(runtime.machine().as_ref().clone()));
        Self { runtime, arena, cancel: CancelToken::new(), tuning: Arc::default(), knowledge }
    }

    /// The same with measurements of the machine, which guide the choice of variants.
    pub fn with_knowledge(self, knowledge: Arc<Knowledge>) -> Self {
        Self { knowledge, ..self }
    }

    /// The same with this tuning.
    pub fn with_tuning(self, tuning: Tuning) -> Self {
        Self { tuning: Arc::new(tuning), ..self }
    }

    /// The same with this cancel token.
    pub fn with_cancel(self, cancel: CancelToken) -> Self {
        Self { cancel, ..self }
    }

    /// The workers.
    pub fn runtime(&self) -> &Runtime {
        &self.runtime
    }

    /// The memory.
    pub fn arena(&self) -> &Arena {
        &self.arena
    }

    /// The token that cancels primitives in this context.
    pub fn cancel(&self) -> &CancelToken {
        &self.cancel
    }

    /// The tuning.
    pub fn tuning(&self) -> &Tuning {
        &self.tuning
    }

    /// The machine and its measurements.
    pub fn knowledge(&self) -> &Knowledge {
        &self.knowledge
    }

    /// Runs one task on each worker, and waits for all; results by worker.
    pub async fn on_workers<T: Send + 'static>(
        &self,
        step: &str,
        task: impl Fn(WorkerId, &TaskContext) -> Result<T, PrimitiveError> + Send + Sync + 'static,
    ) -> Result<(Vec<T>, StepReport), PrimitiveError> {
        let task = Arc::new(task);
        let tasks = (0..self.runtime.worker_count() as u32).map(|worker| {
            let task = Arc::clone(&task);
            let worker = WorkerId(worker);
            Task::on_worker(worker, async move |context| task(worker, &context))
        });
        self.finish(self.runtime.step(step, tasks.collect())).await
    }

    /// Runs tasks on their nodes, any worker of the node taking the next one; tasks without a node go to the nodes in
    /// turn. Results are in the order of the tasks.
    pub async fn on_nodes<T: Send + 'static>(
        &self,
        step: &str,
        tasks: Vec<(Option<NodeId>, TaskFn<T>)>,
    ) -> Result<(Vec<T>, StepReport), PrimitiveError> {
        let pools = self.runtime.pools();
        let tasks = tasks.into_iter().enumerate().map(|(at, (node, task))| {
            let node = node.unwrap_or_else(|| pools[at % pools.len()].node());
            Task::on_node(node, async move |context: TaskContext| task(&context))
        });
        self.finish(self.runtime.step(step, tasks.collect())).await
    }

    async fn finish<T: Send + 'static>(
        &self,
        step: atoll_runtime::Step<T, PrimitiveError>,
    ) -> Result<(Vec<T>, StepReport), PrimitiveError> {
        let StepOutcome { result, report } = step.cancel(&self.cancel).run().await;
        Ok((result?, report))
    }
}
