//! UUIDs are kept in their canonical form: texts that are compared with a column of them are brought into it.
//!
//! ```text
//! id = 'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11'    id = 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'
//! id = ANY ('{A0EEBC99-…}'::UUID[])              likewise each element of the list
//! ```

use std::sync::Arc;

use atoll_functions::{canonical_uuid, is_canonical_uuid};
use datafusion::arrow::array::{Array, ListArray};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{Expr, ExprSchemable, LogicalPlan, Operator};
use datafusion::optimizer::AnalyzerRule;

use super::map_named;
use crate::error::stated_err;
use crate::pg_catalog::is_uuid;

/// Brings texts beside UUIDs into their form.
#[derive(Debug)]
pub(crate) struct CanonicalUuids;

impl AnalyzerRule for CanonicalUuids {
    fn name(&self) -> &str {
        "canonical_uuids"
    }

    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        if !reads_uuids(&plan)? {
            return Ok(plan);
        }
        plan.transform_up_with_subqueries(|plan| {
            let schema = merge_schema(&plan.inputs());
            map_named(plan, |expr| expr.transform_up(|expr| compared(expr, &schema)))
        })
        .data()
    }
}

/// Whether a plan reads a table with a column of UUIDs.
fn reads_uuids(plan: &LogicalPlan) -> Result<bool> {
    let mut found = false;
    plan.apply_with_subqueries(|node| {
        if let LogicalPlan::TableScan(scan) = node {
            found |= scan.source.schema().fields().iter().any(|field| is_uuid(field));
        }
        Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    Ok(found)
}

/// A comparison with the literals beside a UUID in their canonical form.
fn compared(mut expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let is_one = |side: &Expr| side.to_field(schema).is_ok_and(|(_, field)| is_uuid(&field));
    let changed = match &mut expr {
        Expr::BinaryExpr(binary) if compares(binary.op) => {
            match (is_one(&binary.left), is_one(&binary.right)) {
                (true, false) => canonical(&mut binary.right)?,
                (false, true) => canonical(&mut binary.left)?,
                _ => false,
            }
        }
        Expr::InList(list) if is_one(&list.expr) => {
            let mut changed = false;
            for item in &mut list.list {
                changed |= canonical(item)?;
            }
            changed
        }
        Expr::Between(between) if is_one(&between.expr) => {
            canonical(&mut between.low)? | canonical(&mut between.high)?
        }
        Expr::ScalarFunction(call) if is_quantified(call.func.name()) => match &mut call.args[..] {
            [value, list] if is_one(value) => canonical_items(list)?,
            _ => false,
        },
        _ => false,
    };
    Ok(if changed { Transformed::yes(expr) } else { Transformed::no(expr) })
}

fn compares(op: Operator) -> bool {
    use Operator::{Eq, Gt, GtEq, IsDistinctFrom, IsNotDistinctFrom, Lt, LtEq, NotEq};
    matches!(op, Eq | NotEq | Lt | LtEq | Gt | GtEq | IsDistinctFrom | IsNotDistinctFrom)
}

/// Whether a function compares a value with the elements of a list, by `= ANY` or its kin.
fn is_quantified(name: &str) -> bool {
    ["equals", "differs_from", "less_than", "at_most", "greater_than", "at_least"]
        .iter()
        .any(|of| matches!(name.strip_prefix(of), Some("_any" | "_all")))
}

/// Brings the elements of a list that is written out into the canonical form; whether one had another.
fn canonical_items(list: &mut Expr) -> Result<bool> {
    match list {
        Expr::Cast(cast) => canonical_items(&mut cast.expr),
        Expr::ScalarFunction(call) if call.func.name() == "make_array" => {
            let mut changed = false;
            for item in &mut call.args {
                changed |= canonical(item)?;
            }
            Ok(changed)
        }
        Expr::Literal(ScalarValue::List(items), _) => {
            let Some(canonical) = canonical_list(items)? else { return Ok(false) };
            *items = canonical;
            Ok(true)
        }
        _ => Ok(false),
    }
}

/// A list of texts with these in the canonical form of UUIDs; none where they are in it already.
fn canonical_list(list: &Arc<ListArray>) -> Result<Option<Arc<ListArray>>> {
    let DataType::List(field) = list.data_type() else { return Ok(None) };
    let (values, mut changed) = (list.values(), false);
    let mut items = Vec::with_capacity(values.len());
    for at in 0..values.len() {
        let item = ScalarValue::try_from_array(values, at)?;
        let canonical = canonical_value(&item)?;
        changed |= canonical.is_some();
        items.push(canonical.unwrap_or(item));
    }
    if !changed {
        return Ok(None);
    }
    let (offsets, nulls) = (list.offsets().clone(), list.nulls().cloned());
    let values = ScalarValue::iter_to_array(items)?;
    Ok(Some(Arc::new(ListArray::try_new(Arc::clone(field), offsets, values, nulls)?)))
}

/// Brings a literal into the canonical form; whether it had another.
fn canonical(side: &mut Expr) -> Result<bool> {
    let Expr::Literal(value, _) = side else { return Ok(false) };
    let Some(canonical) = canonical_value(value)? else { return Ok(false) };
    *value = canonical;
    Ok(true)
}

/// A text in the canonical form of UUIDs, or a list of such; none where it is that already, or no text.
///
/// # Errors
/// For texts that are not a UUID.
pub(crate) fn canonical_value(value: &ScalarValue) -> Result<Option<ScalarValue>> {
    if let ScalarValue::List(list) = value {
        return Ok(canonical_list(list)?.map(ScalarValue::List));
    }
    let (ScalarValue::Utf8(Some(text))
    | ScalarValue::Utf8View(Some(text))
    | ScalarValue::LargeUtf8(Some(text))) = value
    else {
        return Ok(None);
    };
    if is_canonical_uuid(text) {
        return Ok(None);
    }
    let Some(uuid) = canonical_uuid(text) else {
        return stated_err!(
            INVALID_TEXT_REPRESENTATION,
            "invalid input syntax for type uuid: '{text}'"
        );
    };
    Ok(Some(match value {
        ScalarValue::Utf8(_) => ScalarValue::Utf8(Some(uuid)),
        ScalarValue::LargeUtf8(_) => ScalarValue::LargeUtf8(Some(uuid)),
        _ => ScalarValue::Utf8View(Some(uuid)),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_become_canonical_in_their_types() {
        let text = "A0EEBC999C0B4EF8BB6D6BB9BD380A11".to_owned();
        let canonical = "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11".to_owned();
        let given = ScalarValue::Utf8(Some(text));
        let found = canonical_value(&given).expect("it is one");
        assert_eq!(found, Some(ScalarValue::Utf8(Some(canonical.clone()))));
        let same = ScalarValue::Utf8View(Some(canonical));
        assert_eq!(canonical_value(&same).expect("it is one"), None);
        assert_eq!(canonical_value(&ScalarValue::Int32(Some(1))).expect("no text"), None);
        assert!(canonical_value(&ScalarValue::Utf8View(Some("x".to_owned()))).is_err());
    }
}
