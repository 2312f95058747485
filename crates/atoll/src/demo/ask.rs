//! Results of demo queries as Rust values.

use anyhow::Context;
use atoll_sql::Session;
use serde::de::DeserializeOwned;

use crate::output::{DrawLayout, Mode};

/// The rows of a query.
pub(super) async fn rows<T: DeserializeOwned>(
    session: &Session,
    query: &str,
) -> anyhow::Result<Vec<T>> {
    let text = written(session, query, Mode::Ndjson).await?;
    let parse = |line: &str| {
        serde_json::from_str(line).context(
            "unexpected columns in the result \
                                                                 of a query of the demo",
        )
    };
    text.lines().map(parse).collect()
}

/// The number that a query returns; None if it returns no row.
pub(super) async fn number(session: &Session, query: &str) -> Option<u64> {
    let text = written(session, query, Mode::Csv).await.ok()?;
    text.lines().nth(1)?.parse().ok()
}

/// The result of a query as text.
pub(super) async fn written(session: &Session, query: &str, mode: Mode) -> anyhow::Result<String> {
    let mut result = session.run(query).await?;
    let mut rows = mode.rows(DrawLayout::default());
    let mut out = Vec::new();
    rows.start(&result.schema().clone(), &mut out)?;
    while let Some(batch) = result.next().await? {
        rows.batch(&batch, &mut out)?;
    }
    rows.finish(&mut out)?;
    Ok(String::from_utf8(out)?)
}
