//! CREATE INDEX, DROP INDEX and ALTER INDEX … RENAME TO. An index belongs to the definition of its table.

mod copied;
mod declared;
mod moments;
mod parts;
mod rebuilt;

use std::borrow::Cow;
use std::sync::Arc;

use atoll_store::database::{CatalogChange, DatabaseVersion, RelationName};
use atoll_store::table::{CatalogIndex, Index, TableDefinition, Unique};
use datafusion::common::{Result, TableReference, plan_err};
use datafusion::sql::sqlparser::ast::{
    AlterIndexOperation, CreateIndex, ObjectName, Statement as Ast,
};

use crate::session::Session;
use crate::session::ddl::alter::set_definition;
use crate::session::ddl::table_definition::{is_used, refuse_loose_keys};
use crate::session::plan::planner::StatementPlanner;
use crate::session::statement::command_tag::{missing, there, with_notices};
use crate::table::PlacedTable;
use atoll_sql_common::error::{SqlState, stated_err};
use atoll_sql_common::names::{plain, relation_name};
pub(in crate::session) use copied::CopiedIndexes;
pub(in crate::session) use declared::without_rows;
use declared::{
    catalog_index, check_keys, columns_named, method_of, name_parts, ordered_index, unique_index,
    unsupported,
};
pub(in crate::session) use parts::{comparable_text, joined_by_and};
pub(in crate::session) use rebuilt::{KeptIndex, RebuiltIndex};

/// An index by its place.
struct FoundIndex {
    /// Its table.
    table: RelationName,
    is_constraint: bool,
}

impl Session {
    /// Runs one of these statements; `None` for others.
    pub(in crate::session) async fn index_statement(
        &self,
        planner: &StatementPlanner,
        ast: &Ast,
    ) -> Result<Option<Cow<'static, str>>> {
        use datafusion::sql::sqlparser::ast::ObjectType;
        match ast {
            // On the heap: the futures of other statements are not larger for it.
            Ast::CreateIndex(create) => {
                Box::pin(self.create_index(planner, create)).await.map(Some)
            }
            Ast::Drop { object_type: ObjectType::Index, if_exists, names, cascade, .. } => {
                self.drop_indexes(planner, names, *if_exists, *cascade).await.map(Some)
            }
            Ast::AlterIndex { name, operation } => {
                let AlterIndexOperation::RenameIndex { index_name } = operation;
                self.rename_index(planner, name, index_name).await.map(Some)
            }
            _ => Ok(None),
        }
    }

    async fn create_index(
        &self,
        planner: &StatementPlanner,
        create: &CreateIndex,
    ) -> Result<Cow<'static, str>> {
        const TAG: &str = "CREATE INDEX";
        let at = relation_name(&planner.resolve(planner.name(&create.table_name)?));
        let wanted = match &create.name {
            Some(name) => Some(index_name(planner, name, &at)?),
            None => None,
        };
        let (planner, table) = self.locked(planner, &at).await?;
        let mut definition = TableDefinition::clone(table.definition());
        let version = planner.names.stored_version();
        let is_taken = |name: &String| is_taken(&version, &at.schema, name);
        if let Some(name) = wanted.as_ref().filter(|name| create.if_not_exists && is_taken(name)) {
            return Ok(with_notices(TAG, &[there("relation", name)]));
        }
        let method = method_of(create)?;
        let mut keys = Vec::with_capacity(create.columns.len());
        for column in &create.columns {
            keys.push(planner.declared_key(&table, column).await?);
        }
        if create.unique && method != "btree" {
            return stated_err!(
                FEATURE_NOT_SUPPORTED,
                "access method '{method}' does not support unique indexes"
            );
        }
        check_keys(&keys, &definition)?;
        let included = columns_named(&planner, &create.include, &definition)?;
        let name: Arc<str> = match wanted {
            Some(name) if is_taken(&name) => {
                return stated_err!(DUPLICATE_TABLE, "relation '{name}' already exists");
            }
            Some(name) => name.into(),
            None => {
                let parts = name_parts(&keys, &included, &definition);
                unused_name(&version, &at, &definition, &parts).into()
            }
        };
        let mut notices = Vec::new();
        if create.unique {
            let condition = match &create.predicate {
                Some(condition) => Some(planner.unique_condition(&table, condition).await?),
                None => None,
            };
            let nulls_not_distinct = create.nulls_distinct == Some(false);
            let unique = unique_index(name, keys)?;
            definition.uniques.push(Unique { included, condition, nulls_not_distinct, ..unique });
            refuse_loose_keys(&definition)?;
        } else {
            let condition = match &create.predicate {
                Some(condition) => Some(planner.checked_condition(&table, condition).await?.0),
                None => None,
            };
            match unsupported(method, &keys, &definition) {
                None => {
                    let index = ordered_index(name, keys)?;
                    let is_hash = method == "hash";
                    definition.indexes.push(Index { included, condition, is_hash, ..index });
                }
                Some(reason) => {
                    let index = catalog_index(name, method, keys);
                    definition.catalog_indexes.push(CatalogIndex { included, condition, ..index });
                    notices.push(format!(
                        "an index with {reason} holds no rows; scans answer its queries"
                    ));
                }
            }
        }
        set_definition(&planner, &table, definition).await?;
        Ok(with_notices(TAG, &notices))
    }

    async fn drop_indexes(
        &self,
        planner: &StatementPlanner,
        names: &[ObjectName],
        if_exists: bool,
        cascade: bool,
    ) -> Result<Cow<'static, str>> {
        let mut passed = Vec::new();
        for name in names {
            let (index, found) = find_index(planner, name)?;
            let Some(found) = found else {
                if !if_exists {
                    return Err(no_index(planner, name, &index)?);
                }
                if let Some(kind) = kind_of(planner, name)? {
                    return stated_err!(WRONG_OBJECT_TYPE, "'{index}' is a {kind}, not an index");
                }
                passed.push(missing("index", &index));
                continue;
            };
            if found.is_constraint {
                return stated_err!(
                    DEPENDENT_OBJECTS_STILL_EXIST,
                    "cannot drop index '{index}', which constraint '{index}' on table '{}' requires; drop it by ALTER \
                     TABLE … DROP CONSTRAINT",
                    found.table.name
                );
            }
            let (planner, table) = self.locked(planner, &found.table).await?;
            let mut definition = TableDefinition::clone(table.definition());
            check_references(&planner, &table, &definition, &index, cascade)?;
            let count = |it: &TableDefinition| {
                it.indexes.len() + it.catalog_indexes.len() + it.uniques.len()
            };
            let before = count(&definition);
            definition.indexes.retain(|it| *it.name != *index);
            definition.catalog_indexes.retain(|it| *it.name != *index);
            definition.uniques.retain(|it| *it.name != *index || !it.is_index);
            if count(&definition) == before {
                // Another session dropped it meanwhile.
                return stated_err!(UNDEFINED_OBJECT, "index \"{index}\" does not exist");
            }
            set_definition(&planner, &table, definition).await?;
        }
        Ok(with_notices("DROP INDEX", &passed))
    }

    async fn rename_index(
        &self,
        planner: &StatementPlanner,
        from: &ObjectName,
        to: &ObjectName,
    ) -> Result<Cow<'static, str>> {
        let (index, found) = find_index(planner, from)?;
        let Some(found) = found else { return Err(no_index(planner, from, &index)?) };
        let to = index_name(planner, to, &found.table)?;
        if is_taken(&planner.names.stored_version(), &found.table.schema, &to) {
            return stated_err!(DUPLICATE_TABLE, "relation '{to}' already exists");
        }
        let (planner, table) = self.locked(planner, &found.table).await?;
        let mut definition = TableDefinition::clone(table.definition());
        let uniques = definition.uniques.iter_mut().map(|unique| &mut unique.name);
        let indexes = definition.indexes.iter_mut().map(|index| &mut index.name);
        let in_catalog = definition.catalog_indexes.iter_mut().map(|index| &mut index.name);
        // A constraint is renamed with its index.
        for name in uniques.chain(indexes).chain(in_catalog).filter(|name| ***name == *index) {
            *name = to.as_str().into();
        }
        set_definition(&planner, &table, definition).await?;
        Ok("ALTER INDEX".into())
    }

    /// Locks a table; its state now that no one else changes it.
    async fn locked(
        &self,
        planner: &StatementPlanner,
        at: &RelationName,
    ) -> Result<(StatementPlanner, PlacedTable)> {
        let before = placed(planner, at)?;
        let (table, definition) = (before.id(), Arc::clone(before.definition()));
        // A role that may not change the table does not lock it.
        planner.check_definition(&CatalogChange::SetDefinition { table, definition })?;
        planner.lock_table(&before).await?;
        let planner = self.planner(&planner.transaction, true).await?;
        let table = placed(&planner, at)?;
        Ok((planner, table))
    }
}

fn placed(planner: &StatementPlanner, at: &RelationName) -> Result<PlacedTable> {
    let name = TableReference::partial(Arc::clone(&at.schema), Arc::clone(&at.name));
    let at = planner.resolve(name);
    match planner.names.table(&at)? {
        None => Err(SqlState::missing_table(&plain(&at))),
        Some(found) => match found.downcast_ref::<PlacedTable>() {
            Some(table) => Ok(table.clone()),
            None => stated_err!(
                WRONG_OBJECT_TYPE,
                "'{}' was not made by CREATE TABLE; only such tables can have indexes",
                plain(&at)
            ),
        },
    }
}

/// The name of an index in the schema of its table.
fn index_name(planner: &StatementPlanner, name: &ObjectName, at: &RelationName) -> Result<String> {
    match planner.name(name)? {
        TableReference::Bare { table } => Ok(table.to_string()),
        other => {
            let index = planner.resolve(other);
            match *index.schema == *at.schema {
                true => Ok(index.table.to_string()),
                false => plan_err!(
                    "index '{}' cannot be in another schema than its table",
                    plain(&index)
                ),
            }
        }
    }
}

/// Whether a relation or an index has a name.
fn is_taken(version: &DatabaseVersion, schema: &str, name: &str) -> bool {
    version.relation(&RelationName::new(schema, name)).is_some()
        || index_in(version, schema, name).is_some()
}

fn index_in(version: &DatabaseVersion, schema: &str, name: &str) -> Option<FoundIndex> {
    version.tables().find_map(|(id, table)| {
        let at = version.table_name(id).filter(|at| *at.schema == *schema)?;
        let definition = table.definition();
        let unique = definition.uniques.iter().find(|unique| *unique.name == *name);
        let mut names = definition.indexes.iter().map(|index| &index.name);
        let mut in_catalog = definition.catalog_indexes.iter().map(|index| &index.name);
        let is_index = names.any(|it| **it == *name) || in_catalog.any(|it| **it == *name);
        let is_constraint = unique.is_some_and(|unique| !unique.is_index);
        (is_index || unique.is_some()).then(|| FoundIndex { table: at.clone(), is_constraint })
    })
}

/// The index with a name, in its schema or the first one of the search path that has it.
fn find_index(
    planner: &StatementPlanner,
    name: &ObjectName,
) -> Result<(String, Option<FoundIndex>)> {
    let version = planner.names.stored_version();
    let at = planner.name(name)?;
    let index = at.table().to_owned();
    let found = match at.schema() {
        Some(_) => index_in(&version, &planner.resolve(at).schema, &index),
        None => {
            let mut schemas = planner.names.path().schemas();
            schemas.find_map(|schema| index_in(&version, schema, &index))
        }
    };
    Ok((index, found))
}

/// The kind of the relation that a name names.
fn kind_of(planner: &StatementPlanner, name: &ObjectName) -> Result<Option<&'static str>> {
    let at = relation_name(&planner.resolve(planner.name(name)?));
    Ok(planner.names.stored_version().relation(&at).map(|relation| relation.kind()))
}

fn no_index(
    planner: &StatementPlanner,
    name: &ObjectName,
    index: &str,
) -> Result<datafusion::common::DataFusionError> {
    Ok(match kind_of(planner, name)? {
        Some(kind) => {
            SqlState::WRONG_OBJECT_TYPE.error(format!("'{index}' is a {kind}, not an index"))
        }
        None => SqlState::UNDEFINED_OBJECT.error(format!("index \"{index}\" does not exist")),
    })
}

/// `t_a_b_idx`, with a number where that is taken, as in PostgreSQL.
fn unused_name(
    version: &DatabaseVersion,
    at: &RelationName,
    definition: &TableDefinition,
    parts: &[String],
) -> String {
    let name = format!("{}_{}_idx", at.name, parts.join("_"));
    let numbered = (1..).map(|number| format!("{name}{number}"));
    let mut names = std::iter::once(name.clone()).chain(numbered);
    let is_free =
        |name: &String| !is_taken(version, &at.schema, name) && !is_used(definition, name);
    names.find(is_free).unwrap_or(name)
}

/// Refuses to drop a unique index that foreign keys refer to.
fn check_references(
    planner: &StatementPlanner,
    table: &PlacedTable,
    definition: &TableDefinition,
    index: &str,
    cascade: bool,
) -> Result<()> {
    let version = planner.names.stored_version();
    let mut references = version.references_to(table.id());
    let dependent = references.find_map(|(child, _, key)| {
        let child = version.table(child)?;
        let referenced = key.referenced(child.definition(), definition)?;
        (*definition.uniques[referenced.unique].name == *index).then(|| Arc::clone(&key.name))
    });
    match dependent {
        None => Ok(()),
        Some(key) if cascade => stated_err!(
            FEATURE_NOT_SUPPORTED,
            "DROP INDEX … CASCADE of '{index}' would drop foreign key '{key}'; drop that first"
        ),
        Some(key) => stated_err!(
            DEPENDENT_OBJECTS_STILL_EXIST,
            "cannot drop index '{index}', which foreign key '{key}' requires; drop that first"
        ),
    }
}
