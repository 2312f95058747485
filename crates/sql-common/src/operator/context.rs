//! The task context of operators below.

use std::sync::Arc;

use datafusion::execution::TaskContext;
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::prelude::SessionConfig;

/// A query's task context with other settings and another runtime environment.
pub fn changed_context(
    context: &TaskContext,
    config: SessionConfig,
    environment: Arc<RuntimeEnv>,
) -> Arc<TaskContext> {
    Arc::new(TaskContext::new(
        context.task_id(),
        context.session_id(),
        config,
        context.scalar_functions().clone(),
        context.higher_order_functions().clone(),
        context.aggregate_functions().clone(),
        context.window_functions().clone(),
        environment,
    ))
}
