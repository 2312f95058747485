//! The definition that the store keeps, from the declarations of CREATE TABLE.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use atoll_placement::Strategy;
use atoll_store::table::{Check, TableDefinition, Unique};
use datafusion::arrow::datatypes::{DataType, FieldRef, Schema, SchemaRef};
use datafusion::common::{DFSchema, Result};
use datafusion::sql::sqlparser::ast::{Expr, Ident, Query, Visitor};

use crate::session::ddl::declared_table::{DeclaredCheck, DeclaredKey, DeclaredTable};
use crate::session::dml::change::quoted;
use crate::session::plan::planner::StatementPlanner;
use crate::table_text::{checked_domain, computed, domain_call};
use atoll_sql_common::error::{SqlError, SqlState, stated_err};
use atoll_sql_common::pg_type::{
    Checked, as_checked, as_domain, as_list_of, is_marked_by_type, type_of_check,
};
use atoll_sql_parse::dialect::check_of_type;
use atoll_sql_parse::syntax::{parsed_expr, sql_text, walk, walk_expressions_mut};
use atoll_sql_semantics::sql_to_plan::create_logical_expr;

impl DeclaredTable {
    /// Declares the types of columns whose values are texts of a form, as CREATE TABLE AS takes them from a query.
    pub(in crate::session) fn declare_types(&mut self, columns: &Schema) {
        for field in columns.fields() {
            if let Some(of) = Checked::of_column(field) {
                let column = quoted(field.name());
                let condition = check_of_type(of, &column);
                self.checks.push(DeclaredCheck { name: None, column: Some(column), condition });
            }
        }
    }

    /// The definition of a table with these stored columns; identities get their sequences later. Names of unnamed
    /// constraints are as in PostgreSQL: `t_pkey`, `t_a_b_key`, `t_a_check`.
    ///
    /// # Errors
    /// For missing columns, names that are taken, and defaults of other types.
    pub(in crate::session) fn definition(
        self,
        planner: &StatementPlanner,
        table: &str,
        columns: SchemaRef,
        placement: Strategy,
    ) -> Result<TableDefinition> {
        let mut definition = TableDefinition::new(columns, placement);
        let is_temporary = self.temporary.is_some();
        let normalize = |ident: &Ident| planner.normalized(ident);
        let columns = self.columns.iter().enumerate();
        let not_null: Vec<usize> =
            columns.filter(|(_, column)| column.not_null).map(|(at, _)| at).collect();
        set_not_null(&mut definition, &not_null);
        for (column, declared) in self.columns.into_iter().enumerate() {
            if let Some(default) = declared.default {
                set_default(&mut definition, planner, column, &default, is_temporary)?;
            }
        }
        for key in self.keys {
            add_key(&mut definition, table, key, &normalize)?;
        }
        for check in self.checks {
            add_check(&mut definition, table, check, &normalize)?;
        }
        mark_types(&mut definition);
        refuse_loose_keys(&definition)?;
        Ok(definition)
    }
}

/// Declares the default of a column, with the full names of its sequences.
pub(in crate::session) fn set_default(
    definition: &mut TableDefinition,
    planner: &StatementPlanner,
    column: usize,
    default: &Expr,
    is_temporary: bool,
) -> Result<()> {
    let field = definition.columns.field(column);
    check_default(planner, default, field.name(), field.data_type())?;
    let named = planner.with_full_names(default, is_temporary)?;
    definition.defaults[column] = Some(sql_text(&named).into());
    Ok(())
}

/// Refuses a default that is of another type than the column, or reads columns.
fn check_default(
    planner: &StatementPlanner,
    default: &Expr,
    column: &str,
    wanted: &DataType,
) -> Result<()> {
    let is_computed = computed(default).is_some();
    if walk(default, &mut Queries).is_break() {
        let what = if is_computed { "a column generation" } else { "a DEFAULT" };
        return stated_err!(
            FEATURE_NOT_SUPPORTED,
            "column '{column}': cannot use a subquery in {what} expression"
        );
    }
    if is_computed {
        // It is planned over the rows of the table, once that exists.
        return Ok(());
    }
    planner.check_sequences(default)?;
    let none = DFSchema::empty();
    let plain = planner.without_domains(default)?;
    let planned = create_logical_expr(&planner.state, &sql_text(&plain), &none);
    let planned = planned.and_then(|expr| {
        use datafusion::logical_expr::ExprSchemable;
        expr.cast_to(wanted, &none)
    });
    match planned {
        Ok(_) => Ok(()),
        Err(error) => {
            let SqlError { state, message, .. } = SqlError::new(error, "");
            Err(state.error(format!("DEFAULT {default} of column '{column}': {message}")))
        }
    }
}

/// Stops at a subquery.
pub(in crate::session) struct Queries;

impl Visitor for Queries {
    type Break = ();

    fn pre_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
        ControlFlow::Break(())
    }
}

/// Adds a PRIMARY KEY or UNIQUE constraint.
pub(in crate::session) fn add_key(
    definition: &mut TableDefinition,
    table: &str,
    key: DeclaredKey,
    normalize: &dyn Fn(&Ident) -> String,
) -> Result<()> {
    let numbers = |names: &[Ident]| -> Result<Vec<usize>> {
        let number = |column: &Ident| {
            let name = normalize(column);
            let found = definition.columns.index_of(&name);
            found.map_err(|_| {
                let message = format!("column '{name}' named in key does not exist");
                SqlState::UNDEFINED_COLUMN.error(message)
            })
        };
        names.iter().map(number).collect()
    };
    let (columns, included) = (numbers(&key.columns)?, numbers(&key.included)?);
    if key.is_primary {
        if definition.uniques.iter().any(|unique| unique.is_primary) {
            return stated_err!(
                INVALID_TABLE_DEFINITION,
                "multiple primary keys for table '{table}' are not allowed"
            );
        }
        set_not_null(definition, &columns);
    }
    let name = match &key.name {
        Some(name) => free_name(definition, normalize(name))?,
        None if key.is_primary => unused_name(definition, format!("{table}_pkey")),
        None => {
            let named = columns.iter().chain(&included);
            let names: Vec<&str> =
                named.map(|at| definition.columns.field(*at).name().as_str()).collect();
            unused_name(definition, format!("{table}_{}_key", names.join("_")))
        }
    };
    let (name, is_primary) = (name.into(), key.is_primary);
    definition.uniques.push(Unique {
        name,
        columns,
        included,
        is_primary,
        nulls_not_distinct: key.nulls_not_distinct,
        deferral: key.deferral,
        ..Unique::default()
    });
    Ok(())
}

/// Adds a CHECK constraint, whose condition is planned when rows are written.
pub(in crate::session) fn add_check(
    definition: &mut TableDefinition,
    table: &str,
    check: DeclaredCheck,
    normalize: &dyn Fn(&Ident) -> String,
) -> Result<()> {
    let name = match (&check.name, &check.column) {
        _ if let Some((Expr::Identifier(column), _)) = domain_call(&check.condition) => {
            unused_name(definition, format!("{table}_{}_domain", normalize(column)))
        }
        (None, Some(column)) if is_of_length(&check.condition, &normalize(column)) => {
            unused_name(definition, format!("{table}_{}_length", normalize(column)))
        }
        (Some(name), _) => free_name(definition, normalize(name))?,
        (None, Some(column)) => {
            unused_name(definition, format!("{table}_{}_check", normalize(column)))
        }
        (None, None) => unused_name(definition, format!("{table}_check")),
    };
    let mut condition = check.condition;
    without_table(&mut condition, table, normalize);
    let sql = sql_text(&condition);
    // The stored text is parsed again whenever rows are written.
    parsed_expr(&sql)?;
    definition.checks.push(Check { name: name.into(), sql: sql.into() });
    Ok(())
}

fn is_of_length(condition: &Expr, column: &str) -> bool {
    type_of_check(&condition.to_string(), column).is_some_and(Checked::is_length)
}

/// Removes the table's name, which may change, from columns.
pub(in crate::session) fn without_table(
    condition: &mut Expr,
    table: &str,
    normalize: &dyn Fn(&Ident) -> String,
) {
    let _ = walk_expressions_mut(condition, &mut |expr| {
        if let Expr::CompoundIdentifier(parts) = expr
            && let [of_table, column] = &parts[..]
            && normalize(of_table) == table
        {
            *expr = Expr::Identifier(column.clone());
        }
        ControlFlow::<()>::Continue(())
    });
}

/// Refuses unique keys of JSONB and ranges of numbers, whose equal values may have different texts.
pub(in crate::session) fn refuse_loose_keys(definition: &TableDefinition) -> Result<()> {
    let fields = definition.columns.fields();
    let mut keys = definition.uniques.iter().flat_map(|unique| &unique.columns);
    let loose = keys.find_map(|at| {
        let field = fields.get(*at)?;
        let of = Checked::of_field(field).filter(|of| of.has_many_texts())?;
        Some((of, of.order()?, field.name()))
    });
    match loose {
        None => Ok(()),
        Some((of, order, column)) => stated_err!(
            FEATURE_NOT_SUPPORTED,
            "UNIQUE and PRIMARY KEY of {of} (column '{column}') are not supported; declare another column as \
             BYTEA GENERATED ALWAYS AS ({order}({column})) STORED UNIQUE"
        ),
    }
}

/// Marks text columns whose values have a type: clients see that type.
pub(in crate::session) fn mark_types(definition: &mut TableDefinition) {
    let marked = |field: &FieldRef| {
        let plain = || field.as_ref().clone().with_metadata(HashMap::new());
        let mut checks = definition.checks.iter();
        let mut domains = checks.clone().filter_map(|check| checked_domain(&check.sql));
        if let Some((_, oid)) = domains.find(|(column, _)| column == field.name()) {
            return Arc::new(as_domain(plain(), oid));
        }
        match checks.find_map(|check| type_of_check(&check.sql, field.name())) {
            Some(of) if field.data_type().is_nested() => Arc::new(as_list_of(of, plain())),
            Some(of) => Arc::new(as_checked(of, plain())),
            None if field.metadata().is_empty() || is_marked_by_type(field) => Arc::clone(field),
            None => Arc::new(plain()),
        }
    };
    let fields: Vec<FieldRef> = definition.columns.fields().iter().map(marked).collect();
    definition.columns = Arc::new(Schema::new(fields));
}

fn set_not_null(definition: &mut TableDefinition, columns: &[usize]) {
    if columns.is_empty() {
        return;
    }
    let mut fields: Vec<FieldRef> = definition.columns.fields().iter().cloned().collect();
    for column in columns {
        fields[*column] = Arc::new(fields[*column].as_ref().clone().with_nullable(false));
    }
    definition.columns = Arc::new(Schema::new(fields));
}

pub(in crate::session) fn is_used(definition: &TableDefinition, name: &str) -> bool {
    let uniques = definition.uniques.iter().map(|unique| &*unique.name);
    let checks = definition.checks.iter().map(|check| &*check.name);
    let foreign_keys = definition.foreign_keys.iter().map(|key| &*key.name);
    let indexes = definition.indexes.iter().map(|index| &*index.name);
    let in_catalog = definition.catalog_indexes.iter().map(|index| &*index.name);
    let indexes = indexes.chain(in_catalog);
    uniques.chain(checks).chain(foreign_keys).chain(indexes).any(|used| used == name)
}

pub(in crate::session) fn free_name(definition: &TableDefinition, name: String) -> Result<String> {
    match is_used(definition, &name) {
        true => stated_err!(
            DUPLICATE_OBJECT,
            "constraint '{name}' exists twice; give one of them another name"
        ),
        false => Ok(name),
    }
}

/// The name, with a numeric suffix if it is taken.
pub(in crate::session) fn unused_name(definition: &TableDefinition, name: String) -> String {
    let numbered = (1..).map(|number| format!("{name}{number}"));
    let mut names = std::iter::once(name.clone()).chain(numbered);
    names.find(|name| !is_used(definition, name)).unwrap_or(name)
}
