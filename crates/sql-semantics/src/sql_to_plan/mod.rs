//! DataFusion's SQL planner with the session's functions.

mod multirange_rows;
mod outer_aliases;
mod plan_names;
mod whole_rows;

use std::collections::HashMap;
use std::sync::Arc;

use atoll_sql_common::names::resolve;
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::catalog::cte_worktable::CteWorkTable;
use datafusion::catalog::{Session as SessionTrait, TableFunctionArgs};
use datafusion::common::config::ConfigOptions;
use datafusion::common::file_options::file_type::FileType;
use datafusion::common::{
    DFSchema, ResolvedTableReference, Result, TableReference, plan_datafusion_err,
};
use datafusion::datasource::file_format::format_as_file_type;
use datafusion::datasource::provider_as_source;
use datafusion::execution::SessionState;
use datafusion::logical_expr::planner::{
    ContextProvider, ExprPlanner, RelationPlanner, TypePlanner,
};
use datafusion::logical_expr::simplify::SimplifyContext;
use datafusion::logical_expr::var_provider::{VarType, is_system_variables};
use datafusion::logical_expr::{
    AggregateUDF, Expr, HigherOrderUDF, LogicalPlan, ScalarUDF, TableSource, WindowUDF,
};
use datafusion::optimizer::simplify_expressions::ExprSimplifier;
use datafusion::sql::parser::Statement as Parsed;
use datafusion::sql::planner::{ParserOptions, PlannerContext, SqlToRel};

use crate::domains;
use crate::marks::{self, inserted_parameters, keep_marks};
use crate::type_resolution::{mark_siblings, mark_siblings_within};
use crate::volatile::share_ctes;
use atoll_sql_common::functions::Functions;
use atoll_sql_common::user_type::UserTypes;
use atoll_sql_parse::dialect::SqlTypes;
use outer_aliases::FarTables;
use whole_rows::WholeRows;

pub use whole_rows::PlanWholeRows;

/// Plans a statement over the tables that it names; also returns the names of its CTEs.
///
/// # Errors
/// If the statement cannot be planned.
pub async fn statement_to_plan(
    state: &SessionState,
    mut statement: Parsed,
    ctes: &[TableReference],
) -> Result<LogicalPlan> {
    let mut names = StateNames::new(state);
    for name in state.resolve_table_references(&statement)? {
        let name = resolve(state, name);
        if names.tables.contains_key(&name) {
            continue;
        }
        let Ok(schema) = state.schema_for_ref(name.clone()) else { continue };
        if let Some(table) = schema.table(&name.table).await? {
            names.tables.insert(name, provider_as_source(table));
        }
    }
    let options = parser_options(state);
    let normalizes = options.enable_ident_normalization;
    let rows = WholeRows::from_statement(&mut statement, normalizes);
    if let Some(rows) = rows.as_ref().filter(|rows| rows.are_certain()) {
        rows.mark(&mut statement);
    }
    let planner = SqlToRel::new_with_options(&names, options);
    let rows = rows.filter(|rows| !rows.are_certain()).map(|rows| (rows, statement.clone()));
    let (plan, is_marked) = match (planned(&planner, statement, normalizes), rows) {
        (Err(error), Some((rows, mut statement))) if rows.are_missing(&error) => {
            rows.mark(&mut statement);
            planned(&planner, statement, normalizes)
        }
        (planned, _) => planned,
    }?;
    let plan = if ctes.is_empty() { plan } else { share_ctes(plan, ctes)? };
    let plan = if is_marked { plan_names::unmark(plan)? } else { plan };
    keep_marks(inserted_parameters(plan)?)
}

/// Plans a statement, and returns whether parts of its names are marked.
fn planned(
    planner: &SqlToRel<'_, StateNames<'_>>,
    statement: Parsed,
    normalizes: bool,
) -> Result<(LogicalPlan, bool)> {
    let unnested = multirange_rows::may_have(&statement).then(|| statement.clone());
    match (planned_as_written(planner, statement, normalizes), unnested) {
        (Err(error), Some(mut statement)) if multirange_rows::are_meant(&error) => {
            multirange_rows::rewrite(&mut statement);
            planned_as_written(planner, statement, normalizes)
        }
        (planned, _) => planned,
    }
}

fn planned_as_written(
    planner: &SqlToRel<'_, StateNames<'_>>,
    mut statement: Parsed,
    normalizes: bool,
) -> Result<(LogicalPlan, bool)> {
    let far = FarTables::from_statement(&statement, normalizes);
    let far = far.map(|far| (far, statement.clone()));
    let is_marked = plan_names::mark(&mut statement);
    mark_siblings(&mut statement);
    let plan = match (planner.statement_to_plan(statement), far) {
        (Err(error), Some((far, mut statement))) if FarTables::are_hidden(&error) => {
            far.rename(&mut statement);
            plan_names::mark(&mut statement);
            mark_siblings(&mut statement);
            planner.statement_to_plan(statement)
        }
        (planned, _) => planned,
    }?;
    Ok((plan, is_marked))
}

/// Parses and plans an expression over these columns.
///
/// # Errors
/// If the text cannot be parsed or planned.
pub fn create_logical_expr(state: &SessionState, text: &str, columns: &DFSchema) -> Result<Expr> {
    let dialect = &state.config_options().sql_parser.dialect;
    let mut parsed = state.sql_to_expr_with_alias(text, dialect)?;
    mark_siblings_within(&mut parsed.expr);
    let names = StateNames::new(state);
    let planner = SqlToRel::new_with_options(&names, parser_options(state));
    planner.sql_to_expr_with_alias(parsed, columns, &mut PlannerContext::new())
}

fn parser_options(state: &SessionState) -> ParserOptions {
    let options = &state.config_options().sql_parser;
    ParserOptions {
        parse_float_as_decimal: options.parse_float_as_decimal,
        enable_ident_normalization: options.enable_ident_normalization,
        enable_options_value_normalization: options.enable_options_value_normalization,
        support_varchar_with_length: options.support_varchar_with_length,
        map_string_types_to_utf8view: options.map_string_types_to_utf8view,
        collect_spans: options.collect_spans,
        default_null_ordering: options.default_null_ordering.as_str().into(),
    }
}

/// An argument of a table function; integers become BIGINT, the only type that series take.
fn wide(arg: Expr) -> Expr {
    match arg {
        Expr::Literal(value, metadata) if value.data_type().is_integer() => {
            let wide = value.cast_to(&DataType::Int64).unwrap_or(value);
            Expr::Literal(wide, metadata)
        }
        other => other,
    }
}

/// Name resolution for the planner.
struct StateNames<'a> {
    state: &'a SessionState,
    functions: Functions<'a>,
    tables: HashMap<ResolvedTableReference, Arc<dyn TableSource>>,
}

impl<'a> StateNames<'a> {
    fn new(state: &'a SessionState) -> Self {
        Self { state, functions: Functions::for_session(state), tables: HashMap::new() }
    }
}

impl ContextProvider for StateNames<'_> {
    fn get_expr_planners(&self) -> &[Arc<dyn ExprPlanner>] {
        self.state.expr_planners()
    }

    fn get_relation_planners(&self) -> &[Arc<dyn RelationPlanner>] {
        self.state.relation_planners()
    }

    fn get_type_planner(&self) -> Option<Arc<dyn TypePlanner>> {
        let user = UserTypes::in_options(self.state.config_options()).cloned();
        Some(Arc::new(SqlTypes { user: user.unwrap_or_default() }))
    }

    fn get_table_source(&self, name: TableReference) -> Result<Arc<dyn TableSource>> {
        let table = self.tables.get(&resolve(self.state, name.clone())).cloned();
        table.ok_or_else(|| plan_datafusion_err!("relation \"{name}\" does not exist"))
    }

    fn get_table_function_source(
        &self,
        name: &str,
        args: Vec<Expr>,
    ) -> Result<Arc<dyn TableSource>> {
        let function = self.state.table_functions().get(name);
        let function =
            function.ok_or_else(|| plan_datafusion_err!("table function '{name}' not found"))?;
        let context = SimplifyContext::builder()
            .with_config_options(Arc::clone(self.state.config_options()))
            .with_query_execution_start_time(
                self.state.execution_props().query_execution_start_time,
            )
            .build();
        let (simplifier, none) = (ExprSimplifier::new(context), DFSchema::empty());
        let args = args.into_iter();
        let args = args.map(|arg| simplifier.simplify(simplifier.coerce(arg, &none)?).map(wide));
        let args = args.collect::<Result<Vec<_>>>()?;
        let args = TableFunctionArgs::new(&args, self.state as &dyn SessionTrait);
        Ok(provider_as_source(function.create_table_provider_with_args(args)?))
    }

    fn create_cte_work_table(&self, name: &str, schema: SchemaRef) -> Result<Arc<dyn TableSource>> {
        // The nullability of the resulting rows is unknown before analysis.
        let fields = schema.fields().iter().map(|field| Field::clone(field).with_nullable(true));
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        Ok(provider_as_source(Arc::new(CteWorkTable::new(name, schema))))
    }

    fn get_function_meta(&self, name: &str) -> Option<Arc<ScalarUDF>> {
        let internal = || {
            let named = domains::named(name).or_else(|| marks::named(name));
            named.or_else(|| plan_names::named_part(name))
        };
        self.functions.scalar(name).or_else(internal)
    }

    fn get_higher_order_meta(&self, name: &str) -> Option<Arc<HigherOrderUDF>> {
        self.functions.higher_order(name).cloned()
    }

    fn get_aggregate_meta(&self, name: &str) -> Option<Arc<AggregateUDF>> {
        self.functions.aggregate(name).cloned()
    }

    fn get_window_meta(&self, name: &str) -> Option<Arc<WindowUDF>> {
        self.functions.window(name).cloned()
    }

    fn get_variable_type(&self, names: &[String]) -> Option<DataType> {
        if names.is_empty() {
            return None;
        }
        let kind = match is_system_variables(names) {
            true => VarType::System,
            false => VarType::UserDefined,
        };
        let providers = self.state.execution_props().var_providers.as_ref()?;
        providers.get(&kind)?.get_type(names)
    }

    fn options(&self) -> &ConfigOptions {
        self.state.config_options()
    }

    fn udf_names(&self) -> Vec<String> {
        self.functions.all_scalar().into_keys().collect()
    }

    fn higher_order_function_names(&self) -> Vec<String> {
        self.functions.all_higher_order().into_keys().collect()
    }

    fn udaf_names(&self) -> Vec<String> {
        self.functions.all_aggregate().into_keys().collect()
    }

    fn udwf_names(&self) -> Vec<String> {
        self.functions.all_window().into_keys().collect()
    }

    fn get_file_type(&self, ending: &str) -> Result<Arc<dyn FileType>> {
        let format = self.state.get_file_format_factory(ending);
        let format = format.ok_or_else(|| {
            plan_datafusion_err!("There is no registered file format with ext {ending}")
        })?;
        Ok(format_as_file_type(format))
    }
}
