//! `INSERT INTO t SELECT … FROM (VALUES …)`: DataFusion (55.2) takes every VALUES within an INSERT for rows of its
//! table, with the types of the table's columns (apache/datafusion#12864). A query that contains some is planned
//! separately, and INSERT reads its result.

use std::ops::ControlFlow;
use std::sync::Arc;

use datafusion::common::Result;
use datafusion::datasource::ViewTable;
use datafusion::execution::SessionState;
use datafusion::sql::parser::Statement as Parsed;
use datafusion::sql::sqlparser::ast::{Insert, Query, SetExpr, Statement as Ast, Visit, Visitor};
use datafusion::sql::sqlparser::dialect::GenericDialect;
use datafusion::sql::sqlparser::parser::Parser;

use crate::session::ddl::create::distinctly_named;
use crate::session::dml::change::quoted;
use crate::session::plan::planner::StatementPlanner;

/// The name of the query, which no table has.
const SOURCE: &str = "rows of the query\u{1}";

impl StatementPlanner {
    /// Plans the query of an INSERT separately if it contains VALUES.
    pub(in crate::session) async fn plan_values_within(
        &self,
        state: &SessionState,
        insert: &mut Insert,
    ) -> Result<()> {
        let source = insert.source.as_mut().filter(|source| has_values_within(source));
        let Some(source) = source else { return Ok(()) };
        let query = Parsed::Statement(Box::new(Ast::Query(source.clone())));
        let plan = distinctly_named(self.plan_query(state, query, &[]).await?)?;
        self.names.hide(SOURCE, Arc::new(ViewTable::new(plan, None)));
        let sql = format!("SELECT * FROM {}", quoted(SOURCE));
        *source = Parser::new(&GenericDialect {}).try_with_sql(&sql)?.parse_query()?;
        Ok(())
    }
}

/// Whether a query contains VALUES, below the rows that it lists itself.
fn has_values_within(query: &Query) -> bool {
    /// Whether the visitor is in nested queries, and how deep.
    struct Depth(usize);

    impl Visitor for Depth {
        type Break = ();

        fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
            self.0 += 1;
            match self.0 > 1 && has_values(&query.body) {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        }

        fn post_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
            self.0 -= 1;
            ControlFlow::Continue(())
        }
    }

    query.visit(&mut Depth(0)).is_break()
}

fn has_values(body: &SetExpr) -> bool {
    match body {
        SetExpr::Values(_) => true,
        SetExpr::SetOperation { left, right, .. } => has_values(left) || has_values(right),
        _ => false,
    }
}
