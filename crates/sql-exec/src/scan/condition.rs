//! Conditions that compare one column with values: the only place that finds them in DataFusion's expressions, logical
//! or physical.
//!
//! Each user goes on to what it runs on: tests of stored columns, ranges of an index, tests of a clock scan, a key.

use std::sync::Arc;

use datafusion::arrow::datatypes::Schema;
use datafusion::common::ScalarValue;
use datafusion::logical_expr::{Expr, Operator};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::{
    BinaryExpr, Column, InListExpr, IsNotNullExpr, IsNullExpr, Literal,
};

/// A condition on one column.
#[derive(Debug)]
pub struct ColumnCondition<V> {
    /// The number of the column.
    pub column: usize,
    /// What the condition says of it.
    pub kind: ConditionKind<V>,
}

/// What a condition says of its column.
#[derive(Debug)]
pub enum ConditionKind<V> {
    /// `column < value` and the like, with the column on the left.
    Compare(Operator, V),
    /// IN, or NOT IN.
    In {
        /// The list.
        values: Vec<V>,
        /// Whether it is NOT IN.
        negated: bool,
    },
    /// LIKE this pattern, without ESCAPE.
    Like(V),
    /// IS NULL if true, else IS NOT NULL.
    Null(bool),
}

impl<'e> ColumnCondition<&'e Expr> {
    /// The condition that a filter is, on one of these columns; its values are constants and parameters.
    pub fn from_logical(filter: &'e Expr, columns: &Schema) -> Option<Self> {
        let (of, kind) = match filter {
            Expr::BinaryExpr(it) => (&*it.left, ConditionKind::Compare(it.op, &*it.right)),
            Expr::InList(it) => (&*it.expr, ConditionKind::in_list(&it.list, it.negated)),
            Expr::Like(it) if !it.negated && !it.case_insensitive && it.escape_char.is_none() => {
                (&*it.expr, ConditionKind::Like(&*it.pattern))
            }
            Expr::IsNull(of) => (&**of, ConditionKind::Null(true)),
            Expr::IsNotNull(of) => (&**of, ConditionKind::Null(false)),
            _ => return None,
        };
        let column = |expr: &Expr| match expr {
            Expr::Column(column) => columns.index_of(&column.name).ok(),
            _ => None,
        };
        let is_value = |expr: &Expr| matches!(expr, Expr::Literal(..) | Expr::Placeholder(_));
        Self::new(of, kind, column, |expr| is_value(expr).then_some(expr))
    }
}

impl<'e> ColumnCondition<&'e ScalarValue> {
    /// The condition that a conjunct is; its values are constants.
    pub fn from_physical(conjunct: &'e Arc<dyn PhysicalExpr>) -> Option<Self> {
        let (of, kind) = if let Some(it) = conjunct.downcast_ref::<BinaryExpr>() {
            (it.left(), ConditionKind::Compare(*it.op(), it.right()))
        } else if let Some(it) = conjunct.downcast_ref::<InListExpr>() {
            (it.expr(), ConditionKind::in_list(it.list(), it.negated()))
        } else if let Some(it) = conjunct.downcast_ref::<IsNullExpr>() {
            (it.arg(), ConditionKind::Null(true))
        } else {
            (conjunct.downcast_ref::<IsNotNullExpr>()?.arg(), ConditionKind::Null(false))
        };
        let value =
            |expr: &'e Arc<dyn PhysicalExpr>| expr.downcast_ref::<Literal>().map(Literal::value);
        Self::new(of, kind, column_of, value)
    }
}

impl<V> ColumnCondition<V> {
    /// A condition over expressions, if `of`, or the other side of a comparison, is a column, and the rest are values.
    fn new<'e, E>(
        of: &'e E,
        kind: ConditionKind<&'e E>,
        column: impl Fn(&'e E) -> Option<usize>,
        value: impl Fn(&'e E) -> Option<V>,
    ) -> Option<Self> {
        let (of, kind) = match kind {
            ConditionKind::Compare(op, _) if !is_comparison(op) => return None,
            ConditionKind::Compare(op, other) if column(of).is_none() => {
                (other, ConditionKind::Compare(op.swap()?, of))
            }
            kind => (of, kind),
        };
        let condition = ColumnCondition { column: column(of)?, kind };
        condition.try_map(|&expr| value(expr).ok_or(())).ok()
    }

    /// The column and the value of an equality.
    pub fn equality(self) -> Option<(usize, V)> {
        match self.kind {
            ConditionKind::Compare(Operator::Eq, value) => Some((self.column, value)),
            _ => None,
        }
    }

    /// The condition with other values.
    ///
    /// # Errors
    /// That of the first value without another one.
    pub fn try_map<W, E>(
        &self,
        other: impl Fn(&V) -> Result<W, E>,
    ) -> Result<ColumnCondition<W>, E> {
        let kind = match &self.kind {
            ConditionKind::Compare(op, value) => ConditionKind::Compare(*op, other(value)?),
            ConditionKind::In { values, negated } => {
                let values = values.iter().map(other).collect::<Result<_, E>>()?;
                ConditionKind::In { values, negated: *negated }
            }
            ConditionKind::Like(pattern) => ConditionKind::Like(other(pattern)?),
            ConditionKind::Null(wanted) => ConditionKind::Null(*wanted),
        };
        Ok(ColumnCondition { column: self.column, kind })
    }
}

impl<'e, E> ConditionKind<&'e E> {
    fn in_list(list: &'e [E], negated: bool) -> Self {
        Self::In { values: list.iter().collect(), negated }
    }
}

/// The number of a column, if an expression is one.
pub(super) fn column_of(expr: &Arc<dyn PhysicalExpr>) -> Option<usize> {
    expr.downcast_ref::<Column>().map(Column::index)
}

/// Whether an operator compares its operands.
pub(super) fn is_comparison(op: Operator) -> bool {
    use Operator::{Eq, Gt, GtEq, Lt, LtEq, NotEq};
    matches!(op, Eq | NotEq | Lt | LtEq | Gt | GtEq)
}
