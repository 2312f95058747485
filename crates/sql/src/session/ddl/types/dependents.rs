//! DROP TYPE, and the columns and views that use a type: DROP is refused if there are any, and CASCADE drops them too.

use std::collections::BTreeMap;
use std::fmt::Write;

use atoll_store::database::{RelationName, is_temporary_schema};
use datafusion::common::Result;
use datafusion::sql::parser::Statement as Parsed;
use datafusion::sql::sqlparser::ast::Statement as Ast;

use crate::catalog::{domains, user_types};
use crate::session::Session;
use crate::session::dml::change::quoted;
use crate::session::plan::planner::StatementPlanner;
use atoll_sql_common::error::SqlState;
use atoll_sql_common::names::SCHEMA;
use atoll_sql_common::user_type::{EnumType, enum_within};

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
        let columns = planner.columns_of_type(of).await?;
        if let (false, false) = (columns.is_empty(), cascade) {
            return Err(needed(&of.name, columns_lines(&of.name, &columns)));
        }
        let mut passed = Vec::new();
        for (table, names) in &columns {
            // Views that read the columns of the one before are gone.
            let planner = self.planner(&planner.transaction, true).await?;
            passed.extend(self.drop_typed_columns(&planner, table, names).await?);
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
        let mut sql = format!("ALTER TABLE {}.{}", quoted(&table.schema), quoted(&table.name));
        for (at, column) in columns.iter().enumerate() {
            let comma = if at == 0 { "" } else { "," };
            let _ = write!(sql, "{comma} DROP COLUMN {} CASCADE", quoted(column));
        }
        let Parsed::Statement(ast) = self.parse(&sql)?.statement else { return Ok(Vec::new()) };
        let Ast::AlterTable(alter) = *ast else { return Ok(Vec::new()) };
        self.alter(planner, &alter).await?;
        let dropped = |column: &String| {
            format!("drop cascades to column {column} of table {}", shown_table(table))
        };
        Ok(columns.iter().map(dropped).collect())
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
    async fn columns_of_type(&self, of: &EnumType) -> Result<ColumnsOf> {
        let version = self.transaction.statement(true).await?;
        let mut found = ColumnsOf::new();
        for (id, table) in version.tables() {
            let Some(name) = version.table_name(id) else { continue };
            let fields = table.definition().columns.fields();
            let typed = fields.iter().filter(|it| enum_within(it.data_type()) == Some(of.oid));
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
        format!("column {column} of table {} depends on type {of}", shown_table(table))
    };
    each.map(line).collect()
}

fn shown_table(table: &RelationName) -> String {
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
