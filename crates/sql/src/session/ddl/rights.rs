//! Access control: the rights that a user needs for what a statement reads, writes and defines; GRANT, REVOKE and OWNER
//! TO.
//!
//! | statement | needs |
//! |---|---|
//! | reads a table or view | SELECT, and USAGE of its schema; what a view reads, its owner needs |
//! | INSERT, UPDATE, DELETE, TRUNCATE | the right of that name; SELECT where it reads the table's columns |
//! | MERGE | the rights of its actions, and SELECT |
//! | nextval, setval of a sequence | USAGE or UPDATE |
//! | CREATE in a schema | CREATE of the schema; the user owns what is created |
//! | ALTER, DROP, GRANT, OWNER TO | to own it; to GRANT, the grant option is enough |

use std::sync::Arc;

use atoll_store::database::{
    CatalogChange, DatabaseVersion, RelationName, StoredStatement, is_temporary_schema,
};
use datafusion::common::{ResolvedTableReference, Result, TableReference, plan_err};
use datafusion::execution::SessionState;
use datafusion::sql::parser::Statement as Parsed;
use datafusion::sql::resolve::resolve_table_references;
use datafusion::sql::sqlparser::ast::{
    Action, AlterSchemaOperation, AlterTableOperation, GrantObjects, Grantee, GranteeName,
    GranteesType, Ident, Insert, ObjectName, OnConflict, OnConflictAction, OnInsert, Owner,
    Privileges, Statement as Ast,
};

use crate::pg_catalog::OWNER_NAME;
use crate::role::rights::{LimitedUser, ObjectRights, Owned, PUBLIC, Right, denied};
use crate::role::role;
use crate::session::ddl::statement_reads::{inserted_query, reads_columns};
use crate::session::plan::planner::StatementPlanner;
use atoll_sql_common::error::{SqlState, stated_err};
use atoll_sql_common::names::{CATALOG, TYPES, relation_name, resolve};

/// A GRANT or REVOKE of rights.
struct RightsGrant<'a> {
    privileges: &'a Privileges,
    objects: Vec<Owned>,
    grantees: Vec<String>,
    /// Of a GRANT; `None` for a REVOKE.
    with_option: Option<bool>,
}

impl StatementPlanner {
    /// The user whose rights apply to a text: that of the session, or within stored views the owner of the innermost.
    fn user_within(&self, within: &[ResolvedTableReference]) -> Option<LimitedUser> {
        let user = self.user.as_deref()?;
        let Some(view) = within.last().filter(|view| !self.names.is_own(view)) else {
            return Some(user.clone());
        };
        let version = self.names.stored_version();
        let view = Owned::Relation(relation_name(view));
        let owner = ObjectRights::for_object(&version, &view).owner?;
        let is_superuser = role(&version, &owner).is_some_and(|owner| owner.is_superuser);
        (!is_superuser).then(|| LimitedUser::new(&version, &owner))
    }

    /// Refuses a statement if its user may not read one of these tables.
    pub(in crate::session) fn check_reads(
        &self,
        state: &SessionState,
        (statement, tables): (&Parsed, &[TableReference]),
        within: &[ResolvedTableReference],
    ) -> Result<()> {
        let Some(user) = self.user_within(within) else { return Ok(()) };
        let check = |name: &TableReference| {
            self.check_as(&user, Right::Select, &resolve(state, name.clone()))
        };
        match inserted_query(statement) {
            None => tables.iter().try_for_each(check),
            Some(None) => Ok(()),
            Some(Some(query)) => {
                let query = Parsed::Statement(Box::new(Ast::Query(Box::new(query))));
                resolve_table_references(&query, self.normalizes())?.0.iter().try_for_each(check)
            }
        }
    }

    /// Refuses an INSERT without the right.
    pub(in crate::session) fn check_insert(
        &self,
        insert: &Insert,
        at: &ResolvedTableReference,
    ) -> Result<()> {
        self.check_right(Right::Insert, at)?;
        let leaves_alone = match &insert.on {
            None => insert.or.is_none() && !insert.replace_into,
            Some(OnInsert::OnConflict(conflict)) => conflict.action == OnConflictAction::DoNothing,
            Some(_) => false,
        };
        if !leaves_alone {
            self.check_right(Right::Update, at)?;
        }
        let looks = match &insert.on {
            Some(OnInsert::OnConflict(OnConflict { conflict_target, action })) => {
                conflict_target.is_some() || reads_columns(action)
            }
            _ => false,
        };
        if looks || insert.returning.is_some() {
            return self.check_right(Right::Select, at);
        }
        Ok(())
    }

    /// Refuses a statement without the right on a table.
    pub(in crate::session) fn check_right(
        &self,
        right: Right,
        at: &ResolvedTableReference,
    ) -> Result<()> {
        match self.user.as_deref() {
            Some(user) => self.check_as(user, right, at),
            None => Ok(()),
        }
    }

    /// A revoked right is lost at once, even if a transaction still reads an older state.
    fn check_as(
        &self,
        user: &LimitedUser,
        right: Right,
        at: &ResolvedTableReference,
    ) -> Result<()> {
        if &*at.catalog != CATALOG || is_temporary_schema(&at.schema) {
            return Ok(());
        }
        let object = Owned::Relation(relation_name(at));
        for version in [self.names.stored_version(), self.published()] {
            // Objects outside the store belong to the session or are system tables.
            if object.exists(&version) {
                user.check(&version, &object, right)?;
            }
        }
        Ok(())
    }

    /// Refuses a definition without the right.
    pub(in crate::session) fn check_definition(&self, change: &CatalogChange) -> Result<()> {
        let Some(user) = self.user.as_deref().filter(|_| !change.is_temporary()) else {
            return Ok(());
        };
        let version = self.names.stored_version();
        let owns = |object: Owned| match user.owns(&version, &object) || !object.exists(&version) {
            true => Ok(()),
            false => {
                let message = format!("must be owner of {}", object.named(&version));
                Err(SqlState::INSUFFICIENT_PRIVILEGE.error(message))
            }
        };
        let owns_relation = |name: &RelationName| owns(Owned::Relation(name.clone()));
        let creates_in = |schema: &str| {
            let schema = Owned::Schema(schema.to_owned());
            match user.has(&version, &schema, Right::Create) {
                true => Ok(()),
                false => Err(denied(&version, &schema)),
            }
        };
        match change {
            CatalogChange::CreateSchema { .. } => Err(SqlState::INSUFFICIENT_PRIVILEGE
                .error("permission denied to create schemas; only superusers may")),
            CatalogChange::DropSchema { name } => owns(Owned::Schema(name.to_string())),
            CatalogChange::CreateTable { name, .. }
            | CatalogChange::CreateView { name, .. }
            | CatalogChange::CreateExternal { name, .. }
            | CatalogChange::CreateSequence { name, .. } => {
                owns_relation(name)?;
                creates_in(&name.schema)
            }
            CatalogChange::Drop { name } => owns_relation(name),
            CatalogChange::Rename { from, to } => {
                owns_relation(from)?;
                if from.schema == to.schema { Ok(()) } else { creates_in(&to.schema) }
            }
            CatalogChange::SetDefinition { table, .. } => {
                version.table_name(*table).map_or(Ok(()), owns_relation)
            }
            CatalogChange::SetSequence { sequence, .. } => {
                version.sequence_name(*sequence).map_or(Ok(()), owns_relation)
            }
        }
    }

    /// Updates the rights after a change of definitions.
    pub(in crate::session) async fn follow_definition(&self, change: &CatalogChange) -> Result<()> {
        match change {
            CatalogChange::CreateTable { name, .. }
            | CatalogChange::CreateView { name, .. }
            | CatalogChange::CreateExternal { name, .. }
            | CatalogChange::CreateSequence { name, .. } => {
                let object = Owned::Relation(name.clone());
                if change.is_temporary() {
                    // An object of this name that its transaction has dropped leaves its rights behind.
                    return self.keep_rights(&object, &ObjectRights::default()).await;
                }
                let Some(user) = self.user.as_deref() else { return Ok(()) };
                let mut rights = self.rights_of(&object).await?;
                if rights.owner.is_none() {
                    rights.owner = Some(user.name.clone());
                    self.keep_rights(&object, &rights).await?;
                }
                Ok(())
            }
            CatalogChange::Drop { name } => {
                self.keep_rights(&Owned::Relation(name.clone()), &ObjectRights::default()).await
            }
            CatalogChange::DropSchema { name } => {
                self.keep_rights(&Owned::Schema(name.to_string()), &ObjectRights::default()).await
            }
            CatalogChange::Rename { from, to } => {
                let (from, to) = (Owned::Relation(from.clone()), Owned::Relation(to.clone()));
                let rights = self.rights_of(&from).await?;
                self.keep_rights(&from, &ObjectRights::default()).await?;
                self.keep_rights(&to, &rights).await
            }
            CatalogChange::CreateSchema { .. }
            | CatalogChange::SetDefinition { .. }
            | CatalogChange::SetSequence { .. } => Ok(()),
        }
    }

    async fn rights_of(&self, object: &Owned) -> Result<ObjectRights> {
        let version = self.transaction.statement(true).await?;
        Ok(ObjectRights::for_object(&version, object))
    }

    /// Stores these rights instead of the existing ones.
    async fn keep_rights(&self, object: &Owned, rights: &ObjectRights) -> Result<()> {
        self.keep_text(object.entry(), rights.is_some().then(|| rights.to_string())).await
    }

    /// Stores this text under a name, replacing the existing one; creates a missing schema.
    pub(in crate::session) async fn keep_text(
        &self,
        entry: RelationName,
        text: Option<String>,
    ) -> Result<()> {
        let plain = |text: String| StoredStatement {
            sql: text.into(),
            schema: "".into(),
            options: "".into(),
        };
        self.keep_entry(entry, text.map(plain)).await
    }

    /// The same of a statement.
    pub(in crate::session) async fn keep_entry(
        &self,
        entry: RelationName,
        statement: Option<StoredStatement>,
    ) -> Result<()> {
        let version = self.transaction.statement(true).await?;
        if version.relation(&entry).is_some() {
            self.define_any(CatalogChange::Drop { name: entry.clone() }).await?;
        }
        let Some(statement) = statement else { return Ok(()) };
        if !version.has_schema(&entry.schema) {
            let name = Arc::clone(&entry.schema);
            self.define_any(CatalogChange::CreateSchema { name }).await?;
        }
        let statement = Arc::new(statement);
        self.define_any(CatalogChange::CreateExternal { name: entry, statement }).await
    }

    /// Runs GRANT, REVOKE and OWNER TO; `None` for other statements.
    pub(in crate::session) async fn change_rights(
        &self,
        ast: &Ast,
    ) -> Result<Option<&'static str>> {
        match ast {
            Ast::Grant(grant) => {
                self.grant(RightsGrant {
                    privileges: &grant.privileges,
                    objects: self.granted_objects(grant.objects.as_ref())?,
                    grantees: self.grantees(&grant.grantees)?,
                    with_option: Some(grant.with_grant_option),
                })
                .await?;
                Ok(Some("GRANT"))
            }
            Ast::Revoke(revoke) => {
                self.grant(RightsGrant {
                    privileges: &revoke.privileges,
                    objects: self.granted_objects(revoke.objects.as_ref())?,
                    grantees: self.grantees(&revoke.grantees)?,
                    with_option: None,
                })
                .await?;
                Ok(Some("REVOKE"))
            }
            Ast::AlterTable(alter) => {
                let [AlterTableOperation::OwnerTo { new_owner }] = &alter.operations[..] else {
                    return Ok(None);
                };
                let name = relation_name(&self.resolve(self.name(&alter.name)?));
                self.set_owner(Owned::Relation(name), new_owner).await?;
                Ok(Some("ALTER TABLE"))
            }
            Ast::AlterSchema(alter) => {
                let [AlterSchemaOperation::OwnerTo { owner }] = &alter.operations[..] else {
                    return Ok(None);
                };
                self.set_owner(Owned::Schema(self.schema_name(&alter.name)?), owner).await?;
                Ok(Some("ALTER SCHEMA"))
            }
            _ => Ok(None),
        }
    }

    async fn grant(&self, grant: RightsGrant<'_>) -> Result<()> {
        let RightsGrant { privileges, objects, grantees, with_option } = grant;
        for object in objects {
            let version = self.names.stored_version();
            let rights = granted_rights(privileges, &object, object.rights(&version))?;
            let may = |right: &Right| match self.user.as_deref() {
                Some(_) if self.is_temporary(&object) => true,
                Some(user) => user.may_grant(&version, &object, *right),
                None => true,
            };
            if !rights.iter().all(may) {
                return Err(denied(&version, &object));
            }
            let mut kept = self.rights_of(&object).await?;
            for grantee in &grantees {
                let granted = kept.grants.entry(grantee.clone()).or_default();
                for right in &rights {
                    match with_option {
                        Some(with_option) => *granted.entry(*right).or_default() |= with_option,
                        None => drop(granted.remove(right)),
                    }
                }
            }
            // An empty entry records that the initial rights of everyone were revoked.
            let begins_with = ObjectRights::for_object(&DatabaseVersion::default(), &object);
            kept.grants.retain(|role, of| !of.is_empty() || begins_with.grants.contains_key(role));
            self.keep_rights(&object, &kept).await?;
        }
        Ok(())
    }

    async fn set_owner(&self, object: Owned, owner: &Owner) -> Result<()> {
        let version = self.names.stored_version();
        // A type carries its rights as a relation of its name does.
        let is_type = version.relation(&object.entry_in(TYPES)).is_some();
        if !object.exists(&version) && !is_type {
            return Err(object.missing(&version));
        }
        let owner = match owner {
            Owner::Ident(name) if self.is_process(name) => None,
            Owner::Ident(name) => Some(self.role_name(name)?),
            Owner::CurrentRole | Owner::CurrentUser | Owner::SessionUser => {
                let Some(user) = self.user.as_deref() else {
                    return plan_err!(
                        "expected the name of the new owner of {}",
                        object.named(&version)
                    );
                };
                Some(user.name.clone())
            }
        };
        if let Some(user) = self.user.as_deref()
            && !(user.owns(&version, &object) && owner.as_ref().is_some_and(|it| user.is(it)))
        {
            return Err(SqlState::INSUFFICIENT_PRIVILEGE.error(format!(
                "must be owner of {}, and a member of the role '{}'",
                object.named(&version),
                owner.as_deref().unwrap_or(OWNER_NAME)
            )));
        }
        let mut owned = vec![object];
        if let Owned::Relation(table) = &owned[0] {
            // The sequences of a table's identities are part of it.
            let sequences = self.names.sequences_of(table);
            owned.extend(sequences.into_iter().map(Owned::Relation));
        }
        for object in owned {
            let mut rights = self.rights_of(&object).await?;
            rights.owner.clone_from(&owner);
            self.keep_rights(&object, &rights).await?;
        }
        Ok(())
    }

    /// The objects of a GRANT.
    fn granted_objects(&self, objects: Option<&GrantObjects>) -> Result<Vec<Owned>> {
        let version = self.names.stored_version();
        let relations = |names: &[ObjectName]| {
            let relation = |name| {
                let name = relation_name(&self.resolve(self.name(name)?));
                Ok(Owned::Relation(name))
            };
            names.iter().map(relation).collect::<Result<Vec<_>>>()
        };
        let within = |schemas: &[ObjectName], kind: fn(&str) -> bool| -> Result<Vec<Owned>> {
            let mut found = Vec::new();
            for name in schemas {
                let schema = self.schema_name(name)?;
                let all = version.relations_of(&schema);
                let wanted = all.filter(|(_, relation)| kind(relation.kind()));
                found.extend(wanted.map(|(name, _)| Owned::Relation(name.clone())));
            }
            Ok(found)
        };
        let objects: Vec<Owned> = match objects {
            Some(GrantObjects::Tables(names) | GrantObjects::Sequences(names)) => relations(names)?,
            Some(GrantObjects::Schemas(names)) => {
                let schema = |name| Ok(Owned::Schema(self.schema_name(name)?));
                names.iter().map(schema).collect::<Result<_>>()?
            }
            Some(GrantObjects::AllTablesInSchema { schemas }) => {
                within(schemas, |kind| kind != "sequence")?
            }
            Some(GrantObjects::AllSequencesInSchema { schemas }) => {
                within(schemas, |kind| kind == "sequence")?
            }
            Some(other) => {
                return stated_err!(
                    FEATURE_NOT_SUPPORTED,
                    "GRANT ON {other} is not supported; expected TABLE, SEQUENCE, SCHEMA, ALL TABLES IN SCHEMA or \
                     ALL SEQUENCES IN SCHEMA"
                );
            }
            None => return plan_err!("expected ON and the objects to grant rights on"),
        };
        match objects.iter().find(|object| !object.exists(&version)) {
            Some(missing) => Err(missing.missing(&version)),
            None => Ok(objects),
        }
    }

    fn grantees(&self, grantees: &[Grantee]) -> Result<Vec<String>> {
        let grantee = |grantee: &Grantee| match (&grantee.grantee_type, &grantee.name) {
            (GranteesType::Public, _) => Ok(PUBLIC.to_owned()),
            (_, Some(GranteeName::ObjectName(name))) => match name.0.as_slice() {
                [part] => match part.as_ident() {
                    Some(name) if name.value.eq_ignore_ascii_case(PUBLIC) => Ok(PUBLIC.to_owned()),
                    Some(name) => self.role_name(name),
                    None => plan_err!("expected the name of a role instead of {name}"),
                },
                _ => plan_err!("expected the name of a role instead of {name}"),
            },
            _ => plan_err!("expected the name of a role, or PUBLIC"),
        };
        grantees.iter().map(grantee).collect()
    }

    /// Whether this is the name under which the process owns what no role owns.
    fn is_process(&self, name: &Ident) -> bool {
        let is_name = self.normalized(name) == OWNER_NAME;
        is_name && role(&self.names.stored_version(), OWNER_NAME).is_none()
    }

    /// The name of an existing role.
    fn role_name(&self, name: &Ident) -> Result<String> {
        let name = match name.quote_style {
            Some(_) => name.value.clone(),
            None => name.value.to_lowercase(),
        };
        match role(&self.names.stored_version(), &name).is_some() {
            true => Ok(name),
            false => {
                Err(SqlState::UNDEFINED_OBJECT.error(format!("role \"{name}\" does not exist")))
            }
        }
    }

    pub(in crate::session) fn schema_name(&self, name: &ObjectName) -> Result<String> {
        let part = |part: &Ident| self.normalized(part);
        let parts: Vec<String> =
            name.0.iter().filter_map(|name| name.as_ident()).map(part).collect();
        match &parts[..] {
            [schema] => Ok(schema.clone()),
            [catalog, schema] if catalog == CATALOG => Ok(schema.clone()),
            _ => plan_err!("expected the name of a schema instead of {name}"),
        }
    }
}

/// The named rights, which have to apply to the object.
fn granted_rights(privileges: &Privileges, object: &Owned, all: &[Right]) -> Result<Vec<Right>> {
    let Privileges::Actions(actions) = privileges else { return Ok(all.to_vec()) };
    let mut rights = Vec::new();
    for action in actions {
        let right = match action {
            Action::Select { columns: None } => Right::Select,
            Action::Insert { columns: None } => Right::Insert,
            Action::Update { columns: None } => Right::Update,
            Action::Delete => Right::Delete,
            Action::Truncate => Right::Truncate,
            Action::Usage => Right::Usage,
            Action::Create { obj_type: None } => Right::Create,
            Action::References { columns: None } => Right::References,
            // Granting it has no effect, since triggers are not supported.
            Action::Trigger => continue,
            Action::Select { .. } | Action::Insert { .. } | Action::Update { .. } => {
                return stated_err!(
                    FEATURE_NOT_SUPPORTED,
                    "rights on columns are not supported; grant them on a view of these columns"
                );
            }
            other => return stated_err!(SYNTAX_ERROR, "unknown right {other}"),
        };
        if !all.contains(&right) {
            let known: Vec<&str> = all.iter().map(|right| right.word()).collect();
            let what = if matches!(object, Owned::Schema(_)) { "schemas" } else { "these objects" };
            return stated_err!(
                INVALID_GRANT,
                "unknown right {} on {what}; expected one of {}",
                right.word(),
                known.join(", ")
            );
        }
        rights.push(right);
    }
    Ok(rights)
}
