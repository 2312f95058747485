//! What every primitive is given: workers, memory, a cancel token, and what is tuned.

use std::sync::Arc;

use atoll_placement::Arena;
use atoll_runtime::{CancelToken, Runtime, StepOutcome, StepReport, Task, TaskContext, WorkerId};
use atoll_topology::{Knowledge, NodeId};

use crate::{PrimitiveError, Tuning};

/// Work of one task of a step.
pub type TaskFn<T> = Box<dyn FnOnce(&TaskContext) -> Result<T, PrimitiveError> + Send>;

/// Workers, memory (with its budget), a cancel token, and what is tuned. Clones share them.
#[derive(Clone, Debug)]
pub struct Context {
    runtime: Runtime,
    arena: Arena,
    cancel: CancelToken,
    tuning: Arc<Tuning>,
    knowledge: Arc<Knowledge>,
}

impl Context {
    /// A context over these workers and this memory, not tuned, with a cancel token of its own. Of the
    /// machine it knows what it is made of, and nothing that was measured.
    pub fn new(runtime: Runtime, arena: Arena) -> Self {
        let knowledge = Arc::new(Knowledge::of(runtime.machine().as_ref().clone()));
        Self { runtime, arena, cancel: CancelToken::new(), tuning: Arc::default(), knowledge }
    }

    /// The same, with what is known of the machine, by which variants are chosen.
    pub fn with_knowledge(self, knowledge: Arc<Knowledge>) -> Self {
        Self { knowledge, ..self }
    }

    /// The same, tuned.
    pub fn with_tuning(self, tuning: Tuning) -> Self {
        Self { tuning: Arc::new(tuning), ..self }
    }

    /// The same, cancelled by this token.
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

    /// Cancels what runs in this context.
    pub fn cancel(&self) -> &CancelToken {
        &self.cancel
    }

    /// What is tuned.
    pub fn tuning(&self) -> &Tuning {
        &self.tuning
    }

    /// What is known of the machine.
    pub fn knowledge(&self) -> &Knowledge {
        &self.knowledge
    }

    /// Runs one task on each worker, to their join; results by worker.
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

    /// Runs tasks on their nodes, any worker of the node taking the next one; a task without a node
    /// goes to the next node in turn. Results in the order of the tasks.
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
