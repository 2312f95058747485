//! Replaces aliases of a select list that are reused in it or in WHERE by their expressions, as in DuckDB.
//!
//! ```text
//! SELECT a + b AS c, c * 2 AS d FROM t WHERE c > 0      SELECT a + b AS c, (a + b) * 2 AS d FROM t WHERE (a + b) > 0
//! ```
//!
//! A column of FROM that has the name comes first: see `needs`. GROUP BY, HAVING, QUALIFY and ORDER BY are DataFusion's.

use crate::syntax::{walk, walk_mut};
use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;

use datafusion::common::{DataFusionError, Result, plan_err};
use datafusion::sql::sqlparser::ast::{
    Expr, Ident, ObjectName, Query, Select, SelectItem, VisitMut, Visitor, VisitorMut,
};

/// The most expressions that aliases of one SELECT expand to: an alias that uses another twice doubles it.
const EXPRS_MAX: usize = 100_000;

/// Whether a SELECT uses an earlier alias.
pub(in crate::dialect) fn is_in(select: &Select) -> bool {
    let mut names = Names { aliases: HashSet::new(), depth: 0, lambdas: Vec::new() };
    for item in &select.projection {
        if let SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } = item
            && !names.aliases.is_empty()
            && walk(expr, &mut names).is_break()
        {
            return true;
        }
        if let SelectItem::ExprWithAlias { alias, .. } = item {
            names.aliases.insert(folded(alias));
        }
    }
    !names.aliases.is_empty() && walk(&select.selection, &mut names).is_break()
}

/// Replaces aliases by expressions; names of columns stay.
pub(in crate::dialect) fn write_out(
    select: &mut Select,
    is_column: &dyn Fn(&str) -> bool,
    is_volatile: &dyn Fn(&str) -> bool,
) -> Result<()> {
    let known = HashMap::new();
    let mut aliases =
        Aliases { known, is_column, is_volatile, depth: 0, lambdas: Vec::new(), exprs: 0 };
    for item in &mut select.projection {
        if let SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } = item {
            aliases.write(expr)?;
        }
        if let SelectItem::ExprWithAlias { expr, alias } = item {
            aliases.known.insert(folded(alias), expr.clone());
        }
    }
    select.selection.as_mut().map_or(Ok(()), |condition| aliases.write(condition))
}

/// Replaces these lower-case names by expressions, but not in subqueries.
pub(in crate::dialect) fn replace(
    part: &mut impl VisitMut,
    names: &HashMap<String, Expr>,
) -> Result<()> {
    let known = names.clone();
    let (is_column, is_volatile) = (&|_: &str| false, &|_: &str| false);
    let mut names =
        Aliases { known, is_column, is_volatile, depth: 0, lambdas: Vec::new(), exprs: 0 };
    names.write(part)
}

/// A name in lower case for comparison: as in DuckDB, even if quoted.
fn folded(name: &Ident) -> String {
    name.value.to_lowercase()
}

/// The names of a lambda's parameters.
fn parameters(expr: &Expr) -> Option<Vec<String>> {
    let Expr::Lambda(lambda) = expr else { return None };
    Some(lambda.params.iter().map(|param| folded(&param.name)).collect())
}

/// Stops at a name that is an alias.
struct Names {
    aliases: HashSet<String>,
    depth: usize,
    lambdas: Vec<Vec<String>>,
}

impl Visitor for Names {
    type Break = ();

    fn pre_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
        self.depth += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
        self.depth -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        self.lambdas.extend(parameters(expr));
        match expr {
            Expr::Identifier(name) if self.depth == 0 => {
                let name = folded(name);
                let is_alias = self.aliases.contains(&name)
                    && !self.lambdas.iter().flatten().any(|param| *param == name);
                if is_alias { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            }
            _ => ControlFlow::Continue(()),
        }
    }

    fn post_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        if matches!(expr, Expr::Lambda(_)) {
            self.lambdas.pop();
        }
        ControlFlow::Continue(())
    }
}

struct Aliases<'a> {
    /// The expressions of the aliases so far.
    known: HashMap<String, Expr>,
    is_column: &'a dyn Fn(&str) -> bool,
    is_volatile: &'a dyn Fn(&str) -> bool,
    depth: usize,
    lambdas: Vec<Vec<String>>,
    /// Expressions inserted so far.
    exprs: usize,
}

impl Aliases<'_> {
    fn write(&mut self, part: &mut impl VisitMut) -> Result<()> {
        match walk_mut(part, self) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(error) => Err(error),
        }
    }

    fn lookup(&mut self, name: &Ident) -> Result<Option<Expr>> {
        let name = folded(name);
        let Some(expr) = self.known.get(&name) else { return Ok(None) };
        if (self.is_column)(&name) || self.lambdas.iter().flatten().any(|param| *param == name) {
            return Ok(None);
        }
        let mut found = Found { is_volatile: self.is_volatile, volatile: None, exprs: 0 };
        let _ = walk(expr, &mut found);
        if let Some(function) = found.volatile {
            return plan_err!(
                "alias '{name}' is reused, and {function} in it returns another value each time; use the alias in a \
                 query around this one"
            );
        }
        self.exprs += found.exprs;
        if self.exprs > EXPRS_MAX {
            return plan_err!(
                "reused aliases expand to more than {EXPRS_MAX} expressions; use them in a query around \
                 this one"
            );
        }
        Ok(Some(Expr::Nested(Box::new(expr.clone()))))
    }
}

impl VisitorMut for Aliases<'_> {
    type Break = DataFusionError;

    fn pre_visit_query(&mut self, _: &mut Query) -> ControlFlow<Self::Break> {
        self.depth += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<Self::Break> {
        self.depth -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Self::Break> {
        self.lambdas.extend(parameters(expr));
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Self::Break> {
        match expr {
            Expr::Lambda(_) => {
                self.lambdas.pop();
            }
            Expr::Identifier(name) if self.depth == 0 => match self.lookup(name) {
                Ok(Some(written)) => *expr = written,
                Ok(None) => {}
                Err(error) => return ControlFlow::Break(error),
            },
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

/// The contents of an expression: the number of expressions, and a volatile function.
struct Found<'a> {
    is_volatile: &'a dyn Fn(&str) -> bool,
    volatile: Option<String>,
    exprs: usize,
}

impl Visitor for Found<'_> {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        self.exprs += 1;
        if let Expr::Function(function) = expr
            && let Some(name) = plain(&function.name)
            && (self.is_volatile)(&name)
        {
            self.volatile = Some(format!("{name}()"));
        }
        ControlFlow::Continue(())
    }
}

fn plain(name: &ObjectName) -> Option<String> {
    match name.0.as_slice() {
        [part] => part.as_ident().map(folded),
        _ => None,
    }
}
