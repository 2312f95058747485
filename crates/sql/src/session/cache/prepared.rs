//! PREPARE, EXECUTE and DEALLOCATE: named statements. They run by the cached plans of their texts, if these fit, and
//! are planned anew otherwise.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::SystemTime;

use atoll_functions::temporal::{StatementClock, read_scalar};
use datafusion::arrow::datatypes::{DataType, Field};
use datafusion::common::metadata::ScalarAndMetadata;
use datafusion::common::{
    DataFusionError, ParamValues, Result, ScalarValue, internal_err, not_impl_err, plan_err,
};
use datafusion::execution::SessionState;
use datafusion::logical_expr::simplify::SimplifyContext;
use datafusion::logical_expr::{
    Execute, Expr, LogicalPlan, PlanType, Prepare, Statement, ToStringifiedPlan,
};
use datafusion::optimizer::simplify_expressions::ExprSimplifier;
use datafusion::sql::parser::Statement as Parsed;
use datafusion::sql::sqlparser::ast::{SetExpr, Statement as Ast};
use parking_lot::Mutex;

use crate::pg_catalog::{PreparedRow, PreparedRows};
use crate::session::Session;
use crate::session::dml::locking_subqueries;
use crate::session::plan::modifying_with;
use crate::session::plan::planner::StatementPlanner;
use atoll_sql_common::error::{SqlError, SqlState, stated_err};
use atoll_sql_common::pg_type::{PgType, format_type};
use atoll_sql_common::user_type::enum_within;
use atoll_sql_parse::dialect::quoted;
use atoll_sql_parse::parse::parse;
use atoll_sql_parse::syntax::sql_text;
use atoll_sql_semantics::arithmetic::convert_in;

/// The statement of an EXECUTE, with the values of its parameters.
pub(in crate::session) struct ExecutedStatement {
    pub(in crate::session) statement: Ast,
    pub(in crate::session) values: ParamValues,
}

/// The prepared statements of a session: their texts, since names are resolved when they run.
#[derive(Debug, Default)]
pub(in crate::session) struct PreparedStatements {
    /// Those of PREPARE.
    named: Mutex<HashMap<String, NamedStatement>>,
    /// Those that the client keeps under a name, without PREPARE.
    of_client: Mutex<BTreeMap<String, ClientStatement>>,
}

/// A statement that a client prepared by its protocol.
#[derive(Debug)]
struct ClientStatement {
    text: String,
    since: SystemTime,
    /// The OIDs of the types of its parameters.
    types: Vec<u32>,
}

/// A named statement.
#[derive(Debug)]
struct NamedStatement {
    /// The whole PREPARE.
    prepare: Ast,
    text: PreparedText,
    /// Whether it changes the store.
    writes: bool,
    /// The PREPARE as it was written.
    written: String,
    since: SystemTime,
}

impl PreparedRows for PreparedStatements {
    fn rows(&self) -> Vec<PreparedRow> {
        let kept = self.named.lock();
        let row = |(name, named): (&String, &NamedStatement)| {
            let types = named.text.types.iter().map(|of| {
                let field = Field::new("", of.clone(), true);
                i64::from(PgType::of_field(&field).oid)
            });
            PreparedRow {
                name: name.clone(),
                statement: named.written.clone(),
                since: named.since,
                types: types.collect(),
                from_sql: true,
            }
        };
        let of_client = self.of_client.lock();
        let others = of_client.iter().map(|(name, kept)| PreparedRow {
            name: name.clone(),
            statement: kept.text.clone(),
            since: kept.since,
            types: kept.types.iter().copied().map(i64::from).collect(),
            from_sql: false,
        });
        kept.iter().map(row).chain(others).collect()
    }
}

/// The text of a prepared statement, with the types of its parameters.
#[derive(Clone, Debug)]
pub(in crate::session) struct PreparedText {
    pub(in crate::session) text: Arc<str>,
    pub(in crate::session) types: Arc<[DataType]>,
    pub(in crate::session) is_query: bool,
}

impl PreparedStatements {
    /// Keeps `statement`, whose current plan is `prepare`; `parameters` are all that it has, `sql` is what was written.
    pub(in crate::session) fn keep(
        &self,
        prepare: &Prepare,
        statement: Ast,
        parameters: usize,
        sql: &str,
    ) -> Result<()> {
        check(prepare, parameters)?;
        match self.named.lock().entry(prepare.name.clone()) {
            Entry::Occupied(_) => Err(SqlState::DUPLICATE_PREPARED_STATEMENT.error(format!(
                "prepared statement \"{0}\" already exists; remove it with DEALLOCATE {0}",
                prepare.name
            ))),
            Entry::Vacant(vacant) => {
                let Ast::Prepare { statement: inner, .. } = &statement else {
                    return internal_err!("'{}' is not prepared by PREPARE", prepare.name);
                };
                let types = prepare.fields.iter().map(|field| field.data_type().clone()).collect();
                let is_query = matches!(**inner, Ast::Query(_));
                let writes = is_write(inner) || locking_subqueries::is_in(inner);
                let text = PreparedText { text: sql_text(inner.as_ref()).into(), types, is_query };
                let (written, since) = (sql.trim().to_owned(), SystemTime::now());
                vacant.insert(NamedStatement { prepare: statement, text, writes, written, since });
                Ok(())
            }
        }
    }

    /// The text of a named statement.
    pub(in crate::session) fn text(&self, name: &str) -> Option<PreparedText> {
        self.named.lock().get(name).map(|named| named.text.clone())
    }

    /// Whether a statement changes the store; EXECUTE does if its statement does.
    pub(in crate::session) fn writes(&self, statement: &Parsed) -> bool {
        let ast = match statement {
            Parsed::Statement(ast) => ast.as_ref(),
            Parsed::Explain(explain) => return self.writes(&explain.statement),
            _ => return false,
        };
        match ast {
            Ast::Explain { statement, .. } => self.writes(&Parsed::Statement(statement.clone())),
            Ast::Execute { name: Some(name), .. } => {
                let kept = self.named.lock();
                let name = name.0.last().and_then(|part| part.as_ident());
                let Some(name) = name else { return false };
                match kept.get(&name.value) {
                    Some(named) => named.writes,
                    // It is parsed when it runs.
                    None => self.of_client.lock().contains_key(&name.value),
                }
            }
            ast => is_write(ast),
        }
    }

    pub(in crate::session) fn remove(&self, name: &str) -> Result<()> {
        if name.eq_ignore_ascii_case("all") {
            self.named.lock().clear();
            return Ok(());
        }
        match self.named.lock().remove(name) {
            Some(_) => Ok(()),
            None => Err(unknown(name)),
        }
    }

    /// Keeps a statement that a client prepared by its protocol, for `pg_prepared_statements` and EXECUTE.
    pub(in crate::session) fn keep_of_client(&self, name: &str, text: &str, types: Vec<u32>) {
        let kept =
            ClientStatement { text: text.trim().to_owned(), since: SystemTime::now(), types };
        self.of_client.lock().insert(name.to_owned(), kept);
    }

    /// Forgets such a statement, or all.
    pub(in crate::session) fn forget_of_client(&self, name: Option<&str>) {
        let mut kept = self.of_client.lock();
        match name {
            Some(name) => drop(kept.remove(name)),
            None => kept.clear(),
        }
    }

    /// The PREPARE that a client's statement would be.
    fn prepare_of_client(&self, name: &str, state: &SessionState) -> Result<Ast> {
        let kept = self.of_client.lock();
        let kept = kept.get(name).ok_or_else(|| unknown(name))?;
        let types = kept.types.iter().map(|oid| format_type(i64::from(*oid), -1));
        let types: Vec<String> = types.collect();
        let list = if types.is_empty() { String::new() } else { format!("({})", types.join(", ")) };
        let sql = format!("PREPARE {}{list} AS {}", quoted(name), kept.text);
        match parse(&sql, state)? {
            Parsed::Statement(statement) => Ok(*statement),
            _ => Err(unknown(name)),
        }
    }

    /// The plan, with EXECUTE replaced by the prepared statement, and that statement; also under EXPLAIN.
    pub(in crate::session) async fn bound(
        &self,
        planner: &StatementPlanner,
        plan: LogicalPlan,
    ) -> Result<(LogicalPlan, Option<ExecutedStatement>)> {
        match plan {
            LogicalPlan::Statement(Statement::Execute(execute)) => {
                let (executed, plan) = self.bind(planner, execute).await?;
                Ok((plan, Some(executed)))
            }
            LogicalPlan::Explain(mut explain) => {
                if let LogicalPlan::Statement(Statement::Execute(execute)) = explain.plan.as_ref() {
                    let (_, plan) = self.bind(planner, execute.clone()).await?;
                    explain.stringified_plans =
                        vec![plan.to_stringified(PlanType::InitialLogicalPlan)];
                    explain.plan = Arc::new(plan);
                }
                Ok((LogicalPlan::Explain(explain), None))
            }
            LogicalPlan::Analyze(mut analyze) => {
                if let LogicalPlan::Statement(Statement::Execute(execute)) = analyze.input.as_ref()
                {
                    analyze.input = Arc::new(self.bind(planner, execute.clone()).await?.1);
                }
                Ok((LogicalPlan::Analyze(analyze), None))
            }
            plan => Ok((plan, None)),
        }
    }

    /// The prepared statement that EXECUTE names, and its plan with the parameters bound.
    async fn bind(
        &self,
        planner: &StatementPlanner,
        execute: Execute,
    ) -> Result<(ExecutedStatement, LogicalPlan)> {
        let Execute { name, parameters } = execute;
        // Its parameters are not those of the EXECUTE.
        let planner = &planner.of_another(None);
        let statement = self.named.lock().get(&name).map(|named| named.prepare.clone());
        let statement = match statement {
            Some(statement) => statement,
            None => self.prepare_of_client(&name, &planner.state)?,
        };
        let text = Parsed::Statement(Box::new(statement.clone()));
        let plan = planner.plan_other(text).await.map_err(|error| {
            let SqlError { state, message, .. } = SqlError::new(error, "");
            state.error(format!("prepared statement \"{name}\": {message}"))
        })?;
        let LogicalPlan::Statement(Statement::Prepare(prepare)) = plan else {
            return internal_err!("'{name}' was not prepared by PREPARE");
        };
        let values = ParamValues::List(values(&planner.state, &prepare, parameters)?);
        let Ast::Prepare { statement, .. } = statement else {
            return internal_err!("'{name}' was not prepared by PREPARE");
        };
        let plan = match planner.rule_parameters.is_empty() {
            true => Arc::unwrap_or_clone(prepare.input),
            // Parts outside the plan were planned without values.
            false => {
                let planner = planner.of_another(Some(values.clone()));
                planner.plan_other(Parsed::Statement(statement.clone())).await?
            }
        };
        let plan = planner.labelled(plan.replace_params_with_values(&values)?)?;
        Ok((ExecutedStatement { statement: *statement, values }, plan))
    }
}

impl Session {
    /// Keeps a statement that a client prepared under a name by its protocol, with the OIDs of its parameters' types:
    /// `pg_prepared_statements` lists it, and EXECUTE runs it.
    pub fn keep_client_statement(&self, name: &str, sql: &str, types: Vec<u32>) {
        self.prepared.keep_of_client(name, sql, types);
    }

    /// Forgets such a statement; without a name, all of them.
    pub fn forget_client_statement(&self, name: Option<&str>) {
        self.prepared.forget_of_client(name);
    }
}

fn is_write(ast: &Ast) -> bool {
    match ast {
        Ast::Query(query) => {
            let changes = matches!(
                *query.body,
                SetExpr::Insert(_) | SetExpr::Update(_) | SetExpr::Delete(_) | SetExpr::Merge(_)
            );
            changes || !query.locks.is_empty() || modifying_with::are_in(ast)
        }
        Ast::Insert(_) | Ast::Update(_) | Ast::Delete(_) | Ast::Merge(_) | Ast::Truncate(_) => true,
        Ast::CreateTable(_) | Ast::CreateView(_) | Ast::CreateSchema { .. } => true,
        Ast::CreateSequence { .. } | Ast::AlterTable(_) | Ast::Drop { .. } => true,
        Ast::CreateMacro { .. } | Ast::DropFunction(_) | Ast::DropProcedure { .. } => true,
        Ast::CreateType { .. } | Ast::AlterType(_) => true,
        Ast::CreateDomain(_) | Ast::DropDomain(_) => true,
        _ => false,
    }
}

fn unknown(name: &str) -> DataFusionError {
    let message = format!("prepared statement \"{name}\" does not exist");
    SqlState::INVALID_STATEMENT_NAME.error(message)
}

fn check(prepare: &Prepare, named: usize) -> Result<()> {
    if matches!(*prepare.input, LogicalPlan::Statement(_)) {
        return plan_err!(
            "PREPARE expects a query, INSERT, COPY, or a statement that creates a \
                          table"
        );
    }
    let types = prepare.fields.len();
    if types > 0 && types != named {
        return stated_err!(
            SYNTAX_ERROR,
            "PREPARE declares {types} types of parameters, but the statement has {named} parameters"
        );
    }
    Ok(())
}

/// The values of the parameters, cast to the types that the statement requires.
fn values(
    state: &SessionState,
    prepare: &Prepare,
    parameters: Vec<Expr>,
) -> Result<Vec<ScalarAndMetadata>> {
    let (wanted, given) = (prepare.fields.len(), parameters.len());
    if wanted > 0 && wanted != given {
        return stated_err!(
            SYNTAX_ERROR,
            "wrong number of parameters for prepared statement \"{}\": it has {wanted}, not {given}",
            prepare.name
        );
    }
    let context = SimplifyContext::builder()
        .with_schema(Arc::clone(prepare.input.schema()))
        .with_config_options(Arc::clone(state.config_options()))
        .with_query_execution_start_time(state.execution_props().query_execution_start_time)
        .build();
    let simplifier = ExprSimplifier::new(context);
    let options = state.config_options();
    let clock = StatementClock::from_options(options);
    let mut values = Vec::with_capacity(given);
    for (index, parameter) in parameters.into_iter().enumerate() {
        let Expr::Literal(value, metadata) = simplifier.simplify(parameter)? else {
            return not_impl_err!("parameter {} of EXECUTE is not a constant", index + 1);
        };
        let field = prepare.fields.get(index);
        // The statement casts labels, which it knows.
        if value.data_type().is_string()
            && field.is_some_and(|field| enum_within(field.data_type()).is_some())
        {
            values.push(ScalarAndMetadata::new(value, metadata));
            continue;
        }
        let text = value.try_as_str().flatten().zip(field);
        let read = match text {
            Some((text, field)) if field.data_type().is_nested() => {
                let text = ScalarValue::from(text).to_array()?;
                let list = convert_in(&text, field.data_type(), false, clock)?;
                Some(ScalarValue::try_from_array(&list, 0)?)
            }
            Some((text, field)) => read_scalar(text, field.data_type(), clock),
            None => None,
        };
        let value = ScalarAndMetadata::new(read.unwrap_or(value), metadata);
        values.push(match prepare.fields.get(index) {
            Some(field) => value.cast_storage_to(field.data_type())?,
            None => value,
        });
    }
    Ok(values)
}
