//! Roles: who may log in, and what they may do.
//!
//! A role is the statement that creates it, kept by the store under its name in a schema of their own, which is
//! listed nowhere. Passwords are kept as what SCRAM needs to check them, which is of no use to log in with.

mod definition;
pub(crate) mod rights;
mod statement;
mod verifier;

use std::sync::Arc;

use atoll_store::database::{
    CatalogChange, DatabaseVersion, Relation, RelationName, StoredStatement,
};
use datafusion::common::Result;

pub use definition::Role;
pub(crate) use statement::RoleStatement;
pub use verifier::ScramVerifier;

use crate::Session;
use crate::catalog::COMMENTS;
use crate::database::Database;
use crate::error::{SqlError, SqlState};
use crate::session::{QueryResult, StatementPlanner, is_shared};
use crate::settings::ColumnNames;
use crate::table::StaleStatement;
use rights::{LimitedUser, ObjectRights, Owned, PUBLIC, RIGHTS};

/// The schema that keeps the roles.
pub(crate) const ROLES: &str = "pg_authid";

/// Who a session belongs to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Identity {
    /// The name of the role.
    pub user: Arc<str>,
    /// Whether it may do everything, whatever its role says: the user of the process.
    pub is_owner: bool,
    /// The session's number among those of clients.
    pub number: u32,
    /// How its sessions call unnamed columns, until `SET atoll.column_names`.
    pub column_names: ColumnNames,
}

/// A role that reads and writes files on the server.
pub(crate) const SERVER_FILES: &str = "pg_read_write_server_files";

/// A role that reads all tables.
pub(crate) const READ_ALL: &str = "pg_read_all_data";

/// A role that inserts, updates and deletes rows of all tables.
pub(crate) const WRITE_ALL: &str = "pg_write_all_data";

/// A role that sees what the sessions of all users do.
pub(crate) const MONITOR: &str = "pg_monitor";

/// Roles that are there without being created, for others to be members of.
pub(crate) const PREDEFINED: [&str; 4] = [SERVER_FILES, READ_ALL, WRITE_ALL, MONITOR];

/// Whether a schema is the store's own and listed nowhere.
pub(crate) fn is_hidden(schema: &str) -> bool {
    [ROLES, RIGHTS, COMMENTS].contains(&schema)
}

/// The roles of a version of the database, by name.
pub(crate) fn roles(version: &DatabaseVersion) -> Vec<Role> {
    let relations = version.relations_of(ROLES);
    relations.filter_map(|(name, relation)| of_relation(name, relation)).collect()
}

/// The role of a name.
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

/// Whether an identity may do everything.
pub(crate) fn is_superuser(database: &Database, identity: &Identity) -> bool {
    let role = || role(&database.store().published(), &identity.user);
    identity.is_owner || role().is_some_and(|role| role.is_superuser)
}

/// Whether an identity sees what the sessions of other users do.
pub(crate) fn sees_all(database: &Database, identity: &Identity) -> bool {
    let is_monitor = || LimitedUser::of(&database.store().published(), &identity.user).is(MONITOR);
    is_superuser(database, identity) || is_monitor()
}

/// Whether statements of an identity may name files of the server.
pub(crate) fn may_use_files(database: &Database, identity: &Identity) -> bool {
    let role = || role(&database.store().published(), &identity.user);
    let may = |role: Role| role.is_superuser || role.member_of.contains(SERVER_FILES);
    database.options().files && (identity.is_owner || role().is_some_and(may))
}

/// Refuses a statement or function that names files of the server where they may not be named.
pub(crate) fn check_files(may_use_files: bool, what: &str) -> Result<()> {
    match may_use_files {
        true => Ok(()),
        false => Err(SqlState::INSUFFICIENT_PRIVILEGE.error(format!(
            "permission denied to use files of the server in {what}; only superusers and members of \
             {SERVER_FILES} may"
        ))),
    }
}

/// Refuses what would change the schema of roles by other statements than those about roles, and names that are
/// PostgreSQL's; the schema of the session's temporary tables has one.
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
    /// Whether it may do what those who create roles may not give: they do not change it either.
    fn may_more(&self) -> bool {
        self.is_superuser || PREDEFINED.iter().any(|of| self.member_of.contains(*of))
    }
}

impl Session {
    /// Whether the session's user may do everything.
    pub fn is_superuser(&self) -> bool {
        is_superuser(self.database(), self.identity())
    }

    /// Whose rights limit its statements; none where they may do everything.
    pub(crate) fn limited_user(&self) -> Option<Arc<LimitedUser>> {
        let limited =
            || LimitedUser::of(&self.database().store().published(), &self.identity().user);
        (!self.is_superuser()).then(|| Arc::new(limited()))
    }

    /// Whether its statements may name files of the server.
    pub(crate) fn may_use_files(&self) -> bool {
        may_use_files(self.database(), self.identity())
    }

    /// Carries out a statement about roles.
    pub(crate) async fn run_roles(
        &self,
        statement: &RoleStatement,
        sql: &str,
    ) -> Result<QueryResult> {
        self.check_role_settings(statement)?;
        let transaction = self.statement_transaction()?;
        let done = async {
            loop {
                let planner = self.planner(&transaction, true).await?;
                match planner.roles(self.identity(), statement).await {
                    Err(error) if StaleStatement::ended(&error) => {}
                    Err(error) => return Err(error),
                    Ok(tag) => {
                        transaction.finish(self.database()).await?;
                        return Ok(QueryResult::done(tag.to_owned(), sql));
                    }
                }
            }
        };
        let done = done.await;
        if done.is_err() {
            transaction.fail();
        }
        done
    }
}

impl Session {
    /// Sets what the role of the session's user has it begin with; what was refused, as a value from before a pool was
    /// dropped.
    pub fn begin_as_role(&self) -> Vec<SqlError> {
        let refused = |(name, value): (String, String)| {
            let error = self.begin_with(&name, &value).err()?;
            let SqlError { state, message, .. } = SqlError::new(error, "");
            Some(SqlError::new(state.error(format!("setting {name} of the role: {message}")), ""))
        };
        self.role_settings().into_iter().filter_map(refused).collect()
    }

    /// What the role has its sessions begin with.
    pub(crate) fn role_settings(&self) -> Vec<(String, String)> {
        let role = role(&self.database().store().published(), &self.identity().user);
        role.map(|role| role.settings.into_iter().collect()).unwrap_or_default()
    }

    /// Refuses settings for a role that its sessions could not begin with, by trying them in a session of their own.
    fn check_role_settings(&self, statement: &RoleStatement) -> Result<()> {
        let (RoleStatement::Create { options, .. } | RoleStatement::Alter { options, .. }) =
            statement
        else {
            return Ok(());
        };
        for (name, value) in options.settings() {
            if is_shared(name) {
                return Err(SqlState::FEATURE_NOT_SUPPORTED.error(format!(
                    "'{name}' holds for the whole database: SET it there, not for a role"
                )));
            }
            let identity = Identity { number: 0, ..self.identity().as_ref().clone() };
            let trial = self.database().session_of(identity)?;
            trial.begin_with(name, value)?;
        }
        Ok(())
    }
}

impl StatementPlanner {
    /// Carries out a statement about roles.
    pub(crate) async fn roles(
        &self,
        identity: &Identity,
        statement: &RoleStatement,
    ) -> Result<&'static str> {
        let version = self.names.stored_version();
        // As they are now, not as they were when a transaction began.
        let user = role(&self.published(), &identity.user);
        let is_superuser = identity.is_owner || user.as_ref().is_some_and(|it| it.is_superuser);
        let may_create = is_superuser || user.is_some_and(|user| user.creates_roles);
        match statement {
            RoleStatement::Create { role: name, options, if_missing } => {
                if role(&version, name).is_some() || PREDEFINED.contains(&name.as_str()) {
                    if *if_missing {
                        return Ok("CREATE ROLE");
                    }
                    return Err(
                        SqlState::DUPLICATE_OBJECT.error(format!("role '{name}' already exists"))
                    );
                }
                if name.starts_with("pg_") || name == PUBLIC {
                    let message = format!(
                        "role name '{name}' is reserved: names are not 'public' and do not begin with pg_"
                    );
                    return Err(SqlState::RESERVED_NAME.error(message));
                }
                let mut created = Role::new(name);
                options.apply(&mut created)?;
                permit(may_create && (is_superuser || !created.is_superuser), "create this role")?;
                check_members(&version, &created)?;
                permit(is_superuser || created.member_of.is_empty(), "make a role a member")?;
                if !version.has_schema(ROLES) {
                    self.define_any(CatalogChange::CreateSchema { name: ROLES.into() }).await?;
                }
                self.keep_role(&created).await?;
                Ok("CREATE ROLE")
            }
            RoleStatement::Alter { role: name, options } => {
                let before = role(&version, name).ok_or_else(|| missing(name))?;
                let mut changed = before.clone();
                options.apply(&mut changed)?;
                let is_own = *identity.user == *name && options.is_personal();
                let touches_more = before.may_more() || changed.may_more();
                let may = is_superuser || may_create && !touches_more || is_own;
                permit(may, "alter this role")?;
                check_members(&version, &changed)?;
                let is_member = changed.member_of == before.member_of;
                permit(is_superuser || is_member, "make a role a member")?;
                self.define_any(CatalogChange::Drop {
                    name: RelationName::new(ROLES, name.as_str()),
                })
                .await?;
                self.keep_role(&changed).await?;
                Ok("ALTER ROLE")
            }
            RoleStatement::Drop { roles, if_exists } => {
                for name in roles {
                    let Some(dropped) = role(&version, name) else {
                        if *if_exists {
                            continue;
                        }
                        return Err(missing(name));
                    };
                    permit(may_create && (is_superuser || !dropped.may_more()), "drop this role")?;
                    if *identity.user == *name {
                        return Err(SqlState::OBJECT_IN_USE.error("current user cannot be dropped"));
                    }
                    check_without_rights(&version, name)?;
                    self.define_any(CatalogChange::Drop {
                        name: RelationName::new(ROLES, name.as_str()),
                    })
                    .await?;
                }
                Ok("DROP ROLE")
            }
            RoleStatement::Grant { of, to, is_revoked } => {
                permit(is_superuser, "grant roles")?;
                for name in to {
                    let mut member = role(&version, name).ok_or_else(|| missing(name))?;
                    for of in of {
                        match is_revoked {
                            true => drop(member.member_of.remove(of)),
                            false => drop(member.member_of.insert(of.clone())),
                        }
                    }
                    check_members(&version, &member)?;
                    self.define_any(CatalogChange::Drop {
                        name: RelationName::new(ROLES, name.as_str()),
                    })
                    .await?;
                    self.keep_role(&member).await?;
                }
                Ok(if *is_revoked { "REVOKE ROLE" } else { "GRANT ROLE" })
            }
        }
    }

    async fn keep_role(&self, role: &Role) -> Result<()> {
        let statement =
            StoredStatement { sql: role.to_string().into(), schema: "".into(), options: "".into() };
        let name = RelationName::new(ROLES, role.name.as_str());
        let statement = Arc::new(statement);
        self.define_any(CatalogChange::CreateExternal { name, statement }).await
    }
}

/// Refuses to drop a role that owns something or was granted something.
fn check_without_rights(version: &DatabaseVersion, role: &str) -> Result<()> {
    let on = version.relations_of(RIGHTS).filter_map(|(entry, _)| {
        let object = Owned::of_entry(&entry.name)?;
        let has_some = ObjectRights::of(version, &object).roles().any(|name| name == role);
        has_some.then(|| object.named(version))
    });
    let on: Vec<String> = on.collect();
    match on.first() {
        None => Ok(()),
        Some(first) => Err(SqlState::DEPENDENT_OBJECTS_STILL_EXIST.error(format!(
            "role '{role}' cannot be dropped: it has rights on {first} and {} other objects; REVOKE them, or give \
             what it owns to another role with ALTER … OWNER TO",
            on.len() - 1
        ))),
    }
}

fn permit(may: bool, what: &str) -> Result<()> {
    match may {
        true => Ok(()),
        false => {
            Err(SqlState::INSUFFICIENT_PRIVILEGE.error(format!("permission denied to {what}")))
        }
    }
}

fn missing(name: &str) -> datafusion::common::DataFusionError {
    SqlState::UNDEFINED_OBJECT.error(format!("role '{name}' does not exist"))
}

fn check_members(version: &DatabaseVersion, member: &Role) -> Result<()> {
    for of in &member.member_of {
        if *of == member.name {
            return Err(SqlState::INVALID_GRANT.error(format!("role '{of}' is a member of itself")));
        }
        if !PREDEFINED.contains(&of.as_str()) && role(version, of).is_none() {
            return Err(missing(of));
        }
    }
    Ok(())
}
