//! The WHEN clauses of MERGE: conditions, and a value for each column of the table.

use std::ops::ControlFlow;

use atoll_store::table::TableDefinition;
use datafusion::common::{Result, internal_err};
use datafusion::execution::SessionState;
use datafusion::sql::sqlparser::ast::{
    AssignmentTarget, Expr, Ident, MergeAction as AstAction, MergeClause as AstClause,
    MergeClauseKind, MergeInsertExpr, MergeInsertKind, MergeUpdateExpr, ObjectName, Query, SetExpr,
    Statement as Ast, Values,
};

use crate::session::dml::change::{assignments, parsed, quoted};
use crate::session::dml::insert::{GivenIdentities, columns, default_of, fill_defaults};
use crate::table::MergeAction;
use atoll_sql_common::error::stated_err;
use atoll_sql_common::functions::Functions;
use atoll_sql_parse::dialect::{DEFAULT_VALUES, DO_NOTHING, OVERRIDING_SYSTEM};
use atoll_sql_parse::syntax::walk_own_expressions;

/// A WHEN clause.
pub(in crate::session::dml) struct MergeClause {
    pub(in crate::session::dml) is_matched: bool,
    pub(in crate::session::dml) condition: Option<Expr>,
    /// `None` for DO NOTHING.
    pub(in crate::session::dml) action: Option<MergeAction>,
    /// The value of each column, for UPDATE and INSERT.
    pub(in crate::session::dml) values: Vec<Expr>,
}

impl MergeClause {
    /// The clauses of a MERGE; `target` is the name of the table in it.
    pub(in crate::session::dml) fn from_ast(
        clauses: Vec<AstClause>,
        target: &Ident,
        definition: &TableDefinition,
        normalize: &dyn Fn(&Ident) -> String,
    ) -> Result<Vec<Self>> {
        if clauses.is_empty() {
            return stated_err!(
                SYNTAX_ERROR,
                "MERGE has no WHEN clause; write WHEN MATCHED THEN … or WHEN NOT MATCHED THEN …"
            );
        }
        let mut made: Vec<Self> = Vec::with_capacity(clauses.len());
        for AstClause { clause_kind, predicate, action, .. } in clauses {
            let is_matched = clause_kind == MergeClauseKind::Matched;
            let ends =
                |clause: &Self| clause.is_matched == is_matched && clause.condition.is_none();
            if made.iter().any(ends) {
                return stated_err!(
                    SYNTAX_ERROR,
                    "unreachable WHEN clause specified after unconditional WHEN clause"
                );
            }
            let (action, values) = match action {
                AstAction::Delete { .. } => (Some(MergeAction::Delete), Vec::new()),
                AstAction::Update(update) if sets_nothing(&update) => (None, Vec::new()),
                AstAction::Update(update) => {
                    let values = updated(update, target, definition, normalize)?;
                    (Some(MergeAction::Update), values)
                }
                AstAction::Insert(insert) if is_only(&insert.columns, DO_NOTHING) => {
                    (None, Vec::new())
                }
                AstAction::Insert(insert) => {
                    (Some(MergeAction::Insert), inserted(insert, definition, normalize)?)
                }
            };
            made.push(Self { is_matched, condition: predicate, action, values });
        }
        Ok(made)
    }
}

/// Refuses aggregates outside of subqueries.
pub(in crate::session::dml) fn check_aggregates(
    clauses: &[MergeClause],
    state: &SessionState,
) -> Result<()> {
    let functions = Functions::for_session(state);
    let mut exprs = clauses.iter().flat_map(|clause| clause.condition.iter().chain(&clause.values));
    let is_aggregate = |expr: &Expr| match expr {
        Expr::Function(call) if call.over.is_none() => {
            functions.aggregate(&call.name.to_string().to_lowercase()).is_some()
        }
        _ => false,
    };
    let has_aggregate = |expr: &Expr| {
        let flow = walk_own_expressions(expr, &mut |expr| match is_aggregate(expr) {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        });
        flow.is_break()
    };
    match exprs.any(has_aggregate) {
        true => stated_err!(
            GROUPING_ERROR,
            "aggregate functions are not allowed in WHEN clauses of MERGE; aggregate in the source: USING (SELECT …)"
        ),
        false => Ok(()),
    }
}

/// The name that `dialect::words` gives DO NOTHING.
fn sets_nothing(update: &MergeUpdateExpr) -> bool {
    match update.assignments.as_slice() {
        [one] => match &one.target {
            AssignmentTarget::ColumnName(name) => is_only(std::slice::from_ref(name), DO_NOTHING),
            AssignmentTarget::Tuple(_) => false,
        },
        _ => false,
    }
}

fn is_only(columns: &[ObjectName], mark: &str) -> bool {
    let [name] = columns else { return false };
    matches!(&name.0[..], [part] if part.as_ident().is_some_and(|ident| ident.value == mark))
}

/// The new value of each column of a matched row.
fn updated(
    update: MergeUpdateExpr,
    target: &Ident,
    definition: &TableDefinition,
    normalize: &dyn Fn(&Ident) -> String,
) -> Result<Vec<Expr>> {
    let assigned = assignments(update.assignments, definition, normalize)?;
    let fields = definition.columns.fields().iter();
    let values = fields.zip(assigned).map(|(field, value)| {
        let kept = || Expr::CompoundIdentifier(vec![target.clone(), quoted(field.name())]);
        value.unwrap_or_else(kept)
    });
    Ok(values.collect())
}

/// The value of each column of a new row.
fn inserted(
    insert: MergeInsertExpr,
    definition: &TableDefinition,
    normalize: &dyn Fn(&Ident) -> String,
) -> Result<Vec<Expr>> {
    let Ast::Insert(mut made) = parsed("INSERT INTO t VALUES (0)")? else {
        return internal_err!("an INSERT was parsed as another statement");
    };
    let MergeInsertExpr { columns: named, kind, insert_predicate, .. } = insert;
    let MergeInsertKind::Values(values) = kind else {
        return internal_err!("INSERT of MERGE without values");
    };
    if values.rows.len() != 1 {
        return stated_err!(
            SYNTAX_ERROR,
            "INSERT of MERGE takes one row of values; more rows come from the source: USING (VALUES …)"
        );
    }
    match (is_only(&named, DEFAULT_VALUES), &mut made.source) {
        (true, source) => *source = None,
        (false, Some(source)) => {
            made.columns = named;
            *source.body = SetExpr::Values(values);
        }
        (false, None) => return internal_err!("an INSERT was parsed without values"),
    }
    let mut identities = GivenIdentities::AsDeclared;
    if let Some(Expr::Identifier(clause)) = insert_predicate {
        identities = GivenIdentities::Written;
        if clause.value != OVERRIDING_SYSTEM {
            identities = GivenIdentities::AsDeclared;
            let given = columns(&made, definition, normalize)?;
            for (value, column) in row_of(&mut made.source).into_iter().flatten().zip(given) {
                if definition.identity(column).is_some() {
                    *value = Expr::Identifier(Ident::new("default"));
                }
            }
        }
    }
    fill_defaults(&mut made, identities, definition, normalize)?;
    let given = columns(&made, definition, normalize)?;
    let Some(row) = row_of(&mut made.source) else {
        return internal_err!("INSERT of MERGE without a row");
    };
    if row.len() != given.len() {
        let more = if row.len() > given.len() {
            "expressions than target columns"
        } else {
            "target columns than expressions"
        };
        return stated_err!(SYNTAX_ERROR, "INSERT has more {more}");
    }
    let all = 0..definition.columns.fields().len();
    let mut values = all.map(|at| default_of(at, definition)).collect::<Result<Vec<_>>>()?;
    for (column, value) in given.into_iter().zip(row) {
        values[column] = value.clone();
    }
    Ok(values)
}

/// The only row of VALUES.
fn row_of(source: &mut Option<Box<Query>>) -> Option<&mut Vec<Expr>> {
    match source.as_mut()?.body.as_mut() {
        SetExpr::Values(Values { rows, .. }) => rows.first_mut().map(|row| &mut row.content),
        _ => None,
    }
}
