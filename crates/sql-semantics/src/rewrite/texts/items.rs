//! The items of lists as bytes in the order of their type.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, ListArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Field};
use datafusion::common::{Result, ScalarValue, exec_err, plan_err};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

/// The items of a list, as the bytes that a function returns for a text.
pub(super) fn ordered_items(list: Expr, order: Arc<ScalarUDF>) -> Expr {
    let signature = Signature::any(1, Volatility::Immutable);
    ScalarUDF::from(OrderedItems { signature, order }).call(vec![list])
}

/// The bytes of texts that a function returns, in the order of their type.
pub(super) fn order_of(
    texts: &ArrayRef,
    order: &ScalarUDF,
    arguments: &ScalarFunctionArgs,
) -> Result<ArrayRef> {
    let number_rows = texts.len();
    let bytes = order.invoke_with_args(ScalarFunctionArgs {
        args: vec![ColumnarValue::Array(Arc::clone(texts))],
        arg_fields: vec![Arc::new(Field::new("item", DataType::Utf8, true))],
        number_rows,
        return_field: Arc::new(Field::new("item", DataType::Binary, true)),
        config_options: Arc::clone(&arguments.config_options),
    })?;
    bytes.into_array(number_rows)
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct OrderedItems {
    signature: Signature,
    order: Arc<ScalarUDF>,
}

impl OrderedItems {
    fn list(&self, lists: &ArrayRef, arguments: &ScalarFunctionArgs) -> Result<ArrayRef> {
        let lists = cast(lists, &DataType::new_list(DataType::Utf8, true))?;
        let lists = lists.as_list::<i32>();
        let items = order_of(lists.values(), &self.order, arguments)?;
        let item = Arc::new(Field::new_list_field(DataType::Binary, true));
        let (offsets, nulls) = (lists.offsets().clone(), lists.nulls().cloned());
        Ok(Arc::new(ListArray::try_new(item, offsets, items, nulls)?))
    }
}

impl ScalarUDFImpl for OrderedItems {
    fn name(&self) -> &str {
        "ordered_items"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        match types {
            [DataType::List(item)]
                if item.data_type().is_string() || item.data_type().is_null() =>
            {
                Ok(DataType::new_list(DataType::Binary, true))
            }
            _ => plan_err!(
                "ANY and ALL take a list of values of one type; cast it, as in '{{…}}'::JSONB[]"
            ),
        }
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        match &arguments.args[..] {
            [ColumnarValue::Array(lists)] => {
                Ok(ColumnarValue::Array(self.list(lists, &arguments)?))
            }
            [ColumnarValue::Scalar(list)] => {
                let list = self.list(&list.to_array()?, &arguments)?;
                Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&list, 0)?))
            }
            _ => exec_err!("ordered_items takes a list"),
        }
    }
}
