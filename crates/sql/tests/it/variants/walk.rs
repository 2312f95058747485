//! The SELECTs of a query that may have more columns.

use std::collections::HashSet;
use std::ops::ControlFlow;

use atoll_sql::datafusion::sql::sqlparser::ast::{
    Expr, JoinConstraint, JoinOperator, Query, Select, SelectItem, SetExpr, Statement, TableFactor,
    Visit, Visitor,
};

/// Visits a query's outermost SELECT and, if columns may be added to them, those of derived tables and CTEs. The
/// outermost has the number 0.
pub(super) struct Walk<'a> {
    pub(super) next: usize,
    pub(super) is_within_open: bool,
    pub(super) visit: &'a mut dyn FnMut(usize, &mut Query),
}

impl Walk<'_> {
    pub(super) fn query(&mut self, query: &mut Query) {
        let number = self.next;
        self.next += 1;
        if self.is_within_open {
            self.common_tables(query);
            self.derived_tables(query);
        }
        // After its subqueries: additions may contain subqueries.
        (self.visit)(number, query);
    }

    fn common_tables(&mut self, query: &mut Query) {
        let Some(with) = &mut query.with else { return };
        if with.recursive {
            return;
        }
        for table in &mut with.cte_tables {
            if table.alias.columns.is_empty() {
                self.query(&mut table.query);
            }
        }
    }

    fn derived_tables(&mut self, query: &mut Query) {
        let SetExpr::Select(select) = query.body.as_mut() else { return };
        for table in &mut select.from {
            let joined = table.joins.iter_mut().map(|join| &mut join.relation);
            for relation in std::iter::once(&mut table.relation).chain(joined) {
                if let TableFactor::Derived { lateral: false, subquery, alias: Some(alias), .. } =
                    relation
                    && alias.columns.is_empty()
                {
                    self.query(subquery);
                }
            }
        }
    }
}

/// Whether columns are always used by name, so that subqueries may have more.
pub(super) fn has_named_columns(statement: &Statement) -> bool {
    let mut seen = Seen::default();
    let _ = statement.visit(&mut seen);
    !seen.is_open && seen.relations.is_disjoint(&seen.names)
}

/// Names of relations and of columns.
#[derive(Default)]
struct Seen {
    is_open: bool,
    relations: HashSet<String>,
    names: HashSet<String>,
}

impl Visitor for Seen {
    type Break = ();

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        self.is_open |= matches!(query.body.as_ref(), SetExpr::Table(_));
        let tables = query.with.iter().flat_map(|with| &with.cte_tables);
        self.relations.extend(tables.map(|table| table.alias.name.value.to_lowercase()));
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<()> {
        let is_star = |item: &SelectItem| {
            matches!(item, SelectItem::Wildcard(_) | SelectItem::QualifiedWildcard(..))
        };
        let mut joins = select.from.iter().flat_map(|table| &table.joins);
        self.is_open |= select.projection.is_empty()
            || select.projection.iter().any(is_star)
            || joins.any(|join| is_natural(&join.join_operator));
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<()> {
        match factor {
            TableFactor::Table { alias: Some(alias), .. }
            | TableFactor::Derived { alias: Some(alias), .. } => {
                self.relations.insert(alias.name.value.to_lowercase());
            }
            TableFactor::Table { .. }
            | TableFactor::Derived { .. }
            | TableFactor::NestedJoin { .. }
            | TableFactor::Function { .. } => (),
            _ => self.is_open = true,
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        if let Expr::Identifier(name) = expr {
            self.names.insert(name.value.to_lowercase());
        }
        ControlFlow::Continue(())
    }
}

fn is_natural(operator: &JoinOperator) -> bool {
    format!("{operator:?}").contains(&format!("{:?}", JoinConstraint::Natural))
}
