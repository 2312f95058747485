//! `nextval`, `currval`, `lastval`, `setval`: the numbers of sequences.
//!
//! A number that was given is never given again, whatever becomes of the transaction that asked for it.

use std::collections::HashMap;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use atoll_store::SequenceId;
use atoll_store::database::{CatalogChange, Relation, RelationName};
use datafusion::arrow::array::{Array, AsArray, Int64Array};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Int64Type};
use datafusion::common::{Result, ScalarValue, exec_err, plan_err};
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use datafusion::prelude::SessionContext;
use futures::executor::block_on;
use parking_lot::Mutex;

use super::{CATALOG, SCHEMA};
use crate::error::transaction_error;
use crate::role::rights::{LimitedUser, Owned, Right};
use crate::session::{SharedTransaction, StatementHandle};
use crate::table::fresh;

/// Registers the functions for a session.
pub(crate) fn register(context: &SessionContext) {
    let numbers = SequenceNumbers::default();
    for kind in [
        SequenceFunction::Next,
        SequenceFunction::Current,
        SequenceFunction::Last,
        SequenceFunction::Set,
    ] {
        let (signature, numbers) = (kind.signature(), numbers.clone());
        context.register_udf(ScalarUDF::new_from_impl(NumberFunction { kind, signature, numbers }));
    }
}

/// The sequences as a session sees them.
#[derive(Clone, Debug, Default)]
struct SequenceNumbers {
    given: Arc<Mutex<GivenNumbers>>,
}

/// What a session was given.
#[derive(Debug, Default)]
struct GivenNumbers {
    by_sequence: HashMap<SequenceId, i64>,
    last: Option<i64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum SequenceFunction {
    Next,
    Current,
    Last,
    Set,
}

impl SequenceFunction {
    fn name(self) -> &'static str {
        match self {
            Self::Next => "nextval",
            Self::Current => "currval",
            Self::Last => "lastval",
            Self::Set => "setval",
        }
    }

    fn signature(self) -> Signature {
        match self {
            Self::Next | Self::Current => Signature::any(1, Volatility::Volatile),
            Self::Last => Signature::nullary(Volatility::Volatile),
            Self::Set => Signature::any(2, Volatility::Volatile),
        }
    }
}

#[derive(Debug)]
struct NumberFunction {
    kind: SequenceFunction,
    signature: Signature,
    numbers: SequenceNumbers,
}

impl PartialEq for NumberFunction {
    fn eq(&self, other: &Self) -> bool {
        self.kind == other.kind && Arc::ptr_eq(&self.numbers.given, &other.numbers.given)
    }
}

impl Eq for NumberFunction {}

impl Hash for NumberFunction {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.kind.hash(state);
    }
}

impl ScalarUDFImpl for NumberFunction {
    fn name(&self) -> &str {
        self.kind.name()
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Int64)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let numbers = &self.numbers;
        if self.kind == SequenceFunction::Last {
            let Some(last) = numbers.given.lock().last else {
                return exec_err!("lastval is not yet defined in this session; call nextval first");
            };
            return Ok(ColumnarValue::Scalar(ScalarValue::Int64(Some(last))));
        }
        let transaction = StatementHandle::of(&args.config_options);
        let Some((transaction, user)) = transaction else {
            return exec_err!("{} outside of a statement", self.name());
        };
        let sequence = sequence(&args.args[0], &transaction, user, self.kind)?;
        let value = match self.kind {
            SequenceFunction::Next => {
                let next = || numbers.next(sequence, &transaction);
                let values: Result<Vec<i64>> = (0..args.number_rows).map(|_| next()).collect();
                return Ok(ColumnarValue::Array(Arc::new(Int64Array::from(values?))));
            }
            SequenceFunction::Set => {
                let values = args.args[1].to_array(1)?;
                let values = cast(&values, &DataType::Int64)?;
                let values = values.as_primitive::<Int64Type>();
                if values.is_empty() || values.is_null(0) {
                    return Ok(ColumnarValue::Scalar(ScalarValue::Int64(None)));
                }
                numbers.set(sequence, values.value(0), &transaction)?
            }
            _ => match numbers.given.lock().by_sequence.get(&sequence) {
                Some(value) => *value,
                None => {
                    return exec_err!(
                        "currval of this sequence is not yet defined in this session; call nextval first"
                    );
                }
            },
        };
        Ok(ColumnarValue::Scalar(ScalarValue::Int64(Some(value))))
    }
}

impl SequenceNumbers {
    /// The next number. Functions do not wait as futures do, and there is nothing to wait for but room in
    /// the log, which its own thread makes.
    fn next(&self, sequence: SequenceId, transaction: &SharedTransaction) -> Result<i64> {
        let value = block_on(async {
            let mut transaction = transaction.lock().await?;
            transaction.next_value(sequence).await.map_err(transaction_error)
        })?;
        let mut given = self.given.lock();
        given.by_sequence.insert(sequence, value);
        given.last = Some(value);
        Ok(value)
    }

    /// The number after which the sequence goes on.
    fn set(
        &self,
        sequence: SequenceId,
        value: i64,
        transaction: &SharedTransaction,
    ) -> Result<i64> {
        block_on(async {
            let mut transaction = transaction.lock().await?;
            let version = transaction.statement(true).map_err(transaction_error)?;
            let Some(state) = version.sequence(sequence) else {
                return exec_err!("the sequence does not exist any more");
            };
            let (definition, last) = (Arc::clone(&state.definition), Some(value));
            if !(definition.min..=definition.max).contains(&value) {
                return exec_err!(
                    "setval: value {value} is out of bounds for the sequence ({}..{})",
                    definition.min,
                    definition.max
                );
            }
            let change = CatalogChange::SetSequence { sequence, definition, last };
            fresh(transaction.define(change).await.map_err(transaction_error)?)?;
            Ok(value)
        })
    }
}

/// The sequence that an argument names, or, for defaults of columns, numbers.
fn sequence(
    argument: &ColumnarValue,
    transaction: &SharedTransaction,
    user: Option<&LimitedUser>,
    kind: SequenceFunction,
) -> Result<SequenceId> {
    let ColumnarValue::Scalar(argument) = argument else {
        return plan_err!("the sequence must be a constant: nextval('name')");
    };
    if let ScalarValue::Int64(Some(number)) = argument {
        return Ok(SequenceId::new(number.cast_unsigned()));
    }
    let Some(Some(name)) = argument.try_as_str() else {
        return plan_err!("the sequence is named by a string: nextval('name')");
    };
    let Some(relation) = sequence_name(name) else {
        return plan_err!("'{name}' is not the name of a sequence");
    };
    let version =
        block_on(async { transaction.lock().await?.statement(true).map_err(transaction_error) })?;
    match version.relation(&relation) {
        Some(Relation::Sequence(id)) => {
            if let Some(user) = user {
                let object = Owned::Relation(relation.clone());
                let is_user =
                    kind != SequenceFunction::Set && user.has(&version, &object, Right::Usage);
                if !is_user {
                    user.check(&version, &object, Right::Update)?;
                }
            }
            Ok(*id)
        }
        Some(_) => exec_err!("'{name}' is not a sequence"),
        None => {
            exec_err!("sequence '{name}' does not exist; create it with CREATE SEQUENCE {name}")
        }
    }
}

/// The sequence that a text names.
pub(crate) fn sequence_name(text: &str) -> Option<RelationName> {
    let parts: Vec<&str> = text.split('.').map(|part| part.trim_matches('"')).collect();
    match &parts[..] {
        [name] => Some(RelationName::new(SCHEMA, *name)),
        [schema, name] | [CATALOG, schema, name] => Some(RelationName::new(*schema, *name)),
        _ => None,
    }
}
