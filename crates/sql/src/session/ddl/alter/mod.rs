//! ALTER TABLE: columns and constraints added, dropped, renamed and changed, and the table renamed.
//!
//! Changes of declarations are made in place: the rows stay. With other columns the table is rewritten by the query
//! that selects them, within the same transaction.

mod altered;
mod altered_keys;
mod column_types;
mod references;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use atoll_store::SequenceId;
use atoll_store::database::{CatalogChange, Relation};
use atoll_store::table::{KeyExpression, TableChange, TableDefinition, Unique, is_indexable};
use datafusion::arrow::datatypes::{Field, Schema, SchemaRef};
use datafusion::common::{
    ResolvedTableReference, Result, TableReference, exec_err, internal_err, plan_err,
};
use datafusion::execution::TaskContext;
use datafusion::logical_expr::TableType;
use datafusion::physical_plan::{ExecutionPlan, collect};
use datafusion::sql::parser::Statement as Parsed;
use datafusion::sql::sqlparser::ast::{
    AlterTable, AlterTableOperation, CastKind, Expr, Ident, RenameTableNameKind, SelectItem,
    SetExpr, Statement as Ast, Value,
};

use crate::session::Session;
use crate::session::ddl::create::new_identity;
use crate::session::ddl::index::without_rows;
use crate::session::ddl::sequence::whole;
use crate::session::ddl::table_definition::{
    add_check, add_key, mark_types, refuse_loose_keys, set_default,
};
use crate::session::ddl::view_dependents::DroppedColumns;
use crate::session::dml::change::{parsed, quoted};
use crate::session::plan::planner::StatementPlanner;
use crate::session::plan::steps::plan_physical;
use crate::session::statement::command_tag::{missing, with_notices};
use crate::table::insert::inserted;
use crate::table::load::load;
use crate::table::{PlacedTable, stored_columns};
use crate::table_text::computed;
use altered::{AlteredColumn, AlteredForeignKey, AlteredTable, ColumnSource};
use altered_keys::{AlteredIndex, AlteredKey};
use atoll_sql_common::error::{SqlState, ViolatedConstraint, stated_err};
use atoll_sql_common::names::{plain, relation_name};
use atoll_sql_parse::syntax::{parsed_expr, sql_text};
use references::{new_numbers, release_keys};

impl Session {
    /// Alters a table; the tag and notices.
    pub(in crate::session) async fn alter(
        &self,
        planner: &StatementPlanner,
        alter: &AlterTable,
    ) -> Result<Cow<'static, str>> {
        let alter = &planner.alter_without_domains(alter)?;
        check(alter)?;
        let at = planner.resolve(planner.name(&alter.name)?);
        let Some(found) = planner.names.table(&at)? else {
            return match alter.if_exists {
                true => Ok(with_notices("ALTER TABLE", &[missing("relation", &at.table)])),
                false => Err(SqlState::missing_table(&plain(&at))),
            };
        };
        if let [AlterTableOperation::RenameTable { table_name }] = &alter.operations[..]
            && is_renamed(planner, &at)
        {
            let to = new_name(planner, &at, table_name)?;
            let tag =
                if found.table_type() == TableType::View { "ALTER VIEW" } else { "ALTER TABLE" };
            let (from, to) = (relation_name(&at), relation_name(&to));
            let followers = planner.views_after_rename(&from, &to)?;
            planner.define(CatalogChange::Rename { from, to }).await?;
            for follower in followers {
                planner.define_any(follower).await?;
            }
            return Ok(tag.into());
        }
        let Some(table) = found.downcast_ref::<PlacedTable>() else {
            return stated_err!(
                WRONG_OBJECT_TYPE,
                "'{}' was not made by CREATE TABLE; only such tables can be altered",
                plain(&at)
            );
        };
        if table.is_materialized() {
            return stated_err!(
                WRONG_OBJECT_TYPE,
                "'{}' is a materialized view, whose columns are those of its query; drop it and create it again",
                plain(&at)
            );
        }
        planner.lock_table(table).await?;
        // The current state, now that no one else changes it.
        let planner = &self.planner(&planner.transaction, true).await?;
        let Some(found) = planner.names.table(&at)? else {
            return Err(SqlState::missing_table(&plain(&at)));
        };
        let Some(table) = found.downcast_ref::<PlacedTable>() else {
            return plan_err!("'{}' was replaced meanwhile; run the statement again", plain(&at));
        };
        let normalize = |ident: &Ident| planner.normalized(ident);
        let mut altered = AlteredTable::from_definition(table.id(), table.definition())?;
        for operation in planner.without_same_types(&alter.operations, table.definition()).await {
            altered.apply(operation, &normalize)?;
        }
        let released = release_keys(planner, table, &mut altered, &alter.operations)?;
        planner.drop_foreign_keys(&released).await?;
        let numbers = new_numbers(table, &altered);
        let has_new_sequences = altered.columns.iter().any(|column| column.new_identity.is_some());
        for column in &mut altered.columns {
            let Some(declared) = column.new_identity.take() else { continue };
            let field = match &column.source {
                ColumnSource::Column(field) => Arc::clone(field),
                ColumnSource::New(data_type) => {
                    Arc::new(Field::new(&column.name, whole(data_type)?, false))
                }
                ColumnSource::Computed(..) => {
                    let name = &column.name;
                    return plan_err!("column '{name}' is changed twice in one ALTER TABLE");
                }
            };
            let (identity, default) =
                new_identity(planner, &relation_name(&at), &field, declared).await?;
            if let ColumnSource::New(data_type) = &column.source {
                let numbers = number_rows(planner, table, identity.sequence).await?;
                let data_type = data_type.clone();
                column.source = ColumnSource::Computed(Box::new(numbers), data_type);
            }
            column.default = Some(parsed_expr(&default)?);
            column.identity = Some(identity);
        }
        let anew;
        let planner = match has_new_sequences {
            // Defaults name the new sequences.
            true => {
                anew = self.planner(&planner.transaction, true).await?;
                &anew
            }
            false => planner,
        };
        let dropped = DroppedColumns::from_operations(planner, &alter.operations);
        let readers = match dropped {
            Some(_) => planner.planned_ones(planner.readers(&[relation_name(&at)])?).await,
            None => Vec::new(),
        };
        let kept = altered.columns.iter().filter_map(|column| Some(column.identity?.sequence));
        let kept: Vec<SequenceId> = kept.collect();
        match is_declared_only(table, &altered) {
            // On the heap, as the largest parts of this future.
            true => Box::pin(self.declare(planner, table, altered)).await?,
            false => Box::pin(self.rewrite(planner, table, altered, &numbers)).await?,
        }
        planner.follow_columns(&relation_name(&at), &alter.operations).await?;
        for name in planner.names.sequences_of(&relation_name(&at)) {
            if planner.names.sequence(&name).is_some_and(|sequence| !kept.contains(&sequence)) {
                planner.define(CatalogChange::Drop { name }).await?;
            }
        }
        let told = match &dropped {
            Some(dropped) => {
                let columns = (&relation_name(&at), dropped);
                self.drop_readers_of_columns(planner, columns, readers).await?
            }
            None => Vec::new(),
        };
        Ok(with_notices("ALTER TABLE", &told))
    }

    /// Declares other names and constraints of a table, which its rows satisfy.
    async fn declare(
        &self,
        planner: &StatementPlanner,
        table: &PlacedTable,
        altered: AlteredTable,
    ) -> Result<()> {
        let fields = table.definition().columns.fields().iter().zip(&altered.columns);
        let fields = fields.map(|(field, column)| {
            field.as_ref().clone().with_name(&column.name).with_nullable(!column.not_null)
        });
        let columns = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        let (definition, new) = definition(planner, table, altered, columns)?;
        self.check_nulls(planner, table, &definition).await?;
        set_definition(planner, table, definition).await?;
        self.check_rows(planner, table.at()).await?;
        planner.check_foreign_keys(table.id(), &new).await
    }

    /// Refuses NOT NULL where there are NULLs.
    async fn check_nulls(
        &self,
        planner: &StatementPlanner,
        table: &PlacedTable,
        definition: &TableDefinition,
    ) -> Result<()> {
        let before = table.definition().columns.fields().iter();
        for (before, after) in before.zip(definition.columns.fields()) {
            if !before.is_nullable() || after.is_nullable() {
                continue;
            }
            let condition = parsed_expr(&format!("{} IS NULL", quoted(before.name())))?;
            if self.has_rows(planner, table.at(), condition).await? {
                let violated = ViolatedConstraint {
                    column: Some(after.name().clone()),
                    ..ViolatedConstraint::of_table(table.name())
                };
                let message = format!(
                    "column '{}' of table '{}' contains null values",
                    after.name(),
                    table.name()
                );
                return Err(SqlState::NOT_NULL_VIOLATION.violation(message, violated));
            }
        }
        Ok(())
    }

    /// Refuses CHECK constraints that rows violate; the definition is in place by now.
    async fn check_rows(
        &self,
        planner: &StatementPlanner,
        at: &ResolvedTableReference,
    ) -> Result<()> {
        let planner = self.planner(&planner.transaction, true).await?;
        let Some(table) = planner.names.table(at)? else { return Ok(()) };
        let Some(table) = table.downcast_ref::<PlacedTable>() else { return Ok(()) };
        for check in &table.definition().checks {
            let condition = parsed_expr(&format!("NOT ({})", check.sql))?;
            if self.has_rows(&planner, at, condition).await? {
                let violated = ViolatedConstraint {
                    constraint: Some(check.name.to_string()),
                    ..ViolatedConstraint::of_table(table.name())
                };
                let message = format!(
                    "check constraint '{}' of table '{}' is violated by some row",
                    check.name,
                    table.name()
                );
                return Err(SqlState::CHECK_VIOLATION.violation(message, violated));
            }
        }
        // Planned once, so that conditions that cannot be checked are refused now.
        planner.write_rules(&planner.state, table, &quoted(&at.table), None).await.map(drop)
    }

    pub(in crate::session) async fn has_rows(
        &self,
        planner: &StatementPlanner,
        at: &ResolvedTableReference,
        condition: Expr,
    ) -> Result<bool> {
        let text = format!("SELECT 1 FROM {} WHERE {condition} LIMIT 1", full_name(at));
        let (plan, context) = select(planner, parsed(&text)?).await?;
        let found = self.on_worker(collect(plan, context)).await?;
        Ok(found.iter().any(|batch| batch.num_rows() > 0))
    }

    /// Rewrites the table with these columns.
    async fn rewrite(
        &self,
        planner: &StatementPlanner,
        table: &PlacedTable,
        mut altered: AlteredTable,
        numbers: &BTreeMap<usize, usize>,
    ) -> Result<()> {
        let (plan, context) = select(planner, query(table.at(), &altered.columns)?).await?;
        let fields = stored_columns(&plan.schema());
        let fields = fields
            .fields()
            .iter()
            .zip(&altered.columns)
            .map(|(field, column)| field.as_ref().clone().with_nullable(!column.not_null));
        let columns = Arc::new(Schema::new(fields.collect::<Vec<Field>>()));
        let rebuilt = altered.take_rebuilt();
        let (definition, new) = definition(planner, table, altered, columns)?;
        planner.rewrite(table, TableChange { truncated: true, ..TableChange::default() }).await?;
        set_definition(planner, table, definition).await?;
        planner.renumber_references(table.id(), numbers).await?;
        let (mut anew, mut anew_table) = self.altered_table(planner, table.at()).await?;
        if !rebuilt.is_empty() {
            let definition = anew.with_rebuilt(&anew_table, rebuilt).await?;
            set_definition(planner, &anew_table, definition).await?;
            (anew, anew_table) = self.altered_table(planner, table.at()).await?;
        }
        let name = quoted(&table.at().table);
        let rules = anew.write_rules(&anew.state, &anew_table, &name, None).await?;
        let target = Arc::new(anew.target(rules));
        let filled = anew_table.clone();
        let change = self.on_worker(async move {
            let loaded = load(plan, context, &filled, &target, false).await?;
            inserted(&filled, loaded)
        });
        planner.rewrite(&anew_table, change.await?).await?;
        planner.check_foreign_keys(table.id(), &new).await
    }

    /// The table as the statement has altered it so far, with a planner that knows it so.
    async fn altered_table(
        &self,
        planner: &StatementPlanner,
        at: &ResolvedTableReference,
    ) -> Result<(StatementPlanner, PlacedTable)> {
        let anew = self.planner(&planner.transaction, true).await?;
        let Some(found) = anew.names.table(at)? else {
            return internal_err!("an altered table has no name");
        };
        match found.downcast_ref::<PlacedTable>().cloned() {
            Some(table) => Ok((anew, table)),
            None => internal_err!("an altered table is not a stored table"),
        }
    }
}

/// Numbers the rows of a table by a new sequence, which continues after them.
async fn number_rows(
    planner: &StatementPlanner,
    table: &PlacedTable,
    sequence: SequenceId,
) -> Result<Expr> {
    let version = planner.transaction.statement(true).await?;
    let Some(state) = version.sequence(sequence) else {
        return internal_err!("sequence {sequence} of a new column is not there");
    };
    let definition = Arc::clone(&state.definition);
    let (start, increment) = (definition.start, definition.increment);
    let rows = i128::try_from(table.version().rows()).unwrap_or(i128::MAX);
    if rows > 0 {
        let last = i128::from(start) + i128::from(increment) * (rows - 1);
        let within = i128::from(definition.min)..=i128::from(definition.max);
        let last = i64::try_from(last).ok().filter(|last| within.contains(&i128::from(*last)));
        if last.is_none() {
            return exec_err!("the sequence of the new column ends before the table's {rows} rows");
        }
        planner.define(CatalogChange::SetSequence { sequence, definition, last }).await?;
    }
    parsed_expr(&format!("(CAST(row_number() OVER () AS BIGINT) - 1) * ({increment}) + ({start})"))
}

/// Whether a relation can be renamed: a table or view of the store.
fn is_renamed(planner: &StatementPlanner, at: &ResolvedTableReference) -> bool {
    let version = planner.names.stored_version();
    matches!(version.relation(&relation_name(at)), Some(Relation::Table(_) | Relation::View(_)))
}

/// Gives a table another definition.
pub(in crate::session) async fn set_definition(
    planner: &StatementPlanner,
    table: &PlacedTable,
    definition: TableDefinition,
) -> Result<()> {
    let (table, definition) = (table.id(), Arc::new(definition));
    planner.define(CatalogChange::SetDefinition { table, definition }).await
}

fn check(alter: &AlterTable) -> Result<()> {
    let has_others = alter.location.is_some() || alter.on_cluster.is_some();
    if has_others || alter.table_type.is_some() {
        return plan_err!(
            "ALTER TABLE takes a name and ADD COLUMN, DROP COLUMN, RENAME COLUMN, ALTER COLUMN, ADD or DROP \
             CONSTRAINT, or RENAME TO"
        );
    }
    Ok(())
}

fn new_name(
    planner: &StatementPlanner,
    from: &ResolvedTableReference,
    to: &RenameTableNameKind,
) -> Result<ResolvedTableReference> {
    let (RenameTableNameKind::To(to) | RenameTableNameKind::As(to)) = to;
    let to = match planner.name(to)? {
        TableReference::Bare { table } => ResolvedTableReference { table, ..from.clone() },
        name => planner.resolve(name),
    };
    if (&to.catalog, &to.schema) != (&from.catalog, &from.schema) {
        return plan_err!("a table cannot be renamed into another schema");
    }
    Ok(to)
}

/// Whether all columns remain, in their order, with their values.
fn is_declared_only(table: &PlacedTable, altered: &AlteredTable) -> bool {
    let fields = table.definition().columns.fields();
    let same = |(field, column): (&Arc<Field>, &AlteredColumn)| matches!(&column.source, ColumnSource::Column(own) if own.name() == field.name());
    fields.len() == altered.columns.len() && fields.iter().zip(&altered.columns).all(same)
}

/// The definition with these stored columns, and the names of new foreign keys.
fn definition(
    planner: &StatementPlanner,
    table: &PlacedTable,
    mut altered: AlteredTable,
    columns: SchemaRef,
) -> Result<(TableDefinition, Vec<Arc<str>>)> {
    let normalize = |ident: &Ident| planner.normalized(ident);
    let (keys, checks, foreign_keys) = altered.take_added();
    let places = places_of(table.definition(), &altered);
    let mut definition = TableDefinition::new(columns, *table.strategy());
    definition.on_commit = table.definition().on_commit;
    for (at, column) in altered.columns.iter().enumerate() {
        if let Some(default) = &column.default {
            set_default(&mut definition, planner, at, default, table.id().is_temporary())?;
        }
        definition.identities[at] = column.identity;
    }
    for key in altered.keys {
        let unique = unique_of(&definition, key, &places)?;
        definition.uniques.push(unique);
    }
    for altered in altered.indexes {
        let AlteredIndex { mut index, keys, included, condition, expressions, .. } = altered;
        set_texts(&mut index.expressions, expressions);
        index.condition = condition.map(|condition| sql_text(&condition).into());
        for (key, column) in index.keys.iter_mut().zip(numbers_of(&definition, &keys)?) {
            key.column = column;
        }
        index.included = numbers_of(&definition, &included)?;
        let types = index.keys.iter().map(|key| definition.columns.field(key.column).data_type());
        // A column may have got a type that no index has.
        match types.into_iter().all(is_indexable) {
            true => definition.indexes.push(index),
            false => definition.catalog_indexes.push(without_rows(index)),
        }
    }
    for altered in altered.catalog_indexes {
        let index = altered.numbered(&|names| numbers_of(&definition, names))?;
        definition.catalog_indexes.push(index);
    }
    for (name, condition) in altered.checks {
        let sql = sql_text(&condition).into();
        definition.checks.push(atoll_store::table::Check { name, sql });
    }
    for altered in altered.foreign_keys {
        let AlteredForeignKey { mut key, columns, own_parent } = altered;
        key.columns = numbers_of(&definition, &columns)?;
        if let Some(own) = own_parent {
            key.parent_columns = numbers_of(&definition, &own)?;
        }
        definition.foreign_keys.push(key);
    }
    let name = &table.at().table;
    for key in keys {
        add_key(&mut definition, name, key, &normalize)?;
    }
    for check in checks {
        add_check(&mut definition, name, check, &normalize)?;
    }
    let known = definition.foreign_keys.len();
    planner.add_foreign_keys((table.id(), table.at()), &mut definition, foreign_keys)?;
    mark_types(&mut definition);
    refuse_loose_keys(&definition)?;
    let new = definition.foreign_keys[known..].iter().map(|key| Arc::clone(&key.name)).collect();
    Ok((definition, new))
}

/// For each column of the unaltered table its number in the altered one; `None` if it is dropped or changes its type.
fn places_of(before: &TableDefinition, altered: &AlteredTable) -> Vec<Option<usize>> {
    let place = |field: &Arc<Field>| altered.place_of(field.name()).map(|(at, _)| at);
    before.columns.fields().iter().map(place).collect()
}

/// Sets the texts of the expressions of an index.
fn set_texts(expressions: &mut [Option<KeyExpression>], texts: Vec<Option<Expr>>) {
    for (own, sql) in expressions.iter_mut().zip(texts) {
        if let (Some(own), Some(sql)) = (own, sql) {
            own.sql = sql_text(&sql).into();
        }
    }
}

/// A key of the altered table.
fn unique_of(
    definition: &TableDefinition,
    key: AlteredKey,
    places: &[Option<usize>],
) -> Result<Unique> {
    let AlteredKey { mut unique, columns, included, condition, expressions, .. } = key;
    unique.columns = numbers_of(definition, &columns)?;
    unique.included = numbers_of(definition, &included)?;
    set_texts(&mut unique.expressions, expressions);
    if let (Some(own), Some(sql)) = (&mut unique.condition, condition) {
        own.sql = sql_text(&sql).into();
        let rows = own.rows.renumbered(&|column| places.get(column).copied().flatten());
        let Some(rows) = rows else {
            return internal_err!(
                "the condition of index '{}' reads a column that the altered table does not have",
                unique.name
            );
        };
        own.rows = rows;
    }
    Ok(unique)
}

fn numbers_of(definition: &TableDefinition, names: &[String]) -> Result<Vec<usize>> {
    let number = |name: &String| {
        let found = definition.columns.index_of(name);
        found.map_err(|_| {
            SqlState::UNDEFINED_COLUMN.error(format!("column '{name}' of a key does not exist"))
        })
    };
    names.iter().map(number).collect()
}

fn full_name(at: &ResolvedTableReference) -> String {
    [&at.catalog, &at.schema, &at.table].map(|part| quoted(part).to_string()).join(".")
}

/// A planned query over the unaltered table.
async fn select(
    planner: &StatementPlanner,
    query: Ast,
) -> Result<(Arc<dyn ExecutionPlan>, Arc<TaskContext>)> {
    let plan = planner.plan_other(Parsed::Statement(Box::new(query))).await?;
    Ok((plan_physical(&planner.state, &plan).await?, planner.state.task_ctx()))
}

/// `SELECT a, CAST(NULL AS type) AS b FROM t`.
fn query(at: &ResolvedTableReference, columns: &[AlteredColumn]) -> Result<Ast> {
    let mut query = parsed(&format!("SELECT 0 FROM {}", full_name(at)))?;
    let Ast::Query(body) = &mut query else {
        return internal_err!("a query was parsed as another statement");
    };
    let SetExpr::Select(select) = body.body.as_mut() else {
        return internal_err!("a SELECT was parsed as another query");
    };
    let item = |column: &AlteredColumn| {
        let cast = |expr: Expr, data_type: &_| Expr::Cast {
            kind: CastKind::Cast,
            expr: Box::new(expr),
            data_type: Clone::clone(data_type),
            array: false,
            format: None,
        };
        let expr = match &column.source {
            ColumnSource::Column(field) => Expr::Identifier(quoted(field.name())),
            ColumnSource::New(data_type) => {
                let default = column.default.clone().filter(|value| computed(value).is_none());
                cast(default.unwrap_or_else(|| Expr::value(Value::Null)), data_type)
            }
            ColumnSource::Computed(expr, data_type) => cast(Expr::clone(expr), data_type),
        };
        SelectItem::ExprWithAlias { expr, alias: quoted(&column.name) }
    };
    select.projection = columns.iter().map(item).collect();
    Ok(query)
}
