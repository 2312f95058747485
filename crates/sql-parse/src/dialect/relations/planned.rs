//! Plans relations that need to know columns: see [`Relations`].

use datafusion::common::{Result, plan_err};
use datafusion::logical_expr::LogicalPlan;
use datafusion::logical_expr::planner::{
    PlannedRelation, RelationPlanner, RelationPlannerContext, RelationPlanning,
};
use datafusion::sql::sqlparser::ast::{Expr, FunctionArg, FunctionArgExpr, TableFactor};

use crate::dialect::relations::{asof, by_name, percent, pivot, positional, unpivot};
use crate::dialect::statements::summarize::DeclaredColumns;
use crate::dialect::statements::{forms, summarize};
use crate::dialect::tree;

/// Plans the relations that the steps leave.
#[derive(Debug)]
pub struct Relations {
    /// The columns that DESCRIBE shows besides types.
    pub declared: DeclaredColumns,
}

impl RelationPlanner for Relations {
    fn plan_relation(
        &self,
        relation: TableFactor,
        context: &mut dyn RelationPlannerContext,
    ) -> Result<RelationPlanning> {
        let (plan, alias) = match &relation {
            TableFactor::Function { name, args, alias, .. } => {
                let name = name.to_string();
                if !name.starts_with('$') {
                    return Ok(RelationPlanning::Original(Box::new(relation)));
                }
                (self.function(&name, args, context)?, alias.clone())
            }
            TableFactor::NestedJoin { alias, .. } => match positional::sides(&relation) {
                Some((left, join)) => {
                    let left = context.plan(left.clone())?;
                    let right = context.plan(join.relation.clone())?;
                    let plan = match positional::is_positional(join) {
                        true => positional::plan(left, right)?,
                        false => asof::plan(left, right, join, context)?,
                    };
                    (plan, alias.clone())
                }
                _ => return Ok(RelationPlanning::Original(Box::new(relation))),
            },
            TableFactor::Pivot { alias, .. } => {
                let alias = alias.clone();
                (pivot::plan(relation, context)?, alias)
            }
            TableFactor::Unpivot { alias, .. } => {
                let alias = alias.clone();
                (unpivot::plan(relation, context)?, alias)
            }
            _ => return Ok(RelationPlanning::Original(Box::new(relation))),
        };
        Ok(RelationPlanning::Planned(Box::new(PlannedRelation::new(plan, alias))))
    }
}

impl Relations {
    fn function(
        &self,
        name: &str,
        args: &[FunctionArg],
        context: &mut dyn RelationPlannerContext,
    ) -> Result<LogicalPlan> {
        let mut queries = Vec::with_capacity(args.len());
        for arg in args {
            if let FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Subquery(query))) = arg {
                queries.push(context.plan(tree::derived(query.as_ref().clone(), None))?);
            }
        }
        match name {
            by_name::ALL | by_name::DISTINCT => by_name::plan(name, queries),
            forms::SUMMARIZE => summarize::summary(queries.swap_remove(0), context),
            forms::DESCRIBE => summarize::description(&queries[0], None),
            forms::DESCRIBE_TABLE => summarize::description(&queries[0], Some(self.declared)),
            percent::CALL => percent::plan(queries.swap_remove(0), args),
            _ => plan_err!("{name} is not a relation"),
        }
    }
}
