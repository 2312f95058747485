//! Puts values into variables.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, StructArray};
use datafusion::arrow::datatypes::{DataType, Field, Fields};
use datafusion::common::{Result, ScalarValue};

use super::run::BlockRun;
use super::statements::{Ran, cells_of, ended};
use super::tree::{IntoClause, Target};
use super::variables::{Cell, VariableType};
use crate::session::ddl::routines::type_name;
use atoll_sql_common::error::{SqlState, stated_err};

impl BlockRun<'_> {
    /// The type that a declaration names.
    pub(super) async fn variable_type(&mut self, text: &str) -> Result<VariableType> {
        let lower = text.to_ascii_lowercase();
        if lower == "record" {
            return Ok(VariableType::Record);
        }
        if let Some(table) = lower.strip_suffix("%rowtype") {
            return Ok(VariableType::Row(text[..table.len()].trim().to_owned()));
        }
        if let Some(column) = lower.strip_suffix("%type") {
            return self.type_of_column(text[..column.len()].trim()).await;
        }
        let Some(name) = type_name(text) else { return Ok(VariableType::Cast(text.to_owned())) };
        let transaction = self.session.statement_transaction()?;
        let planner = self.session.planner(&transaction, false).await?;
        let at = planner.resolve_in(&planner.state, &name)?;
        Ok(match planner.names.table(&at)? {
            Some(_) => VariableType::Row(text.to_owned()),
            None => VariableType::Cast(text.to_owned()),
        })
    }

    /// `t.a%TYPE`, and `x%TYPE` of a variable.
    async fn type_of_column(&mut self, text: &str) -> Result<VariableType> {
        let Some((table, column)) = text.rsplit_once('.') else {
            let name = text.trim_matches('"').to_lowercase();
            let mut variables = self.scopes.list.iter().rev().flat_map(|scope| &scope.variables);
            return match variables.find(|variable| variable.name == name) {
                Some(variable) => Ok(variable.of.clone()),
                None => stated_err!(UNDEFINED_OBJECT, "variable \"{text}\" does not exist"),
            };
        };
        let (table, quoted) = (table.replace('\'', "''"), column.starts_with('"'));
        let column = column.trim_matches('"').replace('\'', "''");
        let column = if quoted { column } else { column.to_lowercase() };
        let sql = format!(
            "SELECT pg_catalog.format_type(atttypid, atttypmod) FROM pg_catalog.pg_attribute \
             WHERE attrelid = '{table}'::regclass AND attname = '{column}'"
        );
        let found = self.only(&sql).await?;
        match found.value.try_as_str().flatten() {
            Some(of) => Ok(VariableType::Cast(of.to_owned())),
            None => stated_err!(
                UNDEFINED_COLUMN,
                "column \"{column}\" of relation \"{table}\" does not exist"
            ),
        }
    }

    /// NULL of a type.
    pub(super) async fn null_of(&mut self, of: &VariableType) -> Result<Cell> {
        match of {
            VariableType::Record => Ok(Cell::null()),
            VariableType::Cast(of) => self.only(&format!("SELECT CAST(NULL AS {of}) AS v")).await,
            VariableType::Row(table) => {
                self.only(&format!("SELECT (SELECT x FROM {table} AS x LIMIT 0) AS v")).await
            }
        }
    }

    /// `target := value`
    pub(super) async fn assign(&mut self, target: &Target, value: &str) -> Result<()> {
        let (variable, field) = self.scopes.target(target)?;
        let of = if field.is_some() { VariableType::Record } else { variable.of.clone() };
        let cell = self.converted(value, &of).await?;
        self.put(target, cell)
    }

    /// Puts a value that has the type of its variable, or of the field.
    pub(super) fn put(&mut self, target: &Target, cell: Cell) -> Result<()> {
        let (variable, field) = self.scopes.target(target)?;
        if variable.is_not_null && cell.value.is_null() {
            return stated_err!(
                NULL_VALUE_NOT_ALLOWED,
                "null value cannot be assigned to variable \"{}\" declared NOT NULL",
                variable.name
            );
        }
        variable.cell = match field {
            None if cell.value.is_null() && variable.of != VariableType::Record => {
                let value = ScalarValue::try_from(variable.cell.field.data_type())?;
                Cell { value, field: Arc::clone(&variable.cell.field) }
            }
            None => cell,
            Some(field) => with_field(&variable.cell, field, &cell).ok_or_else(|| {
                let message = format!("record \"{}\" has no field \"{field}\"", variable.name);
                SqlState::UNDEFINED_COLUMN.error(message)
            })?,
        };
        Ok(())
    }

    /// Puts the columns of a row into variables, or the whole row into one.
    pub(super) async fn put_row(&mut self, targets: &[Target], cells: Vec<Cell>) -> Result<()> {
        if let [target] = targets {
            let (variable, field) = self.scopes.target(target)?;
            if field.is_none() && !matches!(variable.of, VariableType::Cast(_)) {
                let names = match (&variable.of, variable.cell.field.data_type()) {
                    (VariableType::Row(_), DataType::Struct(fields)) => Some(fields.clone()),
                    _ => None,
                };
                let cell = match <[Cell; 1]>::try_from(cells) {
                    Ok([cell]) if is_row(&cell) => cell,
                    Ok([cell]) => row_of(vec![cell], names)?,
                    Err(cells) => row_of(cells, names)?,
                };
                return self.put(target, cell);
            }
        }
        let mut cells = cells.into_iter();
        for target in targets {
            let cell = cells.next().unwrap_or_else(Cell::null);
            let cell = self.fitted(target, cell).await?;
            self.put(target, cell)?;
        }
        Ok(())
    }

    /// A value with the type of its variable.
    async fn fitted(&mut self, target: &Target, cell: Cell) -> Result<Cell> {
        let (variable, field) = self.scopes.target(target)?;
        let VariableType::Cast(of) = &variable.of else { return Ok(cell) };
        let is_same = variable.cell.field.data_type() == cell.field.data_type();
        if field.is_some() || cell.value.is_null() || is_same && !of.contains('(') {
            return Ok(cell);
        }
        let of = of.clone();
        self.cast(cell, &of).await
    }

    /// A value as one of another type.
    pub(super) async fn cast(&mut self, cell: Cell, of: &str) -> Result<Cell> {
        let sql = format!("SELECT CAST($1 AS {of}) AS v");
        let ran = ended(self.given(&[cell], &sql).await?).await?;
        let first = ran.batches.iter().find(|batch| batch.num_rows() > 0);
        let cells = first.map(|batch| cells_of(&ran.schema, batch, 0)).transpose()?;
        Ok(cells.and_then(|cells| cells.into_iter().next()).unwrap_or_else(Cell::null))
    }

    /// Puts the first row of a statement into variables.
    pub(super) async fn into(&mut self, ran: Ran, into: &IntoClause) -> Result<()> {
        if !ran.has_rows {
            return stated_err!(SYNTAX_ERROR, "INTO used with a command that cannot return data");
        }
        let rows: usize = ran.batches.iter().map(|batch| batch.num_rows()).sum();
        if into.is_strict && rows == 0 {
            return stated_err!(NO_DATA_FOUND, "query returned no rows");
        }
        if into.is_strict && rows > 1 {
            return stated_err!(TOO_MANY_ROWS, "query returned more than one row");
        }
        let cells = match ran.batches.iter().find(|batch| batch.num_rows() > 0) {
            Some(batch) => cells_of(&ran.schema, batch, 0)?,
            None => {
                let null = |field: &Arc<Field>| {
                    let value = ScalarValue::try_from(field.data_type())?;
                    Ok(Cell { value, field: Arc::clone(field) })
                };
                ran.schema.fields().iter().map(null).collect::<Result<_>>()?
            }
        };
        self.row_count = i64::try_from(rows.min(1)).unwrap_or(1);
        self.set_found(rows > 0);
        self.put_row(&into.targets, cells).await
    }
}

fn is_row(cell: &Cell) -> bool {
    matches!(cell.field.data_type(), DataType::Struct(_))
}

/// A row of values, with the names of these fields if there are any.
pub(super) fn row_of(cells: Vec<Cell>, names: Option<Fields>) -> Result<Cell> {
    let mut fields = Vec::with_capacity(cells.len());
    let mut columns: Vec<ArrayRef> = Vec::with_capacity(cells.len());
    let named = |at: usize, cell: &Cell| match &names {
        Some(fields) => fields.get(at).map(|field| field.name().clone()),
        None => Some(cell.field.name().clone()),
    };
    for (at, cell) in cells.iter().enumerate() {
        let Some(name) = named(at, cell) else { break };
        columns.push(cell.value.to_array()?);
        let field = cell.field.as_ref().clone().with_name(name).with_nullable(true);
        fields.push(Arc::new(field.with_data_type(cell.value.data_type())));
    }
    if columns.is_empty() {
        return Ok(Cell::null());
    }
    let row = StructArray::try_new(Fields::from(fields), columns, None)?;
    Ok(Cell::new(ScalarValue::Struct(Arc::new(row))))
}

/// A row with another value of a field; `None` if it has no such field.
fn with_field(row: &Cell, name: &str, cell: &Cell) -> Option<Cell> {
    let DataType::Struct(fields) = row.field.data_type() else { return None };
    fields.iter().find(|field| field.name() == name)?;
    let cells = fields.iter().map(|field| {
        if field.name() != name {
            return row.of_field(field.name());
        }
        let value = cell.value.cast_to(field.data_type()).ok()?;
        Some(Cell { value, field: Arc::clone(field) })
    });
    row_of(cells.collect::<Option<Vec<_>>>()?, None).ok()
}
