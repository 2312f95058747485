//! `CREATE TABLE t (LIKE u INCLUDING ALL)`: the columns of another table with their declarations, as if they were
//! written out. NOT NULL is always copied, everything else on request.

use std::sync::Arc;

use atoll_store::table::TableDefinition;
use datafusion::arrow::datatypes::{DataType as Arrow, Field};
use datafusion::common::{Result, internal_err};
use datafusion::sql::parser::Statement as Parsed;
use datafusion::sql::sqlparser::ast::{
    ColumnDef, CreateTable, DataType, ObjectName, Statement as Ast,
};

use crate::role::rights::Right;
use crate::session::ddl::index::CopiedIndexes;
use crate::session::dml::change::quoted;
use crate::session::plan::planner::StatementPlanner;
use crate::session::statement::export_script::options_of;
use crate::session::statement::parsed_statement::parse;
use crate::table::PlacedTable;
use crate::table_text::{checked_domain, generated_sql, identity_words, is_generated, unique_text};
use atoll_sql_common::error::SqlState;
use atoll_sql_common::names::plain;
use atoll_sql_common::pg_type::type_of_check;
use atoll_sql_parse::dialect::{LIKE, column_type};

/// The parts to copy besides the columns.
#[derive(Clone, Copy, Debug, Default)]
struct Included {
    defaults: bool,
    constraints: bool,
    identity: bool,
    generated: bool,
    indexes: bool,
}

impl Included {
    /// From the INCLUDING and EXCLUDING words, in their order.
    fn from_words(words: &[String]) -> Result<Self> {
        let mut included = Self::default();
        for word in words {
            let (kind, what) = word.split_once('_').unwrap_or((word, ""));
            let is_in = kind == "including";
            let Self { defaults, constraints, identity, generated, indexes } = &mut included;
            let parts: &mut [&mut bool] = match what {
                "all" => &mut [defaults, constraints, identity, generated, indexes],
                "defaults" => &mut [defaults],
                "constraints" => &mut [constraints],
                "identity" => &mut [identity],
                "generated" => &mut [generated],
                "indexes" => &mut [indexes],
                // Not supported here, or about physical storage.
                "comments" | "compression" | "statistics" | "storage" => &mut [],
                other => {
                    let message = format!(
                        "unknown option '{other}' of LIKE; expected ALL, DEFAULTS, CONSTRAINTS, IDENTITY, \
                         GENERATED or INDEXES"
                    );
                    return Err(SqlState::SYNTAX_ERROR.error(message));
                }
            };
            parts.iter_mut().for_each(|part| **part = is_in);
        }
        Ok(included)
    }
}

impl StatementPlanner {
    /// Writes out the LIKE columns of CREATE TABLE.
    pub(in crate::session) fn write_out_like(
        &self,
        statement: &mut Parsed,
    ) -> Result<CopiedIndexes> {
        let mut copied = CopiedIndexes::default();
        let Parsed::Statement(ast) = statement else { return Ok(copied) };
        let Ast::CreateTable(create) = ast.as_mut() else { return Ok(copied) };
        if !create.columns.iter().any(is_like) {
            return Ok(copied);
        }
        let mut columns = Vec::with_capacity(create.columns.len());
        for column in std::mem::take(&mut create.columns) {
            match &column.data_type {
                DataType::Custom(name, words) if is_like(&column) => {
                    let included = Included::from_words(words)?;
                    let (like, definition) = self.like(name, included)?;
                    copied.tables.extend(Some(definition).filter(|_| included.indexes));
                    columns.extend(like.columns);
                    create.constraints.extend(like.constraints);
                }
                _ => columns.push(column),
            }
        }
        create.columns = columns;
        Ok(copied)
    }

    /// CREATE TABLE with the columns of another table.
    fn like(
        &self,
        name: &ObjectName,
        included: Included,
    ) -> Result<(CreateTable, Arc<TableDefinition>)> {
        let at = self.resolve(self.name(name)?);
        let Some(found) = self.names.table(&at)? else {
            return Err(SqlState::missing_table(&plain(&at)));
        };
        self.check_right(Right::Select, &at)?;
        let Some(table) = found.downcast_ref::<PlacedTable>() else {
            let message =
                format!("'{}' is not a table; LIKE takes the columns of tables", plain(&at));
            return Err(SqlState::WRONG_OBJECT_TYPE.error(message));
        };
        let parts = self.parts_of(table.definition(), included)?;
        let text = format!("CREATE TABLE x ({})", parts.join(", "));
        match parse(&text, &self.state)?.statement {
            Parsed::Statement(ast) => match *ast {
                Ast::CreateTable(create) => Ok((create, Arc::clone(table.definition()))),
                _ => internal_err!("columns were parsed as another statement"),
            },
            _ => internal_err!("columns were parsed as another statement"),
        }
    }

    /// The columns and constraints of a table in the form of CREATE TABLE.
    fn parts_of(&self, definition: &TableDefinition, included: Included) -> Result<Vec<String>> {
        let mut parts = Vec::new();
        for (at, field) in definition.columns.fields().iter().enumerate() {
            let mut checks = definition.checks.iter();
            let checked = checks.find_map(|check| type_of_check(&check.sql, field.name()));
            let list = if field.data_type().is_nested() { "[]" } else { "" };
            let checked = checked.map(|checked| format!("{checked}{list}"));
            let mut column = match self.declared_type_text(field).or(checked) {
                Some(of) => format!("{} {of}", quoted(field.name())),
                None => column_of(field, field.data_type()),
            };
            if !field.is_nullable() {
                column.push_str(" NOT NULL");
            }
            column.push_str(&self.value_of(definition, at, included));
            parts.push(column);
        }
        let is_of_type = |sql: &str| {
            let mut fields = definition.columns.fields().iter();
            fields.any(|field| type_of_check(sql, field.name()).is_some())
                || checked_domain(sql).is_some()
        };
        let checks = definition.checks.iter().filter(|check| !is_of_type(&check.sql));
        for check in checks.filter(|_| included.constraints) {
            parts.push(format!("CONSTRAINT {} CHECK ({})", quoted(&check.name), check.sql));
        }
        for unique in definition.uniques.iter().filter(|it| included.indexes && !it.is_index) {
            parts.push(unique_text(unique, definition));
        }
        Ok(parts)
    }

    /// The default, identity or generation clause of a column.
    fn value_of(&self, definition: &TableDefinition, at: usize, included: Included) -> String {
        if let Some(identity) = definition.identity(at) {
            let version = self.names.stored_version();
            let sequence = version.sequence(identity.sequence).filter(|_| included.identity);
            let Some(sequence) = sequence else { return String::new() };
            let kind = identity_words(identity.kind);
            let options = options_of(&sequence.definition);
            return format!(" GENERATED {kind} AS IDENTITY ({options})");
        }
        match definition.defaults[at].as_deref() {
            Some(default) if is_generated(default) => match generated_sql(default) {
                Some(sql) if included.generated => format!(" GENERATED ALWAYS AS ({sql}) STORED"),
                _ => String::new(),
            },
            Some(default) if included.defaults => format!(" DEFAULT ({default})"),
            _ => String::new(),
        }
    }
}

fn is_like(column: &ColumnDef) -> bool {
    column.name.quote_style.is_some() && column.name.value == LIKE
}

fn column_of(field: &Field, data_type: &Arrow) -> String {
    format!("{} {}", quoted(field.name()), column_type(data_type))
}
