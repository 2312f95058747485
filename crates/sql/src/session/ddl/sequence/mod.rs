//! CREATE and ALTER SEQUENCE; OWNED BY is in `owner`, DROP SEQUENCE in `dependents`.

pub(in crate::session) mod dependents;
mod owner;

use std::borrow::Cow;
use std::sync::Arc;

use atoll_store::SequenceId;
use atoll_store::database::{CatalogChange, RelationName, SequenceDefinition, SequenceState};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::{ResolvedTableReference, Result, plan_err};
use datafusion::sql::sqlparser::ast::{
    Expr, FunctionArg, FunctionArgExpr, FunctionArguments, Ident, ObjectName, ObjectNamePart,
    SequenceOptions, Statement as Ast, UnaryOperator, Value,
};

use crate::session::ddl::sequence::owner::{is_name, new_owner};
use crate::session::plan::planner::StatementPlanner;
use crate::session::statement::command_tag::{missing, there, with_notices};
use atoll_sql_common::error::stated_err;
use atoll_sql_common::names::{plain, relation_name};
use atoll_sql_parse::parse::{ALTERED, OF_COLUMN, RENAMED, RESTART};

impl StatementPlanner {
    /// Runs CREATE, ALTER and DROP SEQUENCE; `None` for other statements.
    pub(in crate::session) async fn sequence(
        &self,
        ast: &Ast,
    ) -> Result<Option<Cow<'static, str>>> {
        match ast {
            Ast::CreateSequence {
                name,
                if_not_exists,
                sequence_options,
                data_type,
                owned_by: Some(owner),
                ..
            } if is_altered(owner) => {
                let from = self.relation(name)?;
                let (found, what, tag) = match column_of(owner) {
                    Some(column) => (self.identity_of(&from, column)?, "table", "ALTER TABLE"),
                    None => (self.names.sequence(&from), "sequence", "ALTER SEQUENCE"),
                };
                let Some(sequence) = found else {
                    return match if_not_exists {
                        true => Ok(Some(with_notices(tag, &[missing("relation", &from.name)]))),
                        false => stated_err!(UNDEFINED_TABLE, "{what} \"{name}\" does not exist"),
                    };
                };
                if let Some(new) = new_name(owner) {
                    let to = RelationName::new(Arc::clone(&from.schema), self.normalized(new));
                    self.rename_sequence(sequence, from, to).await?;
                    return Ok(Some("ALTER SEQUENCE".into()));
                }
                if let Some(column) = new_owner(owner) {
                    self.own_sequence(sequence, &from, column.as_ref()).await?;
                }
                let version = self.transaction.statement(true).await?;
                let Some(state) = version.sequence(sequence) else {
                    return stated_err!(UNDEFINED_TABLE, "sequence \"{name}\" does not exist");
                };
                let data_type = data_type.as_ref().map(whole).transpose()?;
                let (definition, last) = altered(sequence_options, state, data_type.as_ref())?;
                let definition = Arc::new(definition);
                self.define(CatalogChange::SetSequence { sequence, definition, last }).await?;
                Ok(Some(tag.into()))
            }
            Ast::CreateSequence {
                name,
                if_not_exists,
                sequence_options,
                data_type,
                temporary,
                owned_by,
            } => {
                let numbers = data_type.as_ref().map_or(Ok(DataType::Int64), whole)?;
                let definition = sequence_definition(sequence_options, &numbers)?;
                let name = match temporary {
                    true => relation_name(&self.temporary(&self.name(name)?)?),
                    false => self.relation_at(self.resolve_new(self.name(name)?)?)?,
                };
                if self.names.sequence(&name).is_some() && *if_not_exists {
                    let passed = there("relation", &name.name);
                    return Ok(Some(with_notices("CREATE SEQUENCE", &[passed])));
                }
                self.make_temporary_schema(&name.schema).await?;
                let (id, definition) =
                    (self.database.store().new_sequence_id(&name.schema), Arc::new(definition));
                let created = name.clone();
                self.define(CatalogChange::CreateSequence { name, id, definition }).await?;
                if owned_by.is_some() {
                    self.own_sequence(id, &created, owned_by.as_ref()).await?;
                }
                Ok(Some("CREATE SEQUENCE".into()))
            }
            Ast::Drop { .. } => self.drop_sequences(ast).await,
            _ => Ok(None),
        }
    }

    /// The sequence of an identity column; `None` if the table does not exist.
    ///
    /// # Errors
    /// If the column does not exist or is not an identity column.
    fn identity_of(&self, table: &RelationName, column: &Ident) -> Result<Option<SequenceId>> {
        let version = self.names.stored_version();
        let Some((_, found)) = version.table_named(table) else { return Ok(None) };
        let (definition, name) = (found.definition(), self.normalized(column));
        let Ok(at) = definition.columns.index_of(&name) else {
            return stated_err!(
                UNDEFINED_COLUMN,
                "column \"{name}\" of relation \"{}\" does not exist",
                table.name
            );
        };
        match definition.identity(at) {
            Some(identity) => Ok(Some(identity.sequence)),
            None => stated_err!(
                NOT_IN_PREREQUISITE_STATE,
                "column '{name}' of table '{}' is not an identity column",
                table.name
            ),
        }
    }

    pub(in crate::session) fn relation(&self, name: &ObjectName) -> Result<RelationName> {
        self.relation_at(self.resolve(self.name(name)?))
    }

    fn relation_at(&self, at: ResolvedTableReference) -> Result<RelationName> {
        if at.catalog.as_ref() != atoll_sql_common::names::CATALOG {
            return plan_err!("sequence '{}' is in another catalog", plain(&at));
        }
        Ok(relation_name(&at))
    }
}

/// The name in ALTER SEQUENCE … RENAME TO.
fn new_name(owner: &ObjectName) -> Option<&Ident> {
    match owner.0.as_slice() {
        [ObjectNamePart::Identifier(first), ObjectNamePart::Identifier(new)] => {
            (first.value == RENAMED).then_some(new)
        }
        _ => None,
    }
}

/// Whether this is the owner that the parser writes for ALTER SEQUENCE.
fn is_altered(owner: &ObjectName) -> bool {
    let first = owner.0.first().and_then(|part| part.as_ident());
    first.is_some_and(|first| [ALTERED, RENAMED, OF_COLUMN].contains(&first.value.as_str()))
}

/// The column whose sequence is altered.
fn column_of(owner: &ObjectName) -> Option<&Ident> {
    match owner.0.as_slice() {
        [ObjectNamePart::Identifier(first), ObjectNamePart::Identifier(column)] => {
            (first.value == OF_COLUMN).then_some(column)
        }
        _ => None,
    }
}

/// The options in a statement about a sequence.
#[derive(Default)]
struct SaidOptions {
    /// The value of the limit, if it is specified; `None` for NO MINVALUE.
    min: Option<Option<i64>>,
    max: Option<Option<i64>>,
    start: Option<i64>,
    /// The number of RESTART, which is optional.
    restart: Option<Option<i64>>,
}

impl SaidOptions {
    /// Reads the options; increment, cache and cycle are set in the definition at once.
    fn take(options: &[SequenceOptions], definition: &mut SequenceDefinition) -> Result<Self> {
        let mut said = Self::default();
        for option in options {
            match option {
                SequenceOptions::IncrementBy(value, _) => definition.increment = number(value)?,
                SequenceOptions::MinValue(value) => {
                    said.min = Some(value.as_ref().map(number).transpose()?);
                }
                SequenceOptions::MaxValue(value) => {
                    said.max = Some(value.as_ref().map(number).transpose()?);
                }
                SequenceOptions::StartWith(value, _) if is_name(value) => {}
                SequenceOptions::StartWith(value, _) => match restart(value) {
                    Some(value) => said.restart = Some(value.map(number).transpose()?),
                    None => said.start = Some(number(value)?),
                },
                SequenceOptions::Cache(value) => {
                    let cache = number(value)?;
                    let Some(cache) = u32::try_from(cache).ok().filter(|cache| *cache > 0) else {
                        return stated_err!(
                            INVALID_PARAMETER,
                            "CACHE {cache} must be greater than zero"
                        );
                    };
                    definition.cache = cache;
                }
                SequenceOptions::Cycle(is_refused) => definition.cycle = !is_refused,
            }
        }
        match definition.increment {
            0 => stated_err!(INVALID_PARAMETER, "INCREMENT must not be zero"),
            _ => Ok(said),
        }
    }
}

/// The number after RESTART; `None` for other expressions.
fn restart(value: &Expr) -> Option<Option<&Expr>> {
    let Expr::Function(call) = value else { return None };
    let FunctionArguments::List(list) = &call.args else { return None };
    let number = list.args.first().and_then(|arg| match arg {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(number)) => Some(number),
        _ => None,
    });
    (call.name.to_string() == RESTART).then_some(number)
}

/// A new sequence with these options, for numbers of a type.
pub(in crate::session) fn sequence_definition(
    options: &[SequenceOptions],
    data_type: &DataType,
) -> Result<SequenceDefinition> {
    let mut definition = SequenceDefinition::default();
    let said = SaidOptions::take(options, &mut definition)?;
    let (least, most) = limits(definition.increment, data_type);
    definition.min = said.min.flatten().unwrap_or(least);
    definition.max = said.max.flatten().unwrap_or(most);
    let first = if definition.increment > 0 { definition.min } else { definition.max };
    definition.start = said.start.unwrap_or(first);
    checked(definition, data_type)
}

/// A sequence after ALTER, and the number after which it continues.
fn altered(
    options: &[SequenceOptions],
    state: &SequenceState,
    data_type: Option<&DataType>,
) -> Result<(SequenceDefinition, Option<i64>)> {
    let mut definition = state.definition.as_ref().clone();
    let said = SaidOptions::take(options, &mut definition)?;
    let numbers = data_type.unwrap_or(&DataType::Int64);
    let (least, most) = limits(definition.increment, numbers);
    if let Some(min) = said.min {
        definition.min = min.unwrap_or(least);
    }
    if let Some(max) = said.max {
        definition.max = max.unwrap_or(most);
    }
    if data_type.is_some() {
        definition.min = definition.min.max(of_type(numbers).0);
        definition.max = definition.max.min(of_type(numbers).1);
    }
    definition.start = said.start.unwrap_or(definition.start);
    let definition = checked(definition, numbers)?;
    let last = match said.restart {
        None => state.last,
        Some(None) => None,
        Some(Some(next)) => {
            check_within("RESTART", next, &definition)?;
            // The number before: without one it would continue from START.
            match next.checked_sub(definition.increment) {
                Some(last) => Some(last),
                None => {
                    return stated_err!(
                        INVALID_PARAMETER,
                        "RESTART value ({next}) is the first number of its type"
                    );
                }
            }
        }
    };
    if let (Some(last), None) = (last, said.restart) {
        check_within("last", last, &definition)?;
    }
    Ok((definition, last))
}

fn checked(definition: SequenceDefinition, data_type: &DataType) -> Result<SequenceDefinition> {
    let SequenceDefinition { min, max, start, .. } = definition;
    let (least, most) = of_type(data_type);
    for (word, value) in [("MINVALUE", min), ("MAXVALUE", max)] {
        if !(least..=most).contains(&value) {
            return stated_err!(
                INVALID_PARAMETER,
                "{word} ({value}) is out of range for the type of the sequence"
            );
        }
    }
    if min > max {
        return stated_err!(
            INVALID_PARAMETER,
            "MINVALUE ({min}) must not be greater than MAXVALUE ({max})"
        );
    }
    check_within("START", start, &definition)?;
    Ok(definition)
}

fn check_within(word: &str, value: i64, definition: &SequenceDefinition) -> Result<()> {
    let SequenceDefinition { min, max, .. } = definition;
    match (min..=max).contains(&&value) {
        true => Ok(()),
        false => {
            stated_err!(INVALID_PARAMETER, "{word} value ({value}) must be within {min} and {max}")
        }
    }
}

/// The default limits of a sequence.
fn limits(increment: i64, data_type: &DataType) -> (i64, i64) {
    let (least, most) = of_type(data_type);
    if increment > 0 { (1, most) } else { (least, -1) }
}

/// The range of a type.
fn of_type(data_type: &DataType) -> (i64, i64) {
    match data_type {
        DataType::Int16 => (i64::from(i16::MIN), i64::from(i16::MAX)),
        DataType::Int32 => (i64::from(i32::MIN), i64::from(i32::MAX)),
        _ => (i64::MIN, i64::MAX),
    }
}

pub(in crate::session) fn whole(
    data_type: &datafusion::sql::sqlparser::ast::DataType,
) -> Result<DataType> {
    use datafusion::sql::sqlparser::ast::DataType as Sql;
    match data_type {
        Sql::SmallInt(_) | Sql::Int2(_) => Ok(DataType::Int16),
        Sql::Int(_) | Sql::Integer(_) | Sql::Int4(_) => Ok(DataType::Int32),
        Sql::BigInt(_) | Sql::Int8(_) => Ok(DataType::Int64),
        other => stated_err!(
            INVALID_PARAMETER,
            "sequence type must be SMALLINT, INTEGER or BIGINT, not {other}"
        ),
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
