//! CREATE, ALTER and DROP TYPE.
//!
//! A type is its text under its name in a hidden schema (`catalog/user_types.rs`). Columns carry its OID, so that it can
//! be renamed.

mod dependents;
mod domain_definition;
mod domains;
mod stored_texts;

use std::borrow::Cow;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::Arc;

use atoll_store::database::{CatalogChange, DatabaseVersion, RelationName, StoredStatement};
use datafusion::arrow::datatypes::{DataType, Field};
use datafusion::common::{Result, not_impl_err};
use datafusion::sql::sqlparser::ast::{
    AlterType, AlterTypeAddValue, AlterTypeAddValuePosition, AlterTypeOperation, AlterTypeRename,
    AlterTypeRenameValue, Ident, ObjectName, ObjectType, Statement as Ast,
    UserDefinedTypeRepresentation,
};

use crate::catalog::{domains, user_types};
use crate::role::rights::Owned;
use crate::session::Session;
use crate::session::plan::planner::StatementPlanner;
use crate::session::statement::command_tag::{missing, with_notices};
use atoll_sql_common::error::{SqlState, stated_err};
use atoll_sql_common::names::{TYPES, plain, relation_name};
use atoll_sql_common::pg_type::{USER_TYPE_OIDS, domain_oid, enum_of, is_varchar, type_named};
use atoll_sql_common::user_type::{DomainType, EnumType, Neighbor, enum_oid};

impl Session {
    /// Runs CREATE, ALTER and DROP TYPE; `None` for other statements.
    pub(in crate::session) async fn user_type(
        &self,
        planner: &StatementPlanner,
        ast: &Ast,
    ) -> Result<Option<Cow<'static, str>>> {
        match ast {
            Ast::CreateType { name, representation } => {
                if let Some(UserDefinedTypeRepresentation::Range { .. }) = representation {
                    return not_impl_err!(
                        "CREATE TYPE … AS RANGE is not supported; use int4range, int8range, numrange, daterange, \
                         tsrange or tstzrange, or a column for each bound"
                    );
                }
                let Some(UserDefinedTypeRepresentation::Enum { labels }) = representation else {
                    return not_impl_err!(
                        "CREATE TYPE of other types than ENUM is not supported; use columns, or a STRUCT"
                    );
                };
                planner.create_enum(name, labels).await?;
                Ok(Some("CREATE TYPE".into()))
            }
            Ast::AlterType(alter) => {
                let of = planner.user_type_named(&alter.name)?;
                let tag = planner.alter_type(alter).await?;
                if let (Some(of), AlterTypeOperation::RenameValue(labels)) = (of, &alter.operation)
                {
                    self.rename_label_in_arrays(planner, &of, labels).await?;
                }
                Ok(Some(tag))
            }
            Ast::Drop { object_type: ObjectType::Type, if_exists, names, cascade, .. } => {
                let mut passed = Vec::new();
                for name in names {
                    if let Some(domain) = planner.domain_named(name)? {
                        passed.extend(self.drop_domain(planner, &domain, *cascade).await?);
                        continue;
                    }
                    let Some(of) = planner.user_type_named(name)? else {
                        if *if_exists {
                            passed.push(missing("type", planner.name(name)?));
                            continue;
                        }
                        return Err(unknown(name));
                    };
                    passed.extend(self.drop_type(planner, &of, *cascade).await?);
                }
                Ok(Some(with_notices("DROP TYPE", &passed)))
            }
            _ => Ok(None),
        }
    }
}

impl StatementPlanner {
    /// The type that a name means.
    fn user_type_named(&self, name: &ObjectName) -> Result<Option<Arc<EnumType>>> {
        let name = self.name(name)?;
        let types = self.names.user_types();
        Ok(types.named(name.schema(), name.table()).cloned())
    }

    /// The domain that a name means.
    fn domain_named(&self, name: &ObjectName) -> Result<Option<Arc<DomainType>>> {
        let name = self.name(name)?;
        let types = self.names.user_types();
        Ok(types.domain(name.schema(), name.table()).cloned())
    }

    /// The type in the declaration of a column, if the type of its values does not tell: one of a user, TEXT or VARCHAR.
    pub(in crate::session) fn declared_type_text(&self, field: &Field) -> Option<String> {
        self.user_type_text(field).or_else(|| text_type(field))
    }

    /// The name of a type of a user in declarations of columns; `None` for other types.
    fn user_type_text(&self, field: &Field) -> Option<String> {
        let types = self.names.user_types();
        if let Some(domain) = domain_oid(field).and_then(|oid| types.domain_numbered(oid)) {
            return Some(types.shown_domain(domain));
        }
        let of = types.numbered(enum_of(field)?)?;
        let list = if enum_oid(field.data_type()).is_none() { "[]" } else { "" };
        Some(format!("{}{list}", of.shown(types.is_visible(of))))
    }

    async fn create_enum(&self, name: &ObjectName, labels: &[Ident]) -> Result<()> {
        let at = self.resolve_new(self.name(name)?)?;
        let relation = relation_name(&at);
        self.check_free_type(&relation, &plain(&at)).await?;
        self.check_new_type(&relation)?;
        let version = self.transaction.statement(true).await?;
        let labels = labels.iter().map(|label| label.value.clone());
        let schema = Arc::clone(&relation.schema);
        let made = EnumType::new(schema, Arc::clone(&relation.name), free_oid(&version), labels)?;
        self.keep_type(&made).await?;
        self.follow_new_type(&relation).await
    }

    /// Refuses a new type whose name, shown like this, is taken.
    async fn check_free_type(&self, name: &RelationName, shown: &str) -> Result<()> {
        let version = self.transaction.statement(true).await?;
        if is_type(&version, name) || version.relation(name).is_some() {
            return stated_err!(DUPLICATE_OBJECT, "type '{shown}' already exists");
        }
        match type_named(&name.name) {
            Some(_) => stated_err!(
                DUPLICATE_OBJECT,
                "type '{}' is built in; give the new type another name",
                name.name
            ),
            None => Ok(()),
        }
    }

    /// Refuses a new type in a schema that does not exist, or where the user may create none.
    fn check_new_type(&self, relation: &RelationName) -> Result<()> {
        self.check_definition(&creation_of(relation))?;
        if self.names.temporary_schema() == Some(&relation.schema) {
            return not_impl_err!("CREATE TYPE in pg_temp is not supported; leave out the schema");
        }
        match self.names.has_schema(&relation.schema) {
            true => Ok(()),
            false => stated_err!(
                UNDEFINED_SCHEMA,
                "schema \"{}\" does not exist; create it with CREATE SCHEMA",
                relation.schema
            ),
        }
    }

    /// Makes the user the owner of a new type.
    async fn follow_new_type(&self, relation: &RelationName) -> Result<()> {
        self.follow_definition(&creation_of(relation)).await
    }

    async fn alter_type(&self, alter: &AlterType) -> Result<Cow<'static, str>> {
        let Some(of) = self.user_type_named(&alter.name)? else { return Err(unknown(&alter.name)) };
        self.check_type_owner(&of)?;
        let mut altered = EnumType::clone(&of);
        match &alter.operation {
            AlterTypeOperation::Rename(AlterTypeRename { new_name }) => {
                return self.rename_type(&of, self.normalized(new_name)).await;
            }
            AlterTypeOperation::AddValue(AlterTypeAddValue { if_not_exists, value, position }) => {
                if *if_not_exists && of.code(&value.value).is_some() {
                    let passed = format!("enum label \"{}\" already exists, skipping", value.value);
                    return Ok(with_notices("ALTER TYPE", &[passed]));
                }
                let neighbor = position.as_ref().map(|position| match position {
                    AlterTypeAddValuePosition::Before(other) => Neighbor::Before(&other.value),
                    AlterTypeAddValuePosition::After(other) => Neighbor::After(&other.value),
                });
                altered.add(&value.value, neighbor)?;
            }
            AlterTypeOperation::RenameValue(AlterTypeRenameValue { from, to }) => {
                altered.rename(&from.value, &to.value)?;
                self.rename_label_in_defaults(&of, &from.value, &to.value).await?;
                self.check_label_is_unnamed(&of, &from.value).await?;
            }
        }
        self.keep_type(&altered).await?;
        Ok("ALTER TYPE".into())
    }

    /// Refuses a new relation with the name of a type, as it would have the type's rights.
    pub(in crate::session) fn check_type_names(&self, change: &CatalogChange) -> Result<()> {
        let name = match change {
            CatalogChange::CreateTable { name, .. }
            | CatalogChange::CreateView { name, .. }
            | CatalogChange::CreateSequence { name, .. }
            | CatalogChange::Rename { to: name, .. } => name,
            _ => return Ok(()),
        };
        match is_type(&self.names.stored_version(), name) {
            true => stated_err!(DUPLICATE_OBJECT, "type '{}' already exists", name.name),
            false => Ok(()),
        }
    }

    async fn rename_type(&self, of: &EnumType, name: String) -> Result<Cow<'static, str>> {
        let (from, to) = (type_name(of), RelationName::new(Arc::clone(&of.schema), name));
        self.check_free_type(&to, &to.name).await?;
        let renamed = EnumType { name: Arc::clone(&to.name), ..of.clone() };
        self.keep_text(owned(of).entry_in(TYPES), None).await?;
        self.keep_type(&renamed).await?;
        self.follow_definition(&CatalogChange::Rename { from, to }).await?;
        Ok("ALTER TYPE".into())
    }

    /// Stores a type instead of the one of its name.
    async fn keep_type(&self, of: &EnumType) -> Result<()> {
        self.keep_text(owned(of).entry_in(TYPES), Some(of.to_string())).await
    }

    /// Removes a type that nothing uses.
    async fn forget_type(&self, of: &EnumType) -> Result<()> {
        self.keep_text(owned(of).entry_in(TYPES), None).await?;
        self.follow_definition(&CatalogChange::Drop { name: type_name(of) }).await
    }

    fn check_type_owner(&self, of: &EnumType) -> Result<()> {
        let version = self.names.stored_version();
        match self.user.as_deref().is_none_or(|user| user.owns(&version, &owned(of))) {
            true => Ok(()),
            false => Err(SqlState::INSUFFICIENT_PRIVILEGE
                .error(format!("must be owner of type {}", of.name))),
        }
    }
}

/// Whether a name is that of a type of a user.
fn is_type(version: &DatabaseVersion, name: &RelationName) -> bool {
    let is_it = |schema: &str, of: &str| *name.schema == *schema && *name.name == *of;
    user_types(version).iter().any(|of| is_it(&of.schema, &of.name))
        || domains(version).iter().any(|of| is_it(&of.schema, &of.name))
}

fn type_name(of: &EnumType) -> RelationName {
    RelationName::new(Arc::clone(&of.schema), Arc::clone(&of.name))
}

/// The object that carries its rights.
fn owned(of: &EnumType) -> Owned {
    Owned::Relation(type_name(of))
}

/// The change whose rights the creation of a type needs: that of another relation of its name.
fn creation_of(name: &RelationName) -> CatalogChange {
    let (sql, schema, options) = ("".into(), "".into(), "".into());
    let statement = Arc::new(StoredStatement { sql, schema, options });
    CatalogChange::CreateExternal { name: name.clone(), statement }
}

/// An OID that no type has. It is random: transactions that do not see each other create types at the same time.
fn free_oid(version: &DatabaseVersion) -> u32 {
    let enums = user_types(version).into_iter().map(|of| of.oid);
    let taken: Vec<u32> = enums.chain(domains(version).iter().map(|of| of.oid)).collect();
    let count = u64::from((USER_TYPE_OIDS.end - USER_TYPE_OIDS.start) / 2);
    loop {
        let random = RandomState::new().build_hasher().finish() % count;
        let oid = USER_TYPE_OIDS.start + 2 * u32::try_from(random).unwrap_or_default();
        if !taken.contains(&oid) {
            return oid;
        }
    }
}

fn unknown(name: &ObjectName) -> datafusion::common::DataFusionError {
    SqlState::UNDEFINED_OBJECT.error(format!("type \"{name}\" does not exist"))
}

/// TEXT, VARCHAR without a length, or arrays of them. The CHECK constraints of other marked columns tell their types.
fn text_type(field: &Field) -> Option<String> {
    let name = match field.metadata().is_empty() {
        true => "TEXT",
        false if is_varchar(field) => "VARCHAR",
        false => return None,
    };
    let (mut of, mut brackets) = (field.data_type(), String::new());
    while let DataType::List(item) = of {
        of = item.data_type();
        brackets.push_str("[]");
    }
    of.is_string().then(|| format!("{name}{brackets}"))
}
