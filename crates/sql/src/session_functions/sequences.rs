//! `nextval`, `currval`, `lastval`, `setval`: the numbers of sequences.
//!
//! A number is never used twice, even if the transaction that took it is rolled back.

use std::collections::HashMap;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, LazyLock};

use atoll_store::SequenceId;
use atoll_store::database::{CatalogChange, DatabaseVersion, Relation, RelationName};
use datafusion::arrow::array::{Array, ArrayRef, AsArray, Int64Array};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Int64Type};
use datafusion::common::{Result, ScalarValue, exec_err, plan_err};
use datafusion::logical_expr::{
    ColumnarValue, DocSection, Documentation, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl,
    Signature, TypeSignature, Volatility,
};
use datafusion::prelude::SessionContext;
use futures::executor::block_on;
use parking_lot::Mutex;
use tokio::task::unconstrained;

use crate::role::rights::{LimitedUser, Owned, Right};
use crate::shared_transaction::SharedTransaction;
use crate::statement_handle::StatementHandle;
use crate::table::fresh;
use atoll_sql_common::error::{stated_err, transaction_error};
use atoll_sql_common::names::{CATALOG, SearchPath, TEMPORARY};

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

/// The sequences in a session.
#[derive(Clone, Debug, Default)]
struct SequenceNumbers {
    given: Arc<Mutex<GivenNumbers>>,
}

/// The last numbers of a session.
#[derive(Debug, Default)]
struct GivenNumbers {
    by_sequence: HashMap<SequenceId, i64>,
    /// The sequence that was used last.
    last: Option<SequenceId>,
}

impl GivenNumbers {
    /// The last number from any sequence.
    fn last(&self) -> Option<i64> {
        self.by_sequence.get(&self.last?).copied()
    }
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
            Self::Set => Signature::one_of(
                vec![TypeSignature::Any(2), TypeSignature::Any(3)],
                Volatility::Volatile,
            ),
        }
    }
}

/// The documentation of the functions, in their order.
static DOCUMENTATION: LazyLock<[Documentation; 4]> = LazyLock::new(|| {
    let of = |about: &str, syntax: &str, example: &str| {
        Documentation::builder(DocSection::default(), about, syntax)
            .with_sql_example(example)
            .build()
    };
    [
        of(
            "The next number of a sequence, which is never reused.",
            "nextval(sequence)",
            "nextval('orders')",
        ),
        of(
            "The last number that the session took from a sequence.",
            "currval(sequence)",
            "currval('orders')",
        ),
        of("The last number that the session took from any sequence.", "lastval()", "lastval()"),
        of(
            "Continues a sequence after a number.",
            "setval(sequence, number)",
            "setval('orders', 1000)",
        ),
    ]
});

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

    fn documentation(&self) -> Option<&Documentation> {
        Some(&DOCUMENTATION[self.kind as usize])
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let numbers = &self.numbers;
        if self.kind == SequenceFunction::Last {
            let Some(last) = numbers.given.lock().last() else {
                return stated_err!(
                    NOT_IN_PREREQUISITE_STATE,
                    "lastval is not yet defined in this session; call nextval first"
                );
            };
            return Ok(ColumnarValue::Scalar(ScalarValue::Int64(Some(last))));
        }
        let transaction = StatementHandle::transaction_of(&args.config_options);
        let Some((transaction, user)) = transaction else {
            return exec_err!("{} outside of a statement", self.name());
        };
        let ColumnarValue::Scalar(argument) = &args.args[0] else {
            return plan_err!("the sequence must be a constant: nextval('name')");
        };
        let names = StatementHandle::names_of(&args.config_options);
        let path = names.map(|(names, _)| names.path().clone()).unwrap_or_default();
        let found = sequence(argument, &path, (&transaction, user), self.kind);
        let sequence = block_on(unconstrained(found))?;
        let value = match self.kind {
            SequenceFunction::Next => {
                // Functions cannot await, and this only waits for space in the log, which its own thread makes.
                // Unconstrained: a task over its budget is not woken by tokio before it yields, and it does not yield
                // here.
                let next = || block_on(unconstrained(numbers.next(sequence, &transaction)));
                let values: Result<Vec<i64>> = (0..args.number_rows).map(|_| next()).collect();
                return Ok(ColumnarValue::Array(Arc::new(Int64Array::from(values?))));
            }
            SequenceFunction::Set => {
                let Some(value) = first(&args.args[1], &DataType::Int64)? else {
                    return Ok(ColumnarValue::Scalar(ScalarValue::Int64(None)));
                };
                let value = value.as_primitive::<Int64Type>().value(0);
                let is_given = match args.args.get(2) {
                    Some(is_given) => match first(is_given, &DataType::Boolean)? {
                        Some(is_given) => is_given.as_boolean().value(0),
                        None => return Ok(ColumnarValue::Scalar(ScalarValue::Int64(None))),
                    },
                    None => true,
                };
                numbers.set(sequence, value, is_given, &transaction)?
            }
            _ => match numbers.given.lock().by_sequence.get(&sequence) {
                Some(value) => *value,
                None => {
                    return stated_err!(
                        NOT_IN_PREREQUISITE_STATE,
                        "currval of this sequence is not yet defined in this session; call nextval first"
                    );
                }
            },
        };
        Ok(ColumnarValue::Scalar(ScalarValue::Int64(Some(value))))
    }
}

/// A call of `nextval` for a constant sequence name.
#[derive(Clone, Debug)]
pub(crate) struct NextNumber {
    numbers: SequenceNumbers,
    argument: ScalarValue,
}

impl NextNumber {
    /// The call in an expression; `None` for other expressions.
    pub(crate) fn try_from_expr(expr: &Expr) -> Option<Self> {
        let Expr::ScalarFunction(call) = expr else { return None };
        let function = call.func.inner().downcast_ref::<NumberFunction>()?;
        match (function.kind, &call.args[..]) {
            (SequenceFunction::Next, [Expr::Literal(argument, _)]) => {
                let (numbers, argument) = (function.numbers.clone(), argument.clone());
                Some(Self { numbers, argument })
            }
            _ => None,
        }
    }

    /// Takes the number of the call, where unqualified names are looked up in this path.
    ///
    /// # Errors
    /// For sequences that are missing or exhausted, and if the user may not use it.
    pub(crate) async fn next(
        &self,
        path: &SearchPath,
        transaction: &SharedTransaction,
        user: Option<&LimitedUser>,
    ) -> Result<i64> {
        let by = (transaction, user);
        let sequence = sequence(&self.argument, path, by, SequenceFunction::Next).await?;
        self.numbers.next(sequence, transaction).await
    }
}

impl SequenceNumbers {
    /// Takes the next number.
    async fn next(&self, sequence: SequenceId, transaction: &SharedTransaction) -> Result<i64> {
        let value = transaction.lock().await?.next_value(sequence).await;
        let value = value.map_err(transaction_error)?;
        let mut given = self.given.lock();
        given.by_sequence.insert(sequence, value);
        given.last = Some(sequence);
        Ok(value)
    }

    /// Sets the number after which, or, if it is not used yet, with which the sequence continues.
    fn set(
        &self,
        sequence: SequenceId,
        value: i64,
        is_given: bool,
        transaction: &SharedTransaction,
    ) -> Result<i64> {
        block_on(unconstrained(async {
            let mut transaction = transaction.lock().await?;
            let version = transaction.statement(true).map_err(transaction_error)?;
            let Some(state) = version.sequence(sequence) else {
                return exec_err!("the sequence does not exist any more");
            };
            let definition = Arc::clone(&state.definition);
            if !(definition.min..=definition.max).contains(&value) {
                return stated_err!(
                    NUMERIC_VALUE_OUT_OF_RANGE,
                    "setval: value {value} is out of bounds for the sequence ({}..{})",
                    definition.min,
                    definition.max
                );
            }
            let last = match is_given {
                true => Some(value),
                // The number before: without one it would continue from START.
                false if value == definition.start => None,
                false => match value.checked_sub(definition.increment) {
                    Some(last) => Some(last),
                    None => {
                        return exec_err!(
                            "setval: {value} is the first number of its type, so is_called must be true"
                        );
                    }
                },
            };
            let change = CatalogChange::SetSequence { sequence, definition, last };
            fresh(transaction.define(change).await.map_err(transaction_error)?)?;
            if is_given {
                self.given.lock().by_sequence.insert(sequence, value);
            }
            Ok(value)
        }))
    }
}

/// The first value of an argument in a type; `None` for NULL.
fn first(argument: &ColumnarValue, data_type: &DataType) -> Result<Option<ArrayRef>> {
    let values = cast(&argument.to_array(1)?, data_type)?;
    Ok(Some(values).filter(|values| !values.is_empty() && values.is_valid(0)))
}

/// The sequence that an argument names, or, in defaults of columns, numbers.
async fn sequence(
    argument: &ScalarValue,
    path: &SearchPath,
    (transaction, user): (&SharedTransaction, Option<&LimitedUser>),
    kind: SequenceFunction,
) -> Result<SequenceId> {
    let version = transaction.lock().await?.statement(true).map_err(transaction_error)?;
    if let ScalarValue::Int64(Some(number)) = argument {
        let id = SequenceId::new(number.cast_unsigned());
        if let Some(user) = user {
            check_numbered(&version, id, user, kind)?;
        }
        return Ok(id);
    }
    let Some(Some(name)) = argument.try_as_str() else {
        return plan_err!("the sequence is named by a string: nextval('name')");
    };
    let Some(relation) = sequence_named(&version, name, path) else {
        return plan_err!("'{name}' is not the name of a sequence");
    };
    match version.relation(&relation) {
        Some(Relation::Sequence(id)) => {
            if let Some(user) = user {
                check_rights(&version, &relation, user, kind)?;
            }
            Ok(*id)
        }
        Some(_) => stated_err!(WRONG_OBJECT_TYPE, "'{name}' is not a sequence"),
        None => {
            stated_err!(
                UNDEFINED_TABLE,
                "sequence \"{name}\" does not exist; create it with CREATE SEQUENCE {name}"
            )
        }
    }
}

/// Checks that a user may call a function on a sequence.
fn check_rights(
    version: &DatabaseVersion,
    relation: &RelationName,
    user: &LimitedUser,
    kind: SequenceFunction,
) -> Result<()> {
    let object = Owned::Relation(relation.clone());
    match kind != SequenceFunction::Set && user.has(version, &object, Right::Usage) {
        true => Ok(()),
        false => user.check(version, &object, Right::Update),
    }
}

/// The same for a sequence that is given by its number. The default of an identity column is `nextval(number)`, which
/// needs no right on the sequence, but one to write the table.
fn check_numbered(
    version: &DatabaseVersion,
    id: SequenceId,
    user: &LimitedUser,
    kind: SequenceFunction,
) -> Result<()> {
    if kind == SequenceFunction::Next
        && let Some((table, column)) = version.sequence_owner(id)
        && version.table(table).is_some_and(|it| it.definition().identity(column).is_some())
        && let Some(name) = version.table_name(table)
    {
        let table = Owned::Relation(name.clone());
        if [Right::Insert, Right::Update].iter().any(|right| user.has(version, &table, *right)) {
            return Ok(());
        }
    }
    match version.sequence_name(id) {
        Some(name) => check_rights(version, name, user, kind),
        None => stated_err!(UNDEFINED_OBJECT, "no sequence has the number {id}"),
    }
}

/// The full name of a sequence: an unqualified name gets the schema of the path that has it, or, if none has it, stays
/// unqualified.
pub(crate) fn sequence_named(
    version: &DatabaseVersion,
    text: &str,
    path: &SearchPath,
) -> Option<RelationName> {
    let named = sequence_name(text)?;
    let found = match &*named.schema {
        "" => path.relation(version, &named.name),
        TEMPORARY => {
            let own = path.temporary();
            own.map(|own| RelationName::new(Arc::clone(own), Arc::clone(&named.name)))
        }
        _ => None,
    };
    Some(found.unwrap_or(named))
}

/// The sequence name in a text: in lower case, except for quoted parts. An unqualified one has an empty schema.
fn sequence_name(text: &str) -> Option<RelationName> {
    let mut parts = vec![String::new()];
    let mut letters = text.trim().chars().peekable();
    let mut is_quoted = false;
    while let Some(letter) = letters.next() {
        let part = parts.last_mut()?;
        match letter {
            '"' if is_quoted && letters.next_if_eq(&'"').is_some() => part.push('"'),
            '"' => is_quoted = !is_quoted,
            '.' if !is_quoted => parts.push(String::new()),
            letter if is_quoted => part.push(letter),
            letter => part.extend(letter.to_lowercase()),
        }
    }
    match &parts[..] {
        _ if is_quoted || parts.iter().any(String::is_empty) => None,
        [name] => Some(RelationName::new("", &**name)),
        [schema, name] => Some(RelationName::new(&**schema, &**name)),
        [catalog, schema, name] if catalog == CATALOG => {
            Some(RelationName::new(&**schema, &**name))
        }
        _ => None,
    }
}
