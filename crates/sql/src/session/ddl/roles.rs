//! Execution of statements about roles, and a role's effects on its session.

use std::sync::Arc;

use atoll_store::database::{CatalogChange, DatabaseVersion, RelationName, StoredStatement};
use datafusion::common::Result;

use crate::role::rights::{LimitedUser, ObjectRights, Owned, PUBLIC, RIGHTS};
use crate::role::{
    Identity, PREDEFINED, ROLES, Role, RoleStatement, is_superuser, may_use_files, role,
};
use crate::session::Session;
use crate::session::plan::planner::StatementPlanner;
use crate::session::settings::shared_settings::is_shared;
use crate::session::statement::query_result::QueryResult;
use crate::table::StaleStatement;
use atoll_sql_common::error::{SqlError, SqlState};

impl Session {
    /// Whether the session's user may do everything.
    pub fn is_superuser(&self) -> bool {
        is_superuser(self.database(), self.identity())
    }

    /// The user whose rights limit its statements; `None` if they may do everything.
    pub(in crate::session) fn limited_user(&self) -> Option<Arc<LimitedUser>> {
        let limited =
            || LimitedUser::new(&self.database().store().published(), &self.identity().user);
        (!self.is_superuser()).then(|| Arc::new(limited()))
    }

    /// Whether its statements may name files of the server.
    pub(in crate::session) fn may_use_files(&self) -> bool {
        may_use_files(self.database(), self.identity())
    }

    /// Runs a statement about roles.
    pub(in crate::session) async fn run_roles(
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
    /// Applies the settings of the user's role; the errors of refused ones, such as a pool that was dropped.
    pub fn begin_as_role(&self) -> Vec<SqlError> {
        let refused = |(name, value): (String, String)| {
            let error = self.begin_with(&name, &value).err()?;
            let SqlError { state, message, .. } = SqlError::new(error, "");
            Some(SqlError::new(state.error(format!("setting {name} of the role: {message}")), ""))
        };
        self.role_settings().into_iter().filter_map(refused).collect()
    }

    /// The settings of the role's sessions.
    pub(in crate::session) fn role_settings(&self) -> Vec<(String, String)> {
        let role = role(&self.database().store().published(), &self.identity().user);
        role.map(|role| role.settings.into_iter().collect()).unwrap_or_default()
    }

    /// Refuses settings for a role that its sessions could not begin with, by trying them in a new session.
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
    /// Runs a statement about roles.
    async fn roles(&self, identity: &Identity, statement: &RoleStatement) -> Result<&'static str> {
        let version = self.names.stored_version();
        // Its current state, not that at the start of a transaction.
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

/// Refuses to drop a role that owns objects or has rights.
fn check_without_rights(version: &DatabaseVersion, role: &str) -> Result<()> {
    let on = version.relations_of(RIGHTS).filter_map(|(entry, _)| {
        let object = Owned::of_entry(&entry.name)?;
        let has_some = ObjectRights::for_object(version, &object).roles().any(|name| name == role);
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
    SqlState::UNDEFINED_OBJECT.error(format!("role \"{name}\" does not exist"))
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
