//! Macros: expressions and queries under a name, with parameters. Calls are replaced before planning.
//!
//! ```text
//! CREATE MACRO add(a, b := 1) AS a + b          SELECT add(x)          SELECT (x + 1)
//! CREATE MACRO first(n) AS TABLE SELECT …       FROM first(3)          FROM (SELECT …)
//! ```
//!
//! A macro is its text, stored under its name followed by `()`, as views are.

use atoll_sql_common::error::{SqlState, stated_err};
use atoll_sql_parse::syntax::{flow, walk_mut};
use std::borrow::Cow;
use std::ops::ControlFlow;
use std::sync::Arc;

use atoll_store::database::{CatalogChange, RelationName, StoredStatement};
use datafusion::common::{DataFusionError, Result, TableReference, exec_err, plan_err};
use datafusion::execution::SessionState;
use datafusion::sql::parser::{CopyToSource, Statement as Parsed};
use datafusion::sql::planner::object_name_to_table_reference;
use datafusion::sql::sqlparser::ast::{
    Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, FunctionDesc, Ident, MacroArg,
    MacroDefinition, ObjectName, Query, SelectItem, Statement as Ast, TableFactor, Value, Visit,
    VisitMut, VisitorMut,
};

use crate::session::plan::planner::StatementPlanner;
use crate::session::statement::command_tag::{missing, with_notices};
use atoll_sql_common::functions::Functions;
use atoll_sql_common::names::{relation_name, resolve};
use atoll_sql_parse::dialect::call;
use atoll_sql_parse::parse::{Routine, check_depth, expect_bodies, separate_with_names};

/// Maximum number of expanded calls in a statement: beyond it a macro calls itself.
const CALLS_MAX: usize = 10_000;

/// How many bodies of macros and functions stand in one another at most.
const DEPTH_MAX: usize = 32;

impl StatementPlanner {
    /// Runs CREATE and DROP MACRO; `None` for other statements.
    pub(in crate::session) async fn macros(
        &self,
        ast: &Ast,
        sql: &str,
    ) -> Result<Option<Cow<'static, str>>> {
        match ast {
            Ast::CreateMacro { temporary: true, .. } => {
                exec_err!(
                    "CREATE TEMPORARY MACRO is not supported; leave out TEMPORARY, and drop it when it is done"
                )
            }
            Ast::CreateMacro { or_replace, name, args, .. } => {
                self.check_macro(name, args.as_deref().unwrap_or_default())?;
                let at = self.resolve_new(macro_reference(&self.state, name)?)?;
                let at = relation_name(&at);
                match (self.names.macro_text(&at), or_replace) {
                    (Some(_), false) => {
                        return stated_err!(
                            DUPLICATE_FUNCTION,
                            "macro '{name}' exists already; CREATE OR REPLACE MACRO replaces it"
                        );
                    }
                    (Some(_), true) => {
                        self.define(CatalogChange::Drop { name: at.clone() }).await?;
                    }
                    (None, _) => {}
                }
                let options = &self.state.config_options();
                let sql = sql.trim().trim_end_matches(';').trim_end();
                let statement = StoredStatement {
                    sql: sql.into(),
                    schema: options.catalog.default_schema.as_str().into(),
                    options: "".into(),
                };
                let statement = Arc::new(statement);
                expect_bodies();
                self.define(CatalogChange::CreateExternal { name: at, statement }).await?;
                Ok(Some("CREATE MACRO".into()))
            }
            Ast::DropFunction(drop) => {
                let tag = self.drop_routines(&drop.func_desc, drop.if_exists, false).await?;
                Ok(Some(tag))
            }
            Ast::DropProcedure { if_exists, proc_desc, .. } => {
                Ok(Some(self.drop_routines(proc_desc, *if_exists, true).await?))
            }
            _ => Ok(None),
        }
    }

    /// DROP FUNCTION, DROP MACRO and DROP PROCEDURE; the tag.
    async fn drop_routines(
        &self,
        named: &[FunctionDesc],
        if_exists: bool,
        is_procedure: bool,
    ) -> Result<Cow<'static, str>> {
        let kind = if is_procedure { "procedure" } else { "function" };
        let mut tag = if is_procedure { "DROP PROCEDURE" } else { "DROP FUNCTION" };
        let mut passed = Vec::new();
        for routine in named {
            let at = self.macro_name(&self.state, &routine.name)?;
            match self.names.macro_text(&at) {
                Some(text) if self.is_dropped(&text, routine, is_procedure)? => {
                    if Routine::parse(&text)?.is_none() {
                        tag = "DROP MACRO";
                    }
                    self.define(CatalogChange::Drop { name: at }).await?;
                }
                _ if if_exists => passed.push(missing(kind, &routine.name)),
                _ => {
                    return stated_err!(UNDEFINED_FUNCTION, "{kind} {routine} does not exist");
                }
            }
        }
        Ok(with_notices(tag, &passed))
    }

    fn check_macro(&self, name: &ObjectName, args: &[MacroArg]) -> Result<()> {
        let plain = name.to_string().to_lowercase();
        if is_builtin(&self.state, &plain) {
            return exec_err!("'{name}' is a function already; give the macro another name");
        }
        let mut has_default = false;
        for (at, arg) in args.iter().enumerate() {
            if args[..at].iter().any(|other| same(&other.name.value, &arg.name.value)) {
                return exec_err!("macro '{name}' has two parameters '{}'", arg.name);
            }
            if has_default && arg.default_expr.is_none() {
                return exec_err!(
                    "parameter '{}' follows one with a default and needs one too",
                    arg.name
                );
            }
            has_default |= arg.default_expr.is_some();
        }
        Ok(())
    }

    /// The name of a macro under some settings: those of the view that calls it.
    pub(in crate::session) fn macro_name(
        &self,
        state: &SessionState,
        name: &ObjectName,
    ) -> Result<RelationName> {
        Ok(relation_name(&resolve(state, macro_reference(state, name)?)))
    }

    /// Expands the calls of macros.
    pub(in crate::session) fn expand_macros(
        &self,
        state: &SessionState,
        statement: &mut Parsed,
    ) -> Result<()> {
        let mut calls = Calls { planner: self, state, left: CALLS_MAX, depth: 0 };
        let visited = match statement {
            Parsed::Statement(ast) => match ast.as_mut() {
                Ast::CreateMacro { .. } => return Ok(()),
                ast => walk_mut(ast, &mut calls),
            },
            Parsed::Explain(explain) => return self.expand_macros(state, &mut explain.statement),
            Parsed::CopyTo(copy) => match &mut copy.source {
                CopyToSource::Query(query) => walk_mut(query, &mut calls),
                CopyToSource::Relation(_) => ControlFlow::Continue(()),
            },
            _ => ControlFlow::Continue(()),
        };
        let is_expanded = calls.left < CALLS_MAX;
        if is_expanded && let Parsed::Statement(ast) = &*statement {
            check_depth(ast)?;
        }
        match visited {
            // The names of WITH in a macro may be those around it.
            ControlFlow::Continue(()) if is_expanded => separate_with_names(statement),
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(error) => Err(error),
        }
    }
}

/// The name under which a macro is stored.
pub(in crate::session) fn macro_reference(
    state: &SessionState,
    name: &ObjectName,
) -> Result<TableReference> {
    let normalize = state.config_options().sql_parser.enable_ident_normalization;
    let name = object_name_to_table_reference(name.clone(), normalize)?;
    let kept = format!("{}()", name.table());
    Ok(match (name.catalog(), name.schema()) {
        (Some(catalog), Some(schema)) => TableReference::full(catalog, schema, kept),
        (None, Some(schema)) => TableReference::partial(schema, kept),
        _ => TableReference::bare(kept),
    })
}

pub(in crate::session) fn is_builtin(state: &SessionState, name: &str) -> bool {
    let functions = Functions::for_session(state);
    functions.has_scalar(name)
        || functions.aggregate(name).is_some()
        || functions.window(name).is_some()
}

fn same(one: &str, other: &str) -> bool {
    one.eq_ignore_ascii_case(other)
}

struct Calls<'a> {
    planner: &'a StatementPlanner,
    state: &'a SessionState,
    left: usize,
    /// In how many bodies the call stands that is expanded.
    depth: usize,
}

impl Calls<'_> {
    /// Counts an expanded call.
    fn take_one(&mut self, name: &ObjectName) -> Result<()> {
        if self.left == 0 {
            return plan_err!(
                "macro '{name}' is called more than {CALLS_MAX} times: it calls itself"
            );
        }
        self.left -= 1;
        Ok(())
    }

    /// Expands the calls in the body of a macro or function.
    ///
    /// # Errors
    /// If too many bodies stand in one another, or expressions with the arguments.
    fn expand_body(&mut self, name: &ObjectName, body: &mut (impl Visit + VisitMut)) -> Result<()> {
        if self.depth == DEPTH_MAX {
            return Err(SqlState::STATEMENT_TOO_COMPLEX.error(format!(
                "stack depth limit exceeded: {name}() is called within more than {DEPTH_MAX} others; does it call itself?"
            )));
        }
        self.depth += 1;
        let expanded = walk_mut(body, self);
        self.depth -= 1;
        match expanded {
            ControlFlow::Continue(()) => check_depth(body),
            ControlFlow::Break(error) => Err(error),
        }
    }

    /// Expands the calls in arguments, which stand outside of the body that takes them.
    fn expand_arguments(&mut self, arguments: &mut Vec<FunctionArg>) -> Result<()> {
        match walk_mut(arguments, self) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(error) => Err(error),
        }
    }

    /// The parameters and the body of the macro with a name.
    fn found(&mut self, name: &ObjectName) -> Result<Option<(Vec<MacroArg>, MacroDefinition)>> {
        let Ok(at) = self.planner.macro_name(self.state, name) else { return Ok(None) };
        let Some(sql) = self.planner.names.macro_text(&at) else { return Ok(None) };
        self.take_one(name)?;
        let Parsed::Statement(ast) = atoll_sql_parse::parse::parse(&sql, self.state)? else {
            return Ok(None);
        };
        match *ast {
            Ast::CreateMacro { args, definition, .. } => {
                Ok(Some((args.unwrap_or_default(), definition)))
            }
            _ => Ok(None),
        }
    }

    fn expr(&mut self, expr: &mut Expr) -> Result<()> {
        let Expr::Function(Function { name, args, .. }) = expr else { return Ok(()) };
        if is_builtin(self.state, &name.to_string().to_lowercase()) {
            return Ok(());
        }
        let mut given = match args {
            FunctionArguments::List(list) => list.args.clone(),
            _ => Vec::new(),
        };
        if let Some(routine) = self.planner.routine(self.state, name)? {
            self.take_one(name)?;
            self.expand_arguments(&mut given)?;
            let mut value = self.planner.inlined_value(self.state, &routine, &given)?;
            self.expand_body(name, &mut value)?;
            *expr = Expr::Nested(Box::new(value));
            return Ok(());
        }
        let Some((parameters, definition)) = self.found(name)? else { return Ok(()) };
        let MacroDefinition::Expr(mut body) = definition else {
            return plan_err!("macro '{name}' gives a table; write FROM {name}(…)");
        };
        self.expand_arguments(&mut given)?;
        bind(name, &parameters, &given)?.put_into(&mut body)?;
        self.expand_body(name, &mut body)?;
        *expr = Expr::Nested(Box::new(body));
        Ok(())
    }

    fn factor(&mut self, factor: &mut TableFactor) -> Result<()> {
        let TableFactor::Table { name, args: Some(args), alias, .. } = factor else {
            return Ok(());
        };
        if let Some(routine) = self.planner.routine(self.state, name)? {
            self.take_one(name)?;
            let (mut given, alias) = (args.args.clone(), alias.take());
            self.expand_arguments(&mut given)?;
            let mut rows = self.planner.inlined_rows(self.state, &routine, &given, alias)?;
            self.expand_body(&name.clone(), &mut rows)?;
            *factor = rows;
            return Ok(());
        }
        let Some((parameters, definition)) = self.found(name)? else { return Ok(()) };
        let MacroDefinition::Table(mut query) = definition else {
            return plan_err!("macro '{name}' gives a value; write SELECT {name}(…)");
        };
        let mut given = args.args.clone();
        self.expand_arguments(&mut given)?;
        bind(name, &parameters, &given)?.put_into(&mut query)?;
        self.expand_body(name, &mut query)?;
        let alias = alias.take();
        *factor = TableFactor::Derived { lateral: false, subquery: query, alias, sample: None };
        Ok(())
    }
}

/// The values of the parameters.
fn bind(name: &ObjectName, parameters: &[MacroArg], given: &[FunctionArg]) -> Result<Bound> {
    let mut values: Vec<Option<Expr>> = vec![None; parameters.len()];
    for (at, arg) in given.iter().enumerate() {
        let (at, value) = match arg {
            FunctionArg::Unnamed(FunctionArgExpr::Expr(value)) => (Some(at), value),
            FunctionArg::Named { name, arg: FunctionArgExpr::Expr(value), .. } => {
                (parameters.iter().position(|other| same(&other.name.value, &name.value)), value)
            }
            other => return plan_err!("macro '{name}' takes values, not {other}"),
        };
        match at.and_then(|at| values.get_mut(at)) {
            Some(place) => *place = Some(Expr::Nested(Box::new(value.clone()))),
            None => {
                return plan_err!(
                    "macro '{name}' has no parameter for {arg}; it has {}",
                    parameters.len()
                );
            }
        }
    }
    let mut bound = Vec::with_capacity(parameters.len());
    for (parameter, value) in parameters.iter().zip(values) {
        let Some(value) = value.or_else(|| parameter.default_expr.clone()) else {
            return plan_err!("macro '{name}' needs a value of '{}'", parameter.name);
        };
        bound.push((parameter.name.value.clone(), value));
    }
    Ok(Bound(bound))
}

/// Replaces names with values.
struct Bound(Vec<(String, Expr)>);

impl Bound {
    fn put_into(mut self, body: &mut impl VisitMut) -> Result<()> {
        let _ = walk_mut(body, &mut self);
        Ok(())
    }
}

impl VisitorMut for Bound {
    type Break = ();

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        let (name, fields) = match expr {
            Expr::Identifier(name) => (&*name, &[][..]),
            // A field of a parameter's value.
            Expr::CompoundIdentifier(parts) => match parts.split_first() {
                Some((name, fields)) => (name, fields),
                None => return ControlFlow::Continue(()),
            },
            _ => return ControlFlow::Continue(()),
        };
        let Some((_, value)) = self.0.iter().find(|(other, _)| same(other, &name.value)) else {
            return ControlFlow::Continue(());
        };
        let field = |root, field: &Ident| {
            let name = Value::SingleQuotedString(field.value.clone());
            call("get_field", vec![root, Expr::value(name)])
        };
        *expr = fields.iter().fold(value.clone(), field);
        ControlFlow::Continue(())
    }
}

impl VisitorMut for Calls<'_> {
    type Break = DataFusionError;

    fn pre_visit_select(
        &mut self,
        select: &mut datafusion::sql::sqlparser::ast::Select,
    ) -> ControlFlow<Self::Break> {
        for item in &mut select.projection {
            // A column that is a call keeps the call's text as its name.
            if let SelectItem::UnnamedExpr(expr @ Expr::Function(_)) = item {
                let mut value = expr.clone();
                if let Err(error) = self.expr(&mut value) {
                    return ControlFlow::Break(error);
                }
                if matches!(value, Expr::Nested(_)) {
                    let alias = crate::session::dml::change::quoted(&expr.to_string());
                    *item = SelectItem::ExprWithAlias { expr: value, alias };
                }
            }
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Self::Break> {
        flow(self.expr(expr))
    }

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<Self::Break> {
        flow(self.factor(factor))
    }

    fn pre_visit_query(&mut self, _: &mut Query) -> ControlFlow<Self::Break> {
        ControlFlow::Continue(())
    }
}
