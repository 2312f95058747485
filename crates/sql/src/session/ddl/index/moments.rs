//! Words like 'today', which are another moment whenever they are read: an index cannot keep them.

use std::ops::ControlFlow;
use std::sync::Arc;

use atoll_sql_common::error::stated_err;
use atoll_sql_parse::syntax::walk_expressions;
use datafusion::common::Result;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::Literal;
use datafusion::sql::sqlparser::ast::{Expr, TypedString, Value};

use super::parts::is_text;

const WORDS: [&str; 4] = ["now", "today", "tomorrow", "yesterday"];

/// Refuses such words in an expression, unless its plan has them as texts.
pub(super) fn refuse_moments(
    expr: &Expr,
    planned: &Arc<dyn PhysicalExpr>,
    what: &str,
) -> Result<()> {
    let mut texts = 0_usize;
    let moment = walk_expressions(expr, &mut |expr| {
        match expr {
            Expr::Cast { expr: inner, data_type, .. } if !is_text(data_type) => {
                if let Some(text) = moment_in(inner) {
                    return ControlFlow::Break(text.to_owned());
                }
            }
            Expr::TypedString(TypedString { data_type, value, .. }) if !is_text(data_type) => {
                if let Some(text) = moment_of(&value.value) {
                    return ControlFlow::Break(text.to_owned());
                }
            }
            Expr::Value(value) => texts += usize::from(moment_of(&value.value).is_some()),
            _ => {}
        }
        ControlFlow::Continue(())
    });
    let moment = match moment.break_value() {
        None if texts > planned_texts(planned)? => "now".to_owned(),
        None => return Ok(()),
        Some(moment) => moment,
    };
    stated_err!(
        INVALID_OBJECT_DEFINITION,
        "{what} cannot have '{moment}' or the like, which is another moment later; write the date or timestamp"
    )
}

/// How many texts of a plan are such words.
fn planned_texts(planned: &Arc<dyn PhysicalExpr>) -> Result<usize> {
    let mut texts = 0;
    planned.apply(|expr| {
        let value = expr.downcast_ref::<Literal>().and_then(|it| it.value().try_as_str());
        texts += usize::from(value.flatten().is_some_and(has_word));
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(texts)
}

/// The text that an expression is, if it has such a word.
fn moment_in(expr: &Expr) -> Option<&str> {
    match expr {
        Expr::Value(value) => moment_of(&value.value),
        Expr::Nested(inner) => moment_in(inner),
        _ => None,
    }
}

fn moment_of(value: &Value) -> Option<&str> {
    match value {
        Value::SingleQuotedString(text) => Some(text.as_str()).filter(|text| has_word(text)),
        _ => None,
    }
}

fn has_word(text: &str) -> bool {
    let mut words = text.split(|c: char| !c.is_ascii_alphabetic());
    words.any(|word| WORDS.iter().any(|moment| word.eq_ignore_ascii_case(moment)))
}
