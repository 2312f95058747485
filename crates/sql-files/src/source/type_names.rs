//! Types by the names that SQL has for them.

use datafusion::arrow::datatypes::DataType;
use datafusion::common::{DFSchema, Result, plan_err};
use datafusion::execution::SessionState;
use datafusion::logical_expr::ExprSchemable;

use atoll_sql_semantics::sql_to_plan::create_logical_expr;

/// Types by the names that SQL has for them.
pub(crate) struct TypeNames<'a>(pub(crate) &'a SessionState);

impl TypeNames<'_> {
    /// The type of a column that a text names.
    pub(crate) fn resolve(&self, column: &str, text: &str) -> Result<DataType> {
        if text.eq_ignore_ascii_case("json") {
            return Ok(DataType::Utf8);
        }
        let none = DFSchema::empty();
        let cast = create_logical_expr(self.0, &format!("CAST(NULL AS {text})"), &none);
        let found = cast.and_then(|cast| cast.get_type(&none));
        match found {
            Ok(DataType::Utf8View) => Ok(DataType::Utf8),
            Ok(found) => Ok(found),
            Err(_) => plan_err!("unknown type '{text}' of column '{column}'"),
        }
    }
}
