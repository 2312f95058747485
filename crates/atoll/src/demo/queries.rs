//! The queries of TPC-H.

use std::time::Instant;

use atoll_sql::{Session, SqlError, split_statements, tpch};

use super::ask;
use super::facts::{PlanFacts, QueryFacts};
use crate::output::Mode;

/// Runs a query once and discards its rows.
pub(super) async fn run(session: &Session, number: usize) -> QueryFacts {
    let started = Instant::now();
    let counted = count(session, tpch::QUERIES[number - 1]).await;
    let milliseconds = started.elapsed().as_secs_f64() * 1e3;
    let (rows, error) = match counted {
        Ok(rows) => (rows, None),
        Err(error) => (0, Some(error.to_string())),
    };
    QueryFacts { number, milliseconds, rows, error }
}

/// The number of rows of the last statement.
async fn count(session: &Session, text: &str) -> Result<usize, SqlError> {
    let mut rows = 0;
    for statement in split_statements(text)? {
        rows = 0;
        let mut result = session.run(&statement.text).await?;
        while let Some(batch) = result.next().await? {
            rows += batch.num_rows();
        }
    }
    Ok(rows)
}

/// Runs a query with EXPLAIN ANALYZE.
pub(super) async fn explain(session: &Session, number: usize) -> PlanFacts {
    let text = tpch::QUERIES[number - 1].trim().trim_end_matches(';');
    let explained = format!("EXPLAIN ANALYZE {text}");
    match ask::written(session, &explained, Mode::Box).await {
        Ok(text) => PlanFacts { query: number, text, error: None },
        Err(error) => {
            PlanFacts { query: number, text: String::new(), error: Some(error.to_string()) }
        }
    }
}
