//! COMMENT ON tables, their columns and constraints, views, sequences and schemas: the owner's right, part of the transaction.

use atoll_store::database::{
    CatalogChange, DatabaseVersion, Relation, RelationName, is_temporary_schema,
};
use atoll_store::table::TableDefinition;
use datafusion::common::{DataFusionError, Result, plan_err};
use datafusion::sql::sqlparser::ast::{
    AlterTableOperation, CommentObject, ObjectName, ObjectNamePart, Statement as Ast,
};

use crate::catalog::{CommentedPart, ObjectComments};
use crate::role::rights::Owned;
use crate::session::plan::planner::StatementPlanner;
use atoll_sql_common::error::{SqlState, stated_err};
use atoll_sql_common::names::{COMMENTS, relation_name};
use atoll_sql_parse::parse::CONSTRAINT;

/// The target of a comment.
struct Commented {
    object: Owned,
    part: Option<CommentedPart>,
    /// Its kind in the statement, as in [`Relation::kind`]; `schema` for a schema.
    kind: &'static str,
}

impl StatementPlanner {
    /// Runs COMMENT ON; `None` for other statements.
    pub(in crate::session) async fn comment(&self, ast: &Ast) -> Result<Option<&'static str>> {
        let Ast::Comment { object_type, object_name, comment, if_exists } = ast else {
            return Ok(None);
        };
        let Commented { object, part, kind } = self.commented(object_type, object_name)?;
        let version = self.names.stored_version();
        if !object.exists(&version) {
            return match if_exists {
                true => Ok(Some("COMMENT")),
                false => Err(missing(&object, kind, object_name)),
            };
        }
        check_kind(&version, &object, kind)?;
        if let Some(part) = &part {
            check_part(&version, &object, part)?;
        }
        if let Some(user) = self.user.as_deref()
            && !self.is_temporary(&object)
            && !user.owns(&version, &object)
        {
            let message = format!("must be owner of {}", object.named(&version));
            return Err(SqlState::INSUFFICIENT_PRIVILEGE.error(message));
        }
        let mut comments = self.comments_of(&object).await?;
        // An empty comment removes it, as in PostgreSQL.
        comments.set(part.as_ref(), comment.clone().filter(|comment| !comment.is_empty()));
        self.keep_comments(&object, &comments).await?;
        Ok(Some("COMMENT"))
    }

    fn commented(&self, of: &CommentObject, name: &ObjectName) -> Result<Commented> {
        let relation = |name: &ObjectName| {
            Ok::<_, DataFusionError>(relation_name(&self.resolve(self.name(name)?)))
        };
        let kind = match of {
            CommentObject::Table | CommentObject::MaterializedView => "table",
            CommentObject::View => "view",
            CommentObject::Sequence => "sequence",
            CommentObject::Schema => {
                let object = Owned::Schema(self.schema_name(name)?);
                return Ok(Commented { object, part: None, kind: "schema" });
            }
            CommentObject::Column => {
                let mut table = name.clone();
                let column = table.0.pop().and_then(|part| part.as_ident().cloned());
                let Some(column) = column.filter(|_| !table.0.is_empty()) else {
                    return plan_err!("expected COMMENT ON COLUMN table.column instead of {name}");
                };
                let name = self.normalized(&column);
                let is_constraint = |part: &mut ObjectNamePart| {
                    part.as_ident().is_some_and(|part| part.value == CONSTRAINT)
                };
                let part = match table.0.pop_if(is_constraint) {
                    Some(_) => CommentedPart::Constraint(name),
                    None => CommentedPart::Column(name),
                };
                let object = Owned::Relation(relation(&table)?);
                return Ok(Commented { object, part: Some(part), kind: "table" });
            }
            other => {
                return stated_err!(
                    FEATURE_NOT_SUPPORTED,
                    "COMMENT ON {other} is not supported; expected TABLE, COLUMN, CONSTRAINT, VIEW, SEQUENCE or SCHEMA"
                );
            }
        };
        Ok(Commented { object: Owned::Relation(relation(name)?), part: None, kind })
    }

    /// Updates the comments after a change of definitions.
    pub(in crate::session) async fn follow_with_comments(
        &self,
        change: &CatalogChange,
    ) -> Result<()> {
        let nothing = ObjectComments::default();
        match change {
            // A temporary table that its transaction has dropped leaves its comments behind.
            CatalogChange::CreateTable { name, .. } if is_temporary_schema(&name.schema) => {
                self.keep_comments(&Owned::Relation(name.clone()), &nothing).await
            }
            CatalogChange::Drop { name } => {
                self.keep_comments(&Owned::Relation(name.clone()), &nothing).await
            }
            CatalogChange::DropSchema { name } => {
                self.keep_comments(&Owned::Schema(name.to_string()), &nothing).await
            }
            CatalogChange::Rename { from, to } => {
                let (from, to) = (Owned::Relation(from.clone()), Owned::Relation(to.clone()));
                let comments = self.comments_of(&from).await?;
                self.keep_comments(&from, &nothing).await?;
                self.keep_comments(&to, &comments).await
            }
            _ => Ok(()),
        }
    }

    /// Updates the comments on columns and constraints after ALTER TABLE.
    pub(in crate::session) async fn follow_columns(
        &self,
        table: &RelationName,
        operations: &[AlterTableOperation],
    ) -> Result<()> {
        let object = Owned::Relation(table.clone());
        let before = self.comments_of(&object).await?;
        let mut after = before.clone();
        for operation in operations {
            match operation {
                AlterTableOperation::RenameColumn { old_column_name, new_column_name } => {
                    let comment = after.columns.remove(&self.normalized(old_column_name));
                    let new = CommentedPart::Column(self.normalized(new_column_name));
                    after.set(Some(&new), comment);
                }
                AlterTableOperation::DropColumn { column_names, .. } => {
                    for name in column_names {
                        after.columns.remove(&self.normalized(name));
                    }
                }
                AlterTableOperation::RenameConstraint { old_name, new_name } => {
                    let comment = after.constraints.remove(&self.normalized(old_name));
                    let new = CommentedPart::Constraint(self.normalized(new_name));
                    after.set(Some(&new), comment);
                }
                _ => {}
            }
        }
        let version = self.transaction.statement(true).await?;
        let names = match version.relation(table) {
            Some(Relation::Table(id)) => {
                version.table(*id).map(|table| constraint_names(table.definition()))
            }
            _ => None,
        };
        // Constraints go with their columns, too.
        after.constraints.retain(|name, _| names.iter().flatten().any(|kept| kept == name));
        if before == after { Ok(()) } else { self.keep_comments(&object, &after).await }
    }

    async fn comments_of(&self, object: &Owned) -> Result<ObjectComments> {
        let version = self.transaction.statement(true).await?;
        Ok(ObjectComments::for_object(&version, object))
    }

    /// Stores these comments instead of the existing ones.
    async fn keep_comments(&self, object: &Owned, comments: &ObjectComments) -> Result<()> {
        let text = comments.is_some().then(|| comments.to_string());
        self.keep_text(object.entry_in(COMMENTS), text).await
    }
}

/// Refuses a comment on an object of another kind.
fn check_kind(version: &DatabaseVersion, object: &Owned, kind: &str) -> Result<()> {
    let Owned::Relation(name) = object else { return Ok(()) };
    match version.relation(name).map(Relation::kind) {
        Some(found) if found != kind => Err(SqlState::WRONG_OBJECT_TYPE
            .error(format!("'{}' is a {found}; expected a {kind}", name.name))),
        _ => Ok(()),
    }
}

fn check_part(version: &DatabaseVersion, object: &Owned, part: &CommentedPart) -> Result<()> {
    let Owned::Relation(name) = object else { return Ok(()) };
    let table = match version.relation(name) {
        Some(Relation::Table(id)) => version.table(*id),
        _ => None,
    };
    let definition = table.map(|table| table.definition());
    let (has_it, state, message) = match part {
        CommentedPart::Column(column) => (
            definition.is_some_and(|it| it.columns.field_with_name(column).is_ok()),
            SqlState::UNDEFINED_COLUMN,
            format!("column \"{column}\" of relation \"{}\" does not exist", name.name),
        ),
        CommentedPart::Constraint(constraint) => (
            definition.is_some_and(|it| constraint_names(it).contains(constraint)),
            SqlState::UNDEFINED_OBJECT,
            format!("constraint \"{constraint}\" for table \"{}\" does not exist", name.name),
        ),
    };
    if has_it { Ok(()) } else { Err(state.error(message)) }
}

/// The names of all constraints of a table.
fn constraint_names(definition: &TableDefinition) -> Vec<String> {
    let uniques = definition.uniques.iter().filter(|unique| !unique.is_index);
    let uniques = uniques.map(|unique| &unique.name);
    let checks = definition.checks.iter().map(|check| &check.name);
    let foreign_keys = definition.foreign_keys.iter().map(|key| &key.name);
    uniques.chain(checks).chain(foreign_keys).map(ToString::to_string).collect()
}

fn missing(object: &Owned, kind: &str, name: &ObjectName) -> DataFusionError {
    let state = match object {
        Owned::Relation(_) => SqlState::UNDEFINED_TABLE,
        Owned::Schema(_) => SqlState::UNDEFINED_SCHEMA,
    };
    state.error(format!("{kind} \"{name}\" does not exist"))
}
