//! Items, comparisons and orders of arrays of an ENUM, which are arrays of its labels.
//!
//! ```text
//! moods[1], unnest(moods)      the text of a label      its code
//! moods < '{ok}'               texts                    codes, which have the order of the labels
//! ORDER BY moods               texts                    codes
//! moods = '{x}', m = ANY ('{x}')                         texts that are checked to be labels
//! ```

use std::sync::Arc;

use atoll_sql_common::error::stated_err;
use atoll_sql_common::pg_type::{array_of_enum, as_labels};
use atoll_sql_common::user_type::{EnumType, UserTypes, enum_data_type, enum_oid};
use datafusion::arrow::array::{Array, ArrayRef, AsArray, Int64Array, ListArray};
use datafusion::arrow::compute::cast as arrow_cast;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::tree_node::Transformed;
use datafusion::common::{Column, DFSchema, Result, ScalarValue, exec_err};
use datafusion::logical_expr::expr::{Cast, ScalarFunction, Sort};
use datafusion::logical_expr::{
    Between, BinaryExpr, ColumnarValue, Expr, ExprSchemable, LogicalPlan, LogicalPlanBuilder,
    Operator, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Unnest, Volatility,
};

/// The name of the function that returns codes of labels.
pub(super) const LABEL_CODES: &str = "label_codes";

/// Functions of a value and a list that compare them by the order of values.
const IN_ORDER: &[&str] = &[
    "at_least_all",
    "at_least_any",
    "at_most_all",
    "at_most_any",
    "greater_than_all",
    "greater_than_any",
    "less_than_all",
    "less_than_any",
];

/// Functions of a value and a list that compare them for equality.
const BY_EQUALITY: &[&str] = &["differs_from_all", "differs_from_any", "equals_all", "equals_any"];

/// Functions of two lists that compare their items for equality.
const OF_TWO: &[&str] = &["list_contains_list", "lists_overlap"];

/// Functions that return the smallest or largest of their values.
const EXTREMES: &[&str] = &["greatest", "least", "max", "min"];

/// The names of a schema and the types of the statement.
pub(super) struct ArrayScope<'a> {
    pub(super) schema: &'a DFSchema,
    pub(super) types: &'a UserTypes,
}

impl ArrayScope<'_> {
    /// Rewrites an expression whose operands are arrays of labels.
    pub(super) fn rewritten(&self, mut expr: Expr) -> Result<Transformed<Expr>> {
        match &mut expr {
            Expr::ScalarFunction(call) if call.func.name() == "array_element" => {
                let item = call.args.first().and_then(|array| self.array(array));
                return Ok(match item {
                    Some(of) => {
                        Transformed::yes(Expr::Cast(Cast::new(Box::new(expr), of.data_type())))
                    }
                    None => Transformed::no(expr),
                });
            }
            Expr::ScalarFunction(call) if IN_ORDER.contains(&call.func.name()) => {
                self.member_in_order(&mut call.args)
            }
            Expr::ScalarFunction(call) if BY_EQUALITY.contains(&call.func.name()) => {
                self.checked_member(&mut call.args)
            }
            Expr::ScalarFunction(call) if OF_TWO.contains(&call.func.name()) => {
                self.checked(call.args.iter_mut())
            }
            Expr::ScalarFunction(call) if EXTREMES.contains(&call.func.name()) => {
                self.refuse_extremes(call.func.name(), &call.args)?;
                Ok(false)
            }
            Expr::AggregateFunction(call) => {
                self.refuse_extremes(call.func.name(), &call.params.args)?;
                self.sorts(&mut call.params.order_by)
            }
            Expr::WindowFunction(call) => {
                self.refuse_extremes(call.fun.name(), &call.params.args)?;
                self.sorts(&mut call.params.order_by)
            }
            Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
                let operands = [left.as_mut(), right.as_mut()].into_iter();
                use Operator::{Eq, Gt, GtEq, IsDistinctFrom, IsNotDistinctFrom, Lt, LtEq, NotEq};
                match op {
                    Lt | LtEq | Gt | GtEq => self.in_order(operands),
                    Eq | NotEq | IsDistinctFrom | IsNotDistinctFrom => self.checked(operands),
                    _ => Ok(false),
                }
            }
            Expr::Between(Between { expr, low, high, .. }) => {
                self.in_order([expr.as_mut(), low.as_mut(), high.as_mut()].into_iter())
            }
            _ => Ok(false),
        }
        .map(|is_changed| match is_changed {
            true => Transformed::yes(expr),
            false => Transformed::no(expr),
        })
    }

    /// Sorts arrays in the order of labels; whether there are any.
    pub(super) fn sorts(&self, sorts: &mut [Sort]) -> Result<bool> {
        let mut is_changed = false;
        for Sort { expr, .. } in sorts {
            if let Some(of) = self.array(expr) {
                codes(of, expr);
                is_changed = true;
            }
        }
        Ok(is_changed)
    }

    /// The ENUM whose labels are the items of an expression's arrays.
    fn array(&self, expr: &Expr) -> Option<&Arc<EnumType>> {
        let (_, field) = expr.to_field(self.schema).ok()?;
        self.types.numbered(array_of_enum(&field)?)
    }

    /// The ENUM of a value and an array, one of which may be a constant.
    fn of_member(&self, args: &[Expr]) -> Option<&Arc<EnumType>> {
        let [value, list] = args else { return None };
        let of_value = value.get_type(self.schema).ok().and_then(|of| enum_oid(&of));
        self.array(list).or_else(|| self.types.numbered(of_value?))
    }

    /// Replaces arrays by codes, if one of them is an array of labels.
    fn in_order<'e>(&self, operands: impl Iterator<Item = &'e mut Expr>) -> Result<bool> {
        let mut operands: Vec<&mut Expr> = operands.collect();
        let Some(of) = operands.iter().find_map(|it| self.array(it)) else { return Ok(false) };
        for operand in &mut operands {
            check(of, operand);
            codes(of, operand);
        }
        Ok(true)
    }

    /// Replaces a value and an array by codes, if they are of an ENUM.
    fn member_in_order(&self, args: &mut [Expr]) -> Result<bool> {
        let Some(of) = self.of_member(args) else { return Ok(false) };
        if let Some(list) = args.get_mut(1) {
            check(of, list);
        }
        args.iter_mut().for_each(|arg| codes(of, arg));
        Ok(true)
    }

    /// Checks the texts of constants that are compared with arrays of labels.
    fn checked<'e>(&self, operands: impl Iterator<Item = &'e mut Expr>) -> Result<bool> {
        let operands: Vec<&mut Expr> = operands.collect();
        let Some(of) = operands.iter().find_map(|it| self.array(it)) else { return Ok(false) };
        let mut is_changed = false;
        for operand in operands {
            is_changed |= check(of, operand);
        }
        Ok(is_changed)
    }

    /// Checks a constant value, or the texts of a constant array, of an ENUM.
    fn checked_member(&self, args: &mut [Expr]) -> Result<bool> {
        let Some(of) = self.of_member(args) else { return Ok(false) };
        let [value, list] = args else { return Ok(false) };
        let is_text = matches!(value, Expr::Literal(text, _) if text.data_type().is_string());
        if is_text {
            let text = std::mem::take(value);
            *value = Expr::Cast(Cast::new(Box::new(text), of.data_type()));
        }
        Ok(check(of, list) || is_text)
    }

    fn refuse_extremes(&self, name: &str, args: &[Expr]) -> Result<()> {
        match args.iter().find_map(|arg| self.array(arg)).filter(|_| EXTREMES.contains(&name)) {
            None => Ok(()),
            Some(of) => stated_err!(
                FEATURE_NOT_SUPPORTED,
                "function {name}({}[]) is not supported; use ORDER BY with LIMIT 1",
                of.name
            ),
        }
    }
}

/// The field of arrays of an ENUM.
fn labels_field(of: &EnumType) -> FieldRef {
    let labels = DataType::new_list(DataType::Utf8View, true);
    Arc::new(as_labels(Field::new("", labels, true), of.oid))
}

/// Casts a constant array to one of an ENUM; whether it is one.
fn check(of: &EnumType, operand: &mut Expr) -> bool {
    if !is_constant(operand) {
        return false;
    }
    let texts = std::mem::take(operand);
    *operand = Expr::Cast(Cast::new_from_field(Box::new(texts), labels_field(of)));
    true
}

/// Whether an expression is a constant text or array of texts.
fn is_constant(expr: &Expr) -> bool {
    match expr {
        Expr::Literal(value, _) => {
            let of = value.data_type();
            of.is_string() || matches!(of, DataType::List(item) if item.data_type().is_string())
        }
        Expr::ScalarFunction(call) if call.func.name() == "make_array" => {
            !call.args.is_empty() && call.args.iter().all(is_constant)
        }
        _ => false,
    }
}

/// Replaces an array of labels, or a value, by codes.
fn codes(of: &Arc<EnumType>, expr: &mut Expr) {
    let labels = std::mem::take(expr);
    let signature = Signature::any(1, Volatility::Immutable);
    let function = Arc::new(ScalarUDF::from(LabelCodes { of: Arc::clone(of), signature }));
    *expr = Expr::ScalarFunction(ScalarFunction::new_udf(function, vec![labels]));
}

/// Gives the rows of arrays of labels the type of the ENUM.
pub(super) fn rows(unnest: Unnest) -> Result<Transformed<LogicalPlan>> {
    let input = unnest.input.schema();
    let found: Vec<(Column, DataType)> = unnest
        .list_type_columns
        .iter()
        .filter(|(_, list)| list.depth == 1)
        .filter_map(|(at, list)| {
            let oid = array_of_enum(input.field(*at))?;
            Some((list.output_column.clone(), enum_data_type(oid)))
        })
        .collect();
    let node = LogicalPlan::Unnest(unnest);
    if found.is_empty() {
        return Ok(Transformed::no(node));
    }
    let columns = node.schema().iter().map(|(table, field)| {
        let column = Column::new(table.cloned(), field.name());
        let of = found.iter().find(|(it, _)| *it == column || it.flat_name() == *field.name());
        match of {
            Some((_, of)) => Expr::Cast(Cast::new(Box::new(Expr::Column(column)), of.clone()))
                .alias_qualified(table.cloned(), field.name()),
            None => Expr::Column(column),
        }
    });
    let columns: Vec<Expr> = columns.collect();
    LogicalPlanBuilder::from(node).project(columns)?.build().map(Transformed::yes)
}

/// The codes of labels, in the order of the labels.
#[derive(Debug, PartialEq, Eq, Hash)]
struct LabelCodes {
    of: Arc<EnumType>,
    signature: Signature,
}

impl LabelCodes {
    fn codes(&self, values: &ArrayRef) -> Result<ArrayRef> {
        if let DataType::List(_) = values.data_type() {
            let lists = values.as_list::<i32>();
            let items = self.codes(lists.values())?;
            let item = Arc::new(Field::new_list_field(DataType::Int64, true));
            let (offsets, nulls) = (lists.offsets().clone(), lists.nulls().cloned());
            return Ok(Arc::new(ListArray::try_new(item, offsets, items, nulls)?));
        }
        if enum_oid(values.data_type()).is_some() {
            return Ok(arrow_cast(values, &DataType::Int64)?);
        }
        let labels = arrow_cast(values, &DataType::Utf8View)?;
        let code = |label: Option<&str>| label.map(|label| self.of.try_code(label)).transpose();
        let codes = labels.as_string_view().iter().map(code);
        Ok(Arc::new(codes.collect::<Result<Int64Array>>()?))
    }
}

impl ScalarUDFImpl for LabelCodes {
    fn name(&self) -> &str {
        LABEL_CODES
    }

    /// It is not part of column names.
    fn schema_name(&self, arguments: &[Expr]) -> Result<String> {
        match arguments {
            [value] => Ok(value.schema_name().to_string()),
            _ => exec_err!("codes of {} values", arguments.len()),
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        Ok(match types {
            [DataType::List(_)] => DataType::new_list(DataType::Int64, true),
            _ => DataType::Int64,
        })
    }

    fn is_strict(&self) -> bool {
        true
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        Ok(match &arguments.args[..] {
            [ColumnarValue::Array(values)] => ColumnarValue::Array(self.codes(values)?),
            [ColumnarValue::Scalar(value)] => {
                let codes = self.codes(&value.to_array()?)?;
                ColumnarValue::Scalar(ScalarValue::try_from_array(&codes, 0)?)
            }
            other => return exec_err!("codes of {} values", other.len()),
        })
    }
}
