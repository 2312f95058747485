//! `atoll.tables`, `atoll.columns`, `atoll.chunks`, `atoll.pages`: the contents of placed tables and their location.

use std::collections::BTreeMap;
use std::sync::Arc;

use atoll_placement::verify_pages;
use atoll_runtime::Runtime;
use atoll_store::table::TableSnapshot;
use atoll_topology::NodeId;
use datafusion::catalog::{CatalogProvider, CatalogProviderList};
use datafusion::common::{DataFusionError, Result};

use super::column::ColumnSpecs;
use super::{SystemTable, session_system};
use crate::table::PlacedTable;
use atoll_sql_common::names::{CATALOG, SCHEMA};

/// The names that a statement sees, and with them the tables and their rows.
type StatementNames = Arc<dyn CatalogProviderList>;

async fn placed(names: StatementNames) -> Result<Vec<(String, PlacedTable)>> {
    match names.catalog(CATALOG) {
        Some(catalog) => placed_tables(catalog.as_ref()).await,
        None => Ok(Vec::new()),
    }
}

/// The placed tables of a catalog with their names (`schema.table` outside of `public`), ordered by
/// name.
async fn placed_tables(catalog: &dyn CatalogProvider) -> Result<Vec<(String, PlacedTable)>> {
    let mut tables = Vec::new();
    for schema_name in catalog.schema_names() {
        let Some(schema) = catalog.schema(&schema_name) else { continue };
        for name in schema.table_names() {
            let Some(table) = schema.table(&name).await? else { continue };
            if let Some(placed) = table.downcast_ref::<PlacedTable>() {
                let full = match schema_name.as_str() {
                    SCHEMA => name,
                    other => format!("{other}.{name}"),
                };
                tables.push((full, placed.clone()));
            }
        }
    }
    tables.sort_by(|a, b| a.0.cmp(&b.0));
    Ok(tables)
}

/// The tables about tables.
pub(super) fn all(runtime: &Runtime) -> [SystemTable; 4] {
    [tables(), columns(), chunks(), pages(runtime.clone())]
}

/// A table in a statement.
struct StoredTable {
    name: String,
    table: PlacedTable,
    snapshot: Arc<TableSnapshot>,
    /// Log position up to which it is on disk.
    durable: Option<u64>,
}

impl StoredTable {
    /// The share of deleted or updated rows among all rows of chunks.
    fn deleted_share(&self) -> f64 {
        let deleted = self.table.version().deleted_rows() as f64;
        let chunks = self.table.version().entries().map(|entry| entry.chunk().rows);
        deleted / (chunks.sum::<usize>() as f64).max(1.0)
    }
}

fn tables() -> SystemTable {
    ColumnSpecs::<StoredTable>::new()
        .column("table", |table| table.name.clone())
        .column("rows", |table| table.snapshot.rows as u64)
        .column("deleted_rows", |table| table.snapshot.deleted_rows() as u64)
        .column("deleted_share", StoredTable::deleted_share)
        .column("delta_rows", |table| table.table.version().delta_rows() as u64)
        .column("chunks", |table| table.snapshot.chunks.len() as u64)
        .column("columns", |table| table.snapshot.schema.fields().len() as u64)
        .column("memory_bytes", |table| table.snapshot.memory_bytes() as u64)
        .column("delta_bytes", |table| table.table.version().loose_bytes() as u64)
        .column("index_bytes", |table| table.table.version().index_bytes() as u64)
        .column("durable_position", |table| table.durable)
        .column("placement", |table| table.table.strategy().to_string())
        .column("sorted_by", |table| sorted_by(&table.snapshot))
        .table("tables", |session| {
            let (names, system) = (session.catalog_list(), session_system(session));
            let durable = system.and_then(|system| system.database.durable_position());
            Box::pin(async move {
                let tables = placed(names).await?.into_iter();
                let read = |(name, table): (String, PlacedTable)| {
                    let snapshot = table.snapshot()?;
                    Ok(StoredTable { name, table, snapshot, durable })
                };
                tables.map(read).collect()
            })
        })
}

fn sorted_by(snapshot: &TableSnapshot) -> Option<String> {
    let names = snapshot.rising().map(|at| snapshot.schema.field(at).name().as_str());
    let names: Vec<&str> = names.collect();
    (!names.is_empty()).then(|| names.join(", "))
}

/// A column of a table.
struct StorageRow {
    table: String,
    name: String,
    data_type: String,
    encodings: String,
    bytes: u64,
    nulls: u64,
}

fn columns() -> SystemTable {
    ColumnSpecs::<StorageRow>::new()
        .column("table", |column| column.table.clone())
        .column("column", |column| column.name.clone())
        .column("type", |column| column.data_type.clone())
        .column("encodings", |column| column.encodings.clone())
        .column("bytes", |column| column.bytes)
        .column("nulls", |column| column.nulls)
        .table("columns", |session| {
            let names = session.catalog_list();
            Box::pin(async move {
                let mut columns = Vec::new();
                for table in &placed(names).await? {
                    columns.extend(columns_of(table)?);
                }
                Ok(columns)
            })
        })
}

fn columns_of((table, placed): &(String, PlacedTable)) -> Result<Vec<StorageRow>> {
    let snapshot = placed.snapshot()?;
    let column = |(at, field): (usize, &datafusion::arrow::datatypes::FieldRef)| {
        let stats = || snapshot.chunks.iter().map(|chunk| &chunk.stats[at]);
        let mut encodings: Vec<&str> = stats().map(|stats| stats.encoding.as_str()).collect();
        encodings.sort_unstable();
        encodings.dedup();
        StorageRow {
            table: table.clone(),
            name: field.name().clone(),
            data_type: field.data_type().to_string(),
            encodings: encodings.join(", "),
            bytes: stats().map(|stats| stats.bytes as u64).sum(),
            nulls: stats().map(|stats| stats.nulls as u64).sum(),
        }
    };
    Ok(snapshot.schema.fields().iter().enumerate().map(column).collect())
}

/// A copy of a chunk of a table.
struct ChunkRow {
    table: String,
    chunk: u64,
    wanted: Option<NodeId>,
    found: Option<NodeId>,
    rows: u64,
    bytes: u64,
}

/// One row per copy of a chunk, as located after loading: without asking the kernel again, as `atoll.pages` does.
fn chunks() -> SystemTable {
    ColumnSpecs::<ChunkRow>::new()
        .column("table", |row| row.table.clone())
        .column("chunk", |row| row.chunk)
        .column("wanted_node", |row| row.wanted.map(|node| node.0))
        .column("found_node", |row| row.found.map(|node| node.0))
        .column("rows", |row| row.rows)
        .column("bytes", |row| row.bytes)
        .table("chunks", |session| {
            let names = session.catalog_list();
            Box::pin(async move {
                let mut rows = Vec::new();
                for (table, placed) in &placed(names).await? {
                    let snapshot = placed.snapshot()?;
                    rows.extend(chunks_of(table, &snapshot));
                }
                Ok(rows)
            })
        })
}

fn chunks_of(table: &str, snapshot: &TableSnapshot) -> Vec<ChunkRow> {
    let copies = snapshot.chunks.iter().enumerate().flat_map(|(at, chunk)| {
        chunk.copies.iter().map(move |copy| ChunkRow {
            table: table.to_owned(),
            chunk: at as u64,
            wanted: copy.wanted,
            found: copy.found,
            rows: chunk.rows as u64,
            bytes: copy.memory.len() as u64,
        })
    });
    copies.collect()
}

/// Pages of a table by wanted node and actual node.
struct FoundPages {
    table: String,
    wanted: Option<NodeId>,
    found: Option<NodeId>,
    pages: u64,
    bytes: u64,
    sampled: bool,
}

fn pages(runtime: Runtime) -> SystemTable {
    ColumnSpecs::<FoundPages>::new()
        .column("table", |row| row.table.clone())
        .column("wanted_node", |row| row.wanted.map(|node| node.0))
        .column("found_node", |row| row.found.map(|node| node.0))
        .column("pages", |row| row.pages)
        .column("bytes", |row| row.bytes)
        .column("sampled", |row| row.sampled)
        .table("pages", move |session| {
            let (names, runtime) = (session.catalog_list(), runtime.clone());
            Box::pin(async move { found_pages(&placed(names).await?, &runtime) })
        })
}

/// Asks the kernel where every page of every chunk is. Pages without a home yet have no actual node.
fn found_pages(tables: &[(String, PlacedTable)], runtime: &Runtime) -> Result<Vec<FoundPages>> {
    let page_size = runtime.kernel().page_size() as u64;
    let mut rows = Vec::new();
    for (name, table) in tables {
        let snapshot = table.snapshot()?;
        let mut by_wanted: BTreeMap<Option<NodeId>, Vec<_>> = BTreeMap::new();
        for copy in snapshot.chunks.iter().flat_map(|chunk| &chunk.copies) {
            by_wanted.entry(copy.wanted).or_default().push(copy.memory.pages());
        }
        for (wanted, ranges) in by_wanted {
            let report = verify_pages(runtime.kernel().as_ref(), &ranges)
                .map_err(|error| DataFusionError::Execution(error.to_string()))?;
            let row = |found, pages| FoundPages {
                table: name.clone(),
                wanted,
                found,
                pages,
                bytes: pages * page_size,
                sampled: report.sampled,
            };
            rows.extend(report.by_node().into_iter().map(|(found, pages)| row(Some(found), pages)));
            if report.untouched > 0 {
                rows.push(row(None, report.untouched));
            }
        }
    }
    Ok(rows)
}
