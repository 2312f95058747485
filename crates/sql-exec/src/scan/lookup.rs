//! Lookup by index, which replaces a scan if equalities name a whole unique key, if an index of CREATE INDEX finds few
//! rows, or if the first rows in its order are wanted.
//!
//! The indexes of a version never change, so the rows are found when the statement is planned, and counted rather than
//! estimated.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use atoll_store::RowId;
use atoll_store::table::{Key, KeyFunction, RowCondition, TableVersion};
use datafusion::arrow::array::{AsArray, BooleanArray, RecordBatch, UInt64Array};
use datafusion::arrow::compute::{SortOptions, filter_record_batch};
use datafusion::arrow::datatypes::{Schema, SchemaRef};
use datafusion::common::stats::Precision;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Result, ScalarValue, Statistics, internal_datafusion_err};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::expressions::{BinaryExpr, Literal};
use datafusion::physical_expr::{EquivalenceProperties, Partitioning, PhysicalExpr};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::statistics::StatisticsArgs;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use futures::stream;

use super::condition::ColumnCondition;
use super::index_ranges::{candidates_max, indexed_rows};
use super::row_condition::{key_function, row_conditions};
use atoll_sql_common::error::table_error;
use atoll_sql_common::names::row_id_field;
use atoll_sql_common::operator::leaf;

/// Reads the rows that an index finds, and keeps those that pass the conjuncts.
#[derive(Debug)]
pub struct LookupExec {
    table: Arc<str>,
    version: Arc<TableVersion>,
    lookup: IndexLookup,
    projection: Vec<usize>,
    /// Name of the column of row ids, if it follows the others.
    ids: Option<String>,
    properties: Arc<PlanProperties>,
}

/// The rows that an index finds for conjuncts.
#[derive(Debug)]
pub struct IndexLookup {
    index: Arc<str>,
    kind: LookupKind,
    /// In their order; without a key, rows that do not pass the conjuncts may be among them.
    rows: Vec<RowId>,
    conjuncts: Vec<Arc<dyn PhysicalExpr>>,
}

/// How an index finds rows.
#[derive(Debug)]
enum LookupKind {
    /// By the key of a unique index.
    Key {
        /// Its number.
        unique: usize,
        /// None if a value is NULL, and no row has it.
        key: Option<Key>,
        /// The key for EXPLAIN.
        text: String,
    },
    /// By ranges of an ordered index.
    Ranges,
    /// As the first or last ones of this column.
    Order { column: String, descending: bool },
}

impl IndexLookup {
    /// The lookup that conjuncts over the columns of a table allow: by a whole key, or by an index that finds few rows.
    /// Else `None`.
    pub fn from_conjuncts(
        version: &TableVersion,
        conjuncts: &[Arc<dyn PhysicalExpr>],
    ) -> Result<Option<Self>> {
        if conjuncts.is_empty() {
            return Ok(None);
        }
        if let Some(lookup) = Self::by_key(version, conjuncts)? {
            return Ok(Some(lookup));
        }
        let found = indexed_rows(version, conjuncts)?;
        let conjuncts = conjuncts.to_vec();
        Ok(found.map(|(index, rows)| Self { index, kind: LookupKind::Ranges, rows, conjuncts }))
    }

    /// The lookup of the first `fetch` rows in the order of a column, among those that pass the conjuncts, with others
    /// that may be as early; `None` if no index finds them among few rows.
    pub(super) fn first_rows(
        version: &TableVersion,
        conjuncts: &[Arc<dyn PhysicalExpr>],
        column: usize,
        options: SortOptions,
        fetch: usize,
    ) -> Result<Option<Self>> {
        let field = version.definition().columns.field(column);
        // An index has NULL as its last value.
        if options.descending != options.nulls_first && field.is_nullable() {
            return Ok(None);
        }
        let value = match conjuncts {
            [] => None,
            [conjunct] => {
                let condition = ColumnCondition::from_physical(conjunct);
                match condition.and_then(ColumnCondition::equality) {
                    Some((column, value)) if is_of_column(version, column, value) => {
                        Some((column, value))
                    }
                    _ => return Ok(None),
                }
            }
            _ => return Ok(None),
        };
        let (descending, max) = (options.descending, candidates_max(version.rows()));
        let indexes = version.definition().indexes.iter().enumerate();
        for (at, index) in indexes.filter(|(_, index)| index.expressions.is_empty()) {
            let array = match (value, index.keys.as_slice()) {
                (None, [first, ..]) if first.column == column => None,
                (Some((equal, value)), [first, second, ..])
                    if first.column == equal && second.column == column =>
                {
                    Some(value.to_array()?)
                }
                _ => continue,
            };
            let found = version.first_rows(at, array.as_ref(), descending, fetch, max);
            let Some(rows) = found.map_err(table_error)? else { continue };
            let kind = LookupKind::Order { column: field.name().clone(), descending };
            let (index, conjuncts) = (Arc::clone(&index.name), conjuncts.to_vec());
            return Ok(Some(Self { index, kind, rows, conjuncts }));
        }
        Ok(None)
    }

    /// The number and the key of a unique index, by which the row is found; the key is None if a value of it is NULL.
    pub fn unique_key(&self) -> Option<(usize, Option<&Key>)> {
        match &self.kind {
            LookupKind::Key { unique, key, .. } => Some((*unique, key.as_ref())),
            LookupKind::Ranges | LookupKind::Order { .. } => None,
        }
    }

    fn by_key(version: &TableVersion, conjuncts: &[Arc<dyn PhysicalExpr>]) -> Result<Option<Self>> {
        let uniques = &version.definition().uniques;
        if uniques.is_empty() {
            return Ok(None);
        }
        let equalities = Equality::all(version, conjuncts)?;
        let mut known: Option<Vec<RowCondition>> = None;
        for (at, unique) in uniques.iter().enumerate() {
            let value = |(place, column): (usize, &usize)| {
                let function = unique.function(place);
                let is_it =
                    |it: &&Equality<'_>| it.column == *column && it.function.as_ref() == function;
                equalities.iter().find(is_it).map(|it| it.value)
            };
            let values = unique.columns.iter().enumerate().map(value);
            let Some(values) = values.collect::<Option<Vec<_>>>() else { continue };
            if let Some(condition) = &unique.condition {
                let known = match &mut known {
                    Some(known) => known,
                    None => known.insert(row_conditions(version.codec(), conjuncts)?),
                };
                // Rows for which the condition does not hold are in no index.
                if !condition.rows.follows_from(known) {
                    continue;
                }
            }
            let text: Vec<String> = values.iter().map(ToString::to_string).collect();
            let key = match key(version, &unique.columns, &values)? {
                Some(key) if unique.nulls_not_distinct => Some(key.among_nulls(values.len())),
                key => key,
            };
            let rows = key.as_ref().map_or_else(Vec::new, |key| match unique.is_immediate() {
                true => version.find(at, key).into_iter().collect(),
                false => version.find_all(at, key).collect::<BTreeSet<_>>().into_iter().collect(),
            });
            return Ok(Some(Self {
                index: Arc::clone(&unique.name),
                kind: LookupKind::Key { unique: at, key, text: text.join(", ") },
                rows,
                // A second equality of a key column may have another value.
                conjuncts: conjuncts.to_vec(),
            }));
        }
        Ok(None)
    }
}

/// A conjunct that equates a column, or a function of it, with a value.
struct Equality<'e> {
    column: usize,
    function: Option<KeyFunction>,
    value: &'e ScalarValue,
}

impl<'e> Equality<'e> {
    fn all(version: &TableVersion, conjuncts: &'e [Arc<dyn PhysicalExpr>]) -> Result<Vec<Self>> {
        let uniques = &version.definition().uniques;
        let has_functions = uniques.iter().any(|unique| !unique.expressions.is_empty());
        let mut all = Vec::new();
        for conjunct in conjuncts {
            let of_column = ColumnCondition::from_physical(conjunct).and_then(|it| it.equality());
            match of_column {
                Some((column, value)) => all.push(Self { column, function: None, value }),
                None if has_functions => all.extend(Self::of_function(version, conjunct)?),
                None => {}
            }
        }
        Ok(all)
    }

    fn of_function(
        version: &TableVersion,
        conjunct: &'e Arc<dyn PhysicalExpr>,
    ) -> Result<Option<Self>> {
        let Some(equal) = conjunct.downcast_ref::<BinaryExpr>() else { return Ok(None) };
        if *equal.op() != Operator::Eq {
            return Ok(None);
        }
        for (of, value) in [(equal.left(), equal.right()), (equal.right(), equal.left())] {
            let Some(value) = value.downcast_ref::<Literal>().map(Literal::value) else { continue };
            let found = key_function(version.codec(), of)?;
            let found = found.filter(|(column, _)| is_of_column(version, *column, value));
            if let Some((column, function)) = found {
                return Ok(Some(Self { column, function: Some(function), value }));
            }
        }
        Ok(None)
    }
}

/// Whether a value is of the type of a column.
fn is_of_column(version: &TableVersion, column: usize, value: &ScalarValue) -> bool {
    let (own, given) = (version.definition().columns.field(column).data_type(), value.data_type());
    *own == given || (own.is_string() && given.is_string())
}

/// The key of these values; `None` if one is NULL or not of the column's type.
fn key(version: &TableVersion, columns: &[usize], values: &[&ScalarValue]) -> Result<Option<Key>> {
    if !columns.iter().zip(values).all(|(column, value)| is_of_column(version, *column, value)) {
        return Err(internal_datafusion_err!("a key was compared with values of other types"));
    }
    let arrays = values.iter().map(|value| value.to_array()).collect::<Result<Vec<_>>>()?;
    let keys = version.codec().keys_of_values(columns, &arrays).map_err(table_error)?;
    Ok(keys.into_iter().next().flatten())
}

impl LookupExec {
    /// Reads these columns of the row, followed by its id under this name if one is given.
    pub fn new(
        table: Arc<str>,
        version: Arc<TableVersion>,
        lookup: IndexLookup,
        projection: Vec<usize>,
        ids: Option<&str>,
    ) -> Result<Self> {
        let columns = version.definition().columns.project(&projection)?;
        let id = ids.map(|name| Arc::new(row_id_field(name)));
        let fields = columns.fields().iter().cloned().chain(id);
        let schema: SchemaRef = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        let properties = PlanProperties::new(
            EquivalenceProperties::new(schema),
            Partitioning::UnknownPartitioning(1),
            EmissionType::Incremental,
            Boundedness::Bounded,
        );
        let (ids, properties) = (ids.map(str::to_owned), Arc::new(properties));
        Ok(Self { table, version, lookup, projection, ids, properties })
    }

    /// The rows that pass.
    fn read(&self) -> Result<RecordBatch> {
        let rows = self.lookup.rows.iter();
        let rows = rows.filter_map(|id| Some((*id, self.version.row(*id)?)));
        let (ids, rows): (Vec<RowId>, Vec<_>) = rows.unzip();
        let whole = self.version.codec().decode(&rows).map_err(table_error)?;
        let mut keep = BooleanArray::from(vec![true; whole.num_rows()]);
        for conjunct in &self.lookup.conjuncts {
            let passes = conjunct.evaluate(&whole)?.into_array(whole.num_rows())?;
            let both = keep.iter().zip(passes.as_boolean());
            keep = both
                .map(|(keep, passes)| Some(keep == Some(true) && passes == Some(true)))
                .collect();
        }
        let mut columns = whole.project(&self.projection)?.columns().to_vec();
        if self.ids.is_some() {
            columns.push(Arc::new(UInt64Array::from_iter_values(ids.iter().map(|id| id.get()))));
        }
        let options = datafusion::arrow::array::RecordBatchOptions::new()
            .with_row_count(Some(whole.num_rows()));
        let batch = RecordBatch::try_new_with_options(self.schema(), columns, &options)?;
        Ok(filter_record_batch(&batch, &keep)?)
    }
}

impl DisplayAs for LookupExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let IndexLookup { index, kind, rows, conjuncts } = &self.lookup;
        write!(f, "LookupExec: table={}, index={index}", self.table)?;
        match kind {
            LookupKind::Key { text, .. } => return write!(f, ", key=({text})"),
            LookupKind::Ranges => {}
            LookupKind::Order { column, descending } => {
                write!(f, ", order={column}{}", if *descending { " DESC" } else { "" })?;
            }
        }
        write!(f, ", candidates={}", rows.len())?;
        if conjuncts.is_empty() {
            return Ok(());
        }
        let filter: Vec<String> = conjuncts.iter().map(ToString::to_string).collect();
        write!(f, ", filter={}", filter.join(" AND "))
    }
}

impl ExecutionPlan for LookupExec {
    leaf!("LookupExec", properties);

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        let mut next = TreeNodeRecursion::Continue;
        for conjunct in &self.lookup.conjuncts {
            next = f(conjunct)?;
        }
        Ok(next)
    }

    fn statistics_from_inputs(
        &self,
        _: &[Arc<Statistics>],
        _: &StatisticsArgs,
    ) -> Result<Arc<Statistics>> {
        let mut statistics = Statistics::new_unknown(&self.schema());
        statistics.num_rows = Precision::Inexact(self.lookup.rows.len());
        Ok(Arc::new(statistics))
    }

    fn execute(&self, _: usize, _: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let rows = self.read().map(|batch| (batch.num_rows() > 0).then_some(batch)).transpose();
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), stream::iter(rows))))
    }
}
