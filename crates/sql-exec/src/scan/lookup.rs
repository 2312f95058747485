//! A row by its key: what a scan becomes where equalities name a whole PRIMARY KEY or UNIQUE constraint.
//!
//! The index of a version never changes, so the row is found when the statement is planned.

use std::fmt;
use std::sync::Arc;

use atoll_store::RowId;
use atoll_store::table::{Key, TableVersion};
use datafusion::arrow::array::{AsArray, BooleanArray, RecordBatch, UInt64Array};
use datafusion::arrow::compute::filter_record_batch;
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Result, ScalarValue, internal_datafusion_err};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::expressions::{BinaryExpr, Column, Literal};
use datafusion::physical_expr::{EquivalenceProperties, Partitioning, PhysicalExpr};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use futures::stream;

use atoll_sql_common::error::table_error;
use atoll_sql_common::operator::leaf;

/// Reads the row that has a key, if there is one.
#[derive(Debug)]
pub struct LookupExec {
    table: Arc<str>,
    version: Arc<TableVersion>,
    lookup: KeyLookup,
    projection: Vec<usize>,
    /// Name of the column of row ids, where it comes behind the others.
    ids: Option<String>,
    properties: Arc<PlanProperties>,
}

/// A key that conjuncts name.
#[derive(Debug)]
pub struct KeyLookup {
    /// Number of the constraint in the definition.
    unique: usize,
    /// Its key as text, for EXPLAIN.
    text: String,
    row: Option<RowId>,
    /// Conjuncts that the row must pass besides.
    rest: Vec<Arc<dyn PhysicalExpr>>,
}

impl KeyLookup {
    /// The lookup that conjuncts over the columns of a table allow; none where they name no whole key.
    pub fn of(version: &TableVersion, conjuncts: &[Arc<dyn PhysicalExpr>]) -> Result<Option<Self>> {
        let uniques = &version.definition().uniques;
        if uniques.is_empty() {
            return Ok(None);
        }
        let equalities: Vec<Option<(usize, &ScalarValue)>> =
            conjuncts.iter().map(|conjunct| equality(conjunct)).collect();
        for (unique, of) in uniques.iter().enumerate() {
            let value = |column: &usize| {
                let found = equalities.iter().flatten().find(|(own, _)| own == column);
                found.map(|(_, value)| *value)
            };
            let Some(values) = of.columns.iter().map(value).collect::<Option<Vec<_>>>() else {
                continue;
            };
            let text: Vec<String> = values.iter().map(ToString::to_string).collect();
            let row = match key(version, &of.columns, &values)? {
                Some(key) => version.find(unique, &key),
                None => None,
            };
            return Ok(Some(Self {
                unique,
                text: text.join(", "),
                row,
                // An equality of the key that is said twice with other values is one of the rest.
                rest: conjuncts.to_vec(),
            }));
        }
        Ok(None)
    }
}

/// The column and the constant of `column = constant`, in the type of the column.
fn equality(conjunct: &Arc<dyn PhysicalExpr>) -> Option<(usize, &ScalarValue)> {
    let binary = conjunct.downcast_ref::<BinaryExpr>()?;
    if *binary.op() != Operator::Eq {
        return None;
    }
    let sides = (binary.left(), binary.right());
    let (column, value) = match (sides.0.downcast_ref::<Column>(), sides.1.downcast_ref::<Column>())
    {
        (Some(column), None) => (column, sides.1),
        (None, Some(column)) => (column, sides.0),
        _ => return None,
    };
    Some((column.index(), value.downcast_ref::<Literal>()?.value()))
}

/// The key of these values; none where one is NULL, or of a type that the column does not have.
fn key(version: &TableVersion, columns: &[usize], values: &[&ScalarValue]) -> Result<Option<Key>> {
    let fields = version.definition().columns.fields();
    let same = |(column, value): (&usize, &&ScalarValue)| {
        let (own, given) = (fields[*column].data_type(), value.data_type());
        *own == given || (own.is_string() && given.is_string())
    };
    if !columns.iter().zip(values).all(same) {
        return Err(internal_datafusion_err!("a key was compared with values of other types"));
    }
    let arrays = values.iter().map(|value| value.to_array()).collect::<Result<Vec<_>>>()?;
    let keys = version.codec().keys_of_values(columns, &arrays).map_err(table_error)?;
    Ok(keys.into_iter().next().flatten())
}

impl LookupExec {
    /// Reads these columns of the row, and behind them its id under this name where one is given.
    pub fn new(
        table: Arc<str>,
        version: Arc<TableVersion>,
        lookup: KeyLookup,
        projection: Vec<usize>,
        ids: Option<&str>,
    ) -> Result<Self> {
        let columns = version.definition().columns.project(&projection)?;
        let id = ids.map(|name| Arc::new(Field::new(name, DataType::UInt64, false)));
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

    /// The row, or no row.
    fn read(&self) -> Result<RecordBatch> {
        let rows = self.lookup.row.and_then(|id| Some((id, self.version.row(id)?)));
        let (ids, rows): (Vec<RowId>, Vec<_>) = rows.into_iter().unzip();
        let whole = self.version.codec().decode(&rows).map_err(table_error)?;
        let mut keep = BooleanArray::from(vec![true; whole.num_rows()]);
        for conjunct in &self.lookup.rest {
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
        let unique = &self.version.definition().uniques[self.lookup.unique];
        write!(
            f,
            "LookupExec: table={}, index={}, key=({})",
            self.table, unique.name, self.lookup.text
        )
    }
}

impl ExecutionPlan for LookupExec {
    leaf!("LookupExec", properties);

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        let mut next = TreeNodeRecursion::Continue;
        for conjunct in &self.lookup.rest {
            next = f(conjunct)?;
        }
        Ok(next)
    }

    fn execute(&self, _: usize, _: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let rows = self.read().map(|batch| (batch.num_rows() > 0).then_some(batch)).transpose();
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), stream::iter(rows))))
    }
}
