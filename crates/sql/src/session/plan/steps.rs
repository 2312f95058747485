//! Planning steps that need only a statement's settings.

use std::sync::Arc;

use atoll_functions::{StatementStart, without_large_constants};
use atoll_runtime::CancelToken;
use datafusion::common::Result;
use datafusion::execution::SessionState;
use datafusion::logical_expr::{LogicalPlan, Volatility};
use datafusion::optimizer::AnalyzerRule;
use datafusion::optimizer::analyzer::type_coercion::TypeCoercion;
use datafusion::physical_plan::ExecutionPlan;

use crate::statement_handle::StatementHandle;
use atoll_sql_common::functions::Functions;
use atoll_sql_parse::parse::{STACK_SHORT, on_deep_stack};
use atoll_sql_semantics::rewrite::{EmptySubqueries, OuterAggregates, OuterNames};
use atoll_sql_semantics::timezone::SessionTimeZone;
use atoll_sql_semantics::type_resolution::DatesBesideTimestamps;

/// The settings of a statement for its cached plan, which must keep alive neither what the statement reads nor the
/// database that caches the plan.
pub(in crate::session) fn state_to_keep(state: &SessionState) -> SessionState {
    let mut state = state.clone();
    let extensions = &mut state.config_mut().options_mut().extensions;
    extensions.insert(StatementHandle::default());
    if let Some(start) = extensions.get_mut::<StatementStart>() {
        start.transaction = None;
    }
    // The settings that functions receive.
    state.mark_start_execution();
    state
}

/// The token that is raised when the statement's result is dropped: every plan's context has it.
pub(in crate::session) fn cancel_token(state: &SessionState) -> CancelToken {
    let token = state.config().get_extension::<CancelToken>();
    token.map(|token| token.as_ref().clone()).unwrap_or_default()
}

/// The plan with its final types: they are those of a view's columns.
pub(in crate::session) fn coerced(state: &SessionState, plan: LogicalPlan) -> Result<LogicalPlan> {
    // The analyzer's own checks refuse subqueries that a later rule turns into joins.
    let rules: [&dyn AnalyzerRule; 6] = [
        &OuterNames,
        &OuterAggregates,
        &SessionTimeZone,
        &EmptySubqueries,
        &DatesBesideTimestamps,
        &TypeCoercion::new(),
    ];
    let options = state.config_options();
    rules.iter().try_fold(plan, |plan, rule| rule.analyze(plan, options))
}

/// The fully analyzed plan.
pub(in crate::session) fn analyzed(state: &SessionState, plan: LogicalPlan) -> Result<LogicalPlan> {
    state.analyzer().execute_and_check(plan, state.config_options(), |_, _| {})
}

/// The physical plan of a logical one.
pub(in crate::session) async fn plan_physical(
    state: &SessionState,
    plan: &LogicalPlan,
) -> Result<Arc<dyn ExecutionPlan>> {
    let planned = async {
        let optimized = without_large_constants(|| state.optimize(plan))?;
        state.query_planner().create_physical_plan(&optimized, state).await
    };
    on_deep_stack(STACK_SHORT, planned).await
}

/// Whether a function is volatile.
pub(in crate::session) fn is_volatile(state: &SessionState, function: &str) -> bool {
    let function = Functions::for_session(state).scalar(function);
    function.is_some_and(|function| function.signature().volatility == Volatility::Volatile)
}
