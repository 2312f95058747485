//! Functions of a list and a lambda: `list_transform([1, 2], x -> x + 1)`.
//!
//! DataFusion 55.2 has two of them, whose lambdas only take the element; here they also take its index, and
//! there is `list_reduce`.

use std::sync::Arc;

use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, Int64Array, ListArray, UInt32Array, new_empty_array, new_null_array,
};
use datafusion::arrow::buffer::{NullBuffer, OffsetBuffer};
use datafusion::arrow::compute::{cast, concat, filter, take, take_arrays};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::utils::{list_values, list_values_row_number};
use datafusion::common::{Result, exec_err, plan_err};
use datafusion::logical_expr::{
    ColumnarValue, DocSection, Documentation, Expr, HigherOrderFunctionArgs,
    HigherOrderReturnFieldArgs, HigherOrderSignature, HigherOrderUDF, HigherOrderUDFImpl,
    LambdaParametersProgress, ValueOrLambda, Volatility,
};
use datafusion::prelude::SessionContext;

use super::sql_name;

/// What a function does with the lambda.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Kind {
    Transform,
    Filter,
    Reduce,
    Try,
}

/// A function with its documentation.
pub(super) struct LambdaEntry {
    pub(super) name: &'static str,
    pub(super) aliases: &'static [&'static str],
    pub(super) arguments: &'static str,
    pub(super) about: &'static str,
    pub(super) example: &'static str,
    kind: Kind,
}

pub(super) static ENTRIES: &[LambdaEntry] = &[
    LambdaEntry {
        name: "list_transform",
        aliases: &["array_transform", "list_apply", "array_apply", "apply"],
        arguments: "list, x -> value",
        about: "The value of a lambda for each element; with a second parameter, the number of the element from 1.",
        example: "list_transform([1, 2], x -> x + 1) = [2, 3]",
        kind: Kind::Transform,
    },
    LambdaEntry {
        name: "list_filter",
        aliases: &["array_filter", "filter"],
        arguments: "list, x -> condition",
        about: "The elements for which a lambda is true; with a second parameter, the number of the element from 1.",
        example: "list_filter([1, 2, 3], x -> x > 1) = [2, 3]",
        kind: Kind::Filter,
    },
    LambdaEntry {
        name: "list_reduce",
        aliases: &["array_reduce", "reduce"],
        arguments: "list, (a, x) -> value[, first]",
        about: "A value made of all elements: of the first two, of that and the third, and so on; with a third \
                argument, of that one and the first. A third parameter is the number of the element.",
        example: "list_reduce([1, 2, 3], (a, x) -> a + x) = 6",
        kind: Kind::Reduce,
    },
    LambdaEntry {
        name: "try",
        aliases: &[],
        arguments: "expression",
        about: "The value of an expression, or NULL in rows where it fails.",
        example: "try(1 / 0) IS NULL",
        kind: Kind::Try,
    },
];

pub(super) fn register(context: &SessionContext) {
    for entry in ENTRIES {
        let function = HigherOrderUDF::new_from_impl(LambdaFunction::new(entry));
        context.register_higher_order_function(Arc::new(function));
    }
}

/// Converts an entry to a DataFusion function.
#[derive(Debug)]
struct LambdaFunction {
    name: &'static str,
    kind: Kind,
    aliases: Vec<String>,
    signature: HigherOrderSignature,
    documentation: Documentation,
}

impl PartialEq for LambdaFunction {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for LambdaFunction {}

impl std::hash::Hash for LambdaFunction {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

impl LambdaFunction {
    fn new(entry: &LambdaEntry) -> Self {
        let syntax = format!("{}({})", entry.name, entry.arguments);
        let documentation = Documentation::builder(DocSection::default(), entry.about, syntax)
            .with_sql_example(entry.example)
            .build();
        Self {
            name: entry.name,
            kind: entry.kind,
            aliases: entry.aliases.iter().map(|&alias| alias.to_owned()).collect(),
            signature: HigherOrderSignature::user_defined(Volatility::Immutable),
            documentation,
        }
    }

    /// Splits arguments into the list, the lambda and the first value.
    fn arguments<'a, V, L>(
        &self,
        args: &'a [ValueOrLambda<V, L>],
    ) -> Result<(&'a V, &'a L, Option<&'a V>)> {
        match (args, self.kind) {
            ([ValueOrLambda::Value(list), ValueOrLambda::Lambda(lambda)], _) => {
                Ok((list, lambda, None))
            }
            (
                [
                    ValueOrLambda::Value(list),
                    ValueOrLambda::Lambda(lambda),
                    ValueOrLambda::Value(first),
                ],
                Kind::Reduce,
            ) => Ok((list, lambda, Some(first))),
            _ => plan_err!("{} expects a list and a lambda, such as x -> x + 1", self.name),
        }
    }
}

fn item(data_type: &DataType) -> Result<&FieldRef> {
    match data_type {
        DataType::List(field) => Ok(field),
        other => plan_err!("expected a list, found {}", sql_name(other)),
    }
}

fn field(data_type: &DataType) -> FieldRef {
    Arc::new(Field::new("", data_type.clone(), true))
}

impl HigherOrderUDFImpl for LambdaFunction {
    fn name(&self) -> &str {
        self.name
    }

    fn aliases(&self) -> &[String] {
        &self.aliases
    }

    fn signature(&self) -> &HigherOrderSignature {
        &self.signature
    }

    fn short_circuits(&self) -> bool {
        true
    }

    /// A lambda may fail: it is only evaluated where it is called.
    fn conditional_arguments<'a>(
        &self,
        args: &'a [Expr],
    ) -> Option<(Vec<&'a Expr>, Vec<&'a Expr>)> {
        Some(args.iter().partition(|argument| !matches!(argument, Expr::Lambda(_))))
    }

    fn coerce_value_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        if self.kind == Kind::Try {
            return Ok(types.to_vec());
        }
        let Some((list, rest)) = types.split_first() else {
            return plan_err!("{} expects a list and a lambda", self.name);
        };
        let list = match list {
            DataType::List(_) => list.clone(),
            DataType::LargeList(field) | DataType::FixedSizeList(field, _) => {
                DataType::List(Arc::clone(field))
            }
            DataType::Null => DataType::new_list(DataType::Null, true),
            other => return plan_err!("{} expects a list, not {}", self.name, sql_name(other)),
        };
        Ok(std::iter::once(list).chain(rest.iter().cloned()).collect())
    }

    fn lambda_parameters(
        &self,
        _: usize,
        fields: &[ValueOrLambda<FieldRef, Option<FieldRef>>],
    ) -> Result<LambdaParametersProgress> {
        if self.kind == Kind::Try {
            return Ok(LambdaParametersProgress::Complete(vec![vec![field(&DataType::Int64)]]));
        }
        let (list, lambda, first) = self.arguments(fields)?;
        let element = Arc::new(item(list.data_type())?.as_ref().clone().with_nullable(true));
        let number = field(&DataType::Int64);
        if self.kind != Kind::Reduce {
            return Ok(LambdaParametersProgress::Complete(vec![vec![element, number]]));
        }
        // The lambda takes its own result, whose type it reports when it is given the first value.
        Ok(match lambda {
            None => {
                let value =
                    first.map_or_else(|| Arc::clone(&element), |first| field(first.data_type()));
                LambdaParametersProgress::Partial(vec![Some(vec![value, element, number])])
            }
            Some(result) => {
                let value = field(result.data_type());
                LambdaParametersProgress::Complete(vec![vec![value, element, number]])
            }
        })
    }

    fn return_field_from_args(&self, args: HigherOrderReturnFieldArgs) -> Result<FieldRef> {
        if self.kind == Kind::Try {
            let [ValueOrLambda::Lambda(body)] = args.arg_fields else {
                return plan_err!("try expects an expression");
            };
            return Ok(field(body.data_type()));
        }
        let (list, lambda, _) = self.arguments(args.arg_fields)?;
        let data_type = match self.kind {
            Kind::Transform => DataType::new_list(lambda.data_type().clone(), true),
            Kind::Filter => list.data_type().clone(),
            Kind::Reduce | Kind::Try => lambda.data_type().clone(),
        };
        Ok(field(&data_type))
    }

    fn invoke_with_args(&self, args: HigherOrderFunctionArgs) -> Result<ColumnarValue> {
        if let [ValueOrLambda::Lambda(body)] = &args.args[..] {
            return Ok(ColumnarValue::Array(tried(body, args.number_rows, args.return_type())?));
        }
        let (lists, lambda, first) = self.arguments(&args.args)?;
        let lists = lists.to_array(args.number_rows)?;
        if lists.null_count() == lists.len() {
            return Ok(ColumnarValue::Array(new_null_array(args.return_type(), lists.len())));
        }
        if self.kind == Kind::Reduce {
            let first = first.map(|first| first.to_array(args.number_rows)).transpose()?;
            let reduced = reduce(lists.as_list(), lambda, first, args.return_type())?;
            return Ok(ColumnarValue::Array(reduced));
        }
        let values = list_values(&lists)?;
        let list: &ListArray = lists.as_list();
        let lengths: Vec<usize> =
            (0..list.len()).map(|row| list.value_length(row) as usize).collect();
        let numbers = || -> Result<ArrayRef> {
            let numbers = lengths.iter().flat_map(|length| 1..=*length as i64);
            Ok(Arc::new(Int64Array::from_iter_values(numbers)))
        };
        let elements = || Ok(Arc::clone(&values));
        let result = lambda.evaluate(&[&elements, &numbers], |captures| {
            Ok(take_arrays(captures, &list_values_row_number(&lists)?, None)?)
        })?;
        let result = result.into_array(values.len())?;
        let lists = match self.kind {
            Kind::Filter => filtered(list, &lengths, &values, &result, args.return_type())?,
            _ => {
                let result = cast(&result, item(args.return_type())?.data_type())?;
                listed(args.return_type(), &lengths, result, list.nulls().cloned())?
            }
        };
        Ok(ColumnarValue::Array(lists))
    }

    fn documentation(&self) -> Option<&Documentation> {
        Some(&self.documentation)
    }
}

fn listed(
    data_type: &DataType,
    lengths: &[usize],
    values: ArrayRef,
    nulls: Option<NullBuffer>,
) -> Result<ArrayRef> {
    let offsets = OffsetBuffer::from_lengths(lengths.iter().copied());
    Ok(Arc::new(ListArray::try_new(Arc::clone(item(data_type)?), offsets, values, nulls)?))
}

/// Keeps the elements that satisfy the condition.
fn filtered(
    list: &ListArray,
    lengths: &[usize],
    values: &ArrayRef,
    condition: &ArrayRef,
    data_type: &DataType,
) -> Result<ArrayRef> {
    let condition = cast(condition, &DataType::Boolean)?;
    let condition = condition.as_boolean();
    let mut at = 0;
    let kept: Vec<usize> = lengths
        .iter()
        .map(|&length| {
            let from = at;
            at += length;
            (from..at).filter(|&row| condition.is_valid(row) && condition.value(row)).count()
        })
        .collect();
    listed(data_type, &kept, filter(values, condition)?, list.nulls().cloned())
}

/// Evaluates all rows at once; if that fails, row by row.
fn tried(
    body: &datafusion::logical_expr::LambdaArgument,
    rows: usize,
    data_type: &DataType,
) -> Result<ArrayRef> {
    let none = |rows: usize| move || Ok(new_null_array(&DataType::Int64, rows));
    let all = body
        .evaluate(&[&none(rows)], |captures| Ok(captures.to_vec()))
        .and_then(|value| value.into_array(rows));
    if let Ok(all) = all {
        return Ok(all);
    }
    let one = |row: usize| {
        let at = UInt32Array::from(vec![row as u32]);
        body.evaluate(&[&none(1)], |captures| Ok(take_arrays(captures, &at, None)?))
            .and_then(|value| value.into_array(1))
            .unwrap_or_else(|_| new_null_array(data_type, 1))
    };
    let each: Vec<ArrayRef> = (0..rows).map(one).collect();
    let each: Vec<&dyn Array> = each.iter().map(AsRef::as_ref).collect();
    match each.is_empty() {
        true => Ok(new_empty_array(data_type)),
        false => Ok(concat(&each)?),
    }
}

/// One step for all lists that have another element.
fn reduce(
    lists: &ListArray,
    lambda: &datafusion::logical_expr::LambdaArgument,
    first: Option<ArrayRef>,
    data_type: &DataType,
) -> Result<ArrayRef> {
    let there = |row: &usize| lists.is_valid(*row);
    let has_first = first.is_some();
    if !has_first && (0..lists.len()).filter(there).any(|row| lists.value_length(row) == 0) {
        return exec_err!(
            "list_reduce of an empty list; a third argument is the value to begin with"
        );
    }
    let offsets = lists.value_offsets();
    let places = |rows: &[u32], step: usize| -> UInt32Array {
        rows.iter().map(|&row| offsets[row as usize] as u32 + step as u32).collect()
    };
    let mut rows: Vec<u32> = (0..lists.len()).filter(there).map(|row| row as u32).collect();
    let mut values = match first {
        Some(first) => take(&first, &UInt32Array::from(rows.clone()), None)?,
        None => take(lists.values(), &places(&rows, 0), None)?,
    };
    values = cast(&values, data_type)?;
    let (mut done_rows, mut done) = (Vec::new(), vec![new_empty_array(data_type)]);
    let mut step = usize::from(!has_first);
    loop {
        let (go_on, stop): (Vec<usize>, Vec<usize>) =
            (0..rows.len()).partition(|&at| lists.value_length(rows[at] as usize) as usize > step);
        let some = |of: &[usize]| of.iter().map(|&at| at as u32).collect::<UInt32Array>();
        done_rows.extend(stop.iter().map(|&at| rows[at]));
        done.push(take(&values, &some(&stop), None)?);
        if go_on.is_empty() {
            break;
        }
        let before = take(&values, &some(&go_on), None)?;
        rows = go_on.iter().map(|&at| rows[at]).collect();
        let elements = take(lists.values(), &places(&rows, step), None)?;
        let number: ArrayRef = Arc::new(Int64Array::from(vec![step as i64 + 1; rows.len()]));
        let captured = UInt32Array::from(rows.clone());
        let result = lambda.evaluate(
            &[&|| Ok(before.clone()), &|| Ok(elements.clone()), &|| Ok(number.clone())],
            |captures| Ok(take_arrays(captures, &captured, None)?),
        )?;
        values = cast(&result.into_array(rows.len())?, data_type)?;
        step += 1;
    }
    let done: Vec<&dyn Array> = done.iter().map(AsRef::as_ref).collect();
    let done = concat(&done)?;
    let mut order = vec![None; lists.len()];
    for (at, row) in done_rows.into_iter().enumerate() {
        order[row as usize] = Some(at as u32);
    }
    Ok(take(&done, &UInt32Array::from(order), None)?)
}
