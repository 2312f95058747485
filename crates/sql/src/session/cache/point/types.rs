//! The types of parameters, and conversions of their values.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, FieldRef};
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{Result, ScalarValue, exec_err};
use datafusion::logical_expr::expr::Placeholder;
use datafusion::logical_expr::{Expr, LogicalPlan};

use crate::session::Session;
use crate::session::plan::planner::StatementPlanner;
use atoll_functions::temporal::StatementClock;
use atoll_sql_common::pg_type::{Checked, PgType};
use atoll_sql_common::user_type::{as_texts, enum_within};
use atoll_sql_semantics::rewrite::{TextForm, canonical_value};

/// For each parameter the OID of its type if that is a text with a format, such as a UUID, and 0 for others.
#[derive(Clone, Debug, Default)]
pub(crate) struct ParameterMarks(pub(super) Arc<[u32]>);

impl ParameterMarks {
    pub(super) fn from_plan(plan: &LogicalPlan, count: usize) -> Result<Self> {
        let mut marks = vec![0; count];
        for (name, field) in parameter_fields(plan)? {
            let number = name.strip_prefix('$').and_then(|number| number.parse::<usize>().ok());
            let mark = number.and_then(|number| marks.get_mut(number.checked_sub(1)?));
            if let (Some(mark), Some(field)) = (mark, field)
                && !field.metadata().is_empty()
            {
                let oid = PgType::of_field(&field).oid;
                *mark = match field.data_type() {
                    DataType::List(_) => PgType::array_of(oid).unwrap_or(oid),
                    _ => oid,
                };
            }
        }
        let is_marked = marks.iter().any(|mark| *mark != 0);
        Ok(if is_marked { Self(marks.into()) } else { Self::default() })
    }

    /// Makes parameters that are values of ENUMs texts, which every execution casts; whether there are any.
    pub(super) fn take_labels(&mut self, types: &mut [DataType]) -> bool {
        let is_enum = |of: &DataType| enum_within(of).is_some();
        if !types.iter().any(is_enum) {
            return false;
        }
        let mut marks = self.0.to_vec();
        marks.resize(types.len(), 0);
        for (mark, of) in marks.iter_mut().zip(types).filter(|(_, of)| is_enum(of)) {
            *mark = PgType::from_data_type(of).oid;
            *of = as_texts(of);
        }
        self.0 = marks.into();
        true
    }

    /// The values with UUIDs and JSONB in their canonical form.
    pub(super) fn canonical<'v>(
        &self,
        values: &'v [ScalarValue],
        session: &Session,
    ) -> Result<Cow<'v, [ScalarValue]>> {
        if !self.0.iter().any(|mark| Checked::of_oid(*mark).is_some()) {
            return Ok(Cow::Borrowed(values));
        }
        let (mut values, time_zone) = (values.to_vec(), session.time_zone());
        let style = session.temporal_style();
        let clock = StatementClock { time_zone: time_zone.as_deref(), begun: None, style };
        for (value, mark) in values.iter_mut().zip(self.0.iter()) {
            if let Some(of) = Checked::of_oid(*mark)
                && let Some(canonical) = canonical_value(value, TextForm { of, clock })?
            {
                *value = canonical;
            }
        }
        Ok(Cow::Owned(values))
    }
}

/// The parameters of a plan with the fields that their positions imply; the first of several.
pub(in crate::session) fn parameter_fields(
    plan: &LogicalPlan,
) -> Result<HashMap<String, Option<FieldRef>>> {
    let mut fields = HashMap::<String, Option<FieldRef>>::new();
    plan.apply_with_subqueries(|node| {
        node.apply_expressions(|expr| {
            expr.apply(|expr| {
                if let Expr::Placeholder(Placeholder { id, field }) = expr {
                    let known = fields.entry(id.clone()).or_default();
                    *known = known.take().or_else(|| field.clone());
                }
                Ok(TreeNodeRecursion::Continue)
            })
        })
    })?;
    Ok(fields)
}

/// Maximum number of parameters: PostgreSQL's protocol counts them in 16 bits.
const PARAMETERS_MAX: usize = 65_535;

/// The types of `$1`, `$2` and so on: those that the statement requires; if it accepts any, or a conversion from the
/// declared type would change the value, the declared ones; text if nothing determines them.
pub(in crate::session) fn types_of(
    planner: &StatementPlanner,
    plan: &LogicalPlan,
    declared: &[Option<DataType>],
) -> Result<Vec<DataType>> {
    let (found, casts) = (planner.rule_parameters.and_of(plan)?, cast_types(plan)?);
    let mut types: Vec<_> =
        declared.iter().map(|of| of.clone().unwrap_or(DataType::Utf8View)).collect();
    for (name, wanted) in found {
        let number = name.strip_prefix('$').and_then(|number| number.parse::<usize>().ok());
        let Some(at) =
            number.and_then(|number| number.checked_sub(1)).filter(|at| *at < PARAMETERS_MAX)
        else {
            return exec_err!("parameter {name} is not one of $1 to ${PARAMETERS_MAX}");
        };
        if types.len() <= at {
            types.resize(at + 1, DataType::Utf8View);
        }
        let declared = declared.get(at).cloned().flatten();
        let wanted = wanted.or_else(|| casts.get(&name).cloned());
        // Next to another parameter alone, DataFusion takes it for NULL: its declared type or its value determines its
        // type.
        let wanted = wanted.filter(|wanted| !wanted.is_null() || declared.is_none());
        types[at] = match (wanted, declared) {
            (Some(wanted), Some(declared)) if !is_kept(&declared, &wanted) => declared,
            (Some(wanted), _) => wanted,
            (None, Some(declared)) => declared,
            (None, None) => DataType::Utf8View,
        };
    }
    Ok(types)
}

/// The types of parameters implied by their positions, for which DataFusion requires none: `$1::INT`, `LIMIT $1`.
pub(in crate::session) fn cast_types(plan: &LogicalPlan) -> Result<HashMap<String, DataType>> {
    let mut types = HashMap::new();
    plan.apply_with_subqueries(|node| {
        if let LogicalPlan::Limit(limit) = node {
            for number in [&limit.skip, &limit.fetch].into_iter().flatten() {
                if let Expr::Placeholder(Placeholder { id, .. }) = number.as_ref() {
                    types.insert(id.clone(), DataType::Int64);
                }
            }
        }
        node.apply_expressions(|expr| {
            expr.apply(|expr| {
                if let Expr::Cast(cast) = expr
                    && let Expr::Placeholder(placeholder) = cast.expr.as_ref()
                {
                    types.insert(placeholder.id.clone(), cast.field.data_type().clone());
                }
                Ok(TreeNodeRecursion::Continue)
            })
        })
    })?;
    Ok(types)
}

/// Whether values of a type are preserved in another: all text is meant to be parsed.
fn is_kept(declared: &DataType, wanted: &DataType) -> bool {
    let is_exact = |it: &DataType| it.is_integer() || it.is_decimal();
    match declared {
        DataType::List(declared) => match wanted {
            DataType::List(wanted) => {
                declared.data_type() == wanted.data_type() || declared.data_type().is_string()
            }
            _ => true,
        },
        declared if declared.is_integer() => is_exact(wanted) || wanted.is_floating(),
        declared if declared.is_decimal() => wanted.is_decimal() || wanted.is_floating(),
        DataType::Float32 | DataType::Float64 => wanted.is_floating(),
        _ => true,
    }
}

/// Whether a whole number is given for a smaller type.
pub(super) fn is_wider(value: &ScalarValue, wanted: &DataType) -> bool {
    let given = value.data_type();
    given != *wanted && given.is_integer() && wanted.is_integer()
}
