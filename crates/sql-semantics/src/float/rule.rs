//! The rule that makes every float in a plan canonical.

use std::sync::Arc;

use atoll_store::table::has_floats;
use datafusion::catalog::TableProvider;
use datafusion::catalog::default_table_source::source_as_provider;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{Column, DFSchema, Result};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{Aggregate, Expr, LogicalPlan, Projection, Window};
use datafusion::optimizer::AnalyzerRule;

use super::expr::{Rewriter, computes};
use super::function;

/// Canonicalizes floats where they enter a plan or are computed in it; see the module.
///
/// It runs after type coercion, which adds casts, and before all optimizer rules, which treat
/// `canonical(x)` like any other function.
#[derive(Debug)]
pub struct CanonicalFloats {
    /// Whether a table's floats are already canonical, as in tables of the store.
    pub is_canonical: fn(&dyn TableProvider) -> bool,
}

impl AnalyzerRule for CanonicalFloats {
    fn name(&self) -> &str {
        "canonical_floats"
    }

    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        plan.transform_up_with_subqueries(|plan| {
            let is_raw = self.is_raw(&plan);
            with_canonical_expressions(plan, is_raw)?
                .transform_data(|plan| with_canonical_results(plan, is_raw))
        })
        .data()
    }
}

impl CanonicalFloats {
    /// Whether a plan scans a source whose floats may not be canonical.
    fn is_raw(&self, plan: &LogicalPlan) -> bool {
        let LogicalPlan::TableScan(scan) = plan else { return false };
        !source_as_provider(&scan.source).is_ok_and(|table| (self.is_canonical)(table.as_ref()))
    }
}

fn with_canonical_expressions(plan: LogicalPlan, is_raw: bool) -> Result<Transformed<LogicalPlan>> {
    let mut schema = merge_schema(&plan.inputs());
    if let LogicalPlan::TableScan(scan) = &plan {
        // The filters of a prepared statement may already be in the scan.
        let (name, columns) = (scan.table_name.clone(), scan.source.schema());
        schema.merge(&DFSchema::try_from_qualified_schema(name, &columns)?);
    }
    let named = matches!(
        plan,
        LogicalPlan::Projection(_)
            | LogicalPlan::Aggregate(_)
            | LogicalPlan::Window(_)
            | LogicalPlan::Distinct(_)
    );
    let names = NamePreserver::new_for_projection();
    let rewritten = plan.map_expressions(|expr| {
        let name = named.then(|| names.save(&expr));
        let rewritten = expr.rewrite(&mut Rewriter::new(&schema, is_raw))?;
        Ok(match name {
            Some(name) if rewritten.transformed => rewritten.update_data(|expr| name.restore(expr)),
            _ => rewritten,
        })
    })?;
    match rewritten.transformed {
        true => rewritten.map_data(LogicalPlan::recompute_schema),
        false => Ok(rewritten),
    }
}

/// Adds a projection above a plan whose own results may not be canonical.
fn with_canonical_results(plan: LogicalPlan, is_raw: bool) -> Result<Transformed<LogicalPlan>> {
    let schema = Arc::clone(plan.schema());
    let floats = schema.fields().iter().map(|field| has_floats(field.data_type()));
    let raw: Vec<bool> = match &plan {
        LogicalPlan::TableScan(_) if is_raw => floats.collect(),
        LogicalPlan::Aggregate(Aggregate { input, aggr_expr: computed, .. })
        | LogicalPlan::Window(Window { input, window_expr: computed, .. }) => {
            // An operator's computed columns come after the columns that it passes on.
            let handed_on = schema.fields().len() - computed.len();
            let own = computed.iter().map(|function| computes(function, input.schema()));
            let own = std::iter::repeat_n(false, handed_on).chain(own);
            floats.zip(own).map(|(floats, own)| floats && own).collect()
        }
        _ => return Ok(Transformed::no(plan)),
    };
    if !raw.contains(&true) {
        return Ok(Transformed::no(plan));
    }
    let columns = schema.iter().zip(raw).map(|((qualifier, field), raw)| {
        let column = Expr::Column(Column::from((qualifier, field)));
        match raw {
            true => function::call(column).alias_qualified(qualifier.cloned(), field.name()),
            false => column,
        }
    });
    let projection = Projection::try_new(columns.collect(), Arc::new(plan))?;
    Ok(Transformed::yes(LogicalPlan::Projection(projection)))
}
