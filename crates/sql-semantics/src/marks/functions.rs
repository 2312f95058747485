//! Functions that return their first argument as a value of a type that Arrow lacks.

use std::sync::{Arc, LazyLock};

use atoll_functions::temporal::StatementClock;
use atoll_sql_common::pg_type::{Checked, marked};
use datafusion::arrow::array::{Array, ArrayRef, AsArray, ListArray, StringViewBuilder};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::{Result, ScalarValue, exec_err, plan_err};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility, lit,
};

/// The function that gives a value a type: the value, and the name of the type in `pg_type`.
const WITH_TYPE: &str = "with_type";

/// The function of the cast to an array of a type: the texts of the items, and the name of the type of an item.
pub(super) const CHECKED_ITEMS: &str = "checked_items";

/// Returns the function if this is the name of one.
pub(crate) fn named(name: &str) -> Option<Arc<ScalarUDF>> {
    static FUNCTIONS: LazyLock<[Arc<ScalarUDF>; 2]> = LazyLock::new(|| {
        let signature = || Signature::any(2, Volatility::Immutable);
        [
            Arc::new(ScalarUDF::from(WithType { signature: signature() })),
            Arc::new(ScalarUDF::from(CheckedItems { signature: signature() })),
        ]
    });
    FUNCTIONS.iter().find(|function| function.name() == name).map(Arc::clone)
}

/// Returns a value as one of the type with this name in `pg_type`.
pub(crate) fn with_type(value: Expr, name: &str) -> Expr {
    match named(WITH_TYPE) {
        Some(function) => {
            Expr::ScalarFunction(ScalarFunction::new_udf(function, vec![value, lit(name)]))
        }
        None => value,
    }
}

/// The text of a constant argument.
pub(super) fn text(value: &ScalarValue) -> Result<&str> {
    match value.try_as_str().flatten() {
        Some(text) => Ok(text),
        None => plan_err!("the name of a type is not a text"),
    }
}

/// Casts are not part of column names.
fn name_of_value(arguments: &[Expr]) -> Result<String> {
    match arguments {
        [value, ..] => Ok(value.schema_name().to_string()),
        [] => exec_err!("a value is missing"),
    }
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct WithType {
    signature: Signature,
}

impl ScalarUDFImpl for WithType {
    fn name(&self) -> &str {
        WITH_TYPE
    }

    fn schema_name(&self, arguments: &[Expr]) -> Result<String> {
        name_of_value(arguments)
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        match types {
            [of, _] => Ok(of.clone()),
            _ => plan_err!("{WITH_TYPE} takes a value and the name of a type"),
        }
    }

    fn return_field_from_args(&self, arguments: ReturnFieldArgs) -> Result<FieldRef> {
        let ([value, _], [_, Some(name)]) = (arguments.arg_fields, arguments.scalar_arguments)
        else {
            return plan_err!("{WITH_TYPE} takes a value and the name of a type");
        };
        Ok(Arc::new(marked(value.as_ref().clone(), text(name)?)))
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        match arguments.args.into_iter().next() {
            Some(value) => Ok(value),
            None => exec_err!("{WITH_TYPE} takes a value and the name of a type"),
        }
    }
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct CheckedItems {
    signature: Signature,
}

impl ScalarUDFImpl for CheckedItems {
    fn name(&self) -> &str {
        CHECKED_ITEMS
    }

    fn schema_name(&self, arguments: &[Expr]) -> Result<String> {
        name_of_value(arguments)
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::new_list(DataType::Utf8View, true))
    }

    fn return_field_from_args(&self, arguments: ReturnFieldArgs) -> Result<FieldRef> {
        let [_, Some(name)] = arguments.scalar_arguments else {
            return plan_err!("{CHECKED_ITEMS} takes texts and the name of a type");
        };
        let list = Field::new(CHECKED_ITEMS, DataType::new_list(DataType::Utf8View, true), true);
        Ok(Arc::new(marked(list, &format!("_{}", text(name)?))))
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [texts, ColumnarValue::Scalar(name)] = &arguments.args[..] else {
            return exec_err!("{CHECKED_ITEMS} takes texts and the name of a type");
        };
        let Some(form) = Checked::named(text(name)?) else {
            return exec_err!("{CHECKED_ITEMS} does not know type {}", text(name)?);
        };
        let to = DataType::new_list(DataType::Utf8View, true);
        let clock = StatementClock::from_options(&arguments.config_options);
        let clock = StatementClock { begun: None, ..clock };
        match texts {
            ColumnarValue::Scalar(texts) => {
                let list = checked(&cast(&texts.to_array()?, &to)?, form, clock)?;
                Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&list, 0)?))
            }
            ColumnarValue::Array(texts) => {
                Ok(ColumnarValue::Array(checked(&cast(texts, &to)?, form, clock)?))
            }
        }
    }
}

/// Returns lists of texts with each text in the form of the type.
fn checked(lists: &ArrayRef, form: Checked, clock: StatementClock<'_>) -> Result<ArrayRef> {
    let lists = lists.as_list::<i32>();
    let texts = lists.values().as_string_view();
    let mut items = StringViewBuilder::with_capacity(texts.len());
    for text in texts {
        let Some(text) = text else {
            items.append_null();
            continue;
        };
        match form.read(text, clock)? {
            Some(canonical) => items.append_value(canonical),
            None => items.append_value(text),
        }
    }
    let DataType::List(item) = lists.data_type() else {
        return exec_err!("{CHECKED_ITEMS} takes lists");
    };
    let (offsets, nulls) = (lists.offsets().clone(), lists.nulls().cloned());
    Ok(Arc::new(ListArray::try_new(Arc::clone(item), offsets, Arc::new(items.finish()), nulls)?))
}
