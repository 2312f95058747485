//! Options of COPY that are not options of the files' format.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, FieldRef};
use datafusion::common::{Column, Result};
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, cast};
use url::Url;

use atoll_sql_parse::parse::{EMPTY_FIRST, SINGLE};

/// The plan of a COPY after its options that do not concern the format.
pub fn settled(plan: LogicalPlan) -> Result<LogicalPlan> {
    let LogicalPlan::Copy(mut copy) = plan else { return Ok(plan) };
    if copy.options.remove(SINGLE).is_some() {
        copy.options.insert("single_file_output".to_owned(), "true".to_owned());
    }
    if copy.file_type.get_ext() == "csv" {
        copy.input = Arc::new(without_nested(Arc::unwrap_or_clone(copy.input))?);
    }
    Ok(LogicalPlan::Copy(copy))
}

/// The rows with lists, structs and maps as texts, for CSV.
fn without_nested(input: LogicalPlan) -> Result<LogicalPlan> {
    let schema = Arc::clone(input.schema());
    if !schema.fields().iter().any(|field| field.data_type().is_nested()) {
        return Ok(input);
    }
    let column = |(column, field): (Column, &FieldRef)| {
        let name = column.name.clone();
        match field.data_type().is_nested() {
            true => cast(Expr::Column(column), DataType::Utf8).alias(name),
            false => Expr::Column(column),
        }
    };
    let columns = schema.columns().into_iter().zip(schema.fields()).map(column);
    LogicalPlanBuilder::from(input).project(columns.collect::<Vec<_>>())?.build()
}

/// A directory whose files are removed once those of a COPY are complete.
#[derive(Debug)]
pub struct ReplacedDirectory(pub(crate) PathBuf);

impl ReplacedDirectory {
    /// Takes the option out of the plan of a COPY.
    pub fn take(plan: &mut LogicalPlan) -> Option<Self> {
        let LogicalPlan::Copy(copy) = plan else { return None };
        copy.options.remove(EMPTY_FIRST)?;
        Url::parse(&copy.output_url).ok()?.to_file_path().ok().map(Self)
    }

    /// The files that are in it.
    pub(crate) fn files(&self) -> Vec<PathBuf> {
        let mut found = Vec::new();
        files_below(&self.0, &mut found);
        found
    }
}

fn files_below(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => files_below(&entry.path(), found),
            Ok(_) => found.push(entry.path()),
            Err(_) => {}
        }
    }
}
