//! The unique constraints that the target of an ON CONFLICT means: those with its columns and expressions, whose conditions
//! are among the conditions of its WHERE.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use atoll_sql_common::error::stated_err;
use atoll_sql_parse::dialect::CONFLICT_TARGET;
use atoll_sql_parse::syntax::{parsed_expr, walk_expressions, without_parentheses};
use atoll_store::table::{TableDefinition, Unique};
use datafusion::common::Result;
use datafusion::sql::sqlparser::ast::{Expr, Ident, Statement as Ast};

use crate::session::ddl::index::{comparable_text, joined_by_and};
use crate::session::dml::change::parsed;

/// The target of an ON CONFLICT.
#[derive(Default)]
pub(super) struct InferredKey {
    columns: BTreeSet<usize>,
    expressions: BTreeSet<String>,
    /// The conditions that AND joins.
    conditions: BTreeSet<String>,
}

impl InferredKey {
    /// The key of the parser's columns: `dialect::words` hides a target that is more than columns in one of them.
    pub(super) fn from_columns(
        columns: &[Ident],
        number: &dyn Fn(&Ident) -> Result<usize>,
        normalize: &dyn Fn(&Ident) -> String,
    ) -> Result<Self> {
        let mut key = Self::default();
        if let [column] = columns
            && let Some(text) = column.value.strip_prefix(CONFLICT_TARGET)
        {
            let Ast::CreateIndex(target) = parsed(&format!("CREATE UNIQUE INDEX ON t {text}"))?
            else {
                return stated_err!(UNDEFINED_COLUMN, "column {column} does not exist");
            };
            for column in target.columns {
                match without_parentheses(column.column.expr) {
                    Expr::Identifier(name) => {
                        key.columns.insert(number(&name)?);
                    }
                    expr => drop(key.expressions.insert(comparable_text(&expr, normalize))),
                }
            }
            if let Some(name) = target.predicate.as_ref().and_then(|it| unknown_column(it, number))
            {
                number(&name)?;
            }
            let conditions = target.predicate.iter().flat_map(joined_by_and);
            key.conditions = conditions.map(|it| comparable_text(it, normalize)).collect();
            return Ok(key);
        }
        for column in columns {
            key.columns.insert(number(column)?);
        }
        Ok(key)
    }

    /// Numbers of the constraints: one without a condition, if there is any, else all.
    pub(super) fn uniques(
        &self,
        definition: &TableDefinition,
        normalize: &dyn Fn(&Ident) -> String,
    ) -> Vec<usize> {
        let uniques = definition.uniques.iter().enumerate();
        let meant = uniques.filter(|(_, unique)| self.means(unique, normalize));
        let meant: Vec<usize> = meant.map(|(at, _)| at).collect();
        let whole = meant.iter().find(|at| definition.uniques[**at].condition.is_none());
        whole.map_or_else(|| meant.clone(), |at| vec![*at])
    }

    fn means(&self, unique: &Unique, normalize: &dyn Fn(&Ident) -> String) -> bool {
        let (mut columns, mut expressions) = (BTreeSet::new(), BTreeSet::new());
        for (place, column) in unique.columns.iter().enumerate() {
            match unique.expressions.get(place).and_then(Option::as_ref) {
                None => drop(columns.insert(*column)),
                Some(expression) => match parsed_expr(&expression.sql) {
                    Ok(expr) => drop(expressions.insert(comparable_text(&expr, normalize))),
                    Err(_) => return false,
                },
            }
        }
        let is_implied = unique.condition.as_ref().is_none_or(|condition| {
            parsed_expr(&condition.sql).is_ok_and(|condition| {
                let mut all = joined_by_and(&condition).into_iter();
                all.all(|it| self.conditions.contains(&comparable_text(it, normalize)))
            })
        });
        columns == self.columns && expressions == self.expressions && is_implied
    }
}

/// A name in an expression that is not a column.
fn unknown_column(expr: &Expr, number: &dyn Fn(&Ident) -> Result<usize>) -> Option<Ident> {
    let found = walk_expressions(expr, &mut |expr| {
        let name = match expr {
            Expr::Identifier(name) => Some(name),
            Expr::CompoundIdentifier(parts) => parts.last(),
            _ => None,
        };
        match name.filter(|name| number(name).is_err()) {
            Some(name) => ControlFlow::Break(name.clone()),
            None => ControlFlow::Continue(()),
        }
    });
    found.break_value()
}
