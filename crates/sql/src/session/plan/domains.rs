//! Domains, before planning: a cast to one becomes a cast to its base type and a call that checks its constraints; a
//! column of one gets the base type and a CHECK constraint that names the domain.
//!
//! ```text
//! x::positive            domain_value(x::INT, 16777216, 'positive', 'positive_check', (x::INT) > 0)
//! a positive             a INT CHECK (domain_valid(a, 16777216))
//! ```
//!
//! `domain_valid` is never called: it stands for the constraints that the domain has when rows are written.

use std::ops::ControlFlow;
use std::sync::Arc;

use datafusion::common::{DFSchema, DataFusionError, Result, not_impl_err};
use datafusion::sql::parser::{CopyToSource, Statement as Parsed};
use datafusion::sql::sqlparser::ast::{
    AlterColumnOperation, AlterTable, AlterTableOperation, BinaryOperator, CastKind,
    CheckConstraint, ColumnDef, ColumnOption, ColumnOptionDef, CreateTable, DataType, Expr, Ident,
    ObjectNamePart, Statement as Ast, TableConstraint, TypedString, Value,
};

use crate::session::plan::planner::StatementPlanner;
use crate::table_text::{DOMAIN_VALID, domain_call};
use atoll_sql_common::error::stated_err;
use atoll_sql_common::user_type::{DomainType, UserTypes};
use atoll_sql_parse::dialect::{as_texts, call, cut_to_length};
use atoll_sql_parse::syntax::{
    flow, parsed_expr, sql_text, walk_expressions, walk_expressions_mut,
};
use atoll_sql_semantics::domains::VALUE;
use atoll_sql_semantics::sql_to_plan::create_logical_expr;
use datafusion::execution::SessionState;
use datafusion::logical_expr::{Expr as Planned, Volatility};

/// A constraint of a domain over a value.
pub(in crate::session) struct DomainCondition {
    /// The name; `None` for NOT NULL.
    pub(in crate::session) name: Option<Arc<str>>,
    pub(in crate::session) condition: Expr,
}

impl StatementPlanner {
    /// The user's types that a statement sees.
    fn types(&self) -> Option<&UserTypes> {
        UserTypes::in_options(self.state.config_options()).filter(|it| !it.domains().is_empty())
    }

    /// Replaces casts to domains, and the constraints of their columns.
    pub(in crate::session) fn expand_domains(&self, statement: &mut Parsed) -> Result<()> {
        let Some(types) = self.types() else { return Ok(()) };
        let mut each = |expr: &mut Expr| flow(self.expand_domain(expr, types));
        let walked = match statement {
            Parsed::Statement(ast) => walk_expressions_mut(ast, &mut each),
            Parsed::Explain(explain) => return self.expand_domains(&mut explain.statement),
            Parsed::CopyTo(copy) => match &mut copy.source {
                CopyToSource::Query(query) => walk_expressions_mut(query, &mut each),
                CopyToSource::Relation(_) => ControlFlow::Continue(()),
            },
            _ => ControlFlow::Continue(()),
        };
        ended(walked)
    }

    /// An expression without casts to domains.
    pub(in crate::session) fn without_domains(&self, expr: &Expr) -> Result<Expr> {
        let mut expr = expr.clone();
        if let Some(types) = self.types() {
            let mut each = |expr: &mut Expr| flow(self.expand_domain(expr, types));
            ended(walk_expressions_mut(&mut expr, &mut each))?;
        }
        Ok(expr)
    }

    /// The plan of a default.
    pub(in crate::session) fn planned_default(
        &self,
        state: &SessionState,
        default: &str,
    ) -> Result<Planned> {
        let plain = self.without_domains(&parsed_expr(default)?)?;
        create_logical_expr(state, &sql_text(&plain), &DFSchema::empty())
    }

    /// Gives the columns of CREATE TABLE that are of a domain its base type.
    pub(in crate::session) fn write_out_domains(&self, statement: &mut Parsed) -> Result<()> {
        let Some(types) = self.types() else { return Ok(()) };
        let Parsed::Statement(ast) = statement else { return Ok(()) };
        let Ast::CreateTable(CreateTable { columns, .. }) = ast.as_mut() else { return Ok(()) };
        columns.iter_mut().try_for_each(|column| write_out(column, types))
    }

    /// ALTER TABLE with the base types of domains.
    pub(in crate::session) fn alter_without_domains(
        &self,
        alter: &AlterTable,
    ) -> Result<AlterTable> {
        let mut alter = alter.clone();
        let Some(types) = self.types() else { return Ok(alter) };
        let mut added = Vec::new();
        for operation in &mut alter.operations {
            match operation {
                AlterTableOperation::AddColumn { column_def, .. } => write_out(column_def, types)?,
                AlterTableOperation::AlterColumn {
                    column_name,
                    op: AlterColumnOperation::SetDataType { data_type, .. },
                } => {
                    if let Some(domain) = named_type(data_type, types) {
                        *data_type = base_type(domain)?;
                        added.push(AlterTableOperation::AddConstraint {
                            constraint: TableConstraint::Check(column_check(column_name, domain)),
                            not_valid: false,
                        });
                    }
                }
                _ => {}
            }
        }
        alter.operations.extend(added);
        Ok(alter)
    }

    /// The name of the domain of a column that a CHECK constraint stands for, and its conditions; `None` for other constraints.
    pub(in crate::session) fn domain_conditions(
        &self,
        check: &Expr,
    ) -> Result<Option<(Arc<str>, Vec<DomainCondition>)>> {
        let Some((column, oid)) = domain_call(check) else { return Ok(None) };
        let types = self.names.user_types();
        let domain = domain_numbered(oid, &types)?;
        Ok(Some((types.shown_domain(domain).into(), conditions(domain, column)?)))
    }

    fn expand_domain(&self, expr: &mut Expr, types: &UserTypes) -> Result<()> {
        match expr {
            Expr::Cast { kind, expr: value, data_type, .. } => {
                let Some(domain) = named_type(data_type, types) else { return Ok(()) };
                if matches!(kind, CastKind::TryCast | CastKind::SafeCast) {
                    return not_impl_err!(
                        "TRY_CAST to domain {} is not supported; use CAST, or CASE with the condition",
                        domain.name
                    );
                }
                self.check_repeatable(value, domain)?;
                *data_type = base_type(domain)?;
                let mut value = expr.clone();
                cut_to_length(&mut value);
                *expr = checked(domain, types, value)?;
            }
            Expr::TypedString(TypedString { data_type, value, .. }) => {
                let Some(domain) = named_type(data_type, types) else { return Ok(()) };
                let mut value = Expr::Cast {
                    kind: CastKind::Cast,
                    expr: Box::new(Expr::Value(value.clone())),
                    data_type: base_type(domain)?,
                    format: None,
                    array: false,
                };
                cut_to_length(&mut value);
                *expr = checked(domain, types, value)?;
            }
            other => {
                let Some((column, oid)) = domain_call(other) else { return Ok(()) };
                let domain = domain_numbered(oid, types)?;
                let all = conditions(domain, column)?.into_iter().map(|it| it.condition);
                let truth = Expr::Value(Value::Boolean(true).into());
                *other = Expr::Nested(Box::new(all.fold(truth, |all, each| Expr::BinaryOp {
                    left: Box::new(all),
                    op: BinaryOperator::And,
                    right: Box::new(each),
                })));
            }
        }
        Ok(())
    }

    /// Refuses a value that is another each time: its conditions would check another one than the result.
    fn check_repeatable(&self, value: &Expr, domain: &DomainType) -> Result<()> {
        let functions = self.state.scalar_functions();
        let mut each = |expr: &Expr| match expr {
            Expr::Function(call) => {
                let name = call.name.to_string().to_lowercase();
                let found = functions.get(&name).map(|it| it.signature().volatility);
                match found == Some(Volatility::Volatile) {
                    true => ControlFlow::Break(name),
                    false => ControlFlow::Continue(()),
                }
            }
            _ => ControlFlow::Continue(()),
        };
        match walk_expressions(value, &mut each) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(name) => not_impl_err!(
                "a cast of {name}() to domain {} is not supported; call it in a subquery in FROM, and cast its column",
                domain.name
            ),
        }
    }
}

fn ended(walked: ControlFlow<DataFusionError>) -> Result<()> {
    match walked {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(error) => Err(error),
    }
}

/// The call that checks a value.
fn checked(domain: &DomainType, types: &UserTypes, value: Expr) -> Result<Expr> {
    let text = |text: &str| Expr::Value(Value::SingleQuotedString(text.to_owned()).into());
    let conditions = conditions(domain, &value)?;
    let mut args = vec![value, number(domain.oid), text(&types.shown_domain(domain))];
    for DomainCondition { name, condition } in conditions {
        args.push(text(name.as_deref().unwrap_or_default()));
        args.push(condition);
    }
    Ok(call(VALUE, args))
}

/// The constraints of a domain over a value.
fn conditions(domain: &DomainType, value: &Expr) -> Result<Vec<DomainCondition>> {
    let mut all = Vec::with_capacity(domain.checks.len() + 1);
    if domain.not_null {
        let condition = Expr::IsNotNull(Box::new(Expr::Nested(Box::new(value.clone()))));
        all.push(DomainCondition { name: None, condition });
    }
    for check in &domain.checks {
        let mut condition = parsed_expr(&check.sql)?;
        let _ = walk_expressions_mut(&mut condition, &mut |expr| {
            if matches!(expr, Expr::Identifier(name) if is_value(name)) {
                *expr = Expr::Nested(Box::new(value.clone()));
            }
            ControlFlow::<()>::Continue(())
        });
        let condition = Expr::Nested(Box::new(condition));
        all.push(DomainCondition { name: Some(Arc::clone(&check.name)), condition });
    }
    Ok(all)
}

pub(in crate::session) fn is_value(name: &Ident) -> bool {
    name.quote_style.is_none() && name.value.eq_ignore_ascii_case("value")
}

fn number(oid: u32) -> Expr {
    Expr::Value(Value::Number(oid.to_string(), false).into())
}

/// The base type of a domain.
pub(in crate::session) fn base_type(domain: &DomainType) -> Result<DataType> {
    match parsed_expr(&format!("CAST(NULL AS {})", domain.base))? {
        Expr::Cast { data_type, .. } => Ok(data_type),
        _ => not_impl_err!("domain {} has no base type", domain.name),
    }
}

fn named_type<'t>(data_type: &DataType, types: &'t UserTypes) -> Option<&'t Arc<DomainType>> {
    let DataType::Custom(name, modifiers) = data_type else { return None };
    if !modifiers.is_empty() {
        return None;
    }
    let part = |part: &ObjectNamePart| {
        let ident = part.as_ident()?;
        Some(match ident.quote_style {
            Some(_) => ident.value.clone(),
            None => ident.value.to_lowercase(),
        })
    };
    match &name.0[..] {
        [name] => types.domain(None, &part(name)?),
        [.., schema, name] => types.domain(Some(&part(schema)?), &part(name)?),
        [] => None,
    }
}

fn domain_numbered(oid: u32, types: &UserTypes) -> Result<&Arc<DomainType>> {
    match types.domain_numbered(oid) {
        Some(domain) => Ok(domain),
        None => stated_err!(UNDEFINED_OBJECT, "the domain with OID {oid} does not exist"),
    }
}

/// Gives a column of a domain its base type, its constraint and its default.
fn write_out(column: &mut ColumnDef, types: &UserTypes) -> Result<()> {
    let Some(domain) = named_type(&column.data_type, types) else { return Ok(()) };
    column.data_type = base_type(domain)?;
    let name = Expr::Identifier(column.name.clone());
    if let Some((_, texts, condition)) = as_texts(&column.data_type, &name, &column.name) {
        column.data_type = texts;
        let expr = Box::new(condition);
        let option = ColumnOption::Check(CheckConstraint { name: None, expr, enforced: None });
        column.options.push(ColumnOptionDef { name: None, option });
    }
    let option = ColumnOption::Check(column_check(&column.name, domain));
    column.options.push(ColumnOptionDef { name: None, option });
    let has_default = column
        .options
        .iter()
        .any(|it| matches!(it.option, ColumnOption::Default(_) | ColumnOption::Generated { .. }));
    if let (false, Some(default)) = (has_default, &domain.default) {
        let option = ColumnOption::Default(parsed_expr(default)?);
        column.options.push(ColumnOptionDef { name: None, option });
    }
    Ok(())
}

fn column_check(column: &Ident, domain: &DomainType) -> CheckConstraint {
    let expr = call(DOMAIN_VALID, vec![Expr::Identifier(column.clone()), number(domain.oid)]);
    CheckConstraint { name: None, expr: Box::new(expr), enforced: None }
}
