//! Runs functions and procedures: their arguments become variables, and what they return becomes rows.

use std::sync::Arc;

use atoll_sql_parse::parse::{Returns, Routine};
use datafusion::arrow::array::{ArrayRef, AsArray, RecordBatch, RecordBatchOptions};
use datafusion::arrow::compute::{CastOptions, cast_with_options};
use datafusion::arrow::datatypes::{DataType, Field, Fields, Schema, SchemaRef};
use datafusion::common::{Result, ScalarValue};
use datafusion::sql::parser::Statement as Parsed;
use datafusion::sql::sqlparser::ast::{Query, SetExpr, Statement as Ast};

use super::run::BlockRun;
use super::tree::{Block, Source, Step};
use super::variables::{Cell, Scope, Variable, VariableType};
use crate::session::Session;
use crate::session::plan::planner::StatementPlanner;
use crate::session::statement::parsed_statement::parse;
use crate::session::statement::split::split_statements;
use atoll_sql_common::error::stated_err;
use atoll_sql_common::names::quote_identifier;

/// What a routine returned.
#[derive(Debug)]
pub(in crate::session) struct RoutineRows {
    pub(in crate::session) schema: SchemaRef,
    pub(in crate::session) batches: Vec<RecordBatch>,
    pub(in crate::session) notices: Vec<String>,
}

/// What a running routine has returned.
#[derive(Debug)]
pub(super) struct Results {
    returns: Returns,
    /// The type of the only value.
    of: Option<VariableType>,
    /// The names of the OUT parameters.
    outputs: Vec<String>,
    columns: SchemaRef,
    batches: Vec<RecordBatch>,
    has_returned: bool,
    is_sql: bool,
}

/// The code of a routine: a function in SQL runs its statements, and returns the rows of the last one.
pub(in crate::session) fn body_of(routine: &Routine) -> Result<Block> {
    if routine.is_block {
        return Block::parse(&routine.body);
    }
    let mut steps = Vec::new();
    for statement in
        split_statements(&routine.body).map_err(|error| error.state.error(error.message))?
    {
        steps.push(Step::Perform(statement.text));
    }
    match (steps.pop(), &routine.returns) {
        (Some(Step::Perform(last)), returns) if *returns != Returns::Nothing => {
            steps.push(Step::ReturnQuery(Source::Sql(last)));
        }
        (last, _) => steps.extend(last),
    }
    Ok(Block { steps, ..Block::default() })
}

/// The only query of a function in SQL; `None` if it has other statements.
pub(in crate::session) fn query_of_sql(
    routine: &Routine,
    state: &datafusion::execution::SessionState,
) -> Result<Option<Box<Query>>> {
    if routine.is_block || routine.is_procedure || routine.returns == Returns::Nothing {
        return Ok(None);
    }
    let statements = split_statements(&routine.body);
    let statements = statements.map_err(|error| error.state.error(error.message))?;
    let [only] = statements.as_slice() else { return Ok(None) };
    match parse(&only.text, state)?.statement {
        Parsed::Statement(ast) => match *ast {
            Ast::Query(query) => {
                let is_read = matches!(
                    query.body.as_ref(),
                    SetExpr::Select(_)
                        | SetExpr::Values(_)
                        | SetExpr::SetOperation { .. }
                        | SetExpr::Query(_)
                );
                let is_plain = is_read
                    && query.locks.is_empty()
                    && !crate::session::plan::modifying_with::are_in(&Ast::Query(query.clone()));
                Ok(is_plain.then_some(query))
            }
            _ => Ok(None),
        },
        _ => Ok(None),
    }
}

/// The columns of what a routine returns.
pub(in crate::session) async fn columns_of_routine(
    planner: &StatementPlanner,
    routine: &Routine,
) -> Result<SchemaRef> {
    let own = routine.own_name();
    let mut items = Vec::new();
    let relation = |of: &str| -> Result<bool> {
        let sql = format!("SELECT * FROM {of}");
        let Ok(parsed) = parse(&sql, &planner.state) else { return Ok(false) };
        let (names, _) =
            datafusion::sql::resolve::resolve_table_references(&parsed.statement, true)?;
        Ok(match names.into_iter().next() {
            Some(name) => planner.names.table(&planner.resolve(name))?.is_some(),
            None => false,
        })
    };
    let mut outputs: Vec<(String, &str)> = Vec::new();
    for (at, output) in routine.outputs().enumerate() {
        let name = output.name.clone().unwrap_or_else(|| format!("column{}", at + 1));
        outputs.push((name, output.of.as_str()));
    }
    if let (Returns::One(of) | Returns::Many(of), true) = (&routine.returns, outputs.is_empty()) {
        if relation(of)? {
            return planned_schema(planner, &format!("SELECT * FROM {of}")).await;
        }
        outputs.push((own, of.as_str()));
    }
    for (name, of) in outputs {
        let name = quote_identifier(&name).into_owned();
        items.push(match relation(of)? {
            true => format!("(SELECT x FROM {of} AS x LIMIT 0) AS {name}"),
            false => format!("CAST(NULL AS {of}) AS {name}"),
        });
    }
    if items.is_empty() {
        let name = quote_identifier(&routine.own_name()).into_owned();
        items.push(format!("CAST(NULL AS text) AS {name}"));
    }
    planned_schema(planner, &format!("SELECT {}", items.join(", "))).await
}

async fn planned_schema(planner: &StatementPlanner, sql: &str) -> Result<SchemaRef> {
    let statement = parse(sql, &planner.state)?.statement;
    let plan = planner.labelled(planner.plan_other(statement).await?)?;
    let nullable = |field: &Arc<Field>| Arc::new(field.as_ref().clone().with_nullable(true));
    let fields: Fields = plan.schema().fields().iter().map(nullable).collect();
    Ok(Arc::new(Schema::new(fields)))
}

impl Session {
    /// Runs a routine with the values of its arguments.
    pub(in crate::session) async fn run_routine(
        &self,
        routine: &Routine,
        arguments: Vec<Cell>,
        columns: SchemaRef,
    ) -> Result<RoutineRows> {
        let block = body_of(routine)?;
        let of = match &routine.returns {
            Returns::One(of) | Returns::Many(of) => Some(of.clone()),
            _ => None,
        };
        let outputs = routine.outputs().map(|it| it.name.clone().unwrap_or_default()).collect();
        let results = Results {
            returns: routine.returns.clone(),
            of: None,
            outputs,
            columns: Arc::clone(&columns),
            batches: Vec::new(),
            has_returned: false,
            is_sql: !routine.is_block,
        };
        let mut run = BlockRun::new(self, Some(results));
        if let Some(of) = of {
            let of = run.variable_type(&of).await?;
            if let Some(results) = &mut run.results {
                results.of = Some(of);
            }
        }
        run.pass(routine, arguments).await?;
        run.block(&block).await?;
        let batches = run.returned_rows(routine)?;
        Ok(RoutineRows { schema: columns, batches, notices: run.notices })
    }
}

impl BlockRun<'_> {
    /// Makes the parameters variables.
    async fn pass(&mut self, routine: &Routine, arguments: Vec<Cell>) -> Result<()> {
        let mut arguments = arguments.into_iter();
        let mut variables = Vec::new();
        for parameter in &routine.parameters {
            let of = self.variable_type(&parameter.of).await?;
            let mut cell = self.null_of(&of).await?;
            if parameter.is_in
                && let Some(argument) = arguments.next()
                && !argument.value.is_null()
            {
                cell = match &of {
                    VariableType::Cast(of) => self.cast(argument, of).await?,
                    _ => argument,
                };
            }
            let name = parameter.name.clone().unwrap_or_default();
            let (is_constant, is_not_null) = (false, false);
            variables.push(Variable { name, of, is_constant, is_not_null, cell });
        }
        let inputs = routine.parameters.iter().enumerate().filter(|(_, it)| it.is_in);
        let first = self.scopes.list.first().map_or(0, |scope| scope.variables.len());
        self.scopes.parameters = inputs.map(|(at, _)| first + at).collect();
        if let Some(Scope { label, variables: outer }) = self.scopes.list.first_mut() {
            *label = Some(routine.own_name());
            outer.extend(variables);
        }
        Ok(())
    }

    /// RETURN
    pub(super) async fn returned(&mut self, value: Option<&str>) -> Result<()> {
        let Some(results) = &mut self.results else {
            return match value {
                None => Ok(()),
                Some(_) => stated_err!(DATATYPE_MISMATCH, "RETURN cannot have a parameter in DO"),
            };
        };
        results.has_returned = true;
        let (returns, of) = (results.returns.clone(), results.of.clone());
        match (value, returns) {
            (None, Returns::One(_)) if results.outputs.is_empty() => {
                stated_err!(SYNTAX_ERROR, "missing expression: RETURN needs the value")
            }
            (None, _) => Ok(()),
            (Some(value), Returns::One(_)) if results.outputs.is_empty() => {
                let of = of.unwrap_or(VariableType::Record);
                let cell = self.converted(value, &of).await?;
                self.add(vec![cell])
            }
            (Some(_), Returns::Nothing) => stated_err!(
                DATATYPE_MISMATCH,
                "RETURN cannot have a parameter in function returning void"
            ),
            (Some(_), Returns::Many(_) | Returns::Rows) => stated_err!(
                DATATYPE_MISMATCH,
                "RETURN cannot have a parameter in function returning set; use RETURN NEXT"
            ),
            (Some(_), _) => stated_err!(
                DATATYPE_MISMATCH,
                "RETURN cannot have a parameter in function with OUT parameters"
            ),
        }
    }

    /// RETURN NEXT
    pub(super) async fn return_next(&mut self, value: Option<&str>) -> Result<()> {
        self.check_returns_set("RETURN NEXT")?;
        let of = self.results.as_ref().and_then(|results| results.of.clone());
        let cells = match value {
            Some(value) => vec![self.converted(value, &of.unwrap_or(VariableType::Record)).await?],
            None => self.outputs(),
        };
        self.add(cells)
    }

    /// RETURN QUERY
    pub(super) async fn return_query(&mut self, source: &Source) -> Result<()> {
        if self.results.as_ref().is_none_or(|results| !results.is_sql) {
            self.check_returns_set("RETURN QUERY")?;
        }
        let ran = self.run(source).await?;
        if let Some(results) = &mut self.results {
            results.has_returned = true;
        }
        self.row_count = ran.count.unwrap_or(0);
        self.set_found(self.row_count > 0);
        for batch in &ran.batches {
            let columns = batch.columns().to_vec();
            self.add_columns(columns, batch.num_rows())?;
        }
        Ok(())
    }

    fn check_returns_set(&self, what: &str) -> Result<()> {
        match &self.results {
            Some(Results { returns: Returns::Many(_) | Returns::Rows, .. }) => Ok(()),
            _ => stated_err!(SYNTAX_ERROR, "cannot use {what} in a non-SETOF function"),
        }
    }

    /// The values of the OUT parameters.
    fn outputs(&self) -> Vec<Cell> {
        let Some(results) = &self.results else { return Vec::new() };
        let variables = self.scopes.list.first().map(|scope| scope.variables.as_slice());
        let value = |name: &String| {
            let found = variables?.iter().find(|variable| variable.name == *name)?;
            Some(found.cell.clone())
        };
        results.outputs.iter().filter_map(value).collect()
    }

    /// Adds a row to the result; a value that is a row becomes its columns.
    fn add(&mut self, cells: Vec<Cell>) -> Result<()> {
        let mut columns = Vec::with_capacity(cells.len());
        for cell in &cells {
            columns.push(cell.value.to_array()?);
        }
        self.add_columns(columns, 1)
    }

    fn add_columns(&mut self, mut columns: Vec<ArrayRef>, rows: usize) -> Result<()> {
        let Some(results) = &mut self.results else { return Ok(()) };
        let fields = results.columns.fields().clone();
        if let [column] = columns.as_slice()
            && let Some(row) = column.as_struct_opt()
            && !(fields.len() == 1 && fields[0].data_type().is_nested())
        {
            columns = row.columns().to_vec();
        }
        if let [column] = columns.as_slice()
            && column.data_type() == &DataType::Null
            && fields.len() > 1
        {
            let nulls = fields
                .iter()
                .map(|field| ScalarValue::try_from(field.data_type())?.to_array_of_size(rows));
            columns = nulls.collect::<Result<_>>()?;
        }
        if columns.len() != fields.len() {
            return stated_err!(
                DATATYPE_MISMATCH,
                "structure of query does not match function result type: it returns {} columns, and the \
                 function {}",
                columns.len(),
                fields.len()
            );
        }
        let mut converted = Vec::with_capacity(columns.len());
        let mut actual = Vec::with_capacity(columns.len());
        for (column, field) in columns.into_iter().zip(fields.iter()) {
            let column = fitted(&column, field)?;
            actual.push(field.as_ref().clone().with_data_type(column.data_type().clone()));
            converted.push(column);
        }
        let schema = Arc::new(Schema::new(actual));
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        results.batches.push(RecordBatch::try_new_with_options(schema, converted, &options)?);
        Ok(())
    }

    /// All rows that the routine returned.
    fn returned_rows(&mut self, routine: &Routine) -> Result<Vec<RecordBatch>> {
        let outputs = self.outputs();
        let Some(results) = &self.results else { return Ok(Vec::new()) };
        let (is_set, is_empty) = (routine.returns_set(), results.batches.is_empty());
        match &routine.returns {
            Returns::Nothing => {
                let text = ScalarValue::Utf8View(None);
                self.add(vec![Cell::new(text)])?;
            }
            _ if is_set => {}
            _ if !outputs.is_empty() && routine.is_block => self.add(outputs)?,
            _ if is_empty && !routine.is_block => {
                let columns = results
                    .columns
                    .fields()
                    .iter()
                    .map(|field| ScalarValue::try_from(field.data_type())?.to_array());
                let columns = columns.collect::<Result<Vec<_>>>()?;
                self.add_columns(columns, 1)?;
            }
            _ if !results.has_returned => {
                return stated_err!(
                    NO_FUNCTION_RETURN,
                    "control reached end of function without RETURN"
                );
            }
            _ => {}
        }
        let batches = self.results.take().map(|results| results.batches).unwrap_or_default();
        if is_set {
            return Ok(batches);
        }
        let first = batches.into_iter().find(|batch| batch.num_rows() > 0);
        Ok(first.map(|batch| batch.slice(0, 1)).into_iter().collect())
    }
}

/// A column with the type of the result's: numbers and texts are converted.
fn fitted(column: &ArrayRef, field: &Field) -> Result<ArrayRef> {
    let (from, to) = (column.data_type(), field.data_type());
    if from == to {
        return Ok(Arc::clone(column));
    }
    let is_text = |of: &DataType| {
        matches!(of, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View)
            || matches!(of, DataType::Dictionary(_, value) if value.is_string())
    };
    let is_kind = std::mem::discriminant(from) == std::mem::discriminant(to);
    let widens = from.is_integer() && to.is_numeric() || from.is_floating() && to.is_floating();
    let is_like = widens
        || is_text(from) && is_text(to)
        || is_kind && !from.is_nested()
        || *from == DataType::Null;
    if is_like {
        return Ok(cast_with_options(
            column,
            to,
            &CastOptions { safe: false, ..Default::default() },
        )?);
    }
    // Rows and lists keep the types of their parts.
    if is_kind {
        return Ok(Arc::clone(column));
    }
    stated_err!(
        DATATYPE_MISMATCH,
        "structure of query does not match function result type: column \"{}\" is {from}, and the function \
         returns {to}",
        field.name()
    )
}
