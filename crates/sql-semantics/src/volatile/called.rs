//! Hides constant arguments of volatile calls: DataFusion treats every call over constants as a constant, even
//! `nextval('s')`, and drops a sort by it.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::{DataType, FieldRef, Schema};
use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::logical_expr::ColumnarValue;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::utils::collect_columns;
use datafusion::physical_expr_common::physical_expr::is_volatile;

/// Wraps the parts that call volatile functions with constant arguments only.
pub(super) fn with_called(expr: &Arc<dyn PhysicalExpr>) -> Result<Arc<dyn PhysicalExpr>> {
    let hidden = Arc::clone(expr).transform_up(|expr| {
        let is_hidden = expr.is_volatile_node()
            && !expr.children().is_empty()
            && collect_columns(&expr).is_empty();
        Ok(match is_hidden {
            true => Transformed::yes(Arc::new(Called(expr)) as _),
            false => Transformed::no(expr),
        })
    });
    hidden.data()
}

/// A volatile expression without columns, which hides its children.
#[derive(Debug, Eq)]
struct Called(Arc<dyn PhysicalExpr>);

impl PartialEq for Called {
    fn eq(&self, other: &Self) -> bool {
        self.0.eq(&other.0)
    }
}

impl Hash for Called {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

impl fmt::Display for Called {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl PhysicalExpr for Called {
    fn data_type(&self, input: &Schema) -> Result<DataType> {
        self.0.data_type(input)
    }

    fn nullable(&self, input: &Schema) -> Result<bool> {
        self.0.nullable(input)
    }

    fn return_field(&self, input: &Schema) -> Result<FieldRef> {
        self.0.return_field(input)
    }

    fn evaluate(&self, batch: &RecordBatch) -> Result<ColumnarValue> {
        self.0.evaluate(batch)
    }

    fn children(&self) -> Vec<&Arc<dyn PhysicalExpr>> {
        Vec::new()
    }

    fn with_new_children(
        self: Arc<Self>,
        _: Vec<Arc<dyn PhysicalExpr>>,
    ) -> Result<Arc<dyn PhysicalExpr>> {
        Ok(self)
    }

    fn fmt_sql(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt_sql(f)
    }

    fn is_volatile_node(&self) -> bool {
        is_volatile(&self.0)
    }
}
