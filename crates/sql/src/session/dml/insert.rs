//! Extensions of INSERT over DataFusion's: DEFAULT as a value, identities, ON CONFLICT.
//!
//! ```text
//! INSERT INTO t (k, n) VALUES (1, DEFAULT)          VALUES (1, <what t declares for n>)
//! … OVERRIDING USER VALUE SELECT …                  SELECT <number of the identity>, … FROM (SELECT …)
//! … ON CONFLICT (k) DO UPDATE SET n = t.n + excluded.n WHERE t.n < 9
//!                                                   SELECT t.n + excluded.n, t.n < 9 FROM <t> AS t, <new rows> AS excluded
//! ```
//!
//! The expressions of ON CONFLICT are planned as a query over existing and new rows side by side, and taken out of its
//! plan.

use std::collections::{HashMap, HashSet};

use datafusion::common::{Result, plan_err};
use datafusion::sql::sqlparser::ast::{
    Assignment, AssignmentTarget, ConflictTarget, DoUpdate, Expr, Ident, Insert, ObjectName,
    ObjectNamePart, OnConflict, OnConflictAction, OnInsert, Query, SetExpr, SqliteOnConflict,
    Statement as Ast, Values, With,
};

use atoll_store::table::{IdentityKind, TableDefinition};

use crate::session::dml::change::{each, quoted};
use crate::session::dml::inferred_key::InferredKey;
use crate::session::dml::refused_values::check_literal;
use crate::table_text::is_generated;
use atoll_sql_common::error::{SqlState, stated_err};
use atoll_sql_parse::dialect::{OVERRIDING_SYSTEM, OVERRIDING_USER};
use atoll_sql_parse::syntax::{parsed_expr, sql_text};

/// The ON CONFLICT clause of an INSERT.
pub(in crate::session) struct DeclaredConflict {
    /// Numbers of its unique constraints.
    pub(in crate::session) uniques: Vec<usize>,
    pub(in crate::session) update: Option<DeclaredUpdate>,
}

/// `DO UPDATE SET … WHERE …`
pub(in crate::session) struct DeclaredUpdate {
    /// Numbers of the assigned columns, and their values.
    pub(in crate::session) assignments: Vec<(usize, Expr)>,
    pub(in crate::session) condition: Option<Expr>,
}

/// Moves the WITH before an INSERT to its query.
pub(in crate::session) fn take_with(ast: &mut Ast) {
    let Ast::Query(query) = ast else { return };
    let Query { with, body, .. } = query.as_mut();
    let SetExpr::Insert(Ast::Insert(insert)) = body.as_mut() else { return };
    if let (Some(outer), Some(source)) = (with.take(), insert.source.as_mut()) {
        put_before(outer, source);
    }
    *ast = Ast::Insert(insert.clone());
}

/// Puts the queries of a WITH before those of a query's own WITH.
pub(in crate::session) fn put_before(mut outer: With, query: &mut Query) {
    if let Some(inner) = query.with.take() {
        outer.recursive |= inner.recursive;
        outer.cte_tables.extend(inner.cte_tables);
    }
    query.with = Some(outer);
}

/// Rewrites OR REPLACE and OR IGNORE as ON CONFLICT.
pub(in crate::session) fn take_or(
    insert: &mut Insert,
    definition: &TableDefinition,
    normalize: &dyn Fn(&Ident) -> String,
) -> Result<()> {
    let Some(or) = insert.or.take() else { return Ok(()) };
    if insert.on.is_some() {
        return plan_err!("INSERT OR {or} and ON CONFLICT exclude each other");
    }
    let action = match or {
        SqliteOnConflict::Ignore => OnConflictAction::DoNothing,
        SqliteOnConflict::Replace => match replaced(insert, definition, normalize)? {
            Some(update) => OnConflictAction::DoUpdate(update),
            None => OnConflictAction::DoNothing,
        },
        other => {
            return stated_err!(
                FEATURE_NOT_SUPPORTED,
                "INSERT OR {other} is not supported; a statement that fails changes nothing"
            );
        }
    };
    let keys = match (&action, definition.uniques.as_slice()) {
        (OnConflictAction::DoNothing, _) => None,
        (_, [unique]) => Some(unique),
        (_, uniques) => match uniques.iter().find(|unique| unique.is_primary) {
            Some(primary) => Some(primary),
            None => {
                return plan_err!(
                    "INSERT OR REPLACE needs a PRIMARY KEY or one UNIQUE constraint; use ON CONFLICT (columns) DO UPDATE"
                );
            }
        },
    };
    let conflict_target = keys.map(|unique| {
        let names = unique.columns.iter().map(|at| quoted(definition.columns.field(*at).name()));
        ConflictTarget::Columns(names.collect())
    });
    insert.on = Some(OnInsert::OnConflict(OnConflict { conflict_target, action }));
    Ok(())
}

/// The assignments of OR REPLACE: all given columns, except those of the key.
fn replaced(
    insert: &Insert,
    definition: &TableDefinition,
    normalize: &dyn Fn(&Ident) -> String,
) -> Result<Option<DoUpdate>> {
    let given = columns(insert, definition, normalize)?;
    let is_key = |at: &usize| definition.uniques.iter().any(|unique| unique.columns.contains(at));
    let mut assignments = Vec::new();
    for at in given.iter().filter(|at| !is_key(at) && !is_computed(**at, definition)) {
        let name = quoted(definition.columns.field(*at).name());
        let target = AssignmentTarget::ColumnName(ObjectName::from(vec![name.clone()]));
        let value = Expr::CompoundIdentifier(vec![Ident::new("excluded"), name]);
        assignments.push(Assignment { target, value });
    }
    Ok((!assignments.is_empty()).then_some(DoUpdate { assignments, selection: None }))
}

/// Takes the ON CONFLICT out of an INSERT.
pub(in crate::session) fn take_conflict(
    insert: &mut Insert,
    definition: &TableDefinition,
    normalize: &dyn Fn(&Ident) -> String,
) -> Result<Option<DeclaredConflict>> {
    let OnConflict { conflict_target, action } = match insert.on.take() {
        None => return Ok(None),
        Some(OnInsert::OnConflict(conflict)) => conflict,
        Some(_) => {
            return stated_err!(
                FEATURE_NOT_SUPPORTED,
                "ON DUPLICATE KEY UPDATE is not supported; use ON CONFLICT (columns) DO UPDATE SET …"
            );
        }
    };
    let has_target = conflict_target.is_some();
    let uniques: Vec<usize> = match conflict_target {
        Some(target) => meant(&target, definition, normalize)?,
        None => (0..definition.uniques.len()).collect(),
    };
    if uniques.iter().any(|at| !definition.uniques[*at].is_immediate()) {
        return stated_err!(
            NOT_IN_PREREQUISITE_STATE,
            "ON CONFLICT does not support deferrable unique constraints/exclusion constraints as arbiters"
        );
    }
    let update = match action {
        OnConflictAction::DoNothing => None,
        OnConflictAction::DoUpdate(_) if !has_target => {
            return stated_err!(
                SYNTAX_ERROR,
                "ON CONFLICT DO UPDATE names the columns of a key: ON CONFLICT (id) DO UPDATE"
            );
        }
        OnConflictAction::DoUpdate(update) => Some(of_update(update, definition, normalize)?),
    };
    Ok(Some(DeclaredConflict { uniques, update }))
}

/// The unique constraints of the conflict target.
fn meant(
    target: &ConflictTarget,
    definition: &TableDefinition,
    normalize: &dyn Fn(&Ident) -> String,
) -> Result<Vec<usize>> {
    let found = match target {
        ConflictTarget::OnConstraint(name) => {
            let wanted = last(name).map(normalize);
            let mut uniques = definition.uniques.iter();
            // An index is not a constraint.
            let found = uniques
                .position(|unique| Some(&*unique.name) == wanted.as_deref() && !unique.is_index);
            found.into_iter().collect()
        }
        ConflictTarget::Columns(columns) => {
            let number = |column: &Ident| column_number(&normalize(column), definition);
            let key = InferredKey::from_columns(columns, &number, normalize)?;
            key.uniques(definition, normalize)
        }
    };
    match found.is_empty() {
        false => Ok(found),
        true => stated_err!(
            INVALID_COLUMN_REFERENCE,
            "there is no PRIMARY KEY or UNIQUE constraint matching the ON CONFLICT specification; add one \
             with ALTER TABLE … ADD UNIQUE (columns)"
        ),
    }
}

fn of_update(
    update: DoUpdate,
    definition: &TableDefinition,
    normalize: &dyn Fn(&Ident) -> String,
) -> Result<DeclaredUpdate> {
    let mut assignments = Vec::with_capacity(update.assignments.len());
    for Assignment { target, value } in update.assignments {
        for (name, value) in each(target, value)? {
            let [ObjectNamePart::Identifier(name)] = &name.0[..] else {
                return stated_err!(
                    UNDEFINED_COLUMN,
                    "SET names a column alone; '{name}' has more than one part"
                );
            };
            let column = column_number(&normalize(name), definition)?;
            if assignments.iter().any(|(other, _)| *other == column) {
                return stated_err!(SYNTAX_ERROR, "column '{name}' is set twice");
            }
            assignments.push((column, given_value(value, column, definition)?));
        }
    }
    Ok(DeclaredUpdate { assignments, condition: update.selection })
}

/// The treatment of values given for identities.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::session) enum GivenIdentities {
    /// They are written, unless the identity is GENERATED ALWAYS.
    AsDeclared,
    /// OVERRIDING SYSTEM VALUE: they are written.
    Written,
    /// OVERRIDING USER VALUE: numbers of the sequence are written.
    Replaced,
}

impl GivenIdentities {
    /// Takes the clause, which `dialect::words` has turned into a partition, out of the statement; without columns
    /// before it the parser takes it for an alias and a column.
    pub(in crate::session) fn take(insert: &mut Insert) -> Self {
        let of = |name: &str| match name {
            OVERRIDING_SYSTEM => Some(Self::Written),
            OVERRIDING_USER => Some(Self::Replaced),
            _ => None,
        };
        if let Some([Expr::Identifier(name)]) = insert.partitioned.as_deref()
            && let Some(given) = of(&name.value)
        {
            insert.partitioned = None;
            return given;
        }
        if let [column] = insert.columns.as_slice()
            && let Some(given) = last(column).and_then(|name| of(&name.value))
        {
            insert.columns.clear();
            insert.table_alias = None;
            return given;
        }
        Self::AsDeclared
    }
}

/// Replaces DEFAULT, and all values of DEFAULT VALUES, with the declared defaults; refuses values for identities that
/// are GENERATED ALWAYS.
pub(in crate::session) fn fill_defaults(
    insert: &mut Insert,
    identities: GivenIdentities,
    definition: &TableDefinition,
    normalize: &dyn Fn(&Ident) -> String,
) -> Result<()> {
    name_first_columns(insert, definition);
    let columns = columns(insert, definition, normalize)?;
    let numbered = |column: &usize| definition.identity(*column).is_some();
    if identities == GivenIdentities::Replaced && columns.iter().any(numbered) {
        return number_all(insert, &columns, definition);
    }
    let Some(source) = insert.source.as_mut() else {
        // DEFAULT VALUES
        let all: Vec<usize> = (0..definition.columns.fields().len()).collect();
        let values: Result<Vec<String>> =
            all.iter().map(|column| Ok(sql_text(&default_of(*column, definition)?))).collect();
        let values =
            crate::session::dml::change::parsed(&format!("VALUES ({})", values?.join(", ")))?;
        if let Ast::Query(query) = values {
            insert.source = Some(query);
        }
        return Ok(());
    };
    let mut given = vec![true; columns.len()];
    if let SetExpr::Values(Values { rows, .. }) = source.body.as_mut() {
        given.fill(false);
        for row in rows {
            for ((value, column), given) in row.content.iter_mut().zip(&columns).zip(&mut given) {
                match is_default(value) {
                    true => *value = default_of(*column, definition)?,
                    false => {
                        check_literal(value, *column, definition)?;
                        *given = true;
                    }
                }
            }
        }
    }
    for (column, given) in columns.iter().zip(given) {
        if given && is_computed(*column, definition) {
            return stated_err!(
                GENERATED_ALWAYS,
                "cannot insert a value into column '{}', which is GENERATED; leave it out, or give DEFAULT",
                definition.columns.field(*column).name()
            );
        }
        let is_refused = given && identities == GivenIdentities::AsDeclared;
        if is_refused && is_always(*column, definition) {
            return stated_err!(
                GENERATED_ALWAYS,
                "cannot insert a value into column '{}', which is GENERATED ALWAYS AS IDENTITY; leave it \
                 out, give DEFAULT, or say OVERRIDING SYSTEM VALUE",
                definition.columns.field(*column).name()
            );
        }
    }
    Ok(())
}

/// Replaces the values given for identities with numbers of their sequences.
fn number_all(insert: &mut Insert, columns: &[usize], definition: &TableDefinition) -> Result<()> {
    let Some(source) = &insert.source else { return Ok(()) };
    let names: Vec<String> = (0..columns.len()).map(|at| format!("value {at}")).collect();
    let mut items = Vec::with_capacity(columns.len());
    for (column, name) in columns.iter().zip(&names) {
        items.push(match definition.identity(*column) {
            Some(_) => sql_text(&default_of(*column, definition)?),
            None => quoted(name).to_string(),
        });
    }
    let names: Vec<String> = names.iter().map(|name| quoted(name).to_string()).collect();
    let (items, names) = (items.join(", "), names.join(", "));
    let source = sql_text(source.as_ref());
    let text = format!("SELECT {items} FROM ({source}) AS \"given rows\" ({names})");
    if let Ast::Query(query) = crate::session::dml::change::parsed(&text)? {
        insert.source = Some(query);
    }
    Ok(())
}

/// Names the columns of an INSERT without a list: those that are not generated, the first of them for VALUES; the
/// others get their defaults.
fn name_first_columns(insert: &mut Insert, definition: &TableDefinition) {
    let all = definition.columns.fields().len();
    let (Some(source), true) = (&insert.source, insert.columns.is_empty()) else { return };
    let given: Vec<usize> = (0..all).filter(|column| !is_computed(*column, definition)).collect();
    let most = match source.body.as_ref() {
        SetExpr::Values(Values { rows, .. }) => {
            let widths = rows.iter().map(|row| row.content.len());
            let (fewest, most) = (widths.clone().min(), widths.max().unwrap_or_default());
            // DEFAULT may be given for a generated column.
            if fewest != Some(most) || most == all {
                return;
            }
            most
        }
        _ if given.len() == all => return,
        _ => all,
    };
    let names = given.into_iter().take(most).map(|column| definition.columns.field(column).name());
    insert.columns = names.map(|name| ObjectName::from(vec![quoted(name)])).collect();
}

/// Numbers of the columns that values are given for.
pub(in crate::session::dml) fn columns(
    insert: &Insert,
    definition: &TableDefinition,
    normalize: &dyn Fn(&Ident) -> String,
) -> Result<Vec<usize>> {
    if insert.columns.is_empty() {
        return Ok((0..definition.columns.fields().len()).collect());
    }
    let fields = definition.columns.fields().iter().enumerate();
    let known: HashMap<&str, usize> =
        fields.map(|(at, field)| (field.name().as_str(), at)).collect();
    let number = |name: &ObjectName| match last(name).map(normalize) {
        Some(name) => match known.get(name.as_str()) {
            Some(known) => Ok(*known),
            None => column_number(&name, definition),
        },
        None => plan_err!("'{name}' is not the name of a column"),
    };
    let numbers: Vec<usize> = insert.columns.iter().map(number).collect::<Result<_>>()?;
    let mut seen = HashSet::new();
    match numbers.iter().find(|column| !seen.insert(**column)) {
        Some(twice) => Err(SqlState::DUPLICATE_COLUMN.error(format!(
            "column '{}' is named twice in the columns of INSERT",
            definition.columns.field(*twice).name()
        ))),
        None => Ok(numbers),
    }
}

fn column_number(name: &str, definition: &TableDefinition) -> Result<usize> {
    let columns = &definition.columns;
    if let Ok(found) = columns.index_of(name) {
        return Ok(found);
    }
    let names: Vec<&str> = columns.fields().iter().map(|field| field.name().as_str()).collect();
    stated_err!(
        UNDEFINED_COLUMN,
        "column \"{name}\" does not exist; the table has the columns {}",
        names.join(", ")
    )
}

fn last(name: &ObjectName) -> Option<&Ident> {
    name.0.last().and_then(|part| part.as_ident())
}

/// The value that SET gives a column: the declared default for DEFAULT.
///
/// # Errors
/// For values of identities that are GENERATED ALWAYS.
pub(in crate::session) fn given_value(
    value: Expr,
    column: usize,
    definition: &TableDefinition,
) -> Result<Expr> {
    if is_default(&value) {
        return default_of(column, definition);
    }
    if is_computed(column, definition) {
        return stated_err!(
            GENERATED_ALWAYS,
            "column '{}' is GENERATED and can only be set to DEFAULT",
            definition.columns.field(column).name()
        );
    }
    check_literal(&value, column, definition)?;
    match is_always(column, definition) {
        true => stated_err!(
            GENERATED_ALWAYS,
            "column '{}' is GENERATED ALWAYS AS IDENTITY and can only be set to DEFAULT",
            definition.columns.field(column).name()
        ),
        false => Ok(value),
    }
}

fn is_always(column: usize, definition: &TableDefinition) -> bool {
    let identity = definition.identity(column);
    identity.is_some_and(|identity| identity.kind == IdentityKind::Always)
}

/// DEFAULT as a value, which the parser takes for a column.
fn is_default(value: &Expr) -> bool {
    matches!(value, Expr::Identifier(name) if name.quote_style.is_none() && name.value.eq_ignore_ascii_case("default"))
}

/// The declared default of a column, in its type.
pub(in crate::session::dml) fn default_of(
    column: usize,
    definition: &TableDefinition,
) -> Result<Expr> {
    let value = definition.defaults[column].as_deref().filter(|default| !is_generated(default));
    parsed_expr(value.unwrap_or("NULL"))
}

fn is_computed(column: usize, definition: &TableDefinition) -> bool {
    definition.defaults[column].as_deref().is_some_and(is_generated)
}
