//! Converts texts that are compared with UUIDs and JSONB to the canonical form in which these are stored.
//!
//! ```text
//! id = 'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11'    id = 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'
//! id = ANY ('{A0EEBC99-…}'::UUID[])              likewise each element of the list
//! b = '{"a":1}'                                  b = '{"a": 1}'
//! ```

use std::sync::Arc;

use atoll_functions::marked_field;
use atoll_functions::temporal::StatementClock;
use datafusion::arrow::array::{Array, ListArray};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{Expr, LogicalPlan};
use datafusion::optimizer::AnalyzerRule;

use super::{has_forms, is_quantified};
use atoll_sql_common::logical::{compares, map_named};
use atoll_sql_common::pg_type::Checked;

/// Functions that compare the elements of two lists: the operators `@>`, `<@` and `&&`.
const RELATIONS: [&str; 2] = ["list_contains_list", "lists_overlap"];

/// Functions that return one of their arguments.
const CHOICES: [&str; 4] = ["coalesce", "greatest", "least", "nullif"];

/// Canonicalizes texts next to UUIDs and JSONB.
#[derive(Debug)]
pub struct CanonicalTexts;

impl AnalyzerRule for CanonicalTexts {
    fn name(&self) -> &str {
        "canonical_texts"
    }

    fn analyze(&self, plan: LogicalPlan, config: &ConfigOptions) -> Result<LogicalPlan> {
        if !has_forms(&plan)? {
            return Ok(plan);
        }
        let clock = StatementClock { begun: None, ..StatementClock::from_options(config) };
        plan.transform_up_with_subqueries(|plan| {
            let schema = merge_schema(&plan.inputs());
            map_named(plan, |expr| expr.transform_up(|expr| compared(expr, &schema, clock)))
        })
        .data()
    }
}

/// The form of a value's texts, and the clock by which a text becomes one.
#[derive(Clone, Copy)]
pub struct TextForm<'c> {
    /// The type.
    pub of: Checked,
    /// The session's time zone.
    pub clock: StatementClock<'c>,
}

/// Canonicalizes the literals in a comparison with such a value.
fn compared(
    mut expr: Expr,
    schema: &DFSchema,
    clock: StatementClock<'_>,
) -> Result<Transformed<Expr>> {
    let form = |side: &Expr| {
        let field = marked_field(side, schema)?;
        Some(TextForm { of: Checked::of_field(&field)?, clock })
    };
    let changed = match &mut expr {
        Expr::BinaryExpr(binary) if compares(binary.op) => {
            match (form(&binary.left), form(&binary.right)) {
                (Some(form), None) => canonical(&mut binary.right, form)?,
                (None, Some(form)) => canonical(&mut binary.left, form)?,
                _ => false,
            }
        }
        Expr::InList(list) => match form(&list.expr) {
            Some(form) => all_canonical(list.list.iter_mut(), form)?,
            None => false,
        },
        Expr::Between(between) => match form(&between.expr) {
            Some(form) => canonical(&mut between.low, form)? | canonical(&mut between.high, form)?,
            None => false,
        },
        Expr::ScalarFunction(call) if is_quantified(call.func.name()) => match &mut call.args[..] {
            [value, list] => match (form(value), form(list)) {
                (Some(form), None) => canonical_items(list, form)?,
                (None, Some(form)) => canonical(value, form)?,
                _ => false,
            },
            _ => false,
        },
        Expr::ScalarFunction(call) if RELATIONS.contains(&call.func.name()) => {
            match &mut call.args[..] {
                [left, right] => match (form(left), form(right)) {
                    (Some(form), None) => canonical_items(right, form)?,
                    (None, Some(form)) => canonical_items(left, form)?,
                    _ => false,
                },
                _ => false,
            }
        }
        Expr::ScalarFunction(call) if CHOICES.contains(&call.func.name()) => {
            match call.args.iter().find_map(form) {
                Some(form) => all_canonical(call.args.iter_mut(), form)?,
                None => false,
            }
        }
        Expr::Case(case) => {
            let results = case.when_then_expr.iter().map(|(_, result)| result.as_ref());
            match results.chain(case.else_expr.as_deref()).find_map(form) {
                Some(form) => {
                    let results = case.when_then_expr.iter_mut().map(|(_, result)| result.as_mut());
                    all_canonical(results.chain(case.else_expr.as_deref_mut()), form)?
                }
                None => false,
            }
        }
        _ => false,
    };
    Ok(if changed { Transformed::yes(expr) } else { Transformed::no(expr) })
}

/// Canonicalizes the literals among expressions; returns whether any changed.
fn all_canonical<'e>(all: impl Iterator<Item = &'e mut Expr>, form: TextForm<'_>) -> Result<bool> {
    let mut changed = false;
    for one in all {
        changed |= canonical(one, form)?;
    }
    Ok(changed)
}

/// Canonicalizes the elements of a list expression; returns whether any changed.
fn canonical_items(list: &mut Expr, form: TextForm<'_>) -> Result<bool> {
    match list {
        Expr::Cast(cast) => canonical_items(&mut cast.expr, form),
        Expr::ScalarFunction(call) if call.func.name() == "make_array" => {
            all_canonical(call.args.iter_mut(), form)
        }
        Expr::Literal(ScalarValue::List(items), _) => {
            let Some(canonical) = canonical_list(items, form)? else { return Ok(false) };
            *items = canonical;
            Ok(true)
        }
        _ => Ok(false),
    }
}

/// Canonicalizes the texts of a list; None if they already are canonical.
fn canonical_list(list: &Arc<ListArray>, form: TextForm<'_>) -> Result<Option<Arc<ListArray>>> {
    let DataType::List(field) = list.data_type() else { return Ok(None) };
    let (values, mut changed) = (list.values(), false);
    let mut items = Vec::with_capacity(values.len());
    for at in 0..values.len() {
        let item = ScalarValue::try_from_array(values, at)?;
        let canonical = canonical_value(&item, form)?;
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

/// Canonicalizes a literal; returns whether it changed.
fn canonical(side: &mut Expr, form: TextForm<'_>) -> Result<bool> {
    let Expr::Literal(value, _) = side else { return Ok(false) };
    let Some(canonical) = canonical_value(value, form)? else { return Ok(false) };
    *value = canonical;
    Ok(true)
}

/// Canonicalizes a text or a list of texts; None if it is already canonical, or not a text.
///
/// # Errors
/// If a text is not a value of the type.
pub fn canonical_value(value: &ScalarValue, form: TextForm<'_>) -> Result<Option<ScalarValue>> {
    if let ScalarValue::List(list) = value {
        return Ok(canonical_list(list, form)?.map(ScalarValue::List));
    }
    let (ScalarValue::Utf8(Some(text))
    | ScalarValue::Utf8View(Some(text))
    | ScalarValue::LargeUtf8(Some(text))) = value
    else {
        return Ok(None);
    };
    let Some(canonical) = form.of.canonical(text, form.clock)? else { return Ok(None) };
    Ok(Some(match value {
        ScalarValue::Utf8(_) => ScalarValue::Utf8(Some(canonical)),
        ScalarValue::LargeUtf8(_) => ScalarValue::LargeUtf8(Some(canonical)),
        _ => ScalarValue::Utf8View(Some(canonical)),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn as_uuid(value: &ScalarValue) -> Result<Option<ScalarValue>> {
        canonical_value(value, TextForm { of: Checked::Uuid, clock: StatementClock::default() })
    }

    #[test]
    fn texts_become_canonical_in_their_types() {
        let text = "A0EEBC999C0B4EF8BB6D6BB9BD380A11".to_owned();
        let canonical = "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11".to_owned();
        let given = ScalarValue::Utf8(Some(text));
        let found = as_uuid(&given).expect("it is one");
        assert_eq!(found, Some(ScalarValue::Utf8(Some(canonical.clone()))));
        let same = ScalarValue::Utf8View(Some(canonical));
        assert_eq!(as_uuid(&same).expect("it is one"), None);
        assert_eq!(as_uuid(&ScalarValue::Int32(Some(1))).expect("no text"), None);
        assert!(as_uuid(&ScalarValue::Utf8View(Some("x".to_owned()))).is_err());
    }
}
