//! Operators that are functions, and aggregates whose meaning depends on the number of their arguments.

use std::sync::{Arc, LazyLock};

use datafusion::arrow::datatypes::{DataType, Field};
use datafusion::common::{Column, DFSchema, Result, ScalarValue, TableReference, plan_err};
use datafusion::functions::string::starts_with;
use datafusion::functions_aggregate::first_last::first_value_udaf;
use datafusion::functions_nested::expr_fn::{array_append, array_element, array_prepend};
use datafusion::logical_expr::expr::{AggregateFunction, Placeholder, Sort};
use datafusion::logical_expr::planner::{
    ExprPlanner, PlannerResult, RawAggregateExpr, RawBinaryExpr, RawFieldAccessExpr, RawWindowExpr,
};
use datafusion::logical_expr::{
    AggregateUDF, Expr, ExprSchemable, GetFieldAccess, ScalarUDF, cast, lit,
};
use datafusion::sql::sqlparser::ast::BinaryOperator;

use super::excluded::{excluded, not_positive};
use super::failure::FunctionFailure;
use super::framed::framed;
use super::gathered::{self, Gathered};
use super::marked::marked_field;
use super::named_part::without_name;
use super::scalar;
use super::shifted::shifted;
use super::signed::{signed_count, signed_count_over};
use crate::ENUM_ZONE;
use crate::comparison::quantified::{Relation, of_lists, quantified};
use crate::comparison::range_key::ranged;
use crate::comparison::rows::compared_rows;
use crate::ordered::array_agg::OrderedArrayAgg;
use crate::range_operators::of_ranges;

/// The name of the unresolved field of an outer column: `a.b` where a is a column without fields, and may be a
/// table of an outer query.
pub const UNKNOWN: &str = "$unknown";

/// `->`, `->>`, `#>`, `@>`, `@?`, `?` and the other operators of JSON, `^@`, `interval * number`, `text[2:3]`,
/// `= ANY (list)`, `list && list`; `max(x, n)`, `string_agg` without a separator, `json_group_array` in an order; window
/// functions that DataFusion lacks.
#[derive(Debug, Default)]
pub struct PlanCalls;

macro_rules! own {
    ($($constant:ident $name:literal;)*) => {$(
        static $constant: LazyLock<Option<Arc<ScalarUDF>>> = LazyLock::new(|| scalar::named($name));
    )*};
}

own! {
    AT_PATH "json_at_path";
    CONCAT "jsonb_concat";
    CONTAINS "jsonb_contains";
    DELETE "jsonb_delete";
    DELETE_PATH "jsonb_delete_path";
    EXISTS "jsonb_exists";
    EXISTS_ALL "jsonb_exists_all";
    EXISTS_ANY "jsonb_exists_any";
    EXTRACT "json_extract";
    EXTRACT_STRING "json_extract_string";
    INET_MINUS "inet_minus";
    INET_OVERLAP "inet_overlap";
    INET_PLUS "inet_plus";
    INET_WITHIN "inet_within";
    INET_WITHIN_OR_EQUAL "inet_within_or_equal";
    INTERVAL_DIVIDE "interval_divide";
    INTERVAL_MULTIPLY "interval_multiply";
    JSONB_CHECKED "jsonb_checked";
    JSON_AGGREGATED "json_aggregated";
    MAP_VALUE "map_extract_value";
    PATH_EXISTS "jsonb_path_exists";
    PATH_MATCH "jsonb_path_match";
    REGEXP_MATCH "regexp_match";
    TEXT_AT_PATH "json_text_at_path";
    TEXT_ELEMENT "text_element";
    TEXT_SLICE "text_slice";
    TO_JSON "to_json";
    TO_JSONB "to_jsonb";
    TIMETZ_MINUS "timetz_minus";
    TIMETZ_PLUS "timetz_plus";
}

impl ExprPlanner for PlanCalls {
    fn plan_binary_op(
        &self,
        mut expr: RawBinaryExpr,
        schema: &DFSchema,
    ) -> Result<PlannerResult<RawBinaryExpr>> {
        if let Some(call) = of_ranges(&expr, schema)? {
            return Ok(PlannerResult::Planned(call));
        }
        let planned = of_path(&expr).or_else(|| of_addresses(&expr, schema));
        if let Some(call) = planned.or_else(|| of_zoned_times(&expr, schema)) {
            return Ok(PlannerResult::Planned(call));
        }
        let function = match expr.op {
            BinaryOperator::Multiply if is_scaled(&expr.left, &expr.right, schema) => {
                INTERVAL_MULTIPLY.clone()
            }
            BinaryOperator::Multiply if is_scaled(&expr.right, &expr.left, schema) => {
                std::mem::swap(&mut expr.left, &mut expr.right);
                INTERVAL_MULTIPLY.clone()
            }
            BinaryOperator::Divide if is_scaled(&expr.left, &expr.right, schema) => {
                INTERVAL_DIVIDE.clone()
            }
            BinaryOperator::Arrow => EXTRACT.clone(),
            BinaryOperator::LongArrow => EXTRACT_STRING.clone(),
            BinaryOperator::HashArrow => AT_PATH.clone(),
            BinaryOperator::HashLongArrow => TEXT_AT_PATH.clone(),
            BinaryOperator::HashMinus => DELETE_PATH.clone(),
            BinaryOperator::Question => EXISTS.clone(),
            BinaryOperator::QuestionAnd => EXISTS_ALL.clone(),
            BinaryOperator::QuestionPipe => EXISTS_ANY.clone(),
            BinaryOperator::Minus if is_jsonb(&expr.left, schema) => DELETE.clone(),
            BinaryOperator::StringConcat if joins_jsonb(&expr, schema) => CONCAT.clone(),
            BinaryOperator::AtArrow if is_json(&expr.left, schema) => CONTAINS.clone(),
            BinaryOperator::ArrowAt if is_json(&expr.right, schema) => {
                std::mem::swap(&mut expr.left, &mut expr.right);
                CONTAINS.clone()
            }
            BinaryOperator::PGStartsWith => Some(starts_with()),
            _ => None,
        };
        if let Some(call) = with_lists(&expr, schema)? {
            return Ok(PlannerResult::Planned(call));
        }
        if is_of_bits(&expr.op) {
            refuse_fractions(&expr, schema)?;
        }
        if takes_a_part(&expr.op) {
            expr.left = with_mark(expr.left, schema);
        }
        if relates_jsonb(&expr.op) && function.is_some() {
            become_jsonb(&mut expr.left);
            become_jsonb(&mut expr.right);
        }
        Ok(match function {
            Some(function) => PlannerResult::Planned(function.call(vec![expr.left, expr.right])),
            None => PlannerResult::Original(expr),
        })
    }

    /// `substring(text FROM 2 FOR 3)` and `substring(text FROM 'a(.*)b')`.
    fn plan_substring(&self, mut args: Vec<Expr>) -> Result<PlannerResult<Vec<Expr>>> {
        let is_pattern =
            |arg: &Expr| matches!(arg, Expr::Literal(value, _) if value.data_type().is_string());
        if args.len() == 2
            && let Some(pattern) = args.pop_if(|pattern| is_pattern(pattern))
        {
            let Some(function) = REGEXP_MATCH.clone() else {
                return plan_err!("function regexp_match does not exist");
            };
            let found = function.call(vec![args.remove(0), pattern]);
            return Ok(PlannerResult::Planned(array_element(found, lit(1_i64))));
        }
        static SUBSTR: LazyLock<ScalarUDF> = LazyLock::new(scalar::text::substr::function);
        Ok(PlannerResult::Planned(SUBSTR.call(args)))
    }

    fn plan_extract(&self, args: Vec<Expr>) -> Result<PlannerResult<Vec<Expr>>> {
        Ok(PlannerResult::Planned(scalar::DATE_PART.call(args)))
    }

    fn plan_field_access(
        &self,
        access: RawFieldAccessExpr,
        schema: &DFSchema,
    ) -> Result<PlannerResult<RawFieldAccessExpr>> {
        if let (Expr::AggregateFunction(list), GetFieldAccess::ListIndex { key }) =
            (&access.expr, &access.field_access)
            && list.func.name() == "array_agg"
        {
            return Ok(PlannerResult::Planned(element_of_all(list, key)));
        }
        if let Some(value) = value_of_key(&access, schema) {
            return Ok(PlannerResult::Planned(value));
        }
        if !is_text(&access.expr, schema) {
            return Ok(PlannerResult::Original(access));
        }
        if let Some(part) = part_of_json(&access, schema) {
            return Ok(PlannerResult::Planned(part));
        }
        let (function, args) = match &access.field_access {
            GetFieldAccess::ListIndex { key } if !is_text(key, schema) => {
                (TEXT_ELEMENT.clone(), vec![access.expr.clone(), key.as_ref().clone()])
            }
            GetFieldAccess::ListRange { start, stop, stride } => {
                if !matches!(**stride, Expr::Literal(ScalarValue::Int64(Some(1)), _)) {
                    return plan_err!(
                        "text slices do not support steps; slice string_split(text, '') instead"
                    );
                }
                let (start, stop) = (start.as_ref().clone(), stop.as_ref().clone());
                (TEXT_SLICE.clone(), vec![access.expr.clone(), start, stop])
            }
            _ => (None, vec![]),
        };
        Ok(match function {
            Some(function) => PlannerResult::Planned(function.call(args)),
            None => PlannerResult::Original(access),
        })
    }

    fn plan_compound_identifier(
        &self,
        field: &Field,
        _: Option<&TableReference>,
        nested_names: &[String],
    ) -> Result<PlannerResult<Vec<Expr>>> {
        let [name] = nested_names else { return Ok(PlannerResult::Original(vec![])) };
        if field.data_type().is_nested() {
            return Ok(PlannerResult::Original(vec![]));
        }
        let unknown = Field::new(UNKNOWN, DataType::Null, true);
        let column = Column::new(Some(field.name().as_str()), name);
        Ok(PlannerResult::Planned(Expr::OuterReferenceColumn(Arc::new(unknown), column)))
    }

    fn plan_window(&self, call: RawWindowExpr) -> Result<PlannerResult<RawWindowExpr>> {
        // DataFusion counts from the last row then, and takes 0 for none.
        let is_nth = call.func_def.name() == "nth_value";
        if is_nth && call.args.get(1).is_some_and(|nth| !is_positive(nth)) {
            return Err(not_positive());
        }
        let call = shifted(framed(excluded(ranged(call))?));
        Ok(match signed_count_over(&call) {
            Some(count) => PlannerResult::Planned(count),
            None => PlannerResult::Original(call),
        })
    }

    fn plan_aggregate(
        &self,
        mut call: RawAggregateExpr,
    ) -> Result<PlannerResult<RawAggregateExpr>> {
        if let Some(count) = signed_count(&call) {
            return Ok(PlannerResult::Planned(count));
        }
        if call.distinct && call.order_by.iter().any(|key| !call.args.contains(&key.expr)) {
            let message = "in an aggregate with DISTINCT, ORDER BY expressions must appear in \
                           argument list; put DISTINCT into a sub-query";
            return Err(FunctionFailure::error("42P10", message.to_owned()));
        }
        let is_nth = call.func.name() == "nth_value";
        if is_nth && call.args.get(1).is_some_and(|nth| !is_positive(nth)) {
            return Err(not_positive());
        }
        let instead = match (call.func.name(), call.args.len()) {
            ("max", 2) => "max_n",
            ("min", 2) => "min_n",
            ("arg_max", 3) => "arg_max_n",
            ("arg_min", 3) => "arg_min_n",
            ("string_agg", 1) => {
                call.args.push(lit(","));
                return Ok(PlannerResult::Original(call));
            }
            ("json_agg", 1) if !call.order_by.is_empty() => {
                return Ok(PlannerResult::Planned(ordered_json(call, JSON_AGGREGATED.clone())));
            }
            ("json_group_array", 1) if !call.order_by.is_empty() => {
                return Ok(PlannerResult::Planned(ordered_json(call, TO_JSON.clone())));
            }
            ("jsonb_agg", 1) if !call.order_by.is_empty() => {
                return Ok(PlannerResult::Planned(ordered_json(call, TO_JSONB.clone())));
            }
            _ => return Ok(PlannerResult::Original(call)),
        };
        if let Some(entry) = gathered::entries().find(|entry| entry.name == instead) {
            call.func = Arc::new(AggregateUDF::from(Gathered::new(entry)));
        }
        Ok(PlannerResult::Original(call))
    }
}

/// Whether a constant is a positive number; a non-constant may be one.
fn is_positive(nth: &Expr) -> bool {
    let value = match without_name(nth) {
        Expr::Cast(cast) => return is_positive(&cast.expr),
        Expr::Literal(value, _) => value,
        _ => return true,
    };
    let value = value.cast_to(&DataType::Int64);
    !value.is_ok_and(|value| matches!(value, ScalarValue::Int64(Some(..=0))))
}

/// Creates the call for an operator with at least one list operand.
fn with_lists(expr: &RawBinaryExpr, schema: &DFSchema) -> Result<Option<Expr>> {
    let (left, right) = (&expr.left, &expr.right);
    match &expr.op {
        BinaryOperator::Custom(op) => match compared_rows(op, left, right) {
            Some(call) => Ok(Some(call)),
            None => quantified(op, left, right, schema),
        },
        BinaryOperator::PGOverlap => Ok(of_lists(Relation::Overlap, left, right, schema)),
        BinaryOperator::AtArrow => Ok(of_lists(Relation::Contain, left, right, schema)),
        BinaryOperator::ArrowAt => Ok(of_lists(Relation::Contain, right, left, schema)),
        BinaryOperator::StringConcat if is_null(right) && is_list(left, schema) => {
            Ok(Some(left.clone()))
        }
        BinaryOperator::StringConcat if is_null(left) && is_list(right, schema) => {
            Ok(Some(right.clone()))
        }
        // Arrays of an ENUM have labels as items.
        BinaryOperator::StringConcat if is_list(left, schema) && is_code(right, schema) => {
            Ok(Some(array_append(left.clone(), cast(right.clone(), DataType::Utf8View))))
        }
        BinaryOperator::StringConcat if is_code(left, schema) && is_list(right, schema) => {
            Ok(Some(array_prepend(cast(left.clone(), DataType::Utf8View), right.clone())))
        }
        _ => Ok(None),
    }
}

/// Whether a value is one of an ENUM.
fn is_code(value: &Expr, schema: &DFSchema) -> bool {
    let of = value.get_type(schema);
    of.is_ok_and(
        |of| matches!(of, DataType::Timestamp(_, Some(zone)) if zone.starts_with(ENUM_ZONE)),
    )
}

fn is_list(expr: &Expr, schema: &DFSchema) -> bool {
    matches!(expr.get_type(schema), Ok(DataType::List(_)))
}

/// Whether this is NULL without a type, which beside a list is a list.
fn is_null(expr: &Expr) -> bool {
    matches!(expr, Expr::Literal(ScalarValue::Null, _))
}

/// `(array_agg(…))[n]`: DataFusion rewrites it to `nth_value`, which ignores DISTINCT and allows only one
/// order of rows.
fn element_of_all(list: &AggregateFunction, key: &Expr) -> Expr {
    let is_first = matches!(key, Expr::Literal(ScalarValue::Int64(Some(1)), _));
    if is_first && !list.params.distinct && !list.params.order_by.is_empty() {
        let first = AggregateFunction { func: first_value_udaf(), params: list.params.clone() };
        return Expr::AggregateFunction(first);
    }
    array_element(Expr::AggregateFunction(list.clone()), key.clone())
}

/// `m[k]` of a map: DataFusion's function compares all of its keys at once, which fails or panics if they are lists.
fn value_of_key(access: &RawFieldAccessExpr, schema: &DFSchema) -> Option<Expr> {
    if !matches!(access.expr.get_type(schema), Ok(DataType::Map(..))) {
        return None;
    }
    let key = match &access.field_access {
        GetFieldAccess::NamedStructField { name } => Expr::Literal(name.clone(), None),
        GetFieldAccess::ListIndex { key } => key.as_ref().clone(),
        GetFieldAccess::ListRange { .. } => return None,
    };
    Some(MAP_VALUE.clone()?.call(vec![access.expr.clone(), key]))
}

/// `j['a']` and `j[0]` of JSON, as in PostgreSQL: members and items, counted from 0.
fn part_of_json(access: &RawFieldAccessExpr, schema: &DFSchema) -> Option<Expr> {
    let is_json = is_json(&access.expr, schema);
    let key = match &access.field_access {
        GetFieldAccess::NamedStructField { name } => Expr::Literal(name.clone(), None),
        GetFieldAccess::ListIndex { key } => key.as_ref().clone(),
        GetFieldAccess::ListRange { .. } => return None,
    };
    let extract = EXTRACT.clone().filter(|_| is_json)?;
    Some(extract.call(vec![with_mark(access.expr.clone(), schema), key]))
}

/// Whether an interval is multiplied or divided by a number.
fn is_scaled(interval: &Expr, number: &Expr, schema: &DFSchema) -> bool {
    let is_interval = |of: &DataType| matches!(of, DataType::Interval(_));
    interval.get_type(schema).is_ok_and(|of| is_interval(&of))
        && number.get_type(schema).is_ok_and(|of| of.is_numeric() || of.is_null())
}

fn is_json(expr: &Expr, schema: &DFSchema) -> bool {
    marked_field(expr, schema)
        .is_some_and(|field| !field.data_type().is_nested() && scalar::is_json_field(&field))
}

fn is_of_bits(op: &BinaryOperator) -> bool {
    use BinaryOperator::{
        BitwiseAnd, BitwiseOr, BitwiseXor, PGBitwiseShiftLeft, PGBitwiseShiftRight,
    };
    matches!(op, BitwiseAnd | BitwiseOr | BitwiseXor | PGBitwiseShiftLeft | PGBitwiseShiftRight)
}

/// Refuses operands with fractions, which DataFusion would cut.
fn refuse_fractions(expr: &RawBinaryExpr, schema: &DFSchema) -> Result<()> {
    let (Ok(left), Ok(right)) = (expr.left.get_type(schema), expr.right.get_type(schema)) else {
        return Ok(());
    };
    let has_fraction = |of: &DataType| match of {
        DataType::Decimal128(_, scale) | DataType::Decimal256(_, scale) => *scale > 0,
        of => of.is_floating(),
    };
    if has_fraction(&left) || has_fraction(&right) {
        let op = if expr.op == BinaryOperator::BitwiseXor { "#" } else { &expr.op.to_string() };
        return plan_err!("Cannot infer common type for bitwise operation {left} {op} {right}");
    }
    Ok(())
}

/// `j @? path` and `j @@ path`, which suppress errors.
fn of_path(expr: &RawBinaryExpr) -> Option<Expr> {
    let function = match expr.op {
        BinaryOperator::AtQuestion => PATH_EXISTS.clone()?,
        BinaryOperator::AtAt => PATH_MATCH.clone()?,
        _ => return None,
    };
    let mut value = expr.left.clone();
    become_jsonb(&mut value);
    Some(function.call(vec![value, expr.right.clone(), lit("{}"), lit(true)]))
}

/// `<<`, `<<=`, `>>`, `>>=`, `&&`, `+` and `-` of addresses.
fn of_addresses(expr: &RawBinaryExpr, schema: &DFSchema) -> Option<Expr> {
    let is_address = |side: &Expr| {
        let field = marked_field(side, schema).filter(|field| !field.data_type().is_nested());
        field.is_some_and(|field| matches!(scalar::mark_of(&field), Some("inet" | "cidr")))
    };
    let (left, right) = (expr.left.clone(), expr.right.clone());
    let (is_left, is_right) = (is_address(&left), is_address(&right));
    if !is_left && !is_right {
        return None;
    }
    let (function, arguments) = match &expr.op {
        BinaryOperator::PGBitwiseShiftLeft => (INET_WITHIN.clone(), [left, right]),
        BinaryOperator::PGBitwiseShiftRight => (INET_WITHIN.clone(), [right, left]),
        BinaryOperator::Custom(op) if op == "<<=" => (INET_WITHIN_OR_EQUAL.clone(), [left, right]),
        BinaryOperator::Custom(op) if op == ">>=" => (INET_WITHIN_OR_EQUAL.clone(), [right, left]),
        BinaryOperator::PGOverlap => (INET_OVERLAP.clone(), [left, right]),
        BinaryOperator::Plus if is_left => (INET_PLUS.clone(), [left, right]),
        BinaryOperator::Plus => (INET_PLUS.clone(), [right, left]),
        BinaryOperator::Minus if is_left && is_whole(&right, schema) => {
            (INET_PLUS.clone(), [left, Expr::Negative(Box::new(right))])
        }
        BinaryOperator::Minus => (INET_MINUS.clone(), [left, right]),
        _ => return None,
    };
    Some(function?.call(arguments.into()))
}

/// `+` and `-` of a TIMETZ and an interval.
fn of_zoned_times(expr: &RawBinaryExpr, schema: &DFSchema) -> Option<Expr> {
    let function = match expr.op {
        BinaryOperator::Plus => TIMETZ_PLUS.clone(),
        BinaryOperator::Minus => TIMETZ_MINUS.clone(),
        _ => return None,
    };
    let is_time = |side: &Expr| {
        let field = marked_field(side, schema).filter(|field| !field.data_type().is_nested());
        field.is_some_and(|field| scalar::mark_of(&field) == Some("timetz"))
    };
    let is_interval =
        |side: &Expr| side.get_type(schema).is_ok_and(|of| matches!(of, DataType::Interval(_)));
    let (left, right) = (&expr.left, &expr.right);
    let arguments = match expr.op {
        _ if is_interval(right) && is_time(left) => [left, right],
        BinaryOperator::Plus if is_interval(left) && is_time(right) => [right, left],
        _ => return None,
    };
    Some(function?.call(arguments.map(Expr::clone).into()))
}

fn is_whole(value: &Expr, schema: &DFSchema) -> bool {
    value.get_type(schema).is_ok_and(|of| of.is_integer())
}

/// Whether an operator extracts a value from JSON.
fn takes_a_part(op: &BinaryOperator) -> bool {
    use BinaryOperator::{Arrow, HashArrow, HashLongArrow, LongArrow};
    matches!(op, Arrow | LongArrow | HashArrow | HashLongArrow)
}

/// Whether both operands of an operator of JSONB are JSONB.
fn relates_jsonb(op: &BinaryOperator) -> bool {
    use BinaryOperator::{ArrowAt, AtArrow, StringConcat};
    matches!(op, AtArrow | ArrowAt | StringConcat)
}

/// Gives a parameter without a type the type JSONB.
fn become_jsonb(operand: &mut Expr) {
    if let Expr::Placeholder(Placeholder { field: unknown @ None, .. }) = operand {
        let mark = [(scalar::JSON_MARK.0.to_owned(), scalar::JSONB_MARK.to_owned())];
        let field = Field::new("", DataType::Utf8View, true).with_metadata(mark.into());
        *unknown = Some(Arc::new(field));
    }
}

/// Whether a value is JSONB; the results of other operators are not.
fn is_jsonb(expr: &Expr, schema: &DFSchema) -> bool {
    !matches!(without_name(expr), Expr::BinaryExpr(_))
        && marked_field(expr, schema).is_some_and(|field| scalar::is_jsonb_field(&field))
}

/// Restores the JSONB mark of a value if DataFusion lost it.
fn with_mark(expr: Expr, schema: &DFSchema) -> Expr {
    // A subquery has its mark during planning, and is a plain value after it has run.
    let has_mark = !matches!(without_name(&expr), Expr::ScalarSubquery(_))
        && expr.to_field(schema).is_ok_and(|(_, field)| scalar::is_jsonb_field(&field));
    match JSONB_CHECKED.clone().filter(|_| !has_mark && is_jsonb(&expr, schema)) {
        Some(checked) => checked.call(vec![expr]),
        None => expr,
    }
}

/// Whether `||` is JSONB's: both sides are JSONB, or one is and the other is a literal or parameter that becomes JSONB.
/// Other texts are concatenated.
fn joins_jsonb(expr: &RawBinaryExpr, schema: &DFSchema) -> bool {
    let becomes = |side: &Expr| matches!(side, Expr::Literal(..) | Expr::Placeholder(_));
    let (left, right) = (&expr.left, &expr.right);
    match (is_jsonb(left, schema), is_jsonb(right, schema)) {
        (true, true) => true,
        (true, false) => becomes(right),
        (false, true) => becomes(left),
        (false, false) => false,
    }
}

fn is_text(expr: &Expr, schema: &DFSchema) -> bool {
    let of = expr.get_type(schema);
    of.is_ok_and(|of| matches!(of, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View))
}

/// Splits an ordered call into an aggregate that collects values in the order of its rows, and the function applied to
/// its result; None for others, and if the call has an order.
pub fn gathered_in_order(call: &Expr, order: &[Sort]) -> Option<(Expr, Option<Arc<ScalarUDF>>)> {
    let Expr::AggregateFunction(AggregateFunction { func, params }) = call else { return None };
    if params.distinct || !params.order_by.is_empty() {
        return None;
    }
    let list = || Arc::new(AggregateUDF::from(OrderedArrayAgg::default()));
    let (func, function) = match func.name() {
        "array_agg" | "first_value" | "last_value" | "string_agg" => (Arc::clone(func), None),
        "json_agg" => (list(), JSON_AGGREGATED.clone()),
        "json_group_array" => (list(), TO_JSON.clone()),
        "jsonb_agg" => (list(), TO_JSONB.clone()),
        _ => return None,
    };
    let mut params = params.clone();
    params.order_by = order.to_vec();
    Some((Expr::AggregateFunction(AggregateFunction { func, params }), function))
}

/// Returns the ordered list as JSON.
fn ordered_json(call: RawAggregateExpr, to_json: Option<Arc<ScalarUDF>>) -> Expr {
    let RawAggregateExpr { args, distinct, filter, order_by, null_treatment, .. } = call;
    let list = AggregateFunction::new_udf(
        Arc::new(AggregateUDF::from(OrderedArrayAgg::default())),
        args,
        distinct,
        filter,
        order_by,
        null_treatment,
    );
    let list = Expr::AggregateFunction(list);
    match to_json {
        Some(to_json) => to_json.call(vec![list]),
        None => list,
    }
}
