//! The table over files: the rows of its parts, one after the other.

use std::collections::HashMap;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::array::{Array, AsArray, RecordBatch};
use datafusion::arrow::datatypes::{Field, FieldRef, Schema, SchemaRef};
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::stats::Precision;
use datafusion::common::{DFSchema, Result, ScalarValue, Statistics};
use datafusion::datasource::TableType;
use datafusion::datasource::file_format::FileFormat;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::listing::helpers::expr_applicable_for_cols;
use datafusion::datasource::physical_plan::{FileGroup, FileScanConfigBuilder};
use datafusion::datasource::table_schema::TableSchema;
use datafusion::execution::object_store::ObjectStoreUrl;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::{CastExpr, Column, Literal};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::empty::EmptyExec;
use datafusion::physical_plan::projection::{ProjectionExec, ProjectionExpr};
use datafusion::physical_plan::streaming::{PartitionStream, StreamingTableExec};
use datafusion::physical_plan::union::UnionExec;

use crate::source::batches::{BatchSource, FileWithValues, FilesStream};
use crate::source::found::SourceFile;

/// The reader of files.
#[derive(Clone, Debug)]
pub(crate) enum PartReader {
    /// A DataFusion scan.
    Format(Arc<dyn FileFormat>),
    /// Atoll's reader, record by record.
    Batches(Arc<dyn BatchSource>),
}

/// Files that are read alike.
#[derive(Clone, Debug)]
pub(crate) struct FilesPart {
    pub(crate) files: Vec<SourceFile>,
    /// The columns of the files.
    pub(crate) schema: SchemaRef,
    pub(crate) reader: PartReader,
}

/// A part with the values of the columns that its files do not contain.
#[derive(Debug)]
struct TablePart {
    files: Vec<FileWithValues>,
    schema: SchemaRef,
    reader: PartReader,
}

/// A table over files.
#[derive(Debug)]
pub(crate) struct FilesTable {
    schema: SchemaRef,
    /// The last columns of the schema: those of Hive directories, and `filename`.
    of_files: Vec<FieldRef>,
    parts: Vec<TablePart>,
}

impl FilesTable {
    /// A table of these columns, in which each file has these values of the last ones.
    pub(crate) fn new(
        columns: SchemaRef,
        of_files: Vec<Field>,
        parts: Vec<FilesPart>,
        values: Vec<Vec<ScalarValue>>,
    ) -> Self {
        let of_files: Vec<FieldRef> = of_files.into_iter().map(Arc::new).collect();
        let fields: Vec<FieldRef> = columns.fields().iter().chain(&of_files).cloned().collect();
        let schema = Arc::new(Schema::new_with_metadata(fields, columns.metadata().clone()));
        let mut values = values.into_iter();
        let with_values = |file| FileWithValues { file, values: values.next().unwrap_or_default() };
        let mut with_values = with_values;
        let part = |part: FilesPart| TablePart {
            files: part.files.into_iter().map(&mut with_values).collect(),
            schema: part.schema,
            reader: part.reader,
        };
        let parts = parts.into_iter().map(part).collect();
        Self { schema, of_files, parts }
    }

    /// Columns that the files contain.
    fn own(&self) -> usize {
        self.schema.fields().len() - self.of_files.len()
    }

    fn names_of_files(&self) -> Vec<&str> {
        self.of_files.iter().map(|field| field.name().as_str()).collect()
    }

    /// The files whose values pass the filters over these columns alone.
    fn pruned(
        &self,
        state: &dyn Session,
        files: &[FileWithValues],
        filters: &[Expr],
    ) -> Result<Vec<FileWithValues>> {
        let names = self.names_of_files();
        let mut kept = vec![true; files.len()];
        let filters = filters.iter().filter(|filter| expr_applicable_for_cols(&names, filter));
        let filters: Vec<&Expr> = filters.collect();
        if filters.is_empty() || names.is_empty() || files.is_empty() {
            return Ok(files.to_vec());
        }
        let schema = Arc::new(Schema::new(self.of_files.clone()));
        let columns = (0..names.len())
            .map(|at| ScalarValue::iter_to_array(files.iter().map(|file| file.values[at].clone())))
            .collect::<Result<Vec<_>>>()?;
        let batch = RecordBatch::try_new(Arc::clone(&schema), columns)?;
        let df_schema = DFSchema::try_from(schema)?;
        for filter in filters {
            let filter = state.create_physical_expr(filter.clone(), &df_schema)?;
            let passes = filter.evaluate(&batch)?.into_array(files.len())?;
            let passes = passes.as_boolean();
            for (at, kept) in kept.iter_mut().enumerate() {
                *kept &= passes.is_valid(at) && passes.value(at);
            }
        }
        let kept = files.iter().zip(kept).filter(|(_, kept)| *kept);
        Ok(kept.map(|(file, _)| file.clone()).collect())
    }

    async fn scan_part(
        &self,
        state: &dyn Session,
        part: &TablePart,
        projection: &[usize],
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        let files = self.pruned(state, &part.files, filters)?;
        if files.is_empty() {
            return Ok(None);
        }
        let columns = PartColumns::for_part(self, part, projection)?;
        let plan = match &part.reader {
            PartReader::Format(format) => {
                self.scan_format(state, part, format, files, &columns.scanned, limit).await?
            }
            PartReader::Batches(source) => {
                self.scan_batches(state, part, source, files, &columns.scanned, limit)?
            }
        };
        columns.above(plan).map(Some)
    }

    async fn scan_format(
        &self,
        state: &dyn Session,
        part: &TablePart,
        format: &Arc<dyn FileFormat>,
        files: Vec<FileWithValues>,
        columns: &[usize],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let table = TableSchema::builder(Arc::clone(&part.schema))
            .with_table_partition_cols(self.of_files.clone())
            .build();
        let url = ObjectStoreUrl::local_filesystem();
        let store = state.runtime_env().object_store(&url)?;
        let mut group = Vec::with_capacity(files.len());
        for file in files {
            let object = file.file.object()?;
            let known = match state.config_options().execution.collect_statistics {
                true => {
                    let schema = Arc::clone(&part.schema);
                    Some(format.infer_stats(state, &store, schema, &object).await?)
                }
                false => None,
            };
            let has_null = file.values.iter().any(ScalarValue::is_null);
            let spooled = file.file.spooled();
            let mut file =
                PartitionedFile::new_from_meta(object).with_partition_values(file.values);
            if let Some(spooled) = spooled {
                file = file.with_extension(spooled);
            }
            group.push(match known {
                Some(known) if !has_null => file.with_statistics(Arc::new(known)),
                _ => file,
            });
        }
        let all = group.iter().map(|file| file.statistics.as_deref()).collect::<Option<Vec<_>>>();
        let statistics = match all {
            Some(all) => Statistics::try_merge_iter(all, table.table_schema())?,
            None => Statistics::new_unknown(table.table_schema()),
        };
        let statistics = match statistics.num_rows {
            Precision::Absent => Statistics::new_unknown(table.table_schema()),
            _ => statistics,
        };
        let groups = runs(group, state.config().target_partitions());
        let groups = groups.into_iter().map(FileGroup::new).collect();
        let config = FileScanConfigBuilder::new(url, format.file_source(table))
            .with_file_groups(groups)
            .with_statistics(statistics)
            .with_projection_indices(Some(columns.to_vec()))?
            .with_limit(limit)
            .build();
        format.create_physical_plan(state, config).await
    }

    fn scan_batches(
        &self,
        state: &dyn Session,
        part: &TablePart,
        source: &Arc<dyn BatchSource>,
        files: Vec<FileWithValues>,
        wanted: &[usize],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let own = part.schema.fields().len();
        let columns: Vec<usize> = wanted.iter().copied().filter(|at| *at < own).collect();
        let values: Vec<usize> =
            wanted.iter().filter(|at| **at >= own).map(|at| at - own).collect();
        let place = |at: &usize| match *at < own {
            true => columns.iter().position(|column| column == at),
            false => {
                values.iter().position(|value| *value + own == *at).map(|at| columns.len() + at)
            }
        };
        let order: Vec<usize> = wanted.iter().filter_map(place).collect();
        let all: Vec<FieldRef> =
            part.schema.fields().iter().chain(&self.of_files).cloned().collect();
        let fields: Vec<FieldRef> = wanted.iter().map(|at| Arc::clone(&all[*at])).collect();
        let schema: SchemaRef = Arc::new(Schema::new(fields));
        let stream = |files| {
            Arc::new(FilesStream {
                source: Arc::clone(source),
                files,
                columns: columns.clone(),
                values: values.clone(),
                order: order.clone(),
                schema: Arc::clone(&schema),
            }) as Arc<dyn PartitionStream>
        };
        let runs = runs(files, state.config().target_partitions());
        let streams = runs.into_iter().map(stream).collect();
        let plan =
            StreamingTableExec::try_new(Arc::clone(&schema), streams, None, [], false, limit)?;
        Ok(Arc::new(plan))
    }
}

/// Files in this many runs of about equal length, in their order.
fn runs<T>(files: Vec<T>, most: usize) -> Vec<Vec<T>> {
    let count = most.clamp(1, files.len().max(1));
    let (each, longer) = (files.len() / count, files.len() % count);
    let mut files = files.into_iter();
    let run = |at: usize| files.by_ref().take(each + usize::from(at < longer)).collect();
    (0..count).map(run).collect()
}

/// The columns of a part for a projection of the table.
struct PartColumns {
    /// Columns of the part: its own, then those of its files.
    scanned: Vec<usize>,
    /// The expressions over them; `None` if the columns are used unchanged.
    exprs: Option<Vec<ProjectionExpr>>,
}

impl PartColumns {
    fn for_part(table: &FilesTable, part: &TablePart, projection: &[usize]) -> Result<Self> {
        let own = table.own();
        let of_part: HashMap<&str, usize> = part
            .schema
            .fields()
            .iter()
            .enumerate()
            .map(|(at, it)| (it.name().as_str(), at))
            .collect();
        let (mut scanned, mut exprs) = (Vec::new(), Vec::new());
        let mut is_same = true;
        for at in projection {
            let wanted = table.schema.field(*at);
            let found = match at.checked_sub(own) {
                Some(value) => Some(part.schema.fields().len() + value),
                None => of_part.get(wanted.name().as_str()).copied(),
            };
            let expr: Arc<dyn PhysicalExpr> = match found {
                Some(column) => {
                    let expr = Arc::new(Column::new(wanted.name(), scanned.len()));
                    scanned.push(column);
                    let of_part = part.schema.fields().get(column);
                    match of_part.is_none_or(|field| field.data_type() == wanted.data_type()) {
                        true => expr,
                        false => {
                            is_same = false;
                            Arc::new(CastExpr::new(expr, wanted.data_type().clone(), None))
                        }
                    }
                }
                None => {
                    is_same = false;
                    Arc::new(Literal::new(ScalarValue::try_from(wanted.data_type())?))
                }
            };
            exprs.push(ProjectionExpr::new(expr, wanted.name().clone()));
        }
        Ok(Self { scanned, exprs: (!is_same).then_some(exprs) })
    }

    fn above(self, plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
        match self.exprs {
            Some(exprs) => Ok(Arc::new(ProjectionExec::try_new(exprs, plan)?)),
            None => Ok(plan),
        }
    }
}

#[async_trait]
impl TableProvider for FilesTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let all: Vec<usize> = (0..self.schema.fields().len()).collect();
        let projection = projection.unwrap_or(&all);
        // A limit applies after the filters.
        let limit = limit.filter(|_| filters.is_empty());
        let mut plans = Vec::new();
        for part in &self.parts {
            plans.extend(self.scan_part(state, part, projection, filters, limit).await?);
        }
        match plans.len() {
            0 => Ok(Arc::new(EmptyExec::new(Arc::new(self.schema.project(projection)?)))),
            1 => Ok(plans.swap_remove(0)),
            _ => UnionExec::try_new(plans),
        }
    }

    fn supports_filters_pushdown(
        &self,
        filters: &[&Expr],
    ) -> Result<Vec<TableProviderFilterPushDown>> {
        let names = self.names_of_files();
        let support =
            |filter: &&Expr| match !names.is_empty() && expr_applicable_for_cols(&names, filter) {
                true => TableProviderFilterPushDown::Exact,
                false => TableProviderFilterPushDown::Inexact,
            };
        Ok(filters.iter().map(support).collect())
    }
}
