//! Functions and procedures: their definitions, and functions in SQL in place of their calls.
//!
//! ```text
//! CREATE FUNCTION inc(a INT) RETURNS INT LANGUAGE sql AS 'SELECT a + 1'
//! SELECT inc(x)          SELECT CAST((CAST(x AS INT) + 1) AS INT)
//! FROM few(3)            FROM (SELECT … FROM (its query) AS few(…))
//! ```
//!
//! A routine is its text, stored as macros are: under its name followed by `()`. A name has one routine, whatever its
//! parameters are. Routines that run statements are not replaced: `statement/routine_call.rs` runs them.

mod bodies;
mod queries;

use std::ops::ControlFlow;
use std::sync::Arc;

use atoll_store::database::{CatalogChange, StoredStatement};
use datafusion::common::Result;
use datafusion::execution::SessionState;
use datafusion::sql::sqlparser::ast::{
    ArgMode, DataType as SqlType, Expr, FunctionArg, FunctionDesc, ObjectName, Query, TableAlias,
    TableFactor,
};

use crate::session::Session;
use crate::session::ddl::macros::{is_builtin, macro_reference};
use crate::session::dml::change::quoted;
use crate::session::plan::planner::StatementPlanner;
use crate::session::statement::block::{body_of, query_of_sql};
use atoll_sql_common::error::{SqlState, stated_err};
use atoll_sql_common::names::{TEMPORARY, quote_identifier, relation_name};
use atoll_sql_parse::parse::{Returns, Routine, expect_bodies};
use atoll_sql_parse::syntax::{walk_mut, walk_relations};

pub(in crate::session) use queries::{arguments_of, calls, names_columns, replace_named, template};

use bodies::*;
use queries::*;

impl Session {
    /// CREATE FUNCTION and CREATE PROCEDURE; the tag.
    pub(in crate::session) async fn create_routine(
        &self,
        routine: &Routine,
        sql: &str,
    ) -> Result<&'static str> {
        let transaction = self.statement_transaction()?;
        let planner = self.planner(&transaction, true).await?;
        let created = planner.create_routine(routine, sql).await;
        if created.is_err() {
            transaction.fail_settled().await;
        }
        transaction.finish(self.database()).await?;
        created
    }
}

impl StatementPlanner {
    /// CREATE FUNCTION and CREATE PROCEDURE.
    pub(in crate::session) async fn create_routine(
        &self,
        routine: &Routine,
        sql: &str,
    ) -> Result<&'static str> {
        let (name, kind) = (&routine.name, routine.kind());
        let own = routine.own_name();
        if is_builtin(&self.state, &own) {
            return stated_err!(
                DUPLICATE_FUNCTION,
                "\"{own}\" is a built-in function; give the {kind} another name"
            );
        }
        let reference = macro_reference(&self.state, name)?;
        let is_temporary = reference.schema().is_some_and(|schema| schema == TEMPORARY);
        let at = match is_temporary {
            true => self.temporary(&reference)?,
            false => self.resolve_new(reference)?,
        };
        let at = relation_name(&at);
        body_of(routine)?;
        query_of_sql(routine, &self.state)?;
        if let Some(before) = self.names.macro_text(&at) {
            let before = Routine::parse(&before)?;
            check_replaced(before.as_ref(), routine)?;
            self.define(CatalogChange::Drop { name: at.clone() }).await?;
        }
        self.make_temporary_schema(&at.schema).await?;
        let schema = self.state.config_options().catalog.default_schema.as_str().into();
        let sql = sql.trim().trim_end_matches(';').trim_end().into();
        let statement = Arc::new(StoredStatement { sql, schema, options: "".into() });
        expect_bodies();
        self.define(CatalogChange::CreateExternal { name: at, statement }).await?;
        Ok(if routine.is_procedure { "CREATE PROCEDURE" } else { "CREATE FUNCTION" })
    }

    /// Whether DROP names the routine or macro with this text: by the types of its parameters, if it has any.
    pub(in crate::session) fn is_dropped(
        &self,
        text: &str,
        named: &FunctionDesc,
        is_procedure: bool,
    ) -> Result<bool> {
        let Some(routine) = Routine::parse(text)? else { return Ok(!is_procedure) };
        if routine.is_procedure != is_procedure {
            return Ok(false);
        }
        let Some(args) = &named.args else { return Ok(true) };
        let inputs: Vec<String> = routine.inputs().map(|input| plain_type(&input.of)).collect();
        let is_in = |mode: &Option<ArgMode>| !matches!(mode, Some(ArgMode::Out));
        let given = args.iter().filter(|arg| is_in(&arg.mode));
        let given: Vec<String> = given.map(|arg| plain_type(&arg.data_type.to_string())).collect();
        Ok(inputs == given)
    }

    /// The routine with a name, under some settings.
    pub(in crate::session) fn routine(
        &self,
        state: &SessionState,
        name: &ObjectName,
    ) -> Result<Option<Routine>> {
        let Ok(at) = self.macro_name(state, name) else { return Ok(None) };
        match self.names.macro_text(&at) {
            Some(text) => Routine::parse(&text),
            None => Ok(None),
        }
    }

    /// The value of a function in SQL.
    pub(in crate::session) fn inlined_value(
        &self,
        state: &SessionState,
        routine: &Routine,
        args: &[FunctionArg],
    ) -> Result<Expr> {
        let own = routine.own_name();
        let query = self.query_of_routine(state, routine)?;
        let Returns::One(of) = &routine.returns else {
            return match &routine.returns {
                Returns::Row => stated_err!(
                    FEATURE_NOT_SUPPORTED,
                    "function {own}() returns a row; call it in FROM"
                ),
                _ => stated_err!(
                    FEATURE_NOT_SUPPORTED,
                    "function {own}() returns rows; call it in FROM"
                ),
            };
        };
        if self.is_of_table(state, routine)? {
            return stated_err!(
                FEATURE_NOT_SUPPORTED,
                "function {own}() returns a row; call it in FROM"
            );
        }
        let arguments = self.arguments(state, routine, args)?;
        let (query, arguments) = self.with_arguments(state, routine, query, arguments)?;
        let value = match only_expr(&query) {
            Some(value) => value,
            None => Expr::Subquery(Box::new(first_row(*query))),
        };
        let value = with_value(template(state, &format!("CAST(\"$value\" AS {of})"))?, value);
        Ok(match routine.is_strict && !arguments.is_empty() {
            true => {
                let nulls = any_null(&arguments);
                let case = template(state, "CASE WHEN \"$value\" THEN NULL ELSE \"$other\" END")?;
                with_named(with_value(case, nulls), "$other", value)
            }
            false => value,
        })
    }

    /// The rows of a function in SQL.
    pub(in crate::session) fn inlined_rows(
        &self,
        state: &SessionState,
        routine: &Routine,
        args: &[FunctionArg],
        alias: Option<TableAlias>,
    ) -> Result<TableFactor> {
        let own = routine.own_name();
        let is_lateral = args.iter().any(names_columns);
        let mut alias = alias.unwrap_or_else(|| TableAlias {
            explicit: true,
            name: quoted(&own),
            columns: vec![],
            at: None,
        });
        let is_single = routine.outputs().count() < 2;
        if is_single && alias.columns.is_empty() && !self.is_of_table(state, routine)? {
            let output = routine.outputs().next().and_then(|output| output.name.clone());
            let name = output.map_or_else(|| alias.name.clone(), |name| quoted(&name));
            alias.columns = vec![datafusion::sql::sqlparser::ast::TableAliasColumnDef {
                name,
                data_type: None,
            }];
        }
        let query = match &routine.returns {
            Returns::One(_) if !self.is_of_table(state, routine)? => {
                let value = self.inlined_value(state, routine, args)?;
                parsed_with(state, "SELECT \"$value\" AS v", "$value", value)?
            }
            _ => {
                let query = self.query_of_routine(state, routine)?;
                let arguments = self.arguments(state, routine, args)?;
                let (query, arguments) = self.with_arguments(state, routine, query, arguments)?;
                self.rows_of_query(state, routine, query, &arguments)?
            }
        };
        Ok(TableFactor::Derived {
            lateral: is_lateral,
            subquery: query,
            alias: Some(alias),
            sample: None,
        })
    }

    /// The rows of its query with the declared names and types.
    fn rows_of_query(
        &self,
        state: &SessionState,
        routine: &Routine,
        mut query: Box<Query>,
        arguments: &[Expr],
    ) -> Result<Box<Query>> {
        let mut columns: Vec<(String, String)> = Vec::new();
        for (at, output) in routine.outputs().enumerate() {
            let name = output.name.clone().unwrap_or_else(|| format!("column{}", at + 1));
            columns.push((quote_identifier(&name).into_owned(), output.of.clone()));
        }
        if let (Returns::Many(of), true) = (&routine.returns, columns.is_empty())
            && !self.is_of_table(state, routine)?
        {
            columns.push((quote_identifier(&routine.own_name()).into_owned(), of.clone()));
        }
        let items = columns
            .iter()
            .enumerate()
            .map(|(at, (name, of))| format!("CAST(\"$c{at}\" AS {of}) AS {name}"));
        let items: Vec<String> = items.collect();
        let names: Vec<String> = (0..columns.len()).map(|at| format!("\"$c{at}\"")).collect();
        let (items, names) = match columns.is_empty() {
            true => ("\"$rows\".*".to_owned(), String::new()),
            false => (items.join(", "), format!("({})", names.join(", "))),
        };
        let is_set = routine.returns_set();
        if !is_set {
            query = Box::new(first_row(*query));
        }
        let from = match is_set {
            true => format!("(SELECT 1) AS \"$rows\"{names}"),
            false => {
                format!("(SELECT 1) AS \"$one\" LEFT JOIN (SELECT 1) AS \"$rows\"{names} ON true")
            }
        };
        let is_checked = routine.is_strict && !arguments.is_empty();
        let condition = match (is_checked, is_set) {
            (true, true) => " WHERE NOT (\"$value\")",
            _ => "",
        };
        let text = format!("SELECT {items} FROM {from}{condition}");
        let mut outer = parsed_with(state, &text, "$value", any_null(arguments))?;
        put_rows(&mut outer, query);
        Ok(outer)
    }

    /// Whether it returns rows of a table.
    fn is_of_table(&self, state: &SessionState, routine: &Routine) -> Result<bool> {
        let (Returns::Many(of) | Returns::One(of)) = &routine.returns else { return Ok(false) };
        if routine.outputs().next().is_some() {
            return Ok(false);
        }
        let name = type_name(of);
        match name {
            Some(name) => Ok(self.names.table(&self.resolve_in(state, &name)?)?.is_some()),
            None => Ok(false),
        }
    }

    /// Its query, or that it must be run.
    fn query_of_routine(&self, state: &SessionState, routine: &Routine) -> Result<Box<Query>> {
        let own = routine.own_name();
        if routine.is_procedure {
            return stated_err!(
                WRONG_OBJECT_TYPE,
                "{own}() is a procedure; to call a procedure, use CALL"
            );
        }
        let query = query_of_sql(routine, state)?;
        // One that calls itself would be replaced without end.
        match query.filter(|query| !calls(query.as_ref(), &own)) {
            Some(query) => Ok(query),
            None => {
                self.routine_calls.note();
                stated_err!(
                    FEATURE_NOT_SUPPORTED,
                    "function {own}() cannot be called here: it runs statements, so it is called with constants and \
                     parameters, in FROM, VALUES or a SELECT without FROM"
                )
            }
        }
    }

    /// The arguments as values of the parameters' types.
    fn arguments(
        &self,
        state: &SessionState,
        routine: &Routine,
        args: &[FunctionArg],
    ) -> Result<Vec<Expr>> {
        let given = arguments_of(state, routine, args)?;
        let mut arguments = Vec::with_capacity(given.len());
        for (input, given) in routine.inputs().zip(given) {
            let is_row = match type_name(&input.of) {
                Some(name) => self.names.table(&self.resolve_in(state, &name)?)?.is_some(),
                None => false,
            };
            let text = format!("CAST(\"$value\" AS {})", input.of);
            arguments.push(match is_row {
                true => given,
                false => with_value(template(state, &text)?, given),
            });
        }
        Ok(arguments)
    }

    /// The query with the arguments in place of the parameters.
    fn with_arguments(
        &self,
        state: &SessionState,
        routine: &Routine,
        mut query: Box<Query>,
        arguments: Vec<Expr>,
    ) -> Result<(Box<Query>, Vec<Expr>)> {
        let own = routine.own_name();
        let scope = self.body_scope(state, query.as_mut())?;
        for argument in &arguments {
            check_captured(&own, argument, &scope)?;
        }
        let names = routine.inputs().map(|input| input.name.clone()).collect();
        let mut parameters = Parameters {
            own: own.clone(),
            names,
            values: &arguments,
            scope: &scope,
            used: vec![0; arguments.len()],
        };
        match walk_mut(query.as_mut(), &mut parameters) {
            ControlFlow::Continue(()) => {}
            ControlFlow::Break(error) => return Err(error),
        }
        let used = parameters.used;
        for (argument, used) in arguments.iter().zip(used) {
            let times = used + usize::from(routine.is_strict);
            if times != 1 && calls_volatile(state, argument) {
                return stated_err!(
                    FEATURE_NOT_SUPPORTED,
                    "function {own}(): an argument that differs each time, such as random(), is not supported where \
                     the function uses it {times} times; put it into a subquery"
                );
            }
        }
        Ok((query, arguments))
    }

    /// What the names in a body may mean. Its relations get their full names: WITH around the call does not hide them.
    fn body_scope(&self, state: &SessionState, query: &mut Query) -> Result<BodyScope> {
        let mut scope = BodyScope::default();
        let mut names: Vec<ObjectName> = Vec::new();
        let _: ControlFlow<()> = walk_relations(&*query, &mut |name| {
            names.push(name.clone());
            ControlFlow::Continue(())
        });
        for name in names {
            let Some(found) = self.names.table(&self.resolve_in(state, &name)?)? else { continue };
            if found.is::<crate::catalog::UnplannedView>() {
                scope.has_views = true;
            }
            scope.columns.extend(found.schema().fields().iter().map(|it| it.name().clone()));
        }
        let mut full =
            FullNames { planner: self, state, scope: &mut scope, queries: 0, defined: vec![] };
        match walk_mut(query, &mut full) {
            ControlFlow::Continue(()) => Ok(scope),
            ControlFlow::Break(error) => Err(error),
        }
    }
}

/// Checks that a routine may replace one with its name.
fn check_replaced(before: Option<&Routine>, routine: &Routine) -> Result<()> {
    let (own, kind) = (routine.own_name(), routine.kind());
    let Some(before) = before else {
        return stated_err!(
            DUPLICATE_FUNCTION,
            "\"{own}\" is a macro; drop it with DROP MACRO {own}"
        );
    };
    let types = |routine: &Routine| -> Vec<String> {
        routine.inputs().map(|input| plain_type(&input.of)).collect()
    };
    if types(before) != types(routine) {
        return stated_err!(
            FEATURE_NOT_SUPPORTED,
            "{kind} \"{own}\" exists with other parameters; a name has one {kind} only: drop it first, or give this one \
             another name"
        );
    }
    if !routine.or_replace {
        return stated_err!(
            DUPLICATE_FUNCTION,
            "{kind} \"{own}\" already exists with same argument types"
        );
    }
    if before.is_procedure != routine.is_procedure {
        return stated_err!(WRONG_OBJECT_TYPE, "cannot change routine kind of \"{own}\"");
    }
    if before.returns != routine.returns {
        return Err(SqlState::INVALID_FUNCTION_DEFINITION.detailed(
            "cannot change return type of existing function",
            format!("\"{own}\" returns another type"),
            "Use DROP FUNCTION first.",
        ));
    }
    Ok(())
}

/// A type as PostgreSQL compares it in the list of parameters: without lengths, under one name.
fn plain_type(text: &str) -> String {
    let text = text.to_lowercase();
    let plain = text.split('(').next().unwrap_or_default().trim();
    let suffix = if text.trim_end().ends_with(']') && !plain.ends_with(']') { "[]" } else { "" };
    let plain = match plain {
        "int" | "int4" => "integer",
        "int8" => "bigint",
        "int2" => "smallint",
        "bool" => "boolean",
        "float8" | "float" | "double" => "double precision",
        "float4" => "real",
        "decimal" => "numeric",
        "varchar" | "character varying" | "string" => "varchar",
        "timestamp without time zone" => "timestamp",
        "timestamp with time zone" => "timestamptz",
        other => other,
    };
    format!("{}{suffix}", plain.replace(' ', ""))
}

/// The name of a type that is not built in.
pub(in crate::session) fn type_name(text: &str) -> Option<ObjectName> {
    use datafusion::sql::sqlparser::dialect::PostgreSqlDialect;
    use datafusion::sql::sqlparser::parser::Parser;
    let mut parser = Parser::new(&PostgreSqlDialect {}).try_with_sql(text).ok()?;
    match parser.parse_data_type().ok()? {
        SqlType::Custom(name, more) if more.is_empty() => Some(name),
        _ => None,
    }
}
