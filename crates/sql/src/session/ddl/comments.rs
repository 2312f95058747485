//! COMMENT ON tables, their columns, views, sequences and schemas: the owner's right, part of the transaction.

use atoll_store::database::{
    CatalogChange, DatabaseVersion, Relation, RelationName, is_temporary_schema,
};
use datafusion::common::{DataFusionError, Result, plan_err};
use datafusion::sql::sqlparser::ast::{
    AlterTableOperation, CommentObject, ObjectName, Statement as Ast,
};

use crate::catalog::ObjectComments;
use crate::role::rights::Owned;
use crate::session::plan::planner::StatementPlanner;
use atoll_sql_common::error::{SqlState, stated_err};
use atoll_sql_common::names::{COMMENTS, relation_name};

/// The target of a comment.
struct Commented {
    object: Owned,
    column: Option<String>,
    /// Its kind in the statement, as in [`Relation::kind`]; `schema` for a schema.
    kind: &'static str,
}

impl StatementPlanner {
    /// Runs COMMENT ON; `None` for other statements.
    pub(in crate::session) async fn comment(&self, ast: &Ast) -> Result<Option<&'static str>> {
        let Ast::Comment { object_type, object_name, comment, if_exists } = ast else {
            return Ok(None);
        };
        let Commented { object, column, kind } = self.commented(object_type, object_name)?;
        let version = self.names.stored_version();
        if !object.exists(&version) {
            return match if_exists {
                true => Ok(Some("COMMENT")),
                false => Err(missing(&object, kind, object_name)),
            };
        }
        check_kind(&version, &object, kind)?;
        if let Some(column) = &column {
            check_column(&version, &object, column)?;
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
        comments.set(column.as_deref(), comment.clone().filter(|comment| !comment.is_empty()));
        self.keep_comments(&object, &comments).await?;
        Ok(Some("COMMENT"))
    }

    fn commented(&self, of: &CommentObject, name: &ObjectName) -> Result<Commented> {
        let relation = |name: &ObjectName| {
            Ok::<_, DataFusionError>(relation_name(&self.resolve(self.name(name)?)))
        };
        let kind = match of {
            CommentObject::Table => "table",
            CommentObject::View => "view",
            CommentObject::Sequence => "sequence",
            CommentObject::Schema => {
                let object = Owned::Schema(self.schema_name(name)?);
                return Ok(Commented { object, column: None, kind: "schema" });
            }
            CommentObject::Column => {
                let mut table = name.clone();
                let column = table.0.pop().and_then(|part| part.as_ident().cloned());
                let Some(column) = column.filter(|_| !table.0.is_empty()) else {
                    return plan_err!("expected COMMENT ON COLUMN table.column instead of {name}");
                };
                let object = Owned::Relation(relation(&table)?);
                let column = Some(self.normalized(&column));
                return Ok(Commented { object, column, kind: "table" });
            }
            other => {
                return stated_err!(
                    FEATURE_NOT_SUPPORTED,
                    "COMMENT ON {other} is not supported; expected TABLE, COLUMN, VIEW, SEQUENCE or SCHEMA"
                );
            }
        };
        Ok(Commented { object: Owned::Relation(relation(name)?), column: None, kind })
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

    /// Updates the comments on columns after ALTER TABLE.
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
                    after.set(Some(&self.normalized(new_column_name)), comment);
                }
                AlterTableOperation::DropColumn { column_names, .. } => {
                    column_names
                        .iter()
                        .for_each(|name| after.set(Some(&self.normalized(name)), None));
                }
                _ => {}
            }
        }
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

fn check_column(version: &DatabaseVersion, object: &Owned, column: &str) -> Result<()> {
    let Owned::Relation(name) = object else { return Ok(()) };
    let table = match version.relation(name) {
        Some(Relation::Table(id)) => version.table(*id),
        _ => None,
    };
    let has_it = table.is_some_and(|it| it.definition().columns.field_with_name(column).is_ok());
    match has_it {
        true => Ok(()),
        false => Err(SqlState::UNDEFINED_COLUMN
            .error(format!("column '{column}' of table '{}' does not exist", name.name))),
    }
}

fn missing(object: &Owned, kind: &str, name: &ObjectName) -> DataFusionError {
    let state = match object {
        Owned::Relation(_) => SqlState::UNDEFINED_TABLE,
        Owned::Schema(_) => SqlState::UNDEFINED_SCHEMA,
    };
    state.error(format!("{kind} '{name}' does not exist"))
}
