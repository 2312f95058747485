//! CREATE, ALTER and DROP DOMAIN.
//!
//! A domain is its text under its name in the hidden schema of types (`catalog/user_types.rs`). The CHECK constraints of
//! its columns carry its OID, so that it can be renamed.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use atoll_store::database::{CatalogChange, RelationName};
use datafusion::common::{ResolvedTableReference, Result, not_impl_err};
use datafusion::sql::parser::Statement as Parsed;
use datafusion::sql::sqlparser::ast::{
    CreateDomain, DropBehavior, DropDomain, Statement as Ast, TableConstraint,
};

use super::dependents::{ColumnsOf, columns_lines, needed};
use super::{free_oid, unknown};
use crate::role::rights::Owned;
use crate::session::Session;
use crate::session::dml::change::quoted;
use crate::session::plan::planner::StatementPlanner;
use crate::session::statement::command_tag::{missing, with_notices};
use atoll_sql_common::error::{SqlState, stated_err};
use atoll_sql_common::names::{CATALOG, TYPES, plain, relation_name};
use atoll_sql_common::pg_type::domain_oid;
use atoll_sql_common::user_type::{DomainCheck, DomainType};
use atoll_sql_parse::parse::{DomainChange, NOT_NULL};
use atoll_sql_parse::syntax::{parsed_expr, sql_text};

impl Session {
    /// Runs CREATE, ALTER and DROP DOMAIN; `None` for other statements.
    pub(in crate::session) async fn domain(
        &self,
        planner: &StatementPlanner,
        ast: &Ast,
    ) -> Result<Option<Cow<'static, str>>> {
        match ast {
            Ast::CreateDomain(alter) if alter.collation.is_some() => {
                Box::pin(self.alter_domain(planner, alter)).await.map(Some)
            }
            Ast::CreateDomain(create) => {
                planner.create_domain(create).await?;
                Ok(Some("CREATE DOMAIN".into()))
            }
            Ast::DropDomain(DropDomain { if_exists, name, drop_behavior }) => {
                let Some(domain) = planner.domain_named(name)? else {
                    if planner.user_type_named(name)?.is_some() {
                        return stated_err!(
                            WRONG_OBJECT_TYPE,
                            "{name} is not a domain; drop it with DROP TYPE"
                        );
                    }
                    return match if_exists {
                        true => {
                            let notice = missing("type", planner.name(name)?);
                            Ok(Some(with_notices("DROP DOMAIN", &[notice])))
                        }
                        false => Err(unknown(name)),
                    };
                };
                let cascade = *drop_behavior == Some(DropBehavior::Cascade);
                let passed = Box::pin(self.drop_domain(planner, &domain, cascade)).await?;
                Ok(Some(with_notices("DROP DOMAIN", &passed)))
            }
            _ => Ok(None),
        }
    }

    /// Drops a domain; the notices about dependent objects that were dropped.
    pub(super) async fn drop_domain(
        &self,
        planner: &StatementPlanner,
        domain: &DomainType,
        cascade: bool,
    ) -> Result<Vec<String>> {
        planner.check_domain_owner(domain)?;
        let columns = planner.columns_of_domain(domain).await?;
        if let (false, false) = (columns.is_empty(), cascade) {
            return Err(needed(&domain.name, columns_lines(&domain.name, &columns)));
        }
        let mut passed = Vec::new();
        for (table, names) in &columns {
            let planner = self.planner(&planner.transaction, true).await?;
            passed.extend(self.drop_typed_columns(&planner, table, names).await?);
        }
        let planner = self.planner(&planner.transaction, true).await?;
        let views = planner.planned_ones(planner.all_views()?).await;
        planner.keep_text(owned(domain).entry_in(TYPES), None).await?;
        planner.follow_definition(&CatalogChange::Drop { name: named(domain) }).await?;
        let after = self.planner(&planner.transaction, true).await?;
        let lost = after.without_planned(views).await;
        if lost.is_empty() || cascade {
            passed.extend(self.drop_views(&after, lost).await?);
            return Ok(passed);
        }
        let line = |name: String| format!("view {name} depends on type {}", domain.name);
        Err(needed(&domain.name, lost.iter().map(|view| line(view.shown())).collect()))
    }

    async fn alter_domain(
        &self,
        planner: &StatementPlanner,
        alter: &CreateDomain,
    ) -> Result<Cow<'static, str>> {
        let Some(domain) = planner.domain_named(&alter.name)? else {
            return Err(unknown(&alter.name));
        };
        let domain = domain.as_ref();
        planner.check_domain_owner(domain)?;
        let mut altered = domain.clone();
        let change = alter.collation.as_ref().map_or("", |change| change.value.as_str());
        let names: Vec<String> =
            alter.constraints.iter().filter_map(|it| planner.constraint_name(it)).collect();
        match (change, &names[..]) {
            (DomainChange::ADD, _) => planner.add_constraints(&mut altered, &alter.constraints)?,
            (DomainChange::DROP_NOT_NULL, _) => altered.not_null = false,
            (DomainChange::DEFAULT, _) => {
                altered.default = planner.default_of_domain(alter, &altered)?;
                self.change_defaults(planner, domain, altered.default.as_deref()).await?;
            }
            (DomainChange::RENAME, [name]) => {
                planner.rename_domain(domain, name).await?;
                return Ok("ALTER DOMAIN".into());
            }
            (DomainChange::RENAME_CONSTRAINT, [from, to]) => {
                check_free(&altered, to)?;
                let at = place_of(&altered, from)?;
                altered.checks[at].name = to.as_str().into();
            }
            (DomainChange::DROP_IF_EXISTS, [name]) if place_of(&altered, name).is_err() => {
                let passed = format!(
                    "constraint \"{name}\" of domain \"{}\" does not exist, skipping",
                    domain.name
                );
                return Ok(with_notices("ALTER DOMAIN", &[passed]));
            }
            (_, [name]) => {
                let at = place_of(&altered, name)?;
                altered.checks.remove(at);
            }
            _ => return not_impl_err!("this change of domain {} is not supported", domain.name),
        }
        planner.keep_domain(&altered).await?;
        if change == DomainChange::ADD {
            let is_not_null = altered.checks.len() == domain.checks.len();
            self.check_columns(planner, &altered, is_not_null).await?;
        }
        Ok("ALTER DOMAIN".into())
    }

    /// Refuses a constraint that existing values violate.
    async fn check_columns(
        &self,
        planner: &StatementPlanner,
        domain: &DomainType,
        is_not_null: bool,
    ) -> Result<()> {
        let planner = &self.planner(&planner.transaction, true).await?;
        for (table, columns) in planner.columns_of_domain(domain).await? {
            let at = ResolvedTableReference {
                catalog: CATALOG.into(),
                schema: Arc::clone(&table.schema),
                table: Arc::clone(&table.name),
            };
            for column in columns {
                let sql = format!("NOT (domain_valid({}, {}))", quoted(&column), domain.oid);
                if !self.has_rows(planner, &at, parsed_expr(&sql)?).await? {
                    continue;
                }
                let (state, what) = match is_not_null {
                    true => (SqlState::NOT_NULL_VIOLATION, "null values"),
                    false => (SqlState::CHECK_VIOLATION, "values that violate the new constraint"),
                };
                let message =
                    format!("column \"{column}\" of table \"{}\" contains {what}", table.name);
                return Err(state.error(message));
            }
        }
        Ok(())
    }

    /// Gives columns that have the default of their domain its new one.
    async fn change_defaults(
        &self,
        planner: &StatementPlanner,
        domain: &DomainType,
        default: Option<&str>,
    ) -> Result<()> {
        let version = planner.transaction.statement(true).await?;
        let mut changes = Vec::new();
        for (table, columns) in planner.columns_of_domain(domain).await? {
            let stored = version.tables().find(|(id, _)| version.table_name(*id) == Some(&table));
            let Some((_, stored)) = stored else { continue };
            let definition = stored.definition();
            for column in columns {
                let at = definition.columns.index_of(&column)?;
                if definition.defaults[at] != domain.default {
                    continue;
                }
                let change = match default {
                    Some(default) => format!("SET DEFAULT {default}"),
                    None => "DROP DEFAULT".to_owned(),
                };
                let (schema, name) = (quoted(&table.schema), quoted(&table.name));
                changes.push(format!(
                    "ALTER TABLE {schema}.{name} ALTER COLUMN {} {change}",
                    quoted(&column)
                ));
            }
        }
        for sql in changes {
            let planner = self.planner(&planner.transaction, true).await?;
            if let Parsed::Statement(ast) = self.parse(&sql)?.statement
                && let Ast::AlterTable(alter) = *ast
            {
                self.alter(&planner, &alter).await?;
            }
        }
        Ok(())
    }
}

impl StatementPlanner {
    async fn create_domain(&self, create: &CreateDomain) -> Result<()> {
        let at = self.resolve_new(self.name(&create.name)?)?;
        let relation = relation_name(&at);
        self.check_free_type(&relation, &plain(&at)).await?;
        self.check_new_type(&relation)?;
        self.check_base(&create.data_type)?;
        let version = self.transaction.statement(true).await?;
        let mut domain = DomainType {
            schema: Arc::clone(&relation.schema),
            name: Arc::clone(&relation.name),
            oid: free_oid(&version),
            base: create.data_type.to_string().into(),
            not_null: false,
            default: None,
            checks: Vec::new(),
        };
        domain.default = self.default_of_domain(create, &domain)?;
        self.add_constraints(&mut domain, &create.constraints)?;
        self.keep_domain(&domain).await?;
        self.follow_new_type(&relation).await
    }

    async fn columns_of_domain(&self, domain: &DomainType) -> Result<ColumnsOf> {
        let version = self.transaction.statement(true).await?;
        let mut found = BTreeMap::new();
        for (id, table) in version.tables() {
            let Some(name) = version.table_name(id) else { continue };
            let fields = table.definition().columns.fields().iter();
            let fields = fields.filter(|field| domain_oid(field) == Some(domain.oid));
            let columns: Vec<String> = fields.map(|field| field.name().clone()).collect();
            if !columns.is_empty() {
                found.insert(name.clone(), columns);
            }
        }
        Ok(found)
    }

    async fn rename_domain(&self, domain: &DomainType, name: &str) -> Result<()> {
        let to = RelationName::new(Arc::clone(&domain.schema), name);
        self.check_free_type(&to, name).await?;
        let renamed = DomainType { name: Arc::clone(&to.name), ..domain.clone() };
        self.keep_text(owned(domain).entry_in(TYPES), None).await?;
        self.keep_domain(&renamed).await?;
        self.follow_definition(&CatalogChange::Rename { from: named(domain), to }).await
    }

    async fn keep_domain(&self, domain: &DomainType) -> Result<()> {
        self.keep_text(owned(domain).entry_in(TYPES), Some(domain.to_string())).await
    }

    fn check_domain_owner(&self, domain: &DomainType) -> Result<()> {
        let version = self.names.stored_version();
        match self.user.as_deref().is_none_or(|user| user.owns(&version, &owned(domain))) {
            true => Ok(()),
            false => Err(SqlState::INSUFFICIENT_PRIVILEGE
                .error(format!("must be owner of type {}", domain.name))),
        }
    }

    fn default_of_domain(
        &self,
        create: &CreateDomain,
        domain: &DomainType,
    ) -> Result<Option<Arc<str>>> {
        let Some(default) = &create.default else { return Ok(None) };
        let default = self.with_full_names(default, false)?;
        self.check_default_of_domain(&default, domain)?;
        Ok(Some(sql_text(&default).into()))
    }

    fn add_constraints(
        &self,
        domain: &mut DomainType,
        constraints: &[TableConstraint],
    ) -> Result<()> {
        for constraint in constraints {
            let TableConstraint::Check(check) = constraint else {
                return not_impl_err!("{constraint} of a domain; expected CHECK or NOT NULL");
            };
            let name = match &check.name {
                Some(name) if name.value == NOT_NULL => {
                    domain.not_null = true;
                    continue;
                }
                Some(name) => self.normalized(name),
                None => domain.free_name(),
            };
            check_free(domain, &name)?;
            self.check_condition(&check.expr, domain)?;
            let sql = sql_text(check.expr.as_ref()).into();
            domain.checks.push(DomainCheck { name: name.into(), sql });
        }
        Ok(())
    }

    fn constraint_name(&self, constraint: &TableConstraint) -> Option<String> {
        match constraint {
            TableConstraint::Check(check) => Some(self.normalized(check.name.as_ref()?)),
            _ => None,
        }
    }
}

fn check_free(domain: &DomainType, name: &str) -> Result<()> {
    match domain.checks.iter().any(|check| *check.name == *name) {
        true => stated_err!(
            DUPLICATE_OBJECT,
            "constraint \"{name}\" for domain \"{}\" already exists",
            domain.name
        ),
        false => Ok(()),
    }
}

fn place_of(domain: &DomainType, name: &str) -> Result<usize> {
    match domain.checks.iter().position(|check| *check.name == *name) {
        Some(at) => Ok(at),
        None => stated_err!(
            UNDEFINED_OBJECT,
            "constraint \"{name}\" of domain \"{}\" does not exist",
            domain.name
        ),
    }
}

fn named(domain: &DomainType) -> RelationName {
    RelationName::new(Arc::clone(&domain.schema), Arc::clone(&domain.name))
}

/// The object that carries its rights.
fn owned(domain: &DomainType) -> Owned {
    Owned::Relation(named(domain))
}
