//! Function lookup: first the session's functions, then the shared ones.
//!
//! There are more than a thousand names. DataFusion keeps them in maps of the session state, which it copies
//! for every statement and every task. Here these maps hold only the session's own functions; the others are in
//! one shared table, which the state's settings point to:
//!
//! ```text
//! session ─▶ state { own: current_user, nextval, … ; settings ─▶ SharedFunctions { abs, sum, … } }
//!               │ copy: a pointer                                     ▲ one for the database
//! statement ─▶ state ────────────────────────────────────────────────╯
//! ```
//!
//! [`Functions`] looks names up, and the planner uses it.

mod seeded;
mod sleep;

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::catalog::Session as SessionTrait;
use datafusion::common::Result;
use datafusion::execution::{FunctionRegistry, SessionState, SessionStateBuilder, TaskContext};
use datafusion::logical_expr::{AggregateUDF, HigherOrderUDF, ScalarUDF, WindowUDF};
use datafusion::prelude::SessionContext;

pub use seeded::register as register_random;
pub use sleep::pg_sleep;

/// Functions of a kind by name.
type Named<F> = HashMap<String, Arc<F>>;

/// An aggregate that the optimizer looks up in the state by name, for DISTINCT ON.
const ASKED_BY_NAME: &str = "first_value";

/// The functions that all sessions share.
#[derive(Debug, Default)]
pub struct SharedFunctions {
    scalar: Named<ScalarUDF>,
    higher_order: Named<HigherOrderUDF>,
    aggregate: Named<AggregateUDF>,
    window: Named<WindowUDF>,
}

impl SharedFunctions {
    /// Moves the functions from a state into its settings.
    pub fn take(state: SessionState) -> Result<SessionState> {
        let shared = Self {
            scalar: state.scalar_functions().clone(),
            higher_order: state.higher_order_functions().clone(),
            aggregate: state.aggregate_functions().clone(),
            window: state.window_functions().clone(),
        };
        let mut builder = SessionStateBuilder::from(state);
        *builder.scalar_functions() = None;
        *builder.higher_order_functions() = None;
        *builder.aggregate_functions() = None;
        *builder.window_functions() = None;
        let mut state = builder.build();
        if let Some(asked) = shared.aggregate.get(ASKED_BY_NAME) {
            state.register_udaf(Arc::clone(asked))?;
        }
        state.config_mut().set_extension(Arc::new(shared));
        Ok(state)
    }
}

/// The functions of a session, including the shared ones.
pub struct Functions<'a> {
    own: &'a dyn SessionTrait,
    shared: Arc<SharedFunctions>,
}

impl<'a> Functions<'a> {
    /// Collects the functions of a session.
    pub fn for_session(own: &'a dyn SessionTrait) -> Self {
        Self { own, shared: own.config().get_extension().unwrap_or_default() }
    }

    /// Finds a scalar function, configured by the session's settings.
    pub fn scalar(&self, name: &str) -> Option<Arc<ScalarUDF>> {
        if let Some(own) = self.own.scalar_functions().get(name) {
            return Some(Arc::clone(own));
        }
        self.shared.scalar.get(name).map(|shared| self.configured(shared))
    }

    /// Applies settings that a function depends on, such as the time zone.
    fn configured(&self, function: &Arc<ScalarUDF>) -> Arc<ScalarUDF> {
        let changed = function.inner().with_updated_config(self.own.config_options());
        changed.map_or_else(|| Arc::clone(function), Arc::new)
    }

    /// Finds a function that takes lambdas.
    pub fn higher_order(&self, name: &str) -> Option<&Arc<HigherOrderUDF>> {
        self.own.higher_order_functions().get(name).or_else(|| self.shared.higher_order.get(name))
    }

    /// Finds an aggregate.
    pub fn aggregate(&self, name: &str) -> Option<&Arc<AggregateUDF>> {
        self.own.aggregate_functions().get(name).or_else(|| self.shared.aggregate.get(name))
    }

    /// Finds a window function other than an aggregate.
    pub fn window(&self, name: &str) -> Option<&Arc<WindowUDF>> {
        self.own.window_functions().get(name).or_else(|| self.shared.window.get(name))
    }

    /// Whether a scalar function with this name exists.
    pub fn has_scalar(&self, name: &str) -> bool {
        self.own.scalar_functions().contains_key(name) || self.shared.scalar.contains_key(name)
    }

    /// All scalar functions.
    pub fn all_scalar(&self) -> Named<ScalarUDF> {
        let shared = self.shared.scalar.iter();
        let shared = shared.map(|(name, function)| (name.clone(), self.configured(function)));
        shared.chain(copied(self.own.scalar_functions())).collect()
    }

    /// All functions that take lambdas.
    pub fn all_higher_order(&self) -> Named<HigherOrderUDF> {
        both(&self.shared.higher_order, self.own.higher_order_functions())
    }

    /// All aggregates.
    pub fn all_aggregate(&self) -> Named<AggregateUDF> {
        both(&self.shared.aggregate, self.own.aggregate_functions())
    }

    /// All window functions except aggregates.
    pub fn all_window(&self) -> Named<WindowUDF> {
        both(&self.shared.window, self.own.window_functions())
    }

    /// Creates a context for plans that look up functions.
    pub fn task_context(&self) -> Arc<TaskContext> {
        let context = self.own.task_ctx();
        Arc::new(TaskContext::new(
            context.task_id(),
            context.session_id(),
            context.session_config().clone(),
            self.all_scalar(),
            self.all_higher_order(),
            self.all_aggregate(),
            self.all_window(),
            context.runtime_env(),
        ))
    }
}

fn copied<F>(functions: &Named<F>) -> impl Iterator<Item = (String, Arc<F>)> {
    functions.iter().map(|(name, function)| (name.clone(), Arc::clone(function)))
}

/// Merges two maps; the second one wins for names in both.
fn both<F>(shared: &Named<F>, own: &Named<F>) -> Named<F> {
    copied(shared).chain(copied(own)).collect()
}

/// Moves the shared functions into a context's state, for callers without a session. The context then applies
/// changes of settings itself.
pub fn fill(context: &SessionContext) {
    let from = context.state();
    let functions = Functions::for_session(&from);
    for function in functions.all_scalar().into_values() {
        context.register_udf(function.as_ref().clone());
    }
    for function in functions.all_higher_order().into_values() {
        context.register_higher_order_function(function);
    }
    for function in functions.all_aggregate().into_values() {
        context.register_udaf(function.as_ref().clone());
    }
    for function in functions.all_window().into_values() {
        context.register_udwf(function.as_ref().clone());
    }
}
