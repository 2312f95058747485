//! The expressions of a write: generated columns, CHECK constraints, and ON CONFLICT.
//!
//! They are planned as the select list of a query over the rows in question, and taken out of its plan: so they have
//! the same meaning as in a query.

use std::collections::HashMap;
use std::sync::Arc;

use atoll_functions::temporal::TemporalStyle;
use atoll_store::table::{Check, TableDefinition};
use datafusion::arrow::datatypes::{DataType, Field};
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{
    DFSchema, DFSchemaRef, ParamValues, Result, ScalarValue, internal_err, plan_datafusion_err,
};
use datafusion::execution::SessionState;
use datafusion::logical_expr::expr::{Cast, TryCast};
use datafusion::logical_expr::simplify::SimplifyContext;
use datafusion::logical_expr::{Expr, ExprSchemable, LogicalPlan, Projection, Volatility};
use datafusion::optimizer::simplify_expressions::ExprSimplifier;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::sql::parser::Statement as Parsed;
use datafusion::sql::sqlparser::ast::{
    Expr as AstExpr, Ident, SelectItem, SetExpr, Statement as Ast,
};

use crate::session::cache::point::cast_types;
use crate::session::dml::change::{parsed, quoted, type_parameter};
use crate::session::dml::insert::{DeclaredConflict, DeclaredUpdate};
use crate::session::plan::planner::StatementPlanner;
use crate::session::plan::steps::{analyzed, state_to_keep};
use crate::table::{PlacedTable, PlannedCheck, PlannedConflict, PlannedUpdate, WriteRules};
use crate::table_text::generated_columns;
use atoll_sql_common::error::{SqlError, stated_err};
use atoll_sql_common::pg_type::{Checked, array_of_enum, is_oid, type_of_check};
use atoll_sql_common::user_type::{EnumType, UserTypes, enum_oid};
use atoll_sql_parse::syntax::parsed_expr;
use atoll_sql_semantics::enums;

/// Names of the rows in question: no statement uses them by chance.
const ROWS: &str = "rows to check";
const THERE: &str = "rows that are there";
const NEW: &str = "new rows";

impl StatementPlanner {
    /// The rules of writes to this table; `name` is its name in the statement.
    pub(in crate::session) async fn write_rules(
        &self,
        state: &SessionState,
        table: &PlacedTable,
        name: &Ident,
        conflict: Option<DeclaredConflict>,
    ) -> Result<WriteRules> {
        let generated = self.generated(state, table).await?;
        let checks = self.checks(state, table).await?;
        let conflict = match conflict {
            Some(conflict) => Some(self.conflict(state, table, name, conflict).await?),
            None => None,
        };
        let forms = canonical_columns(table.definition());
        let labels = self.columns_of_labels(table.definition())?;
        let fields = table.definition().columns.fields().iter().enumerate();
        let oids = fields.filter(|(_, field)| is_oid(field)).map(|(at, _)| at).collect();
        let time_zone = state.config_options().execution.time_zone.as_deref().map(Into::into);
        let style = TemporalStyle::from_options(state.config_options());
        Ok(WriteRules {
            forms,
            time_zone,
            style,
            labels,
            oids,
            generated,
            checks,
            conflict,
            actions: None,
        })
    }

    /// Numbers of the columns of arrays of ENUMs.
    fn columns_of_labels(
        &self,
        definition: &TableDefinition,
    ) -> Result<Vec<(usize, Arc<EnumType>)>> {
        let fields = definition.columns.fields().iter().enumerate();
        let arrays = fields.filter_map(|(at, field)| Some((at, array_of_enum(field)?)));
        let types = self.names.user_types();
        let known = arrays.map(|(at, oid)| match types.numbered(oid) {
            Some(of) => Ok((at, Arc::clone(of))),
            None => stated_err!(UNDEFINED_OBJECT, "type with OID {oid} does not exist"),
        });
        known.collect()
    }

    async fn generated(
        &self,
        state: &SessionState,
        table: &PlacedTable,
    ) -> Result<Vec<(usize, Arc<dyn PhysicalExpr>)>> {
        let (columns, exprs): (Vec<usize>, Vec<AstExpr>) =
            generated_columns(table.definition())?.into_iter().unzip();
        let types: Vec<DataType> = columns.iter().map(|column| table.type_of(*column)).collect();
        let exprs =
            self.expressions_of_rows(state, table, exprs, &types, "a generated column").await?;
        Ok(columns.into_iter().zip(exprs).collect())
    }

    async fn checks(&self, state: &SessionState, table: &PlacedTable) -> Result<Vec<PlannedCheck>> {
        // Values of UUID and JSONB columns, and those of limited lengths, have to be valid.
        let definition = table.definition();
        let checks = definition.checks.iter();
        let checks = checks.filter(|check| canonical_column(definition, check).is_none());
        let checks: Vec<&Check> = checks.collect();
        let (mut conditions, mut named) = (Vec::new(), Vec::new());
        for check in &checks {
            let condition = parsed_expr(&check.sql)?;
            let Some((domain, of_domain)) = self.domain_conditions(&condition)? else {
                conditions.push(condition);
                let json = json_column(definition, &check.sql);
                named.push((Arc::clone(&check.name), json, None));
                continue;
            };
            for each in of_domain {
                conditions.push(each.condition);
                let name = each.name.unwrap_or_default();
                named.push((name, None, Some(Arc::clone(&domain))));
            }
        }
        let planned = self.check_conditions(state, table, conditions).await?;
        let planned = named.into_iter().zip(planned).map(|((name, json, domain), condition)| {
            PlannedCheck { name, condition, json, domain }
        });
        Ok(planned.collect())
    }

    /// Conditions over the rows of a table, which are its constraints.
    pub(in crate::session) async fn check_conditions(
        &self,
        state: &SessionState,
        table: &PlacedTable,
        conditions: Vec<AstExpr>,
    ) -> Result<Vec<Arc<dyn PhysicalExpr>>> {
        let types = vec![DataType::Boolean; conditions.len()];
        self.expressions_of_rows(state, table, conditions, &types, "a CHECK constraint").await
    }

    /// Expressions over the rows of a table, in these types; `what` names their kind.
    pub(in crate::session) async fn expressions_of_rows(
        &self,
        state: &SessionState,
        table: &PlacedTable,
        exprs: Vec<AstExpr>,
        types: &[DataType],
        what: &str,
    ) -> Result<Vec<Arc<dyn PhysicalExpr>>> {
        if exprs.is_empty() {
            return Ok(Vec::new());
        }
        self.names.hide(ROWS, Arc::new(table.as_rows()));
        let name = Ident::with_quote('"', &*table.at().table);
        let planned = self.row_expressions(state, &[(ROWS, &name)], exprs, types).await?;
        for expr in &planned.exprs {
            if expr.is_volatile() {
                return stated_err!(
                    INVALID_OBJECT_DEFINITION,
                    "{what} must give the same answer each time"
                );
            }
        }
        planned.simplified(state)?.physical(&state_to_keep(state), types)
    }

    /// An expression over the rows of a table for an index, and its type; `what` names its kind.
    pub(in crate::session) async fn index_expression(
        &self,
        table: &PlacedTable,
        expr: AstExpr,
        what: &str,
    ) -> Result<(Arc<dyn PhysicalExpr>, DataType)> {
        let state = &self.state;
        self.names.hide(ROWS, Arc::new(table.as_rows()));
        let name = Ident::with_quote('"', &*table.at().table);
        let planned = self.row_expressions(state, &[(ROWS, &name)], vec![expr], &[]).await?;
        let schema = &planned.schema;
        if !planned.exprs.iter().all(|expr| is_fixed(expr) && !depends_on_style(expr, schema)) {
            return stated_err!(
                INVALID_OBJECT_DEFINITION,
                "functions in {what} must be marked IMMUTABLE"
            );
        }
        let types = planned.exprs.iter().map(|expr| expr.get_type(&planned.schema));
        let types = types.collect::<Result<Vec<_>>>()?;
        let exprs = planned.simplified(state)?.physical(&state_to_keep(state), &types)?;
        match exprs.into_iter().zip(types).next() {
            Some(planned) => Ok(planned),
            None => internal_err!("an expression was planned as none"),
        }
    }

    async fn conflict(
        &self,
        state: &SessionState,
        table: &PlacedTable,
        name: &Ident,
        conflict: DeclaredConflict,
    ) -> Result<PlannedConflict> {
        let DeclaredConflict { uniques, update } = conflict;
        let Some(DeclaredUpdate { assignments, condition }) = update else {
            return Ok(PlannedConflict { uniques, update: None, is_fixed: true });
        };
        self.names.hide(THERE, Arc::new(table.as_rows()));
        self.names.hide(NEW, Arc::new(table.as_rows()));
        let excluded = Ident::new("excluded");
        let has_condition = condition.is_some();
        let columns: Vec<usize> = assignments.iter().map(|(column, _)| *column).collect();
        let mut types: Vec<DataType> =
            columns.iter().map(|column| table.type_of(*column)).collect();
        types.extend(has_condition.then_some(DataType::Boolean));
        let exprs = assignments.into_iter().map(|(_, value)| value).chain(condition).collect();
        let sources = [(THERE, name), (NEW, &excluded)];
        let planned = self.row_expressions(state, &sources, exprs, &types).await?;
        let is_fixed = planned.exprs.iter().all(is_fixed);
        let planned = planned.simplified(state)?;
        let mut exprs = match is_fixed {
            true => planned.physical(&state_to_keep(state), &types)?,
            false => planned.physical(state, &types)?,
        };
        let condition = if has_condition { exprs.pop() } else { None };
        let assignments = columns.into_iter().zip(exprs).collect();
        let update = Some(PlannedUpdate { assignments, condition });
        Ok(PlannedConflict { uniques, update, is_fixed })
    }

    /// Expressions over rows of hidden tables, side by side, cast to these types.
    async fn row_expressions(
        &self,
        state: &SessionState,
        sources: &[(&str, &Ident)],
        exprs: Vec<AstExpr>,
        types: &[DataType],
    ) -> Result<RowExpressions> {
        let from = sources.iter().map(|(hidden, name)| format!("{} AS {name}", quoted(hidden)));
        let text = format!("SELECT 0 FROM {}", from.collect::<Vec<_>>().join(", "));
        let mut query = parsed(&text)?;
        if let Ast::Query(query) = &mut query
            && let SetExpr::Select(select) = query.body.as_mut()
        {
            let item = |(at, expr)| {
                let alias = Ident::with_quote('"', format!("expression {at}"));
                SelectItem::ExprWithAlias { expr, alias }
            };
            select.projection = exprs.into_iter().enumerate().map(item).collect();
        }
        let plan = self.plan_query(state, Parsed::Statement(Box::new(query)), &[]).await?;
        refuse_other_rows(&plan)?;
        match analyzed(state, self.with_values(plan, types)?)? {
            LogicalPlan::Projection(projection) => {
                let schema = Arc::clone(projection.input.schema());
                Ok(RowExpressions { exprs: projection.expr, schema })
            }
            _ => internal_err!("expressions over rows were not planned as a select list"),
        }
    }

    /// A select list of these types with the values of the statement's parameters; before they are bound, with NULL
    /// instead, and their types are noted.
    fn with_values(&self, plan: LogicalPlan, types: &[DataType]) -> Result<LogicalPlan> {
        if plan.get_parameter_names()?.is_empty() {
            return Ok(plan);
        }
        let LogicalPlan::Projection(mut projection) = plan else { return Ok(plan) };
        for (expr, data_type) in projection.expr.iter_mut().zip(types) {
            type_parameter(expr, &Field::new("", data_type.clone(), true));
        }
        let plan = LogicalPlan::Projection(Projection::try_new(projection.expr, projection.input)?);
        match &self.values {
            Some(values) => plan.replace_params_with_values(values),
            None => {
                let (casts, mut nulls) = (cast_types(&plan)?, HashMap::new());
                for (name, data_type) in plan.get_parameter_types()? {
                    let data_type = data_type.or_else(|| casts.get(&name).cloned());
                    self.rule_parameters.note(&name, data_type.clone());
                    let null = ScalarValue::try_from(data_type.unwrap_or(DataType::Utf8View))?;
                    nulls.insert(name.trim_start_matches('$').to_owned(), null);
                }
                plan.replace_params_with_values(&ParamValues::from(nulls))
            }
        }
    }
}

/// Refuses expressions that read other rows than their own.
fn refuse_other_rows(plan: &LogicalPlan) -> Result<()> {
    plan.apply(|node| match node {
        LogicalPlan::Aggregate(_) => stated_err!(
            GROUPING_ERROR,
            "aggregate functions are not allowed in CHECK constraints, generated columns and ON CONFLICT"
        ),
        LogicalPlan::Window(_) => stated_err!(
            WINDOWING_ERROR,
            "window functions are not allowed in CHECK constraints, generated columns and ON CONFLICT"
        ),
        _ => Ok(TreeNodeRecursion::Continue),
    })?;
    Ok(())
}

/// The column that a CHECK constraint restricts to JSON.
fn json_column(definition: &TableDefinition, check: &str) -> Option<usize> {
    let is_of = |field: &Arc<Field>| type_of_check(check, field.name()) == Some(Checked::Json);
    definition.columns.fields().iter().position(is_of)
}

/// The column that a CHECK constraint restricts to a type with canonical texts.
fn canonical_column(definition: &TableDefinition, check: &Check) -> Option<(usize, Checked)> {
    let fields = definition.columns.fields().iter().enumerate();
    let mut forms =
        fields.filter_map(|(at, field)| Some((at, type_of_check(&check.sql, field.name())?)));
    forms.find(|(_, form)| *form != Checked::Json)
}

/// Numbers of the columns of such types.
fn canonical_columns(definition: &TableDefinition) -> Vec<(usize, Checked)> {
    let checks = definition.checks.iter();
    checks.filter_map(|check| canonical_column(definition, check)).collect()
}

/// Whether an expression always gives the same result for the same values: `now()` belongs to the statement that it is
/// planned for.
fn is_fixed(expr: &Expr) -> bool {
    let is_other = |expr: &Expr| {
        Ok(matches!(expr, Expr::ScalarFunction(call)
            if call.func.signature().volatility != Volatility::Immutable))
    };
    !expr.exists(is_other).unwrap_or(true)
}

/// Whether a value depends on DateStyle or IntervalStyle: a date, a timestamp or an interval as text, or of one.
fn depends_on_style(expr: &Expr, schema: &DFSchema) -> bool {
    let is_styled = |of: &DataType| {
        matches!(of, DataType::Date32 | DataType::Interval(_))
            || matches!(of, DataType::Timestamp(..)) && enum_oid(of).is_none()
    };
    let casts = |expr: &Expr| {
        let value = match expr {
            Expr::Cast(Cast { expr, .. }) | Expr::TryCast(TryCast { expr, .. }) => expr.as_ref(),
            Expr::ScalarFunction(call) if matches!(call.name(), "cast" | "try_cast") => {
                let Some(value) = call.args.first() else { return Ok(false) };
                value
            }
            _ => return Ok(false),
        };
        let (from, to) = (value.get_type(schema)?, expr.get_type(schema)?);
        let is_written = is_styled(&from) && to.is_string();
        let is_read = from.is_string() && is_styled(&to) && !matches!(value, Expr::Literal(..));
        Ok(is_written || is_read)
    };
    expr.exists(casts).unwrap_or(true)
}

/// Planned expressions over rows.
struct RowExpressions {
    exprs: Vec<Expr>,
    schema: DFSchemaRef,
}

impl RowExpressions {
    /// The same with expressions that can be computed: CASE instead of `coalesce`, and the time of the statement
    /// instead of `now()`.
    fn simplified(self, state: &SessionState) -> Result<Self> {
        let Self { exprs, schema } = self;
        let begun = state.execution_props().query_execution_start_time;
        let context = SimplifyContext::builder()
            .with_schema(Arc::clone(&schema))
            .with_config_options(Arc::clone(state.config_options()))
            .with_query_execution_start_time(begun)
            .build();
        let simplifier = ExprSimplifier::new(context);
        let exprs = exprs.into_iter().map(|expr| simplifier.simplify(expr));
        Ok(Self { exprs: exprs.collect::<Result<_>>()?, schema })
    }

    /// Compiles them for these types.
    fn physical(
        self,
        state: &SessionState,
        types: &[DataType],
    ) -> Result<Vec<Arc<dyn PhysicalExpr>>> {
        let Self { exprs, schema } = self;
        let user_types = UserTypes::in_options(state.config_options());
        let exprs = exprs.into_iter().zip(types).map(|(expr, data_type)| {
            let expr = expr.unalias();
            let text = expr.to_string();
            let from = expr.get_type(&schema)?;
            let typed = match enums::cast(&expr, &from, data_type, false, user_types)? {
                Some(cast) => cast,
                None => expr.cast_to(data_type, &schema)?,
            };
            state.create_physical_expr(typed, &schema).map_err(|error| {
                let message = SqlError::new(error, "").message;
                plan_datafusion_err!("'{text}' cannot be computed from the row alone: {message}")
            })
        });
        exprs.collect()
    }
}
