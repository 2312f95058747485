//! Parameters as columns.

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions};
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Column, DFSchema, Result, TableReference};
use datafusion::execution::SessionState;
use datafusion::logical_expr::expr::Placeholder;
use datafusion::logical_expr::{Expr, ExprSchemable, LogicalPlan};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::{
    Column as PhysicalColumn, Literal as PhysicalLiteral,
};

use atoll_sql_semantics::arithmetic::assigned_value;

/// The relation whose columns are the parameters.
const PARAMETERS: &str = "parameters";

/// The parameters of a statement by their names, `$1` first.
pub(crate) struct Parameters {
    names: HashMap<String, usize>,
    schema: DFSchema,
}

impl Parameters {
    /// Parameters of these types.
    pub(crate) fn new(types: &[DataType]) -> Result<Self> {
        let fields = types
            .iter()
            .enumerate()
            .map(|(at, data_type)| Field::new(format!("${}", at + 1), data_type.clone(), true));
        let fields: Vec<Field> = fields.collect();
        let names = fields.iter().enumerate().map(|(at, field)| (field.name().clone(), at));
        let names = names.collect();
        let schema = DFSchema::try_from_qualified_schema(PARAMETERS, &Schema::new(fields))?;
        Ok(Self { names, schema })
    }

    /// These, followed by others of these types.
    pub(crate) fn and(&self, types: Vec<DataType>) -> Result<Self> {
        let own = self.schema.fields().iter().map(|field| field.data_type().clone());
        Self::new(&own.chain(types).collect::<Vec<_>>())
    }

    /// Compiles a constant or a parameter, over the parameters alone.
    pub(crate) fn value(&self, state: &SessionState, expr: &Expr) -> Result<Arc<dyn PhysicalExpr>> {
        self.physical(state, expr.clone(), None, None)
    }

    /// Compiles an expression over a row followed by the parameters.
    pub(crate) fn over(
        &self,
        state: &SessionState,
        expr: Expr,
        row: &DFSchema,
    ) -> Result<Arc<dyn PhysicalExpr>> {
        self.physical(state, expr, Some(row), None)
    }

    /// The number and the type of a parameter.
    pub(crate) fn find(&self, name: &str) -> Option<(usize, DataType)> {
        let at = *self.names.get(name)?;
        Some((at, self.schema.field(at).data_type().clone()))
    }

    /// The columns of a row, followed by the parameters.
    pub(crate) fn behind(&self, row: &DFSchema) -> Result<SchemaRef> {
        Ok(Arc::clone(row.join(&self.schema)?.inner()))
    }

    /// The columns that expressions read.
    pub(crate) fn schema(&self) -> SchemaRef {
        Arc::clone(self.schema.inner())
    }

    /// The expression over columns, those of the parameters among them.
    fn in_columns(&self, expr: Expr) -> Result<Expr> {
        let placed = expr.transform_up(|expr| match expr {
            Expr::Placeholder(Placeholder { id, .. }) if self.names.contains_key(&id) => {
                let column = Column::new(Some(TableReference::bare(PARAMETERS)), id);
                Ok(Transformed::yes(Expr::Column(column)))
            }
            other => Ok(Transformed::no(other)),
        })?;
        Ok(placed.data)
    }

    pub(crate) fn physical(
        &self,
        state: &SessionState,
        expr: Expr,
        row: Option<&DFSchema>,
        wanted: Option<&DataType>,
    ) -> Result<Arc<dyn PhysicalExpr>> {
        let expr = expr.unalias();
        if let Some(plain) = self.plain(&expr, row, wanted) {
            return Ok(plain);
        }
        let schema = match row {
            Some(row) => row.join(&self.schema)?,
            None => self.schema.clone(),
        };
        let mut expr = self.in_columns(expr)?;
        if let Some(wanted) = wanted {
            let cast = assigned_value(&expr, &expr.get_type(&schema)?, wanted);
            expr = cast.map_or_else(|| expr.cast_to(wanted, &schema), Ok)?;
        }
        state.create_physical_expr(expr, &schema)
    }

    /// A parameter or a constant that already has the wanted type, without a schema: a statement that lists many rows
    /// has as many of both, and copying its schema for each would take quadratic time.
    fn plain(
        &self,
        expr: &Expr,
        row: Option<&DFSchema>,
        wanted: Option<&DataType>,
    ) -> Option<Arc<dyn PhysicalExpr>> {
        let is_wanted = |data_type: &DataType| wanted.is_none_or(|wanted| wanted == data_type);
        match expr {
            Expr::Placeholder(Placeholder { id, .. }) => {
                let (at, data_type) = self.find(id)?;
                let at = at + row.map_or(0, |row| row.fields().len());
                is_wanted(&data_type).then(|| Arc::new(PhysicalColumn::new(id, at)) as _)
            }
            Expr::Literal(value, None) if is_wanted(&value.data_type()) => {
                Some(Arc::new(PhysicalLiteral::new(value.clone())))
            }
            _ => None,
        }
    }
}

/// Whether a plan selects parameters directly: their types are known only with their values.
pub(crate) fn has_unknown_types(plan: &LogicalPlan) -> bool {
    plan.schema().fields().iter().any(|field| field.data_type().is_null())
}

/// One row of these values.
pub(crate) fn one_row(columns: &[ArrayRef]) -> Result<RecordBatch> {
    let fields = columns.iter().map(|column| Field::new("", column.data_type().clone(), true));
    let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
    let options = RecordBatchOptions::new().with_row_count(Some(1));
    Ok(RecordBatch::try_new_with_options(schema, columns.to_vec(), &options)?)
}
