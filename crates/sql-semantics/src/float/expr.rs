//! Which expressions may return a non-canonical float, and where that matters.
//!
//! All columns are canonical. The operands of `+`, `-` and `*` need not be: only the end of an
//! arithmetic expression is canonicalized, as in `canonical(a * b - c)`. A divisor must be canonical,
//! because 1 / −0.0 is not 1 / 0.0, and so must all other operands.

use atoll_store::table::has_floats;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::tree_node::{Transformed, TreeNodeRewriter};
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::expr_rewriter::{NamePreserver, SavedName};
use datafusion::logical_expr::{BinaryExpr, Expr, ExprSchemable, Operator};

use super::constant::canonical_scalar;
use super::function;

/// Scalar functions that return one of their arguments, or parts of them, or never a non-canonical
/// float.
const KEEPING: [&str; 22] = [
    "abs",
    "array_append",
    "array_concat",
    "array_distinct",
    "array_element",
    "array_prepend",
    "array_slice",
    "array_sort",
    function::NAME,
    "coalesce",
    "get_field",
    "greatest",
    "least",
    "make_array",
    "map",
    "map_extract_value",
    "named_struct",
    "nullif",
    "nvl",
    "nvl2",
    "random",
    "struct",
];

/// Scalar functions for which a non-canonical argument only makes the result non-canonical.
const INDIFFERENT: [&str; 7] = ["abs", "ceil", "exp", "floor", "round", "sqrt", "trunc"];

/// Aggregates that accept non-canonical arguments.
const ADDING: [&str; 2] = ["avg", "sum"];

/// Aggregate and window functions that return input values.
const HANDING_ON: [&str; 11] = [
    "any_value",
    "array_agg",
    "cume_dist",
    "first_value",
    "lag",
    "last_value",
    "lead",
    "max",
    "min",
    "nth_value",
    "percent_rank",
];

/// Whether the results of an aggregate or window function over these columns may be non-canonical.
/// Sums of whole numbers, as doubles, are finite and never −0.0.
pub(super) fn computes(function: &Expr, schema: &DFSchema) -> bool {
    let (name, arguments) = match function {
        Expr::Alias(alias) => return computes(&alias.expr, schema),
        Expr::AggregateFunction(function) => (function.func.name(), &function.params.args),
        Expr::WindowFunction(function) => (function.fun.name(), &function.params.args),
        _ => return true,
    };
    let whole = || match &arguments[..] {
        [Expr::Cast(cast)] => cast.expr.get_type(schema).is_ok_and(|of| of.is_integer()),
        _ => false,
    };
    !(HANDING_ON.contains(&name) || ADDING.contains(&name) && whole())
}

/// Canonicalizes the results of expressions.
pub(super) struct Rewriter<'a> {
    /// The schema of the columns.
    schema: &'a DFSchema,
    /// Whether the columns themselves may be non-canonical.
    raw_columns: bool,
    /// The enclosing expressions.
    frames: Vec<Frame>,
}

/// An expression whose children are being rewritten.
struct Frame {
    /// Whether its result must be canonical.
    wanted: bool,
    /// The number of leading children whose results need not be.
    free: usize,
    /// Children seen so far.
    seen: usize,
    /// Whether the names of its children are column names.
    names: bool,
    /// Its own name, if that is a column name.
    name: SavedName,
}

impl<'a> Rewriter<'a> {
    /// For expressions over these columns, which may be `raw`, as their source returns them.
    pub(super) fn new(schema: &'a DFSchema, raw_columns: bool) -> Self {
        Self { schema, raw_columns, frames: Vec::new() }
    }

    fn wraps(&self, expr: &Expr) -> bool {
        may_differ(expr, self.schema, self.raw_columns) && holds_floats(expr, self.schema)
    }
}

impl TreeNodeRewriter for Rewriter<'_> {
    type Node = Expr;

    fn f_down(&mut self, expr: Expr) -> Result<Transformed<Expr>> {
        let (wanted, named) = match self.frames.last_mut() {
            Some(parent) => {
                parent.seen += 1;
                (parent.seen > parent.free, parent.names)
            }
            None => (true, false),
        };
        let name = match named {
            true => NamePreserver::new_for_projection().save(&expr),
            false => SavedName::None,
        };
        let names = matches!(expr, Expr::GroupingSet(_));
        self.frames.push(Frame { wanted, free: free_children(&expr), seen: 0, names, name });
        Ok(Transformed::no(expr))
    }

    fn f_up(&mut self, expr: Expr) -> Result<Transformed<Expr>> {
        let frame = self.frames.pop();
        if let Expr::Literal(value, metadata) = expr {
            let canonical = canonical_scalar(value.clone())?;
            let changed = canonical != value;
            let literal = Expr::Literal(canonical, metadata);
            return Ok(Transformed::new_transformed(literal, changed));
        }
        let Some(frame) = frame else { return Ok(Transformed::no(expr)) };
        let wrapped = frame.wanted && self.wraps(&expr);
        let expr = if wrapped { function::call(expr) } else { expr };
        Ok(Transformed::new_transformed(frame.name.restore(expr), wrapped))
    }
}

fn free_children(expr: &Expr) -> usize {
    match expr {
        Expr::BinaryExpr(BinaryExpr { op: Operator::Divide, .. }) | Expr::Negative(_) => 1,
        Expr::BinaryExpr(BinaryExpr { op, .. }) if is_arithmetic(*op) => 2,
        Expr::ScalarFunction(function) if INDIFFERENT.contains(&function.name()) => {
            function.args.len()
        }
        Expr::AggregateFunction(function)
            if ADDING.contains(&function.func.name()) && !function.params.distinct =>
        {
            function.params.args.len()
        }
        Expr::WindowFunction(function)
            if ADDING.contains(&function.fun.name()) && !function.params.distinct =>
        {
            function.params.args.len()
        }
        _ => 0,
    }
}

fn is_arithmetic(op: Operator) -> bool {
    use Operator::{Divide, Minus, Modulo, Multiply, Plus};
    matches!(op, Plus | Minus | Multiply | Divide | Modulo)
}

/// Whether an expression over canonical values may return a non-canonical one, if it is a float at all.
fn may_differ(expr: &Expr, schema: &DFSchema, raw_columns: bool) -> bool {
    match expr {
        Expr::Column(_) => raw_columns,
        Expr::BinaryExpr(BinaryExpr { op, .. }) => is_arithmetic(*op),
        Expr::Cast(cast) => cast_may_differ(&cast.expr, cast.field.data_type(), schema),
        Expr::TryCast(cast) => cast_may_differ(&cast.expr, cast.field.data_type(), schema),
        Expr::ScalarFunction(function) => !KEEPING.contains(&function.name()),
        Expr::Negative(_)
        | Expr::HigherOrderFunction(_)
        | Expr::Placeholder(_)
        | Expr::ScalarVariable(..) => true,
        _ => false,
    }
}

/// Integers and floats that are not wider stay canonical; a double may become −0.0 in a REAL.
fn cast_may_differ(from: &Expr, to: &DataType, schema: &DFSchema) -> bool {
    let width = |of: &DataType| of.is_floating().then(|| of.primitive_width()).flatten();
    let keeps = |from: DataType| {
        let widens = width(&from).zip(width(to)).is_some_and(|(from, to)| from <= to);
        from == *to || from.is_integer() || from == DataType::Boolean || widens
    };
    has_floats(to) && !from.get_type(schema).is_ok_and(keeps)
}

/// An expression without a type is not computed either: planning fails later and says why.
fn holds_floats(expr: &Expr, schema: &DFSchema) -> bool {
    expr.get_type(schema).is_ok_and(|data_type| has_floats(&data_type))
}
