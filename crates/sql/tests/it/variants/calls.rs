//! Expressions derived from those of a query: casts, calls over casts, and other parentheses.

use atoll_sql::datafusion::sql::sqlparser::ast::{
    BinaryOperator, CastKind, DataType, Expr, Function, FunctionArg, FunctionArgExpr,
    FunctionArgumentClause, FunctionArgumentList, FunctionArguments, Ident, ObjectName,
    OrderByExpr, Value, WindowSpec, WindowType,
};

/// Aggregates and window functions whose first argument may be of any type.
const OF_ANY_TYPE: [&str; 17] = [
    "min",
    "max",
    "count",
    "any_value",
    "array_agg",
    "list",
    "string_agg",
    "first",
    "last",
    "first_value",
    "last_value",
    "nth_value",
    "lag",
    "lead",
    "mode",
    "arg_min",
    "arg_max",
];

/// Window functions that give rows of equal sort keys equal values.
const OF_PEERS: [&str; 8] =
    ["sum", "count", "min", "max", "rank", "dense_rank", "percent_rank", "cume_dist"];

pub(super) fn cast(expr: &Expr) -> Expr {
    Expr::Cast {
        kind: CastKind::Cast,
        expr: Box::new(expr.clone()),
        data_type: DataType::Varchar(None),
        array: false,
        format: None,
    }
}

/// The calls in an expression, except for those within other calls and within subqueries.
fn calls(expr: &Expr) -> Vec<&Function> {
    match expr {
        Expr::Function(function) => vec![function],
        Expr::BinaryOp { left, right, .. } => {
            let mut all = calls(left);
            all.extend(calls(right));
            all
        }
        Expr::Nested(expr) | Expr::Cast { expr, .. } | Expr::UnaryOp { expr, .. } => calls(expr),
        _ => Vec::new(),
    }
}

/// The calls in an expression that take any type, with their argument replaced by its cast.
pub(super) fn calls_over_casts(expr: &Expr) -> Vec<Expr> {
    calls(expr).into_iter().filter_map(over_cast).collect()
}

fn name(function: &Function) -> String {
    function.name.to_string().to_lowercase()
}

/// The arguments of a call, the first of which is an expression.
fn arguments(function: &Function) -> Option<(&FunctionArgumentList, &Expr)> {
    let FunctionArguments::List(list) = &function.args else { return None };
    match list.args.first()? {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(argument)) => Some((list, argument)),
        _ => None,
    }
}

fn over_cast(function: &Function) -> Option<Expr> {
    let (list, argument) = arguments(function)?;
    // The third argument of lag and lead is of the type of the first.
    let is_known = OF_ANY_TYPE.contains(&name(function).as_str())
        && list.args.len() <= 2
        && function.within_group.is_empty();
    if !is_known {
        return None;
    }
    let mut list = list.clone();
    list.args[0] = FunctionArg::Unnamed(FunctionArgExpr::Expr(cast(argument)));
    if list.duplicate_treatment.is_some() {
        // With DISTINCT the sort keys have to be arguments.
        for clause in &mut list.clauses {
            let FunctionArgumentClause::OrderBy(keys) = clause else { continue };
            for key in keys.iter_mut().filter(|key| key.expr == *argument) {
                key.expr = cast(argument);
            }
        }
    }
    let args = FunctionArguments::List(list);
    Some(Expr::Function(Function { args, ..function.clone() }))
}

/// `count(CAST(x AS VARCHAR)) >= 0` for the aggregates over `x` of a condition; it always holds.
pub(super) fn counts_of_casts(condition: &Expr) -> Vec<Expr> {
    let count = |function: &Function| {
        let (_, argument) = arguments(function)?;
        let args = FunctionArguments::List(FunctionArgumentList {
            duplicate_treatment: None,
            args: vec![FunctionArg::Unnamed(FunctionArgExpr::Expr(cast(argument)))],
            clauses: Vec::new(),
        });
        let name = ObjectName::from(vec![Ident::new("count")]);
        let count = Expr::Function(Function { name, args, ..function.clone() });
        Some(Expr::BinaryOp {
            left: Box::new(count),
            op: BinaryOperator::GtEq,
            right: Box::new(Expr::value(Value::Number("0".to_owned(), false))),
        })
    };
    calls(condition).into_iter().filter_map(count).collect()
}

/// A window function with casts of its keys as additional keys, which change nothing; whether each row has the same
/// value as without.
pub(super) fn over_more_keys(expr: &Expr) -> Option<(Expr, bool)> {
    let Expr::Function(function) = expr else { return None };
    let Some(WindowType::WindowSpec(window)) = &function.over else { return None };
    let mut more = window.clone();
    more.partition_by.extend(window.partition_by.iter().map(cast));
    let is_framed = window.window_frame.is_some();
    if !is_framed {
        // A frame of values has one sort key.
        let further = |key: &OrderByExpr| OrderByExpr { expr: cast(&key.expr), ..key.clone() };
        more.order_by.extend(window.order_by.iter().map(further));
    }
    let is_same = !is_framed && OF_PEERS.contains(&name(function).as_str());
    let call = |window: WindowSpec| {
        let over = Some(WindowType::WindowSpec(window));
        Expr::Function(Function { over, ..function.clone() })
    };
    (more != *window).then(|| (call(more), is_same))
}

/// `a - (b - c)` for `a - b - c`, and so on; both have one name in plans that leave parentheses out.
pub(super) fn regrouped(expr: &Expr) -> Option<Expr> {
    match expr {
        Expr::Nested(expr) => regrouped(expr),
        Expr::BinaryOp { left, op, right } if is_arithmetic(op) => {
            let Expr::BinaryOp { left: first, op: inner, right: second } = left.as_ref() else {
                return None;
            };
            let (left, right) = (second.clone(), right.clone());
            let last = Expr::Nested(Box::new(Expr::BinaryOp { left, op: op.clone(), right }));
            is_arithmetic(inner).then(|| Expr::BinaryOp {
                left: first.clone(),
                op: inner.clone(),
                right: Box::new(last),
            })
        }
        _ => None,
    }
}

fn is_arithmetic(operator: &BinaryOperator) -> bool {
    matches!(
        operator,
        BinaryOperator::Plus
            | BinaryOperator::Minus
            | BinaryOperator::Multiply
            | BinaryOperator::Divide
    )
}
