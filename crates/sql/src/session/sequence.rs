//! CREATE, ALTER and DROP SEQUENCE.

use std::sync::Arc;

use atoll_store::database::{CatalogChange, RelationName, SequenceDefinition};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::{Result, exec_err, not_impl_err, plan_err};
use datafusion::sql::sqlparser::ast::{
    Expr, ObjectName, ObjectType, SequenceOptions, Statement as Ast, UnaryOperator, Value,
};

use super::planner::StatementPlanner;
use crate::catalog::{plain, relation_name};

impl StatementPlanner {
    /// Carries out CREATE or DROP SEQUENCE; none for all other statements.
    pub(super) async fn sequence(&self, ast: &Ast) -> Result<Option<&'static str>> {
        match ast {
            Ast::CreateSequence { temporary: true, .. } => {
                not_impl_err!("CREATE TEMPORARY SEQUENCE; leave out TEMPORARY")
            }
            Ast::CreateSequence { name, if_not_exists, sequence_options, data_type, .. } => {
                let mut definition =
                    sequence_definition(sequence_options, SequenceDefinition::default())?;
                if let Some(data_type) = data_type {
                    definition = within_type(definition, &whole(data_type)?);
                }
                let name = self.relation(name)?;
                if self.names.sequence(&name).is_some() && *if_not_exists {
                    return Ok(Some("CREATE SEQUENCE: exists already"));
                }
                let (id, definition) =
                    (self.database.store().new_sequence_id(), Arc::new(definition));
                self.define(CatalogChange::CreateSequence { name, id, definition }).await?;
                Ok(Some("CREATE SEQUENCE"))
            }
            Ast::Drop { object_type: ObjectType::Sequence, if_exists, names, .. } => {
                for name in names {
                    let relation = self.relation(name)?;
                    match self.names.sequence(&relation) {
                        Some(_) => self.define(CatalogChange::Drop { name: relation }).await?,
                        None if *if_exists => {}
                        None => return exec_err!("sequence '{name}' does not exist"),
                    }
                }
                Ok(Some("DROP SEQUENCE"))
            }
            _ => Ok(None),
        }
    }

    fn relation(&self, name: &ObjectName) -> Result<RelationName> {
        let at = self.resolve(self.name(name)?);
        if at.catalog.as_ref() != crate::catalog::CATALOG {
            return plan_err!("sequence '{}' is in another catalog", plain(&at));
        }
        Ok(relation_name(&at))
    }
}

/// What the options say, over what is said so far.
pub(super) fn sequence_definition(
    options: &[SequenceOptions],
    mut definition: SequenceDefinition,
) -> Result<SequenceDefinition> {
    let mut start = None;
    let mut has_bounds = (false, false);
    for option in options {
        match option {
            SequenceOptions::IncrementBy(value, _) => definition.increment = number(value)?,
            SequenceOptions::MinValue(Some(value)) => {
                (definition.min, has_bounds.0) = (number(value)?, true);
            }
            SequenceOptions::MaxValue(Some(value)) => {
                (definition.max, has_bounds.1) = (number(value)?, true);
            }
            SequenceOptions::MinValue(None) | SequenceOptions::MaxValue(None) => {}
            SequenceOptions::StartWith(value, _) => start = Some(number(value)?),
            SequenceOptions::Cache(value) => {
                let cache = number(value)?;
                let Some(cache) = u32::try_from(cache).ok().filter(|cache| *cache > 0) else {
                    return plan_err!("CACHE {cache} must be greater than zero");
                };
                definition.cache = cache;
            }
            SequenceOptions::Cycle(is_refused) => definition.cycle = !is_refused,
        }
    }
    if definition.increment == 0 {
        return plan_err!("INCREMENT must not be zero");
    }
    if definition.increment < 0 {
        definition.min = if has_bounds.0 { definition.min } else { i64::MIN };
        definition.max = if has_bounds.1 { definition.max } else { -1 };
    }
    let SequenceDefinition { min, max, increment, .. } = definition;
    if min > max {
        return plan_err!("MINVALUE ({min}) must not be greater than MAXVALUE ({max})");
    }
    definition.start = start.unwrap_or(if increment > 0 { min } else { max });
    if !(min..=max).contains(&definition.start) {
        return plan_err!("START value ({}) must be within {min} and {max}", definition.start);
    }
    Ok(definition)
}

/// The sequence with numbers that a type holds.
pub(super) fn within_type(
    mut numbers: SequenceDefinition,
    data_type: &DataType,
) -> SequenceDefinition {
    let (min, max) = match data_type {
        DataType::Int16 => (i64::from(i16::MIN), i64::from(i16::MAX)),
        DataType::Int32 => (i64::from(i32::MIN), i64::from(i32::MAX)),
        _ => (i64::MIN, i64::MAX),
    };
    numbers.min = numbers.min.clamp(min, max);
    numbers.max = numbers.max.clamp(min, max);
    numbers.start = numbers.start.clamp(numbers.min, numbers.max);
    numbers
}

fn whole(data_type: &datafusion::sql::sqlparser::ast::DataType) -> Result<DataType> {
    use datafusion::sql::sqlparser::ast::DataType as Sql;
    match data_type {
        Sql::SmallInt(_) | Sql::Int2(_) => Ok(DataType::Int16),
        Sql::Int(_) | Sql::Integer(_) | Sql::Int4(_) => Ok(DataType::Int32),
        Sql::BigInt(_) | Sql::Int8(_) => Ok(DataType::Int64),
        other => plan_err!("sequence type must be SMALLINT, INTEGER or BIGINT, not {other}"),
    }
}

fn number(value: &Expr) -> Result<i64> {
    let (sign, value) = match value {
        Expr::UnaryOp { op: UnaryOperator::Minus, expr } => ("-", expr.as_ref()),
        Expr::UnaryOp { op: UnaryOperator::Plus, expr } => ("", expr.as_ref()),
        value => ("", value),
    };
    let parsed = match value {
        Expr::Value(value) => match &value.value {
            Value::Number(text, _) => format!("{sign}{text}").parse().ok(),
            _ => None,
        },
        _ => None,
    };
    match parsed {
        Some(parsed) => Ok(parsed),
        None => plan_err!("'{sign}{value}' is not a whole number of 64 bits"),
    }
}
