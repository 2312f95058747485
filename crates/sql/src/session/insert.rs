//! What INSERT has beyond DataFusion's: DEFAULT as a value, identities, ON CONFLICT.
//!
//! ```text
//! INSERT INTO t (k, n) VALUES (1, DEFAULT)          VALUES (1, <what t declares for n>)
//! … ON CONFLICT (k) DO UPDATE SET n = t.n + excluded.n WHERE t.n < 9
//!                                                   SELECT t.n + excluded.n, t.n < 9 FROM <t> AS t, <new rows> AS excluded
//! ```
//!
//! The expressions of ON CONFLICT are planned as a query over the rows that are there and those that are
//! new, side by side; what is kept of its plan are the expressions.

use datafusion::common::{Result, plan_err};
use datafusion::sql::sqlparser::ast::{
    Assignment, AssignmentTarget, ConflictTarget, DoUpdate, Expr, Ident, Insert, ObjectName,
    ObjectNamePart, OnConflict, OnConflictAction, OnInsert, Query, SetExpr, SqliteOnConflict,
    Statement as Ast, Values,
};

use atoll_store::table::{IdentityKind, TableDefinition};

use super::change::{parsed_expr, quoted};

/// What the ON CONFLICT of an INSERT says.
pub(super) struct DeclaredConflict {
    /// Numbers of the unique constraints that it is about.
    pub(super) uniques: Vec<usize>,
    pub(super) update: Option<DeclaredUpdate>,
}

/// `DO UPDATE SET … WHERE …`
pub(super) struct DeclaredUpdate {
    /// Numbers of the columns that are set, and to what.
    pub(super) assignments: Vec<(usize, Expr)>,
    pub(super) condition: Option<Expr>,
}

/// Moves the WITH before an INSERT to the query that gives its rows.
pub(super) fn take_with(ast: &mut Ast) {
    let Ast::Query(query) = ast else { return };
    let Query { with, body, .. } = query.as_mut();
    let SetExpr::Insert(Ast::Insert(insert)) = body.as_mut() else { return };
    if let (Some(mut outer), Some(source)) = (with.take(), insert.source.as_mut()) {
        if let Some(inner) = source.with.take() {
            outer.recursive |= inner.recursive;
            outer.cte_tables.extend(inner.cte_tables);
        }
        source.with = Some(outer);
    }
    *ast = Ast::Insert(insert.clone());
}

/// OR REPLACE and OR IGNORE as the ON CONFLICT that says the same.
pub(super) fn take_or(
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
            return plan_err!(
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

/// What OR REPLACE sets: all columns that are given, without those of the key.
fn replaced(
    insert: &Insert,
    definition: &TableDefinition,
    normalize: &dyn Fn(&Ident) -> String,
) -> Result<Option<DoUpdate>> {
    let given = columns(insert, definition, normalize)?;
    let is_key = |at: &usize| definition.uniques.iter().any(|unique| unique.columns.contains(at));
    let mut assignments = Vec::new();
    for at in given.iter().filter(|at| !is_key(at)) {
        let name = quoted(definition.columns.field(*at).name());
        let target = AssignmentTarget::ColumnName(ObjectName::from(vec![name.clone()]));
        let value = Expr::CompoundIdentifier(vec![Ident::new("excluded"), name]);
        assignments.push(Assignment { target, value });
    }
    Ok((!assignments.is_empty()).then_some(DoUpdate { assignments, selection: None }))
}

/// Takes the ON CONFLICT out of an INSERT.
pub(super) fn take_conflict(
    insert: &mut Insert,
    definition: &TableDefinition,
    normalize: &dyn Fn(&Ident) -> String,
) -> Result<Option<DeclaredConflict>> {
    let OnConflict { conflict_target, action } = match insert.on.take() {
        None => return Ok(None),
        Some(OnInsert::OnConflict(conflict)) => conflict,
        Some(_) => {
            return plan_err!(
                "ON DUPLICATE KEY UPDATE is not supported; use ON CONFLICT (columns) DO UPDATE SET …"
            );
        }
    };
    let uniques = match conflict_target {
        Some(target) => vec![meant(&target, definition, normalize)?],
        None => (0..definition.uniques.len()).collect(),
    };
    let update = match action {
        OnConflictAction::DoNothing => None,
        OnConflictAction::DoUpdate(_) if uniques.len() != 1 => {
            return plan_err!(
                "ON CONFLICT DO UPDATE names the columns of a key: ON CONFLICT (id) DO UPDATE"
            );
        }
        OnConflictAction::DoUpdate(update) => Some(of_update(update, definition, normalize)?),
    };
    Ok(Some(DeclaredConflict { uniques, update }))
}

/// The unique constraint that is meant.
fn meant(
    target: &ConflictTarget,
    definition: &TableDefinition,
    normalize: &dyn Fn(&Ident) -> String,
) -> Result<usize> {
    let found = match target {
        ConflictTarget::OnConstraint(name) => {
            let wanted = last(name).map(normalize);
            definition.uniques.iter().position(|unique| Some(&*unique.name) == wanted.as_deref())
        }
        ConflictTarget::Columns(columns) => {
            let mut wanted = Vec::with_capacity(columns.len());
            for column in columns {
                wanted.push(column_number(&normalize(column), definition)?);
            }
            wanted.sort_unstable();
            definition.uniques.iter().position(|unique| {
                let mut own = unique.columns.clone();
                own.sort_unstable();
                own == wanted
            })
        }
    };
    match found {
        Some(found) => Ok(found),
        None => plan_err!(
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
        let (names, values) = match (target, value) {
            (AssignmentTarget::ColumnName(name), value) => (vec![name], vec![value]),
            (AssignmentTarget::Tuple(names), Expr::Tuple(values))
                if names.len() == values.len() =>
            {
                (names, values)
            }
            _ => return plan_err!("SET takes as many values as columns: SET (a, b) = (1, 2)"),
        };
        for (name, value) in names.into_iter().zip(values) {
            let [ObjectNamePart::Identifier(name)] = &name.0[..] else {
                return plan_err!("SET names a column alone; '{name}' has more than one part");
            };
            let column = column_number(&normalize(name), definition)?;
            if assignments.iter().any(|(other, _)| *other == column) {
                return plan_err!("column '{name}' is set twice");
            }
            assignments.push((column, given_value(value, column, definition)?));
        }
    }
    Ok(DeclaredUpdate { assignments, condition: update.selection })
}

/// Puts what the table declares in place of DEFAULT, and of all values where there are none; refuses
/// values for identities that are GENERATED ALWAYS.
pub(super) fn fill_defaults(
    insert: &mut Insert,
    definition: &TableDefinition,
    normalize: &dyn Fn(&Ident) -> String,
) -> Result<()> {
    name_first_columns(insert, definition);
    let columns = columns(insert, definition, normalize)?;
    let Some(source) = insert.source.as_mut() else {
        // DEFAULT VALUES
        let all: Vec<usize> = (0..definition.columns.fields().len()).collect();
        let values: Result<Vec<String>> =
            all.iter().map(|column| Ok(default_of(*column, definition)?.to_string())).collect();
        let values = super::change::parsed(&format!("VALUES ({})", values?.join(", ")))?;
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
                    false => *given = true,
                }
            }
        }
    }
    for (column, given) in columns.iter().zip(given) {
        if given && is_always(*column, definition) {
            return plan_err!(
                "cannot insert a value into column '{}', which is GENERATED ALWAYS AS IDENTITY; leave it \
                 out, or give DEFAULT",
                definition.columns.field(*column).name()
            );
        }
    }
    Ok(())
}

/// VALUES without a list of columns are for the first ones; the others get their defaults.
fn name_first_columns(insert: &mut Insert, definition: &TableDefinition) {
    let Some(SetExpr::Values(Values { rows, .. })) =
        insert.source.as_ref().map(|source| source.body.as_ref())
    else {
        return;
    };
    let widths = rows.iter().map(|row| row.content.len());
    let (fewest, most) = (widths.clone().min(), widths.max().unwrap_or_default());
    let fields = definition.columns.fields();
    if insert.columns.is_empty() && fewest == Some(most) && most < fields.len() {
        let first = fields.iter().take(most).map(|field| quoted(field.name()));
        insert.columns =
            first.map(|name| ObjectName(vec![ObjectNamePart::Identifier(name)])).collect();
    }
}

/// Numbers of the columns that values are given for.
fn columns(
    insert: &Insert,
    definition: &TableDefinition,
    normalize: &dyn Fn(&Ident) -> String,
) -> Result<Vec<usize>> {
    if insert.columns.is_empty() {
        return Ok((0..definition.columns.fields().len()).collect());
    }
    let number = |name: &ObjectName| match last(name) {
        Some(name) => column_number(&normalize(name), definition),
        None => plan_err!("'{name}' is not the name of a column"),
    };
    insert.columns.iter().map(number).collect()
}

fn column_number(name: &str, definition: &TableDefinition) -> Result<usize> {
    let columns = &definition.columns;
    if let Ok(found) = columns.index_of(name) {
        return Ok(found);
    }
    let names: Vec<&str> = columns.fields().iter().map(|field| field.name().as_str()).collect();
    plan_err!("column '{name}' not found; the table has the columns {}", names.join(", "))
}

fn last(name: &ObjectName) -> Option<&Ident> {
    name.0.last().and_then(|part| part.as_ident())
}

/// The value that SET gives a column: what the table declares for DEFAULT.
///
/// # Errors
/// For values of identities that are GENERATED ALWAYS.
pub(super) fn given_value(
    value: Expr,
    column: usize,
    definition: &TableDefinition,
) -> Result<Expr> {
    if is_default(&value) {
        return default_of(column, definition);
    }
    match is_always(column, definition) {
        true => plan_err!(
            "column '{}' is GENERATED ALWAYS AS IDENTITY and can only be set to DEFAULT",
            definition.columns.field(column).name()
        ),
        false => Ok(value),
    }
}

fn is_always(column: usize, definition: &TableDefinition) -> bool {
    let identity = definition.identities[column].as_ref();
    identity.is_some_and(|identity| identity.kind == IdentityKind::Always)
}

/// DEFAULT in the place of a value, which the parser takes for a column.
fn is_default(value: &Expr) -> bool {
    matches!(value, Expr::Identifier(name) if name.quote_style.is_none() && name.value.eq_ignore_ascii_case("default"))
}

/// What the table declares for a column, in its type.
fn default_of(column: usize, definition: &TableDefinition) -> Result<Expr> {
    parsed_expr(definition.defaults[column].as_deref().unwrap_or("NULL"))
}
