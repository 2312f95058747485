//! Statements that call functions which run statements, and CALL.
//!
//! ```text
//! SELECT f(1), g.b FROM g('x') AS g
//!      ─▶ f(1) and g('x') run, one after the other, in the statement's transaction
//!      ─▶ SELECT (SELECT f FROM "$routine1"), g.b FROM "$routine2" AS g
//! ```
//!
//! A call runs once, before the statement is planned. Where PostgreSQL would run it for each row, or perhaps not at
//! all, it is refused, unless it is declared STABLE or IMMUTABLE.

use std::ops::ControlFlow;
use std::sync::Arc;

use datafusion::catalog::TableProvider;
use datafusion::common::{DataFusionError, ParamValues, Result, ScalarValue};
use datafusion::sql::parser::Statement as Parsed;
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr, Function, FunctionArg, FunctionArguments, Ident, ObjectName, Query,
    Select, SelectItem, SetExpr, Statement as Ast, TableAlias, TableAliasColumnDef, TableFactor,
    VisitorMut,
};

use futures::future::BoxFuture;

use atoll_sql_common::error::{SqlError, stated_err};
use atoll_sql_common::names::quote_identifier;
use atoll_sql_parse::dialect::folded;
use atoll_sql_parse::parse::{Returns, Routine, on_deep_stack, stack_for};
use atoll_sql_parse::syntax::{flow, walk_mut, walk_relations};

use crate::session::Session;
use crate::session::ddl::macros::is_builtin;
use crate::session::ddl::routines::{arguments_of, calls, names_columns, replace_named, template};
use crate::session::dml::change::quoted;
use crate::session::plan::modifying_with::rows_of;
use crate::session::plan::planner::StatementPlanner;
use crate::session::plan::routine_calls::RoutineCalled;
use crate::session::statement::block::{Cell, RoutineRows, columns_of_routine, query_of_sql};
use crate::session::statement::command_tag::{StatementTag, with_notices};
use crate::session::statement::parsed_statement::{ParsedStatement, parse};
use crate::session::statement::query_result::QueryResult;
use crate::session::transaction::StatementTransaction;

/// The beginning of the names of results.
const RESULT: &str = "$routine";

/// A relation that only one statement sees.
pub(crate) type HiddenRelation = (String, Arc<dyn TableProvider>);

/// A call that runs before its statement.
struct FoundCall {
    routine: Routine,
    args: Vec<FunctionArg>,
    result: String,
}

impl Session {
    /// Runs a statement after the functions that it calls; `called` is the error of planning it without them. Boxed,
    /// since functions call functions.
    pub(in crate::session) fn run_with_routines<'a>(
        &'a self,
        transaction: &'a StatementTransaction,
        statement: &'a ParsedStatement,
        (values, sql): (Option<&'a ParamValues>, &'a str),
        called: DataFusionError,
    ) -> BoxFuture<'a, Result<QueryResult>> {
        Box::pin(async move {
            let refusal = RoutineCalled::refusal(called)?;
            let mut statement = statement.clone();
            let calls = {
                let planner = self.planner(transaction, false).await?;
                find(&planner, &mut statement.statement)?
            };
            if calls.is_empty() {
                return Err(refusal);
            }
            let _entered = self.routines.enter()?;
            if !transaction.is_own {
                let running = self.run_found(transaction, (calls, statement), values, sql);
                return on_deep_stack(stack_for(sql), running).await;
            }
            transaction.transaction.rollback().await;
            let block = self.begin_block()?;
            let running = self.run_in_block((calls, statement), values, sql);
            let done = on_deep_stack(stack_for(sql), running).await;
            self.end_block(block, done.is_ok()).await?;
            done
        })
    }

    /// Runs a statement and its calls to the end, in the transaction that is open.
    async fn run_in_block(
        &self,
        found: (Vec<FoundCall>, ParsedStatement),
        values: Option<&ParamValues>,
        sql: &str,
    ) -> Result<QueryResult> {
        let transaction = self.statement_transaction()?;
        let tag = StatementTag::from_statement(&found.1.statement);
        let mut result = self.run_found(&transaction, found, values, sql).await?;
        let (schema, origins) = (Arc::clone(result.schema()), result.origins().cloned());
        let mut batches = Vec::new();
        while let Some(batch) = result.next().await.map_err(stated)? {
            batches.push(batch);
        }
        let notices = std::mem::take(&mut result.notices);
        let rows = QueryResult::from_batches(schema, batches, sql);
        Ok(rows.tagged(tag).with_origins(origins).noting(notices))
    }

    async fn run_found(
        &self,
        transaction: &StatementTransaction,
        (calls, mut statement): (Vec<FoundCall>, ParsedStatement),
        values: Option<&ParamValues>,
        sql: &str,
    ) -> Result<QueryResult> {
        let changes_before = transaction.transaction.lock().await?.own_changes();
        let (mut relations, mut notices) = (Vec::new(), Vec::new());
        for call in &calls {
            let rows = self.run_call_of(transaction, call, values).await?;
            let schema = rows.batches.first().map_or(rows.schema, |batch| batch.schema());
            let table: Arc<dyn TableProvider> = Arc::new(rows_of(&schema, rows.batches)?);
            relations.push((call.result.clone(), table));
            notices.extend(rows.notices);
        }
        let has_changed = transaction.transaction.lock().await?.own_changes() != changes_before;
        if has_changed && reads_others(&statement.statement) {
            let name = calls.first().map(|call| call.routine.own_name()).unwrap_or_default();
            return stated_err!(
                FEATURE_NOT_SUPPORTED,
                "function {name}() changes the database, and the statement that calls it reads tables; call it in a \
                 statement of its own"
            );
        }
        statement.relations = relations.into();
        let result = Box::pin(self.run_in(transaction, &statement, values, sql)).await?;
        Ok(result.noting(notices))
    }

    async fn run_call_of(
        &self,
        transaction: &StatementTransaction,
        call: &FoundCall,
        values: Option<&ParamValues>,
    ) -> Result<RoutineRows> {
        let FoundCall { routine, args, .. } = call;
        let (columns, statement) = {
            let planner = self.planner(transaction, false).await?;
            let columns = columns_of_routine(&planner, routine).await?;
            (columns, arguments(&planner, routine, args)?)
        };
        let cells = match statement {
            None => Vec::new(),
            Some(statement) => {
                let running =
                    self.run_in(transaction, &statement, values, "the arguments of a call");
                let mut result = Box::pin(running).await?;
                let schema = Arc::clone(result.schema());
                let mut cells = Vec::new();
                while let Some(batch) = result.next().await.map_err(stated)? {
                    if batch.num_rows() > 0 {
                        for (field, column) in schema.fields().iter().zip(batch.columns()) {
                            let value = ScalarValue::try_from_array(column, 0)?;
                            cells.push(Cell { value, field: Arc::clone(field) });
                        }
                    }
                }
                cells
            }
        };
        if routine.is_strict && cells.iter().any(|cell| cell.value.is_null()) {
            return null_rows(routine, columns);
        }
        Box::pin(self.run_routine(routine, cells, columns)).await
    }

    /// CALL of a procedure.
    pub(in crate::session) async fn run_call(
        &self,
        call: &Function,
        sql: &str,
    ) -> Result<QueryResult> {
        let block = self.begin_block()?;
        let done = self.run_procedure(call).await;
        self.end_block(block, done.is_ok()).await?;
        let (routine, rows) = done?;
        let tag = with_notices("CALL", &rows.notices).into_owned();
        Ok(match routine.outputs().next() {
            None => QueryResult::done(tag, sql),
            Some(_) => {
                let schema = rows.batches.first().map_or(rows.schema, |batch| batch.schema());
                let result = QueryResult::from_batches(schema, rows.batches, sql);
                result.tagged(StatementTag::shown("CALL")).noting(rows.notices)
            }
        })
    }

    async fn run_procedure(&self, call: &Function) -> Result<(Routine, RoutineRows)> {
        let transaction = self.statement_transaction()?;
        let name = &call.name;
        let found = {
            let planner = self.planner(&transaction, false).await?;
            planner.routine(&planner.state, name)?
        };
        let Some(routine) = found else {
            return stated_err!(UNDEFINED_FUNCTION, "procedure {name}() does not exist");
        };
        if !routine.is_procedure {
            return stated_err!(
                WRONG_OBJECT_TYPE,
                "{name}() is not a procedure; to call a function, use SELECT"
            );
        }
        let mut args = arguments_in(&call.args);
        if args.len() > routine.inputs().count() {
            // OUT parameters have a place in CALL, whose value is not used.
            let is_in: Vec<bool> = routine.parameters.iter().map(|it| it.is_in).collect();
            if args.len() == is_in.len() {
                let mut is_in = is_in.into_iter();
                args.retain(|_| is_in.next().unwrap_or(true));
            }
        }
        let call = FoundCall { routine, args, result: String::new() };
        let _entered = self.routines.enter()?;
        let running = self.run_call_of(&transaction, &call, None);
        let rows = on_deep_stack(stack_for(&call.routine.body), Box::pin(running)).await?;
        Ok((call.routine, rows))
    }

    /// A statement in which calls are replaced by relations without rows: what clients are told about it.
    pub(in crate::session) async fn describe_routines(
        &self,
        planner: &StatementPlanner,
        mut statement: Parsed,
        refusal: DataFusionError,
    ) -> Result<Parsed> {
        let calls = find(planner, &mut statement)?;
        if calls.is_empty() {
            return Err(refusal);
        }
        for FoundCall { routine, args, result } in calls {
            let columns = columns_of_routine(planner, &routine).await?;
            planner.names.hide(&result, Arc::new(rows_of(&columns, Vec::new())?));
            // The parameters in its arguments are those of the statement.
            let given = arguments_of(&planner.state, &routine, &args)?;
            for (input, given) in routine.inputs().zip(given) {
                let text = format!("(CAST(\"$value\" AS {}) IS NULL)", input.of);
                let mut condition = template(&planner.state, &text)?;
                replace_named(&mut condition, "$value", &given);
                put_condition(&mut statement, &result, &condition);
            }
        }
        Ok(statement)
    }
}

fn stated(error: SqlError) -> DataFusionError {
    let detail = error.detail().map(str::to_owned);
    error.state.told(error.message, detail, None)
}

/// Adds a condition to the queries of a result.
fn put_condition(statement: &mut Parsed, result: &str, condition: &Expr) {
    struct Put<'a>(&'a str, &'a Expr);
    impl VisitorMut for Put<'_> {
        type Break = ();

        fn post_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<()> {
            if let TableFactor::Derived { subquery, .. } = factor
                && let SetExpr::Select(select) = subquery.body.as_mut()
                && select.from.len() == 1
                && let TableFactor::Table { name, .. } = &select.from[0].relation
                && name
                    .0
                    .last()
                    .and_then(|part| part.as_ident())
                    .is_some_and(|it| it.value == self.0)
            {
                let added = self.1.clone();
                select.selection = Some(match select.selection.take() {
                    None => added,
                    Some(before) => Expr::BinaryOp {
                        left: Box::new(before),
                        op: BinaryOperator::And,
                        right: Box::new(added),
                    },
                });
                return ControlFlow::Break(());
            }
            ControlFlow::Continue(())
        }
    }
    if let Parsed::Statement(ast) = statement {
        let _ = walk_mut(ast.as_mut(), &mut Put(result, condition));
    }
}

/// What a STRICT function returns for NULL.
fn null_rows(
    routine: &Routine,
    schema: datafusion::arrow::datatypes::SchemaRef,
) -> Result<RoutineRows> {
    let notices = Vec::new();
    if routine.returns_set() {
        return Ok(RoutineRows { schema, batches: Vec::new(), notices });
    }
    let nulls =
        schema.fields().iter().map(|field| ScalarValue::try_from(field.data_type())?.to_array());
    let columns = nulls.collect::<Result<Vec<_>>>()?;
    let batch = datafusion::arrow::array::RecordBatch::try_new(Arc::clone(&schema), columns)?;
    Ok(RoutineRows { schema, batches: vec![batch], notices })
}

/// The query of the arguments of a call; `None` if there are none.
fn arguments(
    planner: &StatementPlanner,
    routine: &Routine,
    args: &[FunctionArg],
) -> Result<Option<ParsedStatement>> {
    let given = arguments_of(&planner.state, routine, args)?;
    if given.is_empty() {
        return Ok(None);
    }
    let items: Vec<String> =
        (0..given.len()).map(|at| format!("\"$value{at}\" AS a{at}")).collect();
    let mut statement = parse(&format!("SELECT {}", items.join(", ")), &planner.state)?;
    if let Parsed::Statement(ast) = &mut statement.statement {
        for (at, given) in given.iter().enumerate() {
            replace_named(ast.as_mut(), &format!("$value{at}"), given);
        }
    }
    Ok(Some(statement))
}

/// Whether a statement reads relations other than the results of calls.
fn reads_others(statement: &Parsed) -> bool {
    let Parsed::Statement(ast) = statement else { return true };
    let source = match ast.as_ref() {
        Ast::Insert(insert) => match &insert.source {
            Some(source) => Ast::Query(source.clone()),
            None => return false,
        },
        ast => ast.clone(),
    };
    walk_relations(&source, &mut |name| match name.to_string().contains(RESULT) {
        true => ControlFlow::Continue(()),
        false => ControlFlow::Break(()),
    })
    .is_break()
}

/// Replaces the calls of a statement that must run before it by their results.
fn find(planner: &StatementPlanner, statement: &mut Parsed) -> Result<Vec<FoundCall>> {
    let Parsed::Statement(ast) = statement else { return Ok(Vec::new()) };
    let is_served = matches!(
        ast.as_ref(),
        Ast::Query(_)
            | Ast::Insert(_)
            | Ast::Update(_)
            | Ast::Delete(_)
            | Ast::Merge(_)
            | Ast::CreateTable(_)
    );
    if !is_served {
        return Ok(Vec::new());
    }
    let mut finder = Finder {
        planner,
        calls: Vec::new(),
        frames: Vec::new(),
        expressions: 0,
        subqueries: 0,
        conditions: 0,
    };
    match walk_mut(ast.as_mut(), &mut finder) {
        ControlFlow::Continue(()) => Ok(finder.calls),
        ControlFlow::Break(error) => Err(error),
    }
}

struct Finder<'a> {
    planner: &'a StatementPlanner,
    calls: Vec<FoundCall>,
    /// For each query and SELECT around: whether it has one row, and whether it began within an expression.
    frames: Vec<(bool, bool)>,
    expressions: usize,
    /// Queries around that are in expressions.
    subqueries: usize,
    /// Expressions around that may not evaluate their parts.
    conditions: usize,
}

impl Finder<'_> {
    /// The routine of a call, if it must run first.
    fn routine(&self, name: &ObjectName) -> Result<Option<Routine>> {
        if is_builtin(&self.planner.state, &name.to_string().to_lowercase()) {
            return Ok(None);
        }
        let Some(routine) = self.planner.routine(&self.planner.state, name)? else {
            return Ok(None);
        };
        let own = routine.own_name();
        if routine.is_procedure {
            return stated_err!(
                WRONG_OBJECT_TYPE,
                "{own}() is a procedure; to call a procedure, use CALL"
            );
        }
        let query = query_of_sql(&routine, &self.planner.state)?;
        let is_replaced = query.is_some_and(|query| !calls(query.as_ref(), &own));
        Ok((!is_replaced).then_some(routine))
    }

    fn add(&mut self, routine: Routine, args: Vec<FunctionArg>, is_once: bool) -> Result<String> {
        let own = routine.own_name();
        if args.iter().any(names_columns) {
            return stated_err!(
                FEATURE_NOT_SUPPORTED,
                "function {own}() cannot be called with columns: it runs statements, and so runs before the statement \
                 that calls it; a function in SQL with one query can"
            );
        }
        if routine.is_volatile && !is_once {
            return stated_err!(
                FEATURE_NOT_SUPPORTED,
                "function {own}() cannot be called here: it runs statements, and this place may need it any number of \
                 times; call it in FROM, in VALUES or in a SELECT without FROM, or declare it STABLE"
            );
        }
        let result = format!("{RESULT}{}", self.calls.len() + 1);
        self.calls.push(FoundCall { routine, args, result: result.clone() });
        Ok(result)
    }

    fn value(&mut self, expr: &mut Expr) -> Result<()> {
        let Expr::Function(Function { name, args, .. }) = expr else { return Ok(()) };
        let Some(routine) = self.routine(name)? else { return Ok(()) };
        let own = routine.own_name();
        if routine.returns_set() || routine.returns == Returns::Row {
            return stated_err!(
                FEATURE_NOT_SUPPORTED,
                "function {own}() returns rows; call it in FROM"
            );
        }
        let is_single = self.frames.last().is_some_and(|(is_single, _)| *is_single);
        let is_once = is_single && self.subqueries == 0 && self.conditions == 0;
        let is_row = self.is_row(&routine)?;
        let result = self.add(routine, arguments_in(args), is_once)?;
        let result = quote_identifier(&result).into_owned();
        let text = match is_row {
            true => format!("(SELECT x FROM (SELECT * FROM {result}) AS x)"),
            false => {
                let column = quote_identifier(&own).into_owned();
                format!("(SELECT x.{column} FROM (SELECT * FROM {result}) AS x({column}))")
            }
        };
        *expr = template(&self.planner.state, &text)?;
        Ok(())
    }

    /// Whether its value is a row of a table.
    fn is_row(&self, routine: &Routine) -> Result<bool> {
        let Returns::One(of) = &routine.returns else { return Ok(false) };
        match crate::session::ddl::routines::type_name(of) {
            Some(name) => {
                let at = self.planner.resolve_in(&self.planner.state, &name)?;
                Ok(self.planner.names.table(&at)?.is_some())
            }
            None => Ok(false),
        }
    }

    fn rows(&mut self, factor: &mut TableFactor) -> Result<()> {
        let (name, args, alias) = match factor {
            TableFactor::Table { name, args: Some(args), alias, .. } => {
                (name, args.args.clone(), alias)
            }
            TableFactor::Function { name, args, alias, .. } => (name, args.clone(), alias),
            _ => return Ok(()),
        };
        let Some(routine) = self.routine(name)? else { return Ok(()) };
        let own = routine.own_name();
        let is_scalar = matches!(routine.returns, Returns::One(_) | Returns::Many(_))
            && routine.outputs().next().is_none()
            && !self.is_row(&routine)?
            && !self.is_set_of_rows(&routine)?;
        let mut alias = alias.take().unwrap_or_else(|| TableAlias {
            explicit: true,
            name: quoted(&own),
            columns: vec![],
            at: None,
        });
        if is_scalar && alias.columns.is_empty() {
            alias.columns = vec![TableAliasColumnDef { name: alias.name.clone(), data_type: None }];
        }
        let is_once = self.subqueries == 0;
        let result = self.add(routine, args, is_once)?;
        let text = format!("SELECT * FROM {}", quote_identifier(&result));
        if let Parsed::Statement(ast) = parse(&text, &self.planner.state)?.statement
            && let Ast::Query(subquery) = *ast
        {
            *factor =
                TableFactor::Derived { lateral: false, subquery, alias: Some(alias), sample: None };
        }
        Ok(())
    }

    fn is_set_of_rows(&self, routine: &Routine) -> Result<bool> {
        let Returns::Many(of) = &routine.returns else { return Ok(false) };
        let of = Returns::One(of.clone());
        self.is_row(&Routine { returns: of, ..routine.clone() })
    }
}

/// The arguments of a call.
fn arguments_in(args: &FunctionArguments) -> Vec<FunctionArg> {
    match args {
        FunctionArguments::List(list) => list.args.clone(),
        _ => Vec::new(),
    }
}

/// Whether an expression may not evaluate its parts.
fn is_conditional(expr: &Expr) -> bool {
    match expr {
        Expr::Case { .. } => true,
        Expr::BinaryOp { op: BinaryOperator::And | BinaryOperator::Or, .. } => true,
        Expr::Function(function) => {
            let name = function.name.0.last().and_then(|part| part.as_ident()).map(folded);
            name.is_some_and(|name| {
                ["coalesce", "if", "ifnull", "nvl", "try"].contains(&name.as_str())
            })
        }
        _ => false,
    }
}

/// A name for the column of a call without one: its text.
fn name_calls(finder: &Finder<'_>, select: &mut Select) -> Result<()> {
    for item in &mut select.projection {
        if let SelectItem::UnnamedExpr(expr @ Expr::Function(_)) = item
            && let Expr::Function(function) = &*expr
            && finder.routine(&function.name)?.is_some()
        {
            let alias: Ident = quoted(&expr.to_string());
            *item = SelectItem::ExprWithAlias { expr: expr.clone(), alias };
        }
    }
    Ok(())
}

impl VisitorMut for Finder<'_> {
    type Break = DataFusionError;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<DataFusionError> {
        let is_within = self.expressions > 0;
        self.subqueries += usize::from(is_within);
        self.frames.push((matches!(query.body.as_ref(), SetExpr::Values(_)), is_within));
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<DataFusionError> {
        if let Some((_, is_within)) = self.frames.pop() {
            self.subqueries -= usize::from(is_within);
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<DataFusionError> {
        let is_single = select.from.is_empty() && select.selection.is_none();
        self.frames.push((is_single, false));
        flow(name_calls(self, select))
    }

    fn post_visit_select(&mut self, _: &mut Select) -> ControlFlow<DataFusionError> {
        self.frames.pop();
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<DataFusionError> {
        flow(self.rows(factor))
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<DataFusionError> {
        if let Err(error) = self.value(expr) {
            return ControlFlow::Break(error);
        }
        self.expressions += 1;
        self.conditions += usize::from(is_conditional(expr));
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<DataFusionError> {
        self.expressions -= 1;
        self.conditions -= usize::from(is_conditional(expr));
        ControlFlow::Continue(())
    }
}
