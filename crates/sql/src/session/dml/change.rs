//! DELETE, UPDATE and TRUNCATE as a query that finds their rows.
//!
//! ```text
//! DELETE FROM t USING u WHERE p        SELECT t."row id" FROM t, u WHERE p
//! UPDATE t SET b = e FROM u WHERE p    SELECT t."row id", t.a, e AS b FROM t, u WHERE p
//! TRUNCATE t                           SELECT t."row id" FROM t
//! ```
//!
//! In the query the table is a [`ChangedTable`] with a row id column; the rows of the query are the input of the
//! change. DataFusion 55 plans both statements too, but loses predicates that have subqueries, are constant, or come
//! with a LIMIT (apache/datafusion#24654).

use std::sync::Arc;

use atoll_store::table::TableDefinition;
use datafusion::arrow::datatypes::{Field, Schema};
use datafusion::catalog::default_table_source::provider_as_source;
use datafusion::common::{
    ResolvedTableReference, Result, TableReference, internal_datafusion_err, plan_err,
};
use datafusion::execution::SessionState;
use datafusion::logical_expr::dml::InsertOp;
use datafusion::logical_expr::expr::Placeholder;
use datafusion::logical_expr::{
    DmlStatement, Expr, ExprSchemable, LogicalPlan, LogicalPlanBuilder, PlanType, Prepare,
    Projection, Statement as PlanStatement, ToStringifiedPlan, WriteOp,
};
use datafusion::sql::parser::Statement as Parsed;
use datafusion::sql::sqlparser::ast::{
    Assignment, AssignmentTarget, Delete, Expr as AstExpr, FromTable, FunctionArg, FunctionArgExpr,
    FunctionArguments, GroupByExpr, Ident, ObjectName, ObjectNamePart, Query, Select, SelectItem,
    SetExpr, Statement as Ast, TableAlias, TableFactor, TableWithJoins, Truncate,
    TruncateIdentityOption, Update, UpdateTableFromKind, With,
};
use datafusion::sql::sqlparser::dialect::GenericDialect;
use datafusion::sql::sqlparser::parser::Parser;

use crate::role::rights::Right;
use crate::session::dml::insert::given_value;
use crate::session::dml::refused_values::check_value;
use crate::session::dml::row_assignment;
use crate::session::dml::unread_columns;
use crate::session::plan::planner::StatementPlanner;
use crate::table::{ChangeKind, ChangedTable, PlacedTable, WriteRules};
use atoll_sql_common::error::{SqlState, stated_err};
use atoll_sql_common::names::plain;
pub(in crate::session) use atoll_sql_parse::dialect::quoted;

/// The name under which the changed table is planned: no statement uses it by chance.
pub(in crate::session) const CHANGED: &str = "table being changed";

/// A change of a table, whose statement was replaced by the query that finds the rows.
#[derive(Debug)]
pub(in crate::session) struct RowChange {
    table: PlacedTable,
    kind: ChangeKind,
    source: Arc<ChangedTable>,
}

impl RowChange {
    /// The change that a statement makes, if it makes one, also within EXPLAIN and PREPARE: the statement becomes a
    /// query, and the changed table is among the names. The query selects `others` after the columns that the change
    /// needs.
    ///
    /// # Errors
    /// For relations not made by CREATE TABLE, and for unsupported clauses.
    pub(in crate::session) async fn take(
        statement: &mut Parsed,
        planner: &StatementPlanner,
        state: &SessionState,
        others: Vec<SelectItem>,
    ) -> Result<Option<Self>> {
        let is_alone =
            matches!(statement, Parsed::Statement(ast) if matches!(**ast, Ast::Truncate(_)));
        let Some(ast) = changing(statement) else { return Ok(None) };
        let truncates = matches!(ast, Ast::Truncate(_));
        if let Ast::Truncate(truncate) = ast {
            let restarts = matches!(truncate.identity, Some(TruncateIdentityOption::Restart));
            refuse(restarts && !is_alone, "RESTART IDENTITY in a prepared or explained TRUNCATE")?;
            *ast = Ast::Delete(all_rows(truncate)?);
        }
        let with = take_with(ast);
        let (target, kind) = match ast {
            Ast::Delete(delete) => (target_of_delete(delete)?, ChangeKind::Delete),
            Ast::Update(update) => (target_of_update(update)?, ChangeKind::Update),
            _ => return Ok(None),
        };
        let (at, table) = table_to_change(planner, state, &target.relation, word(kind))?;
        match truncates {
            true => planner.check_right(Right::Truncate, &at)?,
            false => planner.check_change(ast, &at)?,
        }
        unread_columns::check(ast, &at)?;
        let at_name = at.table.to_string();
        let changed = changed_source(&at);
        let mut rules = match kind {
            ChangeKind::Delete => WriteRules::default(),
            ChangeKind::Update => {
                let name = quoted(&at_name);
                planner.write_rules(state, &table, &name, None).await?
            }
        };
        rules.actions = Box::pin(planner.referential_actions(state, table.id())).await?;
        let target = planner.target(rules);
        let source = Arc::new(ChangedTable::new(table.clone(), kind, target));
        planner.names.hide(CHANGED, Arc::clone(&source) as _);
        let normalize = &|ident: &Ident| planner.normalized(ident);
        let definition = Arc::clone(table.definition());
        let mut query = match std::mem::replace(ast, parsed("SELECT 0")?) {
            Ast::Delete(delete) => of_delete(delete, &changed, source.row_id())?,
            Ast::Update(update) => {
                of_update(update, &changed, (source.row_id(), &definition), normalize)?
            }
            _ => unreachable!("matched above"),
        };
        query.columns.extend(others);
        query.put_into(ast, with)?;
        Ok(Some(Self { table, kind, source }))
    }

    /// The plan of the change from the plan of its query, also within EXPLAIN and PREPARE.
    pub(in crate::session) fn plan(&self, plan: LogicalPlan) -> Result<LogicalPlan> {
        change_within(plan, &|query| self.change(query))
    }

    fn change(&self, query: LogicalPlan) -> Result<LogicalPlan> {
        let input = match self.kind {
            ChangeKind::Delete => query,
            ChangeKind::Update => self.in_types_of_columns(row_assignment::once(query)?)?,
        };
        let name = TableReference::bare(self.table.name());
        let source = provider_as_source(Arc::clone(&self.source) as _);
        let op = WriteOp::Insert(InsertOp::Append);
        Ok(LogicalPlan::Dml(DmlStatement::new(name, source, op, Arc::new(input))))
    }

    /// New values in the types of their columns.
    fn in_types_of_columns(&self, query: LogicalPlan) -> Result<LogicalPlan> {
        let columns = Arc::clone(self.table.columns());
        let query = with_typed_parameters(query, &columns)?;
        let schema = Arc::clone(query.schema());
        let mut values = Vec::with_capacity(columns.fields().len() + 1);
        for (at, (qualifier, field)) in schema.iter().enumerate() {
            let value = Expr::from((qualifier, field));
            // After the columns there are those of other tables.
            let column = at.checked_sub(1).filter(|column| *column < columns.fields().len());
            values.push(match column {
                Some(column) => {
                    let column = columns.field(column);
                    check_value(field.data_type(), column, &"value")?;
                    value.cast_to(column.data_type(), &schema)?.alias(column.name())
                }
                None => value,
            });
        }
        LogicalPlanBuilder::from(query).project(values)?.build()
    }
}

/// The table whose rows a statement changes.
///
/// # Errors
/// For relations not made by CREATE TABLE.
pub(in crate::session::dml) fn table_to_change(
    planner: &StatementPlanner,
    state: &SessionState,
    relation: &TableFactor,
    word: &str,
) -> Result<(ResolvedTableReference, PlacedTable)> {
    let TableFactor::Table { name, .. } = relation else {
        return plan_err!("{word} changes the rows of a table; name one");
    };
    let at = planner.resolve_in(state, name)?;
    let Some(found) = planner.names.table(&at)? else {
        return Err(SqlState::missing_table(&plain(&at)));
    };
    match found.downcast_ref::<PlacedTable>() {
        Some(table) => {
            table.check_changeable()?;
            Ok((at, table.clone()))
        }
        None => stated_err!(
            WRONG_OBJECT_TYPE,
            "{word} of '{}': only rows of tables made by CREATE TABLE can be changed; this is a view, \
             a system table or a table over files",
            plain(&at)
        ),
    }
}

/// The plan of a change from that of its query, also within EXPLAIN and PREPARE.
pub(in crate::session::dml) fn change_within(
    plan: LogicalPlan,
    change: &dyn Fn(LogicalPlan) -> Result<LogicalPlan>,
) -> Result<LogicalPlan> {
    match plan {
        LogicalPlan::Statement(PlanStatement::Prepare(prepare)) => {
            Ok(LogicalPlan::Statement(PlanStatement::Prepare(prepared(prepare, change)?)))
        }
        plan => within(plan, change),
    }
}

/// The same prepared. Parameters assigned directly have the types of their columns.
fn prepared(
    prepare: Prepare,
    change: &dyn Fn(LogicalPlan) -> Result<LogicalPlan>,
) -> Result<Prepare> {
    let declared = prepare.input.get_parameter_names()?.len() == prepare.fields.len();
    let input = change_within(Arc::unwrap_or_clone(prepare.input), change)?;
    let mut found: Vec<_> = input.get_parameter_fields()?.into_iter().collect();
    found.sort_by_key(|(name, _)| (name.len(), name.clone()));
    let fields: Option<Vec<_>> = found.into_iter().map(|(_, field)| field).collect();
    let fields = match fields {
        Some(fields) if !declared => fields,
        _ => prepare.fields,
    };
    Ok(Prepare { name: prepare.name, fields, input: Arc::new(input) })
}

/// A parameter that is the whole value of a column gets its type.
fn with_typed_parameters(query: LogicalPlan, columns: &Schema) -> Result<LogicalPlan> {
    let LogicalPlan::Projection(mut projection) = query else { return Ok(query) };
    for (expr, field) in projection.expr.iter_mut().skip(1).zip(columns.fields()) {
        type_parameter(expr, field);
    }
    Projection::try_new(projection.expr, projection.input).map(LogicalPlan::Projection)
}

/// Gives a parameter of unknown type the type of the field whose whole value it is.
pub(in crate::session) fn type_parameter(expr: &mut Expr, field: &Field) {
    let value = match expr {
        Expr::Alias(alias) => alias.expr.as_mut(),
        other => other,
    };
    if let Expr::Placeholder(Placeholder { field: unknown @ None, .. }) = value {
        *unknown = Some(Arc::new(field.clone().with_nullable(true)));
    }
}

/// Replaces the plan within EXPLAIN or PREPARE, or the plan itself.
pub(in crate::session) fn within(
    plan: LogicalPlan,
    make: impl FnOnce(LogicalPlan) -> Result<LogicalPlan>,
) -> Result<LogicalPlan> {
    Ok(match plan {
        LogicalPlan::Explain(mut explain) => {
            let plan = make(Arc::unwrap_or_clone(explain.plan))?;
            explain.stringified_plans = vec![plan.to_stringified(PlanType::InitialLogicalPlan)];
            explain.plan = Arc::new(plan);
            LogicalPlan::Explain(explain)
        }
        LogicalPlan::Analyze(mut analyze) => {
            analyze.input = Arc::new(make(Arc::unwrap_or_clone(analyze.input))?);
            LogicalPlan::Analyze(analyze)
        }
        LogicalPlan::Statement(PlanStatement::Prepare(mut prepare)) => {
            prepare.input = Arc::new(make(Arc::unwrap_or_clone(prepare.input))?);
            LogicalPlan::Statement(PlanStatement::Prepare(prepare))
        }
        plan => make(plan)?,
    })
}

fn word(kind: ChangeKind) -> &'static str {
    match kind {
        ChangeKind::Delete => "DELETE",
        ChangeKind::Update => "UPDATE",
    }
}

/// The statement itself, within EXPLAIN and PREPARE.
pub(in crate::session) fn innermost(statement: &mut Parsed) -> Option<&mut Ast> {
    let mut ast = match statement {
        Parsed::Statement(ast) => ast.as_mut(),
        Parsed::Explain(explain) => return innermost(&mut explain.statement),
        _ => return None,
    };
    while let Ast::Prepare { statement, .. } | Ast::Explain { statement, .. } = ast {
        ast = statement.as_mut();
    }
    Some(ast)
}

/// The DELETE, UPDATE or TRUNCATE in a statement.
fn changing(statement: &mut Parsed) -> Option<&mut Ast> {
    let ast = innermost(statement)?;
    let changes = match &*ast {
        Ast::Delete(_) | Ast::Update(_) | Ast::Truncate(_) => true,
        Ast::Query(query) => matches!(*query.body, SetExpr::Delete(_) | SetExpr::Update(_)),
        _ => false,
    };
    changes.then_some(ast)
}

/// Takes the WITH before a DELETE or UPDATE, which is left alone.
fn take_with(ast: &mut Ast) -> Option<With> {
    let Ast::Query(query) = ast else { return None };
    let with = query.with.take();
    if let SetExpr::Delete(change) | SetExpr::Update(change) = query.body.as_ref() {
        *ast = change.clone();
    }
    with
}

/// TRUNCATE as DELETE.
fn all_rows(truncate: &Truncate) -> Result<Delete> {
    refuse(truncate.partitions.is_some(), "PARTITION of TRUNCATE")?;
    refuse(truncate.on_cluster.is_some(), "ON CLUSTER of TRUNCATE")?;
    refuse(truncate.if_exists, "IF EXISTS of TRUNCATE")?;
    let [table] = &truncate.table_names[..] else {
        return plan_err!("TRUNCATE of several tables cannot be part of another statement");
    };
    let text = format!("DELETE FROM {}", table.name);
    match parsed(&text)? {
        Ast::Delete(delete) => Ok(delete),
        _ => Err(internal_datafusion_err!("'{text}' is another statement")),
    }
}

/// The parts of a query.
pub(in crate::session::dml) struct RowQuery {
    pub(in crate::session::dml) columns: Vec<SelectItem>,
    pub(in crate::session::dml) from: Vec<TableWithJoins>,
    pub(in crate::session::dml) selection: Option<AstExpr>,
}

/// Parses a text of ours.
pub(in crate::session) fn parsed(text: &str) -> Result<Ast> {
    let mut parsed = Parser::parse_sql(&GenericDialect {}, text)?;
    parsed.pop().ok_or_else(|| internal_datafusion_err!("'{text}' is not a statement"))
}

impl RowQuery {
    /// Puts the parts into a template query.
    pub(in crate::session::dml) fn put_into(
        self,
        template: &mut Ast,
        with: Option<With>,
    ) -> Result<()> {
        if let Ast::Query(query) = template
            && let SetExpr::Select(select) = query.body.as_mut()
        {
            select.projection = self.columns;
            select.from = self.from;
            select.selection = self.selection;
            query.with = with;
            return Ok(());
        }
        Err(internal_datafusion_err!("the query template is another statement"))
    }
}

fn target_of_delete(delete: &Delete) -> Result<&TableWithJoins> {
    refuse(delete.output.is_some(), "OUTPUT of DELETE")?;
    refuse(!delete.order_by.is_empty(), "ORDER BY of DELETE")?;
    refuse(delete.limit.is_some(), "LIMIT of DELETE")?;
    refuse(!delete.tables.is_empty(), "DELETE of several tables")?;
    let (FromTable::WithFromKeyword(from) | FromTable::WithoutKeyword(from)) = &delete.from;
    let [target] = &from[..] else {
        return plan_err!("DELETE names one table; further ones come after USING");
    };
    alone(target, "USING")
}

fn target_of_update(update: &Update) -> Result<&TableWithJoins> {
    refuse(update.output.is_some(), "OUTPUT of UPDATE")?;
    refuse(update.or.is_some(), "OR of UPDATE")?;
    refuse(!update.order_by.is_empty(), "ORDER BY of UPDATE")?;
    refuse(update.limit.is_some(), "LIMIT of UPDATE")?;
    alone(&update.table, "FROM")
}

fn alone<'a>(target: &'a TableWithJoins, others: &str) -> Result<&'a TableWithJoins> {
    match target.joins.is_empty() {
        true => Ok(target),
        false => plan_err!("the table that is changed is named alone; join others after {others}"),
    }
}

fn refuse(is_there: bool, what: &str) -> Result<()> {
    if is_there { stated_err!(FEATURE_NOT_SUPPORTED, "{what} is not supported") } else { Ok(()) }
}

fn of_delete(delete: Delete, changed: &ResolvedTableReference, row_id: &str) -> Result<RowQuery> {
    let (FromTable::WithFromKeyword(mut from) | FromTable::WithoutKeyword(mut from)) = delete.from;
    let name = rename(&mut from[0].relation, changed)?;
    from.extend(delete.using.unwrap_or_default());
    Ok(RowQuery { columns: vec![column_of(&name, row_id)], from, selection: delete.selection })
}

fn of_update(
    update: Update,
    changed: &ResolvedTableReference,
    (row_id, definition): (&str, &TableDefinition),
    normalize: &dyn Fn(&Ident) -> String,
) -> Result<RowQuery> {
    let mut table = update.table;
    let name = rename(&mut table.relation, changed)?;
    let mut assigned = assignments(update.assignments, definition, normalize)?;
    let mut columns = vec![column_of(&name, row_id)];
    for (field, expr) in definition.columns.fields().iter().zip(&mut assigned) {
        columns.push(match expr.take() {
            Some(expr) => SelectItem::ExprWithAlias { expr, alias: quoted(field.name()) },
            None => column_of(&name, field.name()),
        });
    }
    let mut from = vec![table];
    match update.from {
        Some(UpdateTableFromKind::BeforeSet(more) | UpdateTableFromKind::AfterSet(more)) => {
            from.extend(more);
        }
        None => {}
    }
    Ok(RowQuery { columns, from, selection: update.selection })
}

/// The expression that each column is set to, if any.
pub(in crate::session::dml) fn assignments(
    assignments: Vec<Assignment>,
    definition: &TableDefinition,
    normalize: &dyn Fn(&Ident) -> String,
) -> Result<Vec<Option<AstExpr>>> {
    let schema = &definition.columns;
    let mut values: Vec<Option<AstExpr>> = vec![None; schema.fields().len()];
    for Assignment { target, value } in assignments {
        for (column, value) in each(target, value)? {
            let [ObjectNamePart::Identifier(ident)] = &column.0[..] else {
                return stated_err!(
                    UNDEFINED_COLUMN,
                    "UPDATE sets whole columns, which are named alone; '{column}' has more than one part"
                );
            };
            let name = normalize(ident);
            let Ok(at) = schema.index_of(&name) else {
                let names: Vec<&str> =
                    schema.fields().iter().map(|field| field.name().as_str()).collect();
                return stated_err!(
                    UNDEFINED_COLUMN,
                    "column \"{name}\" does not exist; the table has the columns {}",
                    names.join(", ")
                );
            };
            let value = given_value(value, at, definition)?;
            if values[at].replace(value).is_some() {
                return stated_err!(SYNTAX_ERROR, "column '{name}' is set twice");
            }
        }
    }
    Ok(values)
}

/// Splits `(a, b) = (1, 2)`, `(a, b) = ROW(1, 2)` and `(a, b) = (SELECT 1, 2)` by column.
pub(in crate::session) fn each(
    target: AssignmentTarget,
    value: AstExpr,
) -> Result<Vec<(ObjectName, AstExpr)>> {
    let names = match target {
        AssignmentTarget::ColumnName(name) => return Ok(vec![(name, value)]),
        AssignmentTarget::Tuple(names) => names,
    };
    let values = match value {
        AstExpr::Tuple(values) => values,
        AstExpr::Subquery(query) => columns_of_query(&query, &names)?,
        other => match row_values(&other) {
            Some(values) => values,
            None => {
                return Err(SqlState::FEATURE_NOT_SUPPORTED.error(
                    "UPDATE sets several columns to as many values: SET (a, b) = (1, 2), or \
                     SET (a, b) = (SELECT …)",
                ));
            }
        },
    };
    match names.len() == values.len() {
        true => Ok(names.into_iter().zip(values).collect()),
        false => Err(SqlState::SYNTAX_ERROR
            .error("SET takes as many values as columns: SET (a, b) = (1, 2)")),
    }
}

/// The values of `ROW(…)`.
fn row_values(value: &AstExpr) -> Option<Vec<AstExpr>> {
    let AstExpr::Function(call) = value else { return None };
    let FunctionArguments::List(list) = &call.args else { return None };
    if !call.name.to_string().eq_ignore_ascii_case("row") {
        return None;
    }
    let values = list.args.iter().map(|argument| match argument {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(value)) => Some(value.clone()),
        _ => None,
    });
    values.collect()
}

/// A query for each column of a query, or the fields of its row.
fn columns_of_query(query: &Query, columns: &[ObjectName]) -> Result<Vec<AstExpr>> {
    let items = match query.body.as_ref() {
        SetExpr::Select(select) if has_plain_items(query, select) => &select.projection,
        _ => return row_assignment::fields(query, columns),
    };
    let of_item = |item: &SelectItem| {
        let mut one = query.clone();
        if let SetExpr::Select(select) = one.body.as_mut() {
            select.projection = vec![item.clone()];
        }
        AstExpr::Subquery(Box::new(one))
    };
    Ok(items.iter().map(of_item).collect())
}

/// Whether the items of a select list may be separated: each is a column of a table or a literal, and all are of the
/// same rows.
fn has_plain_items(query: &Query, select: &Select) -> bool {
    let is_one = |item: &SelectItem| match item {
        SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => matches!(
            expr,
            AstExpr::Identifier(_) | AstExpr::CompoundIdentifier(_) | AstExpr::Value(_)
        ),
        _ => false,
    };
    let is_table = |factor: &TableFactor| matches!(factor, TableFactor::Table { args: None, .. });
    let reads_tables = select.from.iter().all(|from| {
        is_table(&from.relation) && from.joins.iter().all(|join| is_table(&join.relation))
    });
    let is_grouped = match &select.group_by {
        GroupByExpr::Expressions(keys, _) => !keys.is_empty(),
        GroupByExpr::All(_) => true,
    };
    let is_whole = query.limit_clause.is_none() && query.fetch.is_none() && query.locks.is_empty();
    let is_plain = query.order_by.is_none()
        && select.distinct.is_none()
        && select.having.is_none()
        && is_whole
        && reads_tables
        && !is_grouped;
    is_plain && select.projection.iter().all(is_one)
}

/// The name of the changed table while its statement is planned.
pub(in crate::session) fn changed_source(at: &ResolvedTableReference) -> ResolvedTableReference {
    ResolvedTableReference { table: CHANGED.into(), ..at.clone() }
}

/// Replaces a relation with the changed table, under the name that the statement gives it.
pub(in crate::session) fn rename(
    relation: &mut TableFactor,
    changed: &ResolvedTableReference,
) -> Result<Ident> {
    let TableFactor::Table { name, alias, .. } = relation else {
        return plan_err!("only the rows of a table can be changed");
    };
    let own = match (alias.as_ref(), name.0.last()) {
        (Some(alias), _) => alias.name.clone(),
        (None, Some(ObjectNamePart::Identifier(last))) => last.clone(),
        _ => return plan_err!("'{name}' is not the name of a table"),
    };
    if alias.is_none() {
        *alias =
            Some(TableAlias { explicit: true, name: own.clone(), columns: Vec::new(), at: None });
    }
    let parts = [&changed.catalog, &changed.schema, &changed.table];
    *name = ObjectName(parts.map(|part| ObjectNamePart::Identifier(quoted(part))).to_vec());
    Ok(own)
}

pub(in crate::session) fn column_of(table: &Ident, column: &str) -> SelectItem {
    SelectItem::UnnamedExpr(AstExpr::CompoundIdentifier(vec![table.clone(), quoted(column)]))
}
