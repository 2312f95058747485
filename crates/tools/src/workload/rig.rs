//! The base of a run of Atoll: workers, memory, and the tuning of this machine.

use std::future::Future;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use atoll_placement::{Arena, Kernel, LiveKernel};
use atoll_primitives::{Context, PrimitiveError, Tuning};
use atoll_runtime::{Runtime, RuntimeOptions};
use atoll_topology::Machine;

/// Workers and memory of one run.
#[derive(Debug)]
pub struct Rig {
    /// What primitives are given.
    pub context: Context,
    /// Workers.
    pub threads: usize,
}

impl Rig {
    /// Starts the workers.
    ///
    /// # Errors
    /// When the threads cannot be started.
    pub fn start(machine: &Arc<Machine>, threads: usize, tuning: &Tuning) -> Result<Self> {
        let kernel: Arc<dyn Kernel> = Arc::new(LiveKernel::new());
        let options = RuntimeOptions { threads: Some(threads), ..RuntimeOptions::default() };
        let runtime = Runtime::start(Arc::clone(machine), Arc::clone(&kernel), options);
        let runtime = runtime.with_context(|| format!("{threads} workers cannot be started"))?;
        let arena = Arena::new(Arc::clone(machine), kernel, None);
        let context = Context::new(runtime, arena).with_tuning(tuning.clone());
        Ok(Self { context, threads })
    }

    /// The same workers and memory, tuned otherwise.
    pub fn tuned(&self, tuning: &Tuning) -> Self {
        let context = self.context.clone().with_tuning(tuning.clone());
        Self { context, threads: self.threads }
    }

    /// Waits for a primitive on the calling thread.
    ///
    /// # Errors
    /// The primitive's.
    pub fn wait<T>(&self, primitive: impl Future<Output = Result<T, PrimitiveError>>) -> Result<T> {
        Ok(self.context.runtime().block_on(primitive)?)
    }
}
