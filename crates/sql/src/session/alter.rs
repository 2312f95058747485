//! ALTER TABLE: columns added, dropped and renamed, and the table renamed.
//!
//! A name is changed in place: the chunks stay. With other columns the table is written anew, by the
//! query that selects them, and takes the place of the old one in one step.

use std::sync::Arc;

use datafusion::arrow::datatypes::{Field, Schema};
use datafusion::common::{
    Constraints, ResolvedTableReference, Result, TableReference, internal_datafusion_err, plan_err,
};
use datafusion::logical_expr::{CreateMemoryTable, DdlStatement, LogicalPlan};
use datafusion::sql::parser::Statement as Parsed;
use datafusion::sql::sqlparser::ast::{
    AlterTable, AlterTableOperation, CastKind, ColumnDef, ColumnOption, DataType, Expr, Ident,
    ObjectName, RenameTableNameKind, SelectItem, SetExpr, Statement as Ast, Value,
};
use datafusion::sql::sqlparser::dialect::GenericDialect;
use datafusion::sql::sqlparser::parser::Parser;

use super::Session;
use super::execute::{QueryResult, StatementForm};
use super::planner::StatementPlanner;
use crate::catalog::plain;
use crate::table::PlacedTable;

/// A column of the table as it is to be.
struct AlteredColumn {
    name: String,
    not_null: bool,
    from: ColumnSource,
}

/// Where its values come from.
enum ColumnSource {
    /// The column of this name.
    Column(String),
    /// NULL, in this type.
    New(DataType),
}

impl Session {
    /// Alters a table.
    pub(super) async fn alter(
        &self,
        planner: StatementPlanner,
        alter: AlterTable,
        sql: &str,
    ) -> Result<QueryResult> {
        check(&alter)?;
        let at = planner.resolve(planner.name(&alter.name)?);
        let Some(found) = planner.names.table(&at) else {
            return match alter.if_exists {
                true => Ok(QueryResult::done("ALTER TABLE: does not exist".to_owned(), sql)),
                false => plan_err!("table '{}' not found", plain(&at)),
            };
        };
        let Some(table) = found.downcast_ref::<PlacedTable>() else {
            return plan_err!(
                "'{}' was not made by CREATE TABLE; only such tables can be altered",
                plain(&at)
            );
        };
        if let [AlterTableOperation::RenameTable { table_name }] = &alter.operations[..] {
            self.rename(&planner, &at, table_name)?;
            return Ok(QueryResult::done("ALTER TABLE".to_owned(), sql));
        }
        let normalize = |ident: &Ident| planner.normalized(ident);
        let columns = altered(table, &alter.operations, &normalize)?;
        if is_renamed_only(table, &columns) {
            let names = columns.iter().map(|column| column.name.as_str());
            table.rename_columns(&names.collect::<Vec<_>>())?;
            return Ok(QueryResult::done("ALTER TABLE".to_owned(), sql));
        }
        self.rewrite(planner, &at, table, columns, sql).await
    }

    /// Writes the table anew with these columns.
    async fn rewrite(
        &self,
        planner: StatementPlanner,
        at: &ResolvedTableReference,
        table: &PlacedTable,
        columns: Vec<AlteredColumn>,
        sql: &str,
    ) -> Result<QueryResult> {
        let not_null = columns.iter().map(|column| column.not_null).collect();
        let query = Parsed::Statement(Box::new(query(at, columns)?));
        let LogicalPlan::Projection(input) = planner.plan_other(query).await? else {
            return Err(internal_datafusion_err!("columns were not selected by a projection"));
        };
        let create = DdlStatement::CreateMemoryTable(CreateMemoryTable {
            name: TableReference::from(at.clone()),
            constraints: Constraints::default(),
            input: Arc::new(LogicalPlan::Projection(input)),
            if_not_exists: false,
            or_replace: true,
            column_defaults: Vec::new(),
            temporary: false,
        });
        let (form, strategy) = (StatementForm::of_columns(not_null), *table.strategy());
        self.define(planner, create, form, strategy, sql).await?;
        Ok(QueryResult::done("ALTER TABLE".to_owned(), sql))
    }

    fn rename(
        &self,
        planner: &StatementPlanner,
        from: &ResolvedTableReference,
        to: &RenameTableNameKind,
    ) -> Result<()> {
        let (RenameTableNameKind::To(to) | RenameTableNameKind::As(to)) = to;
        let to = match planner.name(to)? {
            TableReference::Bare { table } => ResolvedTableReference { table, ..from.clone() },
            name => planner.resolve(name),
        };
        if (&to.catalog, &to.schema) != (&from.catalog, &from.schema) {
            return plan_err!("a table cannot be renamed into another schema");
        }
        self.catalogs.rename(from, &to, |table| match table.downcast_ref::<PlacedTable>() {
            Some(table) => Ok(Arc::new(table.renamed(to.clone()))),
            None => plan_err!("'{}' was replaced meanwhile; run the statement again", plain(from)),
        })
    }
}

fn check(alter: &AlterTable) -> Result<()> {
    let has_others = alter.location.is_some() || alter.on_cluster.is_some();
    if has_others || alter.table_type.is_some() || alter.only {
        return plan_err!(
            "ALTER TABLE takes a name and ADD COLUMN, DROP COLUMN, RENAME COLUMN or RENAME TO"
        );
    }
    Ok(())
}

/// The columns after all operations, in their order.
fn altered(
    table: &PlacedTable,
    operations: &[AlterTableOperation],
    normalize: &dyn Fn(&Ident) -> String,
) -> Result<Vec<AlteredColumn>> {
    use AlterTableOperation as Op;
    let schema = Arc::clone(&table.snapshot().schema);
    let mut columns: Vec<AlteredColumn> =
        schema.fields().iter().map(|field| of_field(field)).collect();
    for operation in operations {
        match operation {
            Op::AddColumn { column_def, if_not_exists, column_position: None, .. } => {
                add(&mut columns, column_def, *if_not_exists, normalize)?;
            }
            Op::DropColumn { column_names, if_exists, .. } => {
                for name in column_names.iter().map(normalize) {
                    match position(&columns, &name) {
                        Some(at) => drop(columns.remove(at)),
                        None if *if_exists => {}
                        None => return not_found(&name, table),
                    }
                }
            }
            Op::RenameColumn { old_column_name, new_column_name } => {
                let (old, new) = (normalize(old_column_name), normalize(new_column_name));
                let Some(at) = position(&columns, &old) else { return not_found(&old, table) };
                free(&columns, &new)?;
                columns[at].name = new;
            }
            other => {
                return plan_err!(
                    "ALTER TABLE … {other} is not supported; expected ADD COLUMN, DROP COLUMN, RENAME \
                     COLUMN, or RENAME TO alone"
                );
            }
        }
    }
    match columns.is_empty() {
        true => plan_err!("the last column of a table cannot be dropped; use DROP TABLE"),
        false => Ok(columns),
    }
}

fn of_field(field: &Field) -> AlteredColumn {
    let name = field.name().clone();
    AlteredColumn { not_null: !field.is_nullable(), from: ColumnSource::Column(name.clone()), name }
}

fn add(
    columns: &mut Vec<AlteredColumn>,
    column: &ColumnDef,
    if_not_exists: bool,
    normalize: &dyn Fn(&Ident) -> String,
) -> Result<()> {
    let name = normalize(&column.name);
    if if_not_exists && position(columns, &name).is_some() {
        return Ok(());
    }
    free(columns, &name)?;
    let mut not_null = false;
    for option in &column.options {
        match &option.option {
            ColumnOption::NotNull => not_null = true,
            ColumnOption::Null => {}
            other => {
                return plan_err!(
                    "'{other}' of a new column is not supported; add the column, and set its values \
                     with UPDATE"
                );
            }
        }
    }
    columns.push(AlteredColumn {
        name,
        not_null,
        from: ColumnSource::New(column.data_type.clone()),
    });
    Ok(())
}

fn position(columns: &[AlteredColumn], name: &str) -> Option<usize> {
    columns.iter().position(|column| column.name == name)
}

fn free(columns: &[AlteredColumn], name: &str) -> Result<()> {
    match position(columns, name) {
        Some(_) => plan_err!("column '{name}' already exists"),
        None => Ok(()),
    }
}

fn not_found<T>(name: &str, table: &PlacedTable) -> Result<T> {
    let schema = Arc::clone(&table.snapshot().schema);
    let names: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
    plan_err!("column '{name}' not found; the table has the columns {}", names.join(", "))
}

/// Whether all columns are there still, in their order.
fn is_renamed_only(table: &PlacedTable, columns: &[AlteredColumn]) -> bool {
    let schema: Arc<Schema> = Arc::clone(&table.snapshot().schema);
    let same = |(field, column): (&Arc<Field>, &AlteredColumn)| matches!(&column.from, ColumnSource::Column(name) if name == field.name());
    schema.fields().len() == columns.len() && schema.fields().iter().zip(columns).all(same)
}

/// `SELECT a, CAST(NULL AS type) AS b FROM t`.
fn query(at: &ResolvedTableReference, columns: Vec<AlteredColumn>) -> Result<Ast> {
    let quoted = |name: &str| Ident::with_quote('"', name);
    let name = ObjectName::from(vec![quoted(&at.catalog), quoted(&at.schema), quoted(&at.table)]);
    let text = format!("SELECT 0 FROM {name}");
    let mut query = Parser::parse_sql(&GenericDialect {}, &text)?;
    let Some(Ast::Query(mut query)) = query.pop() else {
        return Err(internal_datafusion_err!("'{text}' is another statement"));
    };
    let SetExpr::Select(select) = query.body.as_mut() else {
        return Err(internal_datafusion_err!("'{text}' is another query"));
    };
    let item = |column: AlteredColumn| {
        let expr = match column.from {
            ColumnSource::Column(name) => Expr::Identifier(quoted(&name)),
            ColumnSource::New(data_type) => Expr::Cast {
                kind: CastKind::Cast,
                expr: Box::new(Expr::value(Value::Null)),
                data_type,
                array: false,
                format: None,
            },
        };
        SelectItem::ExprWithAlias { expr, alias: quoted(&column.name) }
    };
    select.projection = columns.into_iter().map(item).collect();
    Ok(Ast::Query(query))
}
