//! DROP TYPE, and the columns and views that use a type: DROP is refused if there are any, and CASCADE drops them too.

use std::collections::BTreeMap;

use atoll_store::database::{RelationName, is_temporary_schema};
use datafusion::arrow::datatypes::Field;
use datafusion::common::Result;
use datafusion::sql::parser::Statement as Parsed;
use datafusion::sql::sqlparser::ast::{AlterTypeRenameValue, Ident, Statement as Ast};

use super::stored_texts::TypedText;
use crate::catalog::{domains, user_types};
use crate::session::Session;
use crate::session::dml::change::quoted;
use crate::session::plan::planner::StatementPlanner;
use atoll_sql_common::error::SqlState;
use atoll_sql_common::names::SCHEMA;
use atoll_sql_common::pg_type::{array_of_enum, enum_of};
use atoll_sql_common::user_type::EnumType;

/// The columns of a type, by table.
pub(super) type ColumnsOf = BTreeMap<RelationName, Vec<String>>;

impl Session {
    /// Drops a type; the notices about dependent objects that were dropped.
    pub(super) async fn drop_type(
        &self,
        planner: &StatementPlanner,
        of: &EnumType,
        cascade: bool,
    ) -> Result<Vec<String>> {
        planner.check_type_owner(of)?;
        let (columns, texts) =
            (planner.columns_of_type(of, enum_of).await?, planner.texts_with_type(of).await?);
        if !cascade && (!columns.is_empty() || !texts.is_empty()) {
            let line = |text: &TypedText| format!("{} depends on type {}", text.shown, of.name);
            let lines = columns_lines(&of.name, &columns).into_iter();
            return Err(needed(&of.name, lines.chain(texts.iter().map(line)).collect()));
        }
        let mut passed = Vec::new();
        for text in texts {
            self.alter_dependent(planner, &text.table, &text.removal).await?;
            passed.push(format!("drop cascades to {}", text.shown));
        }
        for (table, names) in &columns {
            passed.extend(self.drop_typed_columns(planner, table, names).await?);
        }
        let planner = self.planner(&planner.transaction, true).await?;
        let views = planner.planned_ones(planner.all_views()?).await;
        planner.forget_type(of).await?;
        let after = self.planner(&planner.transaction, true).await?;
        let lost = after.without_planned(views).await;
        if lost.is_empty() || cascade {
            passed.extend(self.drop_views(&after, lost).await?);
            return Ok(passed);
        }
        let line = |name: String| format!("view {name} depends on type {}", of.name);
        Err(needed(&of.name, lost.iter().map(|view| line(view.shown())).collect()))
    }

    pub(super) async fn drop_typed_columns(
        &self,
        planner: &StatementPlanner,
        table: &RelationName,
        columns: &[String],
    ) -> Result<Vec<String>> {
        let parts = columns.iter().map(|name| format!("DROP COLUMN {} CASCADE", quoted(name)));
        let parts: Vec<String> = parts.collect();
        self.alter_dependent(planner, table, &parts.join(", ")).await?;
        let table = shown(table);
        let dropped = |name| format!("drop cascades to column {name} of table {table}");
        Ok(columns.iter().map(dropped).collect())
    }

    /// Writes the new name of a label into the columns of arrays of its type.
    pub(super) async fn rename_label_in_arrays(
        &self,
        planner: &StatementPlanner,
        of: &EnumType,
        labels: &AlterTypeRenameValue,
    ) -> Result<()> {
        let literal = |label: &Ident| format!("'{}'", label.value.replace('\'', "''"));
        let (from, to, name) = (literal(&labels.from), literal(&labels.to), of.shown(false));
        for (table, columns) in planner.columns_of_type(of, array_of_enum).await? {
            let parts = columns.iter().map(|column| {
                let column = quoted(column);
                format!(
                    "ALTER COLUMN {column} SET DATA TYPE {name}[] \
                     USING array_replace({column}::TEXT[], {from}, {to})::{name}[]"
                )
            });
            let parts: Vec<String> = parts.collect();
            self.alter_dependent(planner, &table, &parts.join(", ")).await?;
        }
        Ok(())
    }

    /// Runs parts of ALTER TABLE on a table that uses a type.
    async fn alter_dependent(
        &self,
        planner: &StatementPlanner,
        table: &RelationName,
        parts: &str,
    ) -> Result<()> {
        let name = format!("{}.{}", quoted(&table.schema), quoted(&table.name));
        let parsed = self.parse(&format!("ALTER TABLE {name} {parts}"))?.statement;
        let Parsed::Statement(ast) = parsed else { return Ok(()) };
        let Ast::AlterTable(alter) = *ast else { return Ok(()) };
        // Views that read what was dropped before are gone.
        let planner = self.planner(&planner.transaction, true).await?;
        Box::pin(self.alter(&planner, &alter)).await?;
        Ok(())
    }

    /// Drops the types of a schema that is dropped.
    pub(in crate::session) async fn drop_types_of_schema(
        &self,
        planner: &StatementPlanner,
        schema: &str,
    ) -> Result<Vec<String>> {
        let version = planner.transaction.statement(true).await?;
        let mut passed = Vec::new();
        for of in user_types(&version).iter().filter(|of| &*of.schema == schema) {
            let planner = self.planner(&planner.transaction, true).await?;
            passed.extend(self.drop_type(&planner, of, true).await?);
        }
        for of in domains(&version).iter().filter(|of| &*of.schema == schema) {
            let planner = self.planner(&planner.transaction, true).await?;
            passed.extend(self.drop_domain(&planner, of, true).await?);
        }
        Ok(passed)
    }
}

impl StatementPlanner {
    /// The columns whose type, by this function, is a type.
    async fn columns_of_type(
        &self,
        of: &EnumType,
        type_of: fn(&Field) -> Option<u32>,
    ) -> Result<ColumnsOf> {
        let version = self.transaction.statement(true).await?;
        let mut found = ColumnsOf::new();
        for (id, table) in version.tables() {
            let Some(name) = version.table_name(id) else { continue };
            let fields = table.definition().columns.fields();
            let typed = fields.iter().filter(|it| type_of(it) == Some(of.oid));
            let names: Vec<String> = typed.map(|field| field.name().clone()).collect();
            if !names.is_empty() {
                found.insert(name.clone(), names);
            }
        }
        Ok(found)
    }
}

pub(super) fn columns_lines(of: &str, columns: &ColumnsOf) -> Vec<String> {
    let each = columns.iter().flat_map(|(table, names)| names.iter().map(move |it| (table, it)));
    let line = |(table, column): (&RelationName, &String)| {
        format!("column {column} of table {} depends on type {of}", shown(table))
    };
    each.map(line).collect()
}

pub(super) fn shown(table: &RelationName) -> String {
    match &*table.schema {
        SCHEMA => table.name.to_string(),
        schema if is_temporary_schema(schema) => table.name.to_string(),
        schema => format!("{schema}.{}", table.name),
    }
}

pub(super) fn needed(of: &str, lines: Vec<String>) -> datafusion::common::DataFusionError {
    SqlState::DEPENDENT_OBJECTS_STILL_EXIST.detailed(
        format!("cannot drop type {of} because other objects depend on it"),
        lines.join("\n"),
        "Use DROP ... CASCADE to drop the dependent objects too.",
    )
}
