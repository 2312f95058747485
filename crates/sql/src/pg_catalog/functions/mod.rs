//! Functions over the catalog: `format_type(oid, -1)`, `pg_get_constraintdef(oid)`, `'t'::regclass`.
//!
//! They take their data from the settings of the calling statement, and are the same for all sessions.

mod definitions;
mod facts;
mod names;
mod privileges;

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, LazyLock};

use atoll_functions::temporal::TemporalStyle;
use datafusion::arrow::array::new_empty_array;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Fields};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    TypeSignature, Volatility,
};
use datafusion::prelude::SessionContext;

pub use names::shown_function;

use super::contents::OWNER_NAME;
use super::objects::{PgObjects, PgRelation};
use crate::catalog::Catalogs;
use crate::role::rights::LimitedUser;
use crate::role::roles;
use crate::statement_handle::StatementHandle;
use atoll_sql_common::error::SqlState;
use atoll_sql_common::pg_type::marked;

/// The return type of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Gives {
    Text,
    Oid,
    Int,
    Bool,
    Texts,
    /// Items of a list of numbers, with their positions.
    Items,
}

impl Gives {
    fn data_type(self) -> DataType {
        match self {
            Self::Text => DataType::Utf8,
            Self::Oid | Self::Int => DataType::Int64,
            Self::Bool => DataType::Boolean,
            Self::Texts => DataType::new_list(DataType::Utf8, true),
            Self::Items => DataType::new_list(DataType::Struct(pair_fields()), true),
        }
    }
}

/// The fields of an item with its position, by PostgreSQL's names.
fn pair_fields() -> Fields {
    Fields::from(vec![
        Field::new("x", DataType::Int64, true),
        Field::new("n", DataType::Int64, true),
    ])
}

/// A function.
struct Entry {
    name: &'static str,
    /// The possible numbers of arguments.
    counts: &'static [usize],
    gives: Gives,
    /// The number of leading arguments that make it NULL if they are NULL.
    strict: usize,
    compute: fn(&Call<'_>) -> Result<ScalarValue>,
}

const fn entry(
    name: &'static str,
    counts: &'static [usize],
    gives: Gives,
    strict: usize,
    compute: fn(&Call<'_>) -> Result<ScalarValue>,
) -> Entry {
    Entry { name, counts, gives, strict, compute }
}

/// All functions.
fn entries() -> impl Iterator<Item = &'static Entry> {
    names::ENTRIES
        .iter()
        .chain(definitions::ENTRIES)
        .chain(facts::ENTRIES)
        .chain(privileges::ENTRIES)
}

/// A call with the arguments of a row.
struct Call<'a> {
    name: &'static str,
    args: &'a [ScalarValue],
    objects: &'a PgObjects,
    /// The user whose rights limit the statement.
    user: Option<&'a LimitedUser>,
    /// The session's user, if it is that of the process.
    owner: Option<&'a str>,
    style: TemporalStyle,
}

impl Call<'_> {
    fn int(&self, at: usize) -> Option<i64> {
        match self.args.get(at)?.cast_to(&DataType::Int64) {
            Ok(ScalarValue::Int64(value)) => value,
            _ => None,
        }
    }

    fn text(&self, at: usize) -> Option<String> {
        self.args.get(at)?.try_as_str().flatten().map(str::to_owned)
    }

    /// The relation of an argument, by OID or name; `None` if it does not exist.
    fn relation(&self, at: usize) -> Option<&PgRelation> {
        match self.text(at) {
            Some(name) => match name.trim().parse() {
                Ok(oid) => self.objects.relation(oid),
                Err(_) => self.objects.relation_named(&name),
            },
            None => self.objects.relation(self.int(at)?),
        }
    }

    /// Whether a role is that of the process, also under the name of the session's user.
    fn is_owner(&self, role: &str) -> bool {
        role == OWNER_NAME || self.owner == Some(role)
    }

    /// Names of all roles.
    fn roles(&self) -> impl Iterator<Item = String> {
        let kept = roles(&self.objects.version).into_iter().map(|role| role.name);
        let owners = [Some(OWNER_NAME), self.owner].into_iter().flatten().map(str::to_owned);
        owners.chain(kept)
    }

    /// The error for a name that does not exist.
    fn missing<T>(&self, state: SqlState, kind: &str, at: usize) -> Result<T> {
        let name = self.text(at).unwrap_or_default();
        Err(state.error(format!("{kind} \"{name}\" does not exist")))
    }
}

fn text(value: Option<impl Into<String>>) -> Result<ScalarValue> {
    Ok(ScalarValue::Utf8(value.map(Into::into)))
}

fn number(value: Option<i64>) -> Result<ScalarValue> {
    Ok(ScalarValue::Int64(value))
}

fn flag(value: bool) -> Result<ScalarValue> {
    Ok(ScalarValue::Boolean(Some(value)))
}

static FUNCTIONS: LazyLock<Vec<ScalarUDF>> = LazyLock::new(|| {
    let function = |entry| ScalarUDF::new_from_impl(CatalogFunction::new(entry));
    entries().map(function).collect()
});

/// Registers the functions for a session.
pub(crate) fn register(context: &SessionContext) {
    FUNCTIONS.iter().for_each(|function| context.register_udf(function.clone()));
}

/// Whether a function is one of these, which `atoll.functions` does not list.
pub(crate) fn is_catalog_function(name: &str) -> bool {
    FUNCTIONS.iter().any(|function| function.name() == name)
}

/// Names of the functions.
pub(super) fn function_names() -> impl Iterator<Item = (&'static str, usize)> {
    entries().map(|entry| (entry.name, entry.counts.first().copied().unwrap_or(0)))
}

struct CatalogFunction {
    entry: &'static Entry,
    signature: Signature,
}

impl CatalogFunction {
    fn new(entry: &'static Entry) -> Self {
        let takes = entry.counts.iter().map(|count| match count {
            0 => TypeSignature::Nullary,
            count => TypeSignature::Any(*count),
        });
        Self { entry, signature: Signature::one_of(takes.collect(), Volatility::Stable) }
    }

    fn call(&self, call: &Call<'_>) -> Result<ScalarValue> {
        if call.args.iter().take(self.entry.strict).any(ScalarValue::is_null) {
            return ScalarValue::try_from(&self.entry.gives.data_type());
        }
        (self.entry.compute)(call)
    }
}

impl ScalarUDFImpl for CatalogFunction {
    fn name(&self) -> &str {
        self.entry.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(self.entry.gives.data_type())
    }

    fn return_field_from_args(&self, _: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let field = Field::new(self.name(), self.entry.gives.data_type(), true);
        Ok(Arc::new(match self.entry.gives {
            Gives::Oid => marked(field, "oid"),
            _ => field,
        }))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let options = &args.config_options;
        let (names, user) = StatementHandle::names_of(options).unzip();
        let objects = names.map(|names| names.objects()).unwrap_or_default();
        let user = user.flatten();
        let owner = names.and_then(Catalogs::system).and_then(|system| system.owner());
        let row = |row: usize| {
            let values = args.args.iter().map(|arg| match arg {
                ColumnarValue::Scalar(value) => Ok(value.clone()),
                ColumnarValue::Array(values) => ScalarValue::try_from_array(values, row),
            });
            let values = values.collect::<Result<Vec<_>>>()?;
            let (name, objects) = (self.entry.name, &objects);
            let style = TemporalStyle::from_options(options);
            self.call(&Call { name, args: &values, objects, user, owner, style })
        };
        if args.args.iter().all(|arg| matches!(arg, ColumnarValue::Scalar(_))) {
            return row(0).map(ColumnarValue::Scalar);
        }
        if args.number_rows == 0 {
            return Ok(ColumnarValue::Array(new_empty_array(&self.entry.gives.data_type())));
        }
        let values = (0..args.number_rows).map(row).collect::<Result<Vec<_>>>()?;
        ScalarValue::iter_to_array(values).map(ColumnarValue::Array)
    }
}

impl fmt::Debug for CatalogFunction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.entry.name)
    }
}

impl PartialEq for CatalogFunction {
    fn eq(&self, other: &Self) -> bool {
        self.entry.name == other.entry.name
    }
}

impl Eq for CatalogFunction {}

impl Hash for CatalogFunction {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.entry.name.hash(state);
    }
}
