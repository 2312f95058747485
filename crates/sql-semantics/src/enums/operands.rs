//! Refuses operators and functions that ENUMs do not have, which would compute with codes, and comparisons of an ENUM
//! with another type.

use std::sync::Arc;

use atoll_sql_common::error::SqlState;
use atoll_sql_common::logical::{compares, map_named};
use atoll_sql_common::user_type::{UserTypes, enum_oid, enum_within};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchema, DataFusionError, Result};
use datafusion::logical_expr::expr::{
    AggregateFunction, Between, Case, Cast, InList, InSubquery, ScalarFunction, WindowFunction,
};
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{BinaryExpr, Expr, ExprSchemable, LogicalPlan, Operator, Union};
use datafusion::optimizer::AnalyzerRule;

use super::array_operands::LABEL_CODES;
use super::labels::type_name;

/// Functions that return one of their arguments, compare them, or take texts, which labels become.
const FUNCTIONS: &[&str] = &[
    "cast",
    "coalesce",
    "concat",
    "concat_ws",
    "enum_first",
    "enum_last",
    "enum_range",
    "greatest",
    "ifnull",
    LABEL_CODES,
    "least",
    "num_nonnulls",
    "num_nulls",
    "nullif",
    "nvl",
    "pg_typeof",
    "try_cast",
];

/// Functions whose arguments have one type.
const ALIKE: [&str; 6] = ["coalesce", "greatest", "ifnull", "least", "nullif", "nvl"];

/// Aggregates and window functions that do the same.
const AGGREGATES: &[&str] = &[
    "any_value",
    "approx_distinct",
    "count",
    "cume_dist",
    "dense_rank",
    "first",
    "first_value",
    "lag",
    "last",
    "last_value",
    "lead",
    "max",
    "min",
    "mode",
    "nth_value",
    "ntile",
    "percent_rank",
    "rank",
    "row_number",
];

/// Refuses misuse of ENUMs, before type coercion.
#[derive(Debug, Default)]
pub struct EnumOperands;

impl AnalyzerRule for EnumOperands {
    fn name(&self) -> &str {
        "enum_operands"
    }

    fn analyze(&self, plan: LogicalPlan, options: &ConfigOptions) -> Result<LogicalPlan> {
        let Some(types) = UserTypes::in_options(options).filter(|types| !types.is_empty()) else {
            return Ok(plan);
        };
        let plan = with_labels(plan, types)?;
        plan.apply_with_subqueries(|node| {
            let mut schema = merge_schema(&node.inputs());
            if let LogicalPlan::TableScan(scan) = node {
                let source = scan.source.schema();
                let of_scan =
                    DFSchema::try_from_qualified_schema(scan.table_name.clone(), &source)?;
                schema.merge(&of_scan);
            }
            let scope = Scope { schema, types };
            if let LogicalPlan::Union(union) = node {
                check_union(union, types)?;
            }
            if let LogicalPlan::Join(join) = node {
                join.on.iter().try_for_each(|(one, other)| scope.compared("=", one, other))?;
            }
            node.apply_expressions(|expr| {
                expr.apply(|expr| scope.check(expr).map(|()| TreeNodeRecursion::Continue))
            })
        })?;
        Ok(plan)
    }
}

/// Gives string literals the type of the ENUM that they are compared with. Those of the statement's text have it since they
/// were planned, but the values of parameters take their places later.
fn with_labels(plan: LogicalPlan, types: &UserTypes) -> Result<LogicalPlan> {
    plan.transform_up_with_subqueries(|node| {
        let schema = merge_schema(&node.inputs());
        let scope = Scope { schema, types };
        map_named(node, |expr| expr.transform_up(|expr| Ok(scope.labelled(expr))))
    })
    .data()
}

struct Scope<'a> {
    schema: DFSchema,
    types: &'a UserTypes,
}

impl Scope<'_> {
    fn labelled(&self, mut expr: Expr) -> Transformed<Expr> {
        let mut operands: Vec<&mut Expr> = match &mut expr {
            Expr::BinaryExpr(BinaryExpr { left, op, right }) if compares(*op) => {
                vec![left.as_mut(), right.as_mut()]
            }
            Expr::Between(Between { expr, low, high, .. }) => {
                vec![expr.as_mut(), low.as_mut(), high.as_mut()]
            }
            Expr::InList(InList { expr, list, .. }) => {
                [expr.as_mut()].into_iter().chain(list).collect()
            }
            Expr::Case(Case { when_then_expr, else_expr, .. }) => {
                let results = when_then_expr.iter_mut().map(|(_, then)| then.as_mut());
                results.chain(else_expr.as_deref_mut()).collect()
            }
            Expr::ScalarFunction(call) if ALIKE.contains(&call.func.name()) => {
                call.args.iter_mut().collect()
            }
            // The second argument is a number of rows.
            Expr::WindowFunction(call) if ["lag", "lead"].contains(&call.fun.name()) => {
                let arguments = call.params.args.iter_mut().enumerate();
                arguments.filter(|(at, _)| *at != 1).map(|(_, argument)| argument).collect()
            }
            _ => return Transformed::no(expr),
        };
        if !operands.iter().any(|operand| is_text(operand)) {
            return Transformed::no(expr);
        }
        let mut known = operands.iter().map(|operand| self.type_of(operand));
        let Some(of) = known.find(|of| enum_oid(of).is_some()) else {
            return Transformed::no(expr);
        };
        for operand in operands.iter_mut().filter(|operand| is_text(operand)) {
            let text = std::mem::take(&mut **operand);
            **operand = Expr::Cast(Cast::new(Box::new(text), of.clone()));
        }
        Transformed::yes(expr)
    }

    fn check(&self, expr: &Expr) -> Result<()> {
        match expr {
            Expr::BinaryExpr(BinaryExpr { left, op, right }) => self.operator(left, *op, right),
            Expr::Like(like) | Expr::SimilarTo(like) if self.is_enum(&like.expr) => {
                Err(self.no_operator("~~", &like.expr, &like.pattern))
            }
            Expr::Negative(value) if self.is_enum(value) => {
                Err(undefined(format!("operator does not exist: - {}", self.name(value))))
            }
            Expr::Between(Between { expr, low, high, .. }) => {
                self.compared(">=", expr, low)?;
                self.compared("<=", expr, high)
            }
            Expr::InList(InList { expr, list, .. }) => {
                list.iter().try_for_each(|item| self.compared("=", expr, item))
            }
            Expr::InSubquery(InSubquery { expr, subquery, .. }) => {
                let column = subquery.subquery.schema().fields().first();
                let Some(column) = column else { return Ok(()) };
                self.compared_types("=", &self.type_of(expr), column.data_type())
            }
            Expr::Case(Case { expr, when_then_expr, else_expr }) => {
                let results = when_then_expr.iter().map(|(_, then)| then.as_ref());
                self.alike("CASE", results.chain(else_expr.as_deref()))?;
                let Some(operand) = expr else { return Ok(()) };
                let mut conditions = when_then_expr.iter();
                conditions.try_for_each(|(when, _)| self.compared("=", operand, when))
            }
            Expr::ScalarFunction(ScalarFunction { func, args }) => {
                if ALIKE.contains(&func.name()) {
                    self.alike(&func.name().to_uppercase(), args.iter())?;
                }
                self.function(func.name(), FUNCTIONS, args)
            }
            Expr::AggregateFunction(AggregateFunction { func, params }) => {
                self.function(func.name(), AGGREGATES, &params.args)
            }
            Expr::WindowFunction(window) => {
                let WindowFunction { fun, params } = window.as_ref();
                // That of a frame with EXCLUDE is `max EXCLUDE TIES`.
                let name = fun.name().split(' ').next().unwrap_or_default();
                self.function(name, AGGREGATES, &params.args)
            }
            _ => Ok(()),
        }
    }

    fn operator(&self, left: &Expr, op: Operator, right: &Expr) -> Result<()> {
        if compares(op) {
            return self.compared(&op.to_string(), left, right);
        }
        let is_enum = |expr| enum_within(&self.type_of(expr)).is_some();
        if !is_enum(left) && !is_enum(right) {
            return Ok(());
        }
        match op {
            Operator::StringConcat => Ok(()),
            op => Err(self.no_operator(&op.to_string(), left, right)),
        }
    }

    /// Checks the operands of a comparison.
    fn compared(&self, op: &str, left: &Expr, right: &Expr) -> Result<()> {
        if is_unknown(left) || is_unknown(right) {
            return Ok(());
        }
        self.compared_types(op, &self.type_of(left), &self.type_of(right))
    }

    fn compared_types(&self, op: &str, left: &DataType, right: &DataType) -> Result<()> {
        let (of_left, of_right) = (enum_within(left), enum_within(right));
        let is_fine = of_left == of_right
            || left.is_null()
            || right.is_null()
            || matches!(left, DataType::List(item) if item.data_type().is_null())
            || matches!(right, DataType::List(item) if item.data_type().is_null());
        match is_fine {
            true => Ok(()),
            false => Err(undefined(format!(
                "operator does not exist: {} {op} {}",
                type_name(left, Some(self.types)),
                type_name(right, Some(self.types))
            ))),
        }
    }

    /// Refuses values of different types where one of them is an ENUM.
    fn alike<'e>(&self, what: &str, values: impl Iterator<Item = &'e Expr>) -> Result<()> {
        let known = values.filter(|value| !is_unknown(value)).map(|value| self.type_of(value));
        let known: Vec<DataType> = known.filter(|of| !of.is_null()).collect();
        match_types(what, &known, self.types)
    }

    fn function(&self, name: &str, known: &[&str], args: &[Expr]) -> Result<()> {
        let is_enum = |arg: &Expr| enum_within(&self.type_of(arg)).is_some();
        if known.contains(&name) || !args.iter().any(is_enum) {
            return Ok(());
        }
        let types: Vec<String> = args.iter().map(|arg| self.name(arg)).collect();
        Err(undefined(format!("function {name}({}) does not exist", types.join(", "))))
    }

    fn type_of(&self, expr: &Expr) -> DataType {
        expr.get_type(&self.schema).unwrap_or(DataType::Null)
    }

    fn is_enum(&self, expr: &Expr) -> bool {
        enum_oid(&self.type_of(expr)).is_some()
    }

    fn name(&self, expr: &Expr) -> String {
        match is_unknown(expr) {
            true => "unknown".to_owned(),
            false => type_name(&self.type_of(expr), Some(self.types)),
        }
    }

    fn no_operator(&self, op: &str, left: &Expr, right: &Expr) -> DataFusionError {
        let message =
            format!("operator does not exist: {} {op} {}", self.name(left), self.name(right));
        undefined(message)
    }
}

/// Refuses a UNION of an ENUM with other types.
fn check_union(union: &Union, types: &UserTypes) -> Result<()> {
    for column in 0..union.schema.fields().len() {
        let is_known = |input: &&Arc<LogicalPlan>| match input.as_ref() {
            LogicalPlan::Projection(list) => !list.expr.get(column).is_some_and(is_unknown),
            _ => true,
        };
        let inputs = union.inputs.iter().filter(is_known);
        let known = inputs.filter_map(|input| input.schema().fields().get(column));
        let known: Vec<DataType> = known.map(|field| field.data_type().clone()).collect();
        match_types("UNION", &known, types)?;
    }
    Ok(())
}

fn match_types(what: &str, known: &[DataType], types: &UserTypes) -> Result<()> {
    let [first, others @ ..] = known else { return Ok(()) };
    let other = others.iter().find(|other| {
        enum_within(first) != enum_within(other) && !first.is_null() && !other.is_null()
    });
    match other {
        None => Ok(()),
        Some(other) => Err(SqlState::DATATYPE_MISMATCH.error(format!(
            "{what} types {} and {} cannot be matched",
            type_name(first, Some(types)),
            type_name(other, Some(types))
        ))),
    }
}

/// Whether an expression is a string literal.
fn is_text(expr: &Expr) -> bool {
    matches!(expr, Expr::Literal(value, _) if value.data_type().is_string())
}

/// Whether an expression takes its type from the other operand.
fn is_unknown(expr: &Expr) -> bool {
    match expr {
        Expr::Alias(alias) => is_unknown(&alias.expr),
        Expr::Literal(value, _) => value.is_null() || value.data_type().is_string(),
        Expr::Placeholder(placeholder) => placeholder.field.is_none(),
        _ => false,
    }
}

fn undefined(message: String) -> DataFusionError {
    SqlState::UNDEFINED_FUNCTION.error(message)
}
