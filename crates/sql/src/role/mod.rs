//! Roles: who may log in, and what they may do.
//!
//! A role is stored as the statement that creates it, under its name in a hidden schema of roles. Passwords are stored
//! as SCRAM verifiers, which are of no use to log in with.

mod definition;
pub(crate) mod rights;
mod statement;
mod verifier;

use std::sync::Arc;

use atoll_store::database::{CatalogChange, DatabaseVersion, Relation, RelationName};
use datafusion::common::Result;

pub use definition::Role;
pub(crate) use statement::RoleStatement;
pub use verifier::ScramVerifier;

use crate::database::Database;
use atoll_sql_common::error::SqlState;
use atoll_sql_common::names::{COMMENTS, MATERIALIZED, TYPES};
use atoll_sql_common::settings::ColumnNames;
use atoll_sql_files::SERVER_FILES;
use rights::{LimitedUser, RIGHTS};

/// The schema that stores the roles.
pub(crate) const ROLES: &str = "pg_authid";

/// The identity of a session's user.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Identity {
    /// The name of the role.
    pub user: Arc<str>,
    /// Whether it may do everything, regardless of its role: the user of the process.
    pub is_owner: bool,
    /// The session's number among client sessions.
    pub number: u32,
    /// The naming of unnamed columns, until `SET atoll.column_names`.
    pub column_names: ColumnNames,
}

impl Identity {
    /// The process that clients take for the session: its number, or this process for a session without a client.
    pub(crate) fn process(&self) -> u32 {
        if self.number == 0 { std::process::id() } else { self.number }
    }
}

/// A role that reads all tables.
pub(crate) const READ_ALL: &str = "pg_read_all_data";

/// A role that inserts, updates and deletes rows of all tables.
pub(crate) const WRITE_ALL: &str = "pg_write_all_data";

/// A role that sees what the sessions of all users do.
pub(crate) const MONITOR: &str = "pg_monitor";

/// Predefined roles, for others to be members of.
pub(crate) const PREDEFINED: [&str; 4] = [SERVER_FILES, READ_ALL, WRITE_ALL, MONITOR];

/// Whether a schema is internal to the store.
pub(crate) fn is_hidden(schema: &str) -> bool {
    [ROLES, RIGHTS, COMMENTS, TYPES, MATERIALIZED].contains(&schema)
}

/// The roles of a version of the database, by name.
pub(crate) fn roles(version: &DatabaseVersion) -> Vec<Role> {
    let relations = version.relations_of(ROLES);
    relations.filter_map(|(name, relation)| of_relation(name, relation)).collect()
}

/// The role with a name.
pub(crate) fn role(version: &DatabaseVersion, name: &str) -> Option<Role> {
    let name = RelationName::new(ROLES, name);
    of_relation(&name, version.relation(&name)?)
}

fn of_relation(name: &RelationName, relation: &Relation) -> Option<Role> {
    match relation {
        Relation::External(statement) => Role::parse(&name.name, &statement.sql),
        _ => None,
    }
}

impl Database {
    /// The current role with a name.
    pub fn role(&self, name: &str) -> Option<Role> {
        role(&self.store().published(), name)
    }
}

/// Whether an identity may do everything.
pub(crate) fn is_superuser(database: &Database, identity: &Identity) -> bool {
    let role = || role(&database.store().published(), &identity.user);
    identity.is_owner || role().is_some_and(|role| role.is_superuser)
}

/// Whether an identity sees what the sessions of other users do.
pub(crate) fn sees_all(database: &Database, identity: &Identity) -> bool {
    let is_monitor = || LimitedUser::new(&database.store().published(), &identity.user).is(MONITOR);
    is_superuser(database, identity) || is_monitor()
}

/// Whether statements of an identity may name files of the server.
pub(crate) fn may_use_files(database: &Database, identity: &Identity) -> bool {
    let role = || role(&database.store().published(), &identity.user);
    let may = |role: Role| role.is_superuser || role.member_of.contains(SERVER_FILES);
    database.options().files && (identity.is_owner || role().is_some_and(may))
}

/// Refuses changes to the schema of roles by other statements than those about roles, and names that PostgreSQL
/// reserves; the schema of the session's temporary tables has one.
pub(crate) fn check_reserved(change: &CatalogChange, temporary: Option<&Arc<str>>) -> Result<()> {
    let schema = match change {
        CatalogChange::CreateSchema { name } | CatalogChange::DropSchema { name } => name,
        CatalogChange::CreateTable { name, .. }
        | CatalogChange::CreateView { name, .. }
        | CatalogChange::CreateExternal { name, .. }
        | CatalogChange::CreateSequence { name, .. }
        | CatalogChange::Drop { name }
        | CatalogChange::Rename { to: name, .. } => &name.schema,
        CatalogChange::SetDefinition { .. } | CatalogChange::SetSequence { .. } => return Ok(()),
    };
    let is_view = matches!(change, CatalogChange::CreateView { .. });
    match schema.starts_with("pg_") && (is_view || temporary != Some(schema)) {
        true => Err(SqlState::RESERVED_NAME.error(format!(
            "schema '{schema}' is reserved: names of schemas do not begin with pg_"
        ))),
        false => Ok(()),
    }
}

impl Role {
    /// Whether it has more rights than a creator of roles may give, who may not change it either.
    pub(crate) fn may_more(&self) -> bool {
        self.is_superuser || PREDEFINED.iter().any(|of| self.member_of.contains(*of))
    }
}
