//! `atoll.tables`, `atoll.columns`, `atoll.pages`: what the placed tables hold and where it lies.

use std::collections::BTreeMap;
use std::sync::Arc;

use atoll_placement::verify_pages;
use atoll_runtime::Runtime;
use atoll_topology::NodeId;
use datafusion::arrow::array::{ArrayRef, BooleanArray, StringArray, UInt32Array, UInt64Array};
use datafusion::arrow::datatypes::DataType::{Boolean, UInt32, UInt64, Utf8};
use datafusion::catalog::CatalogProviderList;
use datafusion::common::{DataFusionError, Result};

use super::{SystemTable, table};
use crate::catalog::CATALOG;
use crate::session::placed_tables;
use crate::table::PlacedTable;

/// The names that a statement sees, and with them the tables and their rows.
type Names = Arc<dyn CatalogProviderList>;

async fn placed(names: Names) -> Result<Vec<(String, PlacedTable)>> {
    match names.catalog(CATALOG) {
        Some(catalog) => placed_tables(catalog.as_ref()).await,
        None => Ok(Vec::new()),
    }
}

/// The tables about tables.
pub(super) fn tables(runtime: Runtime) -> Vec<SystemTable> {
    vec![
        table(
            "tables",
            &[
                ("table", Utf8, false),
                ("rows", UInt64, false),
                ("chunks", UInt64, false),
                ("columns", UInt64, false),
                ("memory_bytes", UInt64, false),
                ("placement", Utf8, false),
                ("sorted_by", Utf8, true),
            ],
            Box::new(|session| {
                let names = session.catalog_list();
                Box::pin(async move { Ok(table_values(&placed(names).await?)) })
            }),
        ),
        table(
            "columns",
            &[
                ("table", Utf8, false),
                ("column", Utf8, false),
                ("type", Utf8, false),
                ("encodings", Utf8, false),
                ("bytes", UInt64, false),
                ("nulls", UInt64, false),
            ],
            Box::new(|session| {
                let names = session.catalog_list();
                Box::pin(async move { Ok(column_values(&placed(names).await?)) })
            }),
        ),
        table(
            "pages",
            &[
                ("table", Utf8, false),
                ("wanted_node", UInt32, true),
                ("found_node", UInt32, true),
                ("pages", UInt64, false),
                ("bytes", UInt64, false),
                ("sampled", Boolean, false),
            ],
            Box::new(move |session| {
                let (names, runtime) = (session.catalog_list(), runtime.clone());
                Box::pin(async move { page_values(&placed(names).await?, &runtime) })
            }),
        ),
    ]
}

fn table_values(tables: &[(String, PlacedTable)]) -> Vec<ArrayRef> {
    let snapshots: Vec<_> = tables.iter().map(|(_, table)| table.snapshot()).collect();
    let count = |number: &dyn Fn(usize) -> usize| -> ArrayRef {
        Arc::new(UInt64Array::from_iter_values((0..tables.len()).map(|t| number(t) as u64)))
    };
    let sorted_by = snapshots.iter().map(|snapshot| {
        let names = snapshot.rising.iter().map(|c| snapshot.schema.field(*c).name().as_str());
        let names: Vec<&str> = names.collect();
        (!names.is_empty()).then(|| names.join(", "))
    });
    vec![
        Arc::new(StringArray::from_iter_values(tables.iter().map(|(name, _)| name))),
        count(&|t| snapshots[t].rows),
        count(&|t| snapshots[t].chunks.len()),
        count(&|t| snapshots[t].schema.fields().len()),
        count(&|t| snapshots[t].memory_bytes()),
        Arc::new(StringArray::from_iter_values(
            tables.iter().map(|(_, table)| table.strategy().to_string()),
        )),
        Arc::new(sorted_by.collect::<StringArray>()),
    ]
}

fn column_values(tables: &[(String, PlacedTable)]) -> Vec<ArrayRef> {
    let (mut of_table, mut names, mut types, mut encodings) = (vec![], vec![], vec![], vec![]);
    let (mut bytes, mut nulls) = (vec![], vec![]);
    for (name, table) in tables {
        let snapshot = table.snapshot();
        for (column, field) in snapshot.schema.fields().iter().enumerate() {
            let stats = || snapshot.chunks.iter().map(|chunk| &chunk.stats[column]);
            let mut seen: Vec<&str> = stats().map(|stats| stats.encoding.as_str()).collect();
            seen.sort_unstable();
            seen.dedup();
            of_table.push(name.clone());
            names.push(field.name().clone());
            types.push(field.data_type().to_string());
            encodings.push(seen.join(", "));
            bytes.push(stats().map(|stats| stats.bytes as u64).sum::<u64>());
            nulls.push(stats().map(|stats| stats.nulls as u64).sum::<u64>());
        }
    }
    vec![
        Arc::new(StringArray::from(of_table)),
        Arc::new(StringArray::from(names)),
        Arc::new(StringArray::from(types)),
        Arc::new(StringArray::from(encodings)),
        Arc::new(UInt64Array::from(bytes)),
        Arc::new(UInt64Array::from(nulls)),
    ]
}

/// Table, node wanted, node found, pages, whether sampled.
type PagesRow = (String, Option<u32>, Option<u32>, u64, bool);

/// Asks the kernel where every page of every chunk is. Pages without a home yet have none found.
fn page_values(tables: &[(String, PlacedTable)], runtime: &Runtime) -> Result<Vec<ArrayRef>> {
    let page_size = runtime.kernel().page_size() as u64;
    let mut rows: Vec<PagesRow> = Vec::new();
    for (name, table) in tables {
        let snapshot = table.snapshot();
        let mut by_wanted: BTreeMap<Option<NodeId>, Vec<_>> = BTreeMap::new();
        for copy in snapshot.chunks.iter().flat_map(|chunk| &chunk.copies) {
            by_wanted.entry(copy.wanted).or_default().push(copy.memory.pages());
        }
        for (wanted, ranges) in by_wanted {
            let report = verify_pages(runtime.kernel().as_ref(), &ranges)
                .map_err(|error| DataFusionError::Execution(error.to_string()))?;
            let wanted = wanted.map(|node| node.0);
            for (found, pages) in report.by_node() {
                rows.push((name.clone(), wanted, Some(found.0), pages, report.sampled));
            }
            if report.untouched > 0 {
                rows.push((name.clone(), wanted, None, report.untouched, report.sampled));
            }
        }
    }
    Ok(vec![
        Arc::new(StringArray::from_iter_values(rows.iter().map(|row| &row.0))),
        Arc::new(rows.iter().map(|row| row.1).collect::<UInt32Array>()),
        Arc::new(rows.iter().map(|row| row.2).collect::<UInt32Array>()),
        Arc::new(UInt64Array::from_iter_values(rows.iter().map(|row| row.3))),
        Arc::new(UInt64Array::from_iter_values(rows.iter().map(|row| row.3 * page_size))),
        Arc::new(rows.iter().map(|row| Some(row.4)).collect::<BooleanArray>()),
    ])
}
