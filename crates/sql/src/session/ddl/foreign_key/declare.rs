//! Foreign key declarations, and their stored form.

use std::collections::HashSet;

use atoll_functions::sql_name;
use atoll_store::TableId;
use atoll_store::database::is_temporary_schema;
use atoll_store::table::{
    Deferral, ForeignKey, OnCommit, ReferentialAction, TableDefinition, Unique, is_comparable,
};
use datafusion::common::{ResolvedTableReference, Result};
use datafusion::sql::sqlparser::ast::{
    ConstraintReferenceMatchKind, ForeignKeyConstraint, Ident, ObjectName,
    ReferentialAction as AstAction,
};

use crate::role::rights::Right;
use crate::session::ddl::declared_table::deferral;
use crate::session::ddl::table_definition::{free_name, unused_name};
use crate::session::plan::planner::StatementPlanner;
use crate::table::PlacedTable;
use crate::table_text::is_generated;
use atoll_sql_common::error::{SqlState, stated_err};
use atoll_sql_common::names::{plain, resolve_lasting};

/// `FOREIGN KEY (columns) REFERENCES parent (columns) …`
#[derive(Debug)]
pub(in crate::session) struct DeclaredForeignKey {
    pub(in crate::session) name: Option<Ident>,
    pub(in crate::session) columns: Vec<Ident>,
    pub(in crate::session) parent: ObjectName,
    pub(in crate::session) parent_columns: Vec<Ident>,
    on_delete: ReferentialAction,
    on_update: ReferentialAction,
    is_full: bool,
    deferral: Deferral,
}

impl DeclaredForeignKey {
    /// From the clauses of a statement and the constraint's name, if it has one.
    ///
    /// # Errors
    /// For unsupported and for conflicting clauses.
    pub(in crate::session) fn from_constraint(
        key: ForeignKeyConstraint,
        named: Option<Ident>,
    ) -> Result<Self> {
        if key.index_name.is_some() {
            return stated_err!(
                SYNTAX_ERROR,
                "FOREIGN KEY does not take a name; write CONSTRAINT name FOREIGN KEY (columns)"
            );
        }
        let is_full = match key.match_kind {
            None | Some(ConstraintReferenceMatchKind::Simple) => false,
            Some(ConstraintReferenceMatchKind::Full) => true,
            Some(ConstraintReferenceMatchKind::Partial) => {
                return stated_err!(FEATURE_NOT_SUPPORTED, "MATCH PARTIAL is not supported");
            }
        };
        Ok(Self {
            name: named.or(key.name),
            columns: key.columns,
            parent: key.foreign_table,
            parent_columns: key.referred_columns,
            on_delete: action(key.on_delete),
            on_update: action(key.on_update),
            is_full,
            deferral: deferral(key.characteristics)?,
        })
    }
}

fn action(action: Option<AstAction>) -> ReferentialAction {
    match action {
        None | Some(AstAction::NoAction) => ReferentialAction::NoAction,
        Some(AstAction::Restrict) => ReferentialAction::Restrict,
        Some(AstAction::Cascade) => ReferentialAction::Cascade,
        Some(AstAction::SetNull) => ReferentialAction::SetNull,
        Some(AstAction::SetDefault) => ReferentialAction::SetDefault,
    }
}

/// The table that a foreign key refers to.
struct Parent {
    id: TableId,
    name: String,
    /// None for a self-reference.
    table: Option<PlacedTable>,
}

impl StatementPlanner {
    /// Adds foreign keys to the definition of a table. Unnamed ones are named as in PostgreSQL: `t_a_b_fkey`.
    ///
    /// # Errors
    /// For missing tables and columns, and for columns that are not a key of the parent, or of other types.
    pub(in crate::session) fn add_foreign_keys(
        &self,
        (id, at): (TableId, &ResolvedTableReference),
        definition: &mut TableDefinition,
        declared: Vec<DeclaredForeignKey>,
    ) -> Result<()> {
        for key in declared {
            let parent = self.parent((id, at), &key)?;
            let columns = self.columns_of(definition, &key.columns)?;
            let own;
            let of_parent = match &parent.table {
                Some(table) => table.definition().as_ref(),
                None => {
                    own = definition.clone();
                    &own
                }
            };
            check_on_commit(definition, of_parent)?;
            let parent_columns = self.parent_columns(&parent.name, of_parent, &key)?;
            if columns.len() != parent_columns.len() {
                return stated_err!(
                    INVALID_FOREIGN_KEY,
                    "number of referencing and referenced columns for foreign key disagree"
                );
            }
            let names = columns.iter().map(|at| definition.columns.field(*at).name().as_str());
            let names = names.collect::<Vec<_>>().join("_");
            let name = match &key.name {
                Some(name) => free_name(definition, self.normalized(name))?,
                None => unused_name(definition, format!("{}_{names}_fkey", at.table)),
            };
            let made = ForeignKey {
                name: name.into(),
                columns,
                parent: parent.id,
                parent_columns,
                on_delete: key.on_delete,
                on_update: key.on_update,
                is_full: key.is_full,
                deferral: key.deferral,
            };
            check_types(definition, of_parent, &made)?;
            check_actions(definition, &made)?;
            if made.referenced(definition, of_parent).is_none() {
                if let Some(kind) = deferrable_key(of_parent, &made.parent_columns) {
                    return stated_err!(
                        NOT_IN_PREREQUISITE_STATE,
                        "cannot use a deferrable {kind} for referenced table \"{}\"",
                        parent.name
                    );
                }
                return stated_err!(
                    INVALID_FOREIGN_KEY,
                    "there is no unique constraint matching given keys for referenced table '{}'",
                    parent.name
                );
            }
            definition.foreign_keys.push(made);
        }
        Ok(())
    }

    fn parent(
        &self,
        (id, own): (TableId, &ResolvedTableReference),
        key: &DeclaredForeignKey,
    ) -> Result<Parent> {
        let named = self.name(&key.parent)?;
        let (mut at, lasting) = (self.resolve(named.clone()), resolve_lasting(&self.state, named));
        // A new table is not found yet, but comes before those in later schemas of the search path.
        if lasting == *own && !is_temporary_schema(&at.schema) {
            at = lasting;
        }
        let name = plain(&at);
        if at == *own {
            return Ok(Parent { id, name, table: None });
        }
        let Some(found) = self.names.table(&at)? else {
            return Err(SqlState::missing_table(&name));
        };
        let table = found.downcast_ref::<PlacedTable>().filter(|table| !table.is_materialized());
        let Some(table) = table else {
            return stated_err!(WRONG_OBJECT_TYPE, "referenced relation '{name}' is not a table");
        };
        match (id.is_temporary(), table.id().is_temporary()) {
            (true, false) => stated_err!(
                INVALID_TABLE_DEFINITION,
                "constraints on temporary tables may reference only temporary tables"
            ),
            (false, true) => stated_err!(
                INVALID_TABLE_DEFINITION,
                "constraints on permanent tables may reference only permanent tables"
            ),
            _ => {
                self.check_right(Right::References, &at)?;
                Ok(Parent { id: table.id(), name, table: Some(table.clone()) })
            }
        }
    }

    fn columns_of(&self, definition: &TableDefinition, names: &[Ident]) -> Result<Vec<usize>> {
        let number = |name: &Ident| {
            let name = self.normalized(name);
            definition.columns.index_of(&name).map_err(|_| {
                SqlState::UNDEFINED_COLUMN.error(format!(
                    "column '{name}' referenced in foreign key constraint does not exist"
                ))
            })
        };
        names.iter().map(number).collect()
    }

    /// The named columns, or those of the primary key.
    fn parent_columns(
        &self,
        name: &str,
        parent: &TableDefinition,
        key: &DeclaredForeignKey,
    ) -> Result<Vec<usize>> {
        if !key.parent_columns.is_empty() {
            let columns = self.columns_of(parent, &key.parent_columns)?;
            return match first_twice(&columns) {
                None => Ok(columns),
                Some(_) => stated_err!(
                    INVALID_FOREIGN_KEY,
                    "foreign key referenced-columns list must not contain duplicates"
                ),
            };
        }
        match parent.uniques.iter().find(|unique| unique.is_primary) {
            Some(primary) => Ok(primary.columns.clone()),
            None => stated_err!(
                UNDEFINED_OBJECT,
                "there is no primary key for referenced table '{name}'; name the columns of a UNIQUE constraint"
            ),
        }
    }
}

/// What kind of deferrable constraint columns of a parent have; `None` if they have none.
fn deferrable_key(parent: &TableDefinition, columns: &[usize]) -> Option<&'static str> {
    let mut uniques = parent.uniques.iter().filter(|unique| !unique.is_immediate());
    let is_of = |unique: &&Unique| {
        unique.columns.len() == columns.len()
            && unique.columns.iter().all(|column| columns.contains(column))
    };
    let found = uniques.find(is_of)?;
    Some(if found.is_primary { "primary key" } else { "unique constraint" })
}

/// Refuses columns of types whose values never compare equal.
fn check_types(own: &TableDefinition, parent: &TableDefinition, key: &ForeignKey) -> Result<()> {
    for (column, referenced) in key.columns.iter().zip(&key.parent_columns) {
        let (column, referenced) = (own.columns.field(*column), parent.columns.field(*referenced));
        if !is_comparable(column.data_type(), referenced.data_type()) {
            return stated_err!(
                DATATYPE_MISMATCH,
                "foreign key constraint '{}' cannot be implemented: key columns '{}' and '{}' are of \
                 incompatible types: {} and {}",
                key.name,
                column.name(),
                referenced.name(),
                sql_name(column.data_type()),
                sql_name(referenced.data_type())
            );
        }
    }
    Ok(())
}

/// The first column that is there twice.
fn first_twice(columns: &[usize]) -> Option<usize> {
    let mut seen = HashSet::new();
    columns.iter().copied().find(|at| !seen.insert(*at))
}

/// Refuses actions that would set a generated column, or one column to two values.
fn check_actions(own: &TableDefinition, key: &ForeignKey) -> Result<()> {
    use ReferentialAction::{Cascade, SetDefault, SetNull};
    if let Some(twice) = first_twice(&key.columns).filter(|_| key.on_update == Cascade) {
        return stated_err!(
            FEATURE_NOT_SUPPORTED,
            "ON UPDATE CASCADE would set column '{}', which is twice in the foreign key, to two values",
            own.columns.field(twice).name()
        );
    }
    let computed =
        key.columns.iter().any(|at| own.defaults[*at].as_deref().is_some_and(is_generated));
    let refused = match (key.on_delete, key.on_update) {
        (SetNull | SetDefault, _) => "ON DELETE",
        (_, SetNull | SetDefault | Cascade) => "ON UPDATE",
        _ => return Ok(()),
    };
    match computed {
        false => Ok(()),
        true => stated_err!(
            SYNTAX_ERROR,
            "invalid {refused} action for foreign key constraint containing generated column"
        ),
    }
}

/// Refuses temporary tables that lose their rows or are dropped at COMMIT, when foreign keys are not checked.
fn check_on_commit(own: &TableDefinition, parent: &TableDefinition) -> Result<()> {
    let stays = |definition: &TableDefinition| definition.on_commit == OnCommit::PreserveRows;
    match stays(own) && stays(parent) {
        true => Ok(()),
        false => stated_err!(
            FEATURE_NOT_SUPPORTED,
            "unsupported ON COMMIT and foreign key combination; tables with foreign keys, and those that \
             they refer to, preserve their rows"
        ),
    }
}
