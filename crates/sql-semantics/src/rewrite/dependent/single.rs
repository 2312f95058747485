//! The value of a subquery with at most one row; more rows are an error.

use std::sync::{Arc, LazyLock};

use datafusion::arrow::array::ArrayRef;
use datafusion::arrow::datatypes::{DataType, FieldRef};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::expr::AggregateFunction;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, Expr, Signature, Volatility,
};

use atoll_sql_common::error::stated_err;

static SINGLE: LazyLock<Arc<AggregateUDF>> =
    LazyLock::new(|| Arc::new(AggregateUDF::from(SingleValue::default())));

/// An aggregate that returns the only value of its rows.
pub(super) fn single_value(value: Expr) -> Expr {
    let function = Arc::clone(&SINGLE);
    Expr::AggregateFunction(AggregateFunction::new_udf(
        function,
        vec![value],
        false,
        None,
        vec![],
        None,
    ))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct SingleValue {
    signature: Signature,
}

impl Default for SingleValue {
    fn default() -> Self {
        Self { signature: Signature::any(1, Volatility::Immutable) }
    }
}

impl AggregateUDFImpl for SingleValue {
    fn name(&self) -> &str {
        "single_value"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        Ok(types[0].clone())
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        let value = ScalarValue::try_from(args.return_type())?;
        Ok(Box::new(Single { value, rows: 0 }))
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        let value = args.return_field.as_ref().clone().with_name("value").with_nullable(true);
        let rows = datafusion::arrow::datatypes::Field::new("rows", DataType::Int64, false);
        Ok(vec![Arc::new(value), Arc::new(rows)])
    }
}

#[derive(Debug)]
struct Single {
    value: ScalarValue,
    rows: i64,
}

impl Single {
    fn add(&mut self, rows: i64, value: impl FnOnce() -> Result<ScalarValue>) -> Result<()> {
        match (rows, self.rows) {
            (0, _) => Ok(()),
            (1, 0) => {
                self.value = value()?;
                self.rows = 1;
                Ok(())
            }
            _ => stated_err!(
                CARDINALITY_VIOLATION,
                "more than one row returned by a subquery used as an expression"
            ),
        }
    }
}

impl Accumulator for Single {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let rows = i64::try_from(values[0].len()).unwrap_or(i64::MAX);
        self.add(rows, || ScalarValue::try_from_array(&values[0], 0))
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        for at in 0..states[0].len() {
            let ScalarValue::Int64(Some(rows)) = ScalarValue::try_from_array(&states[1], at)?
            else {
                continue;
            };
            self.add(rows, || ScalarValue::try_from_array(&states[0], at))?;
        }
        Ok(())
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        Ok(self.value.clone())
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(vec![self.value.clone(), ScalarValue::Int64(Some(self.rows))])
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.value.size()
    }
}
