//! Privileges of roles: `has_table_privilege('ann', 't', 'SELECT')`; of the statement's user without the first
//! argument.

use datafusion::arrow::datatypes::DataType;
use datafusion::common::{Result, ScalarValue};

use super::Gives::{Bool, Texts};
use super::{Call, Entry, entry, flag};
use crate::pg_catalog::contents::role_oid;
use crate::pg_catalog::objects::{RelationOf, name_parts};
use crate::role::rights::{
    LimitedUser, OF_SCHEMAS, OF_SEQUENCES, OF_TABLES, Owned, Right, owner_item,
};
use crate::role::role;
use atoll_sql_common::error::SqlState;

pub(super) static ENTRIES: &[Entry] = &[
    entry("has_table_privilege", &[2, 3], Bool, 3, relation),
    entry("has_sequence_privilege", &[2, 3], Bool, 3, relation),
    entry("has_any_column_privilege", &[2, 3], Bool, 3, relation),
    entry("has_column_privilege", &[3, 4], Bool, 4, column),
    entry("has_schema_privilege", &[2, 3], Bool, 3, schema),
    entry("pg_has_role", &[2, 3], Bool, 3, has_role),
    entry("acldefault", &[2], Texts, 2, default_acl),
    // Objects without grants: every role may use them.
    entry("has_database_privilege", &[2, 3], Bool, 3, yes),
    entry("has_function_privilege", &[2, 3], Bool, 3, yes),
    entry("has_tablespace_privilege", &[2, 3], Bool, 3, yes),
    entry("has_type_privilege", &[2, 3], Bool, 3, yes),
    entry("has_language_privilege", &[2, 3], Bool, 3, yes),
];

fn yes(_: &Call<'_>) -> Result<ScalarValue> {
    flag(true)
}

/// The name of the role of an argument, by OID or name.
fn role_name(call: &Call<'_>, at: usize) -> Result<String> {
    let found = match call.text(at) {
        Some(name) => call.roles().find(|known| *known == name),
        None => {
            let oid = call.int(at);
            call.roles().find(|known| Some(role_oid(known)) == oid)
        }
    };
    match found {
        Some(name) => Ok(name),
        None => call.missing(SqlState::UNDEFINED_OBJECT, "role", at),
    }
}

/// The user to check, if `count` arguments follow the role; `None` if it may do everything.
fn asked(call: &Call<'_>, count: usize) -> Result<Option<LimitedUser>> {
    if call.args.len() == count {
        return Ok(call.user.cloned());
    }
    let name = role_name(call, 0)?;
    let version = &call.objects.version;
    let is_superuser =
        call.is_owner(&name) || role(version, &name).is_some_and(|role| role.is_superuser);
    Ok((!is_superuser).then(|| LimitedUser::new(version, &name)))
}

/// Whether a user has one of the rights in the last argument.
fn has_any(call: &Call<'_>, user: Option<&LimitedUser>, object: &Owned) -> Result<ScalarValue> {
    let text = call.text(call.args.len() - 1).unwrap_or_default();
    let mut has = false;
    for word in text.split(',') {
        let word = word.trim().to_uppercase();
        let (word, is_option) = match word.strip_suffix(" WITH GRANT OPTION") {
            Some(word) => (word, true),
            None => (word.as_str(), false),
        };
        let Some(right) = right(word) else {
            let message = format!("unrecognized privilege type: \"{word}\"");
            return Err(SqlState::INVALID_PARAMETER.error(message));
        };
        has |= match (user, right) {
            (None, _) => true,
            (Some(_), None) => false,
            (Some(user), Some(right)) if is_option => {
                user.may_grant(&call.objects.version, object, right)
            }
            (Some(user), Some(right)) => user.has(&call.objects.version, object, right),
        };
    }
    flag(has)
}

/// The right with a name; no role has those that only PostgreSQL knows.
fn right(word: &str) -> Option<Option<Right>> {
    Some(Some(match word {
        "SELECT" => Right::Select,
        "INSERT" => Right::Insert,
        "UPDATE" => Right::Update,
        "DELETE" => Right::Delete,
        "TRUNCATE" => Right::Truncate,
        "USAGE" => Right::Usage,
        "CREATE" => Right::Create,
        "REFERENCES" => Right::References,
        "TRIGGER" => return Some(None),
        _ => return None,
    }))
}

fn of_relation(call: &Call<'_>, at: usize, count: usize) -> Result<ScalarValue> {
    let user = asked(call, count)?;
    match call.relation(at) {
        // Everyone reads system tables and those of the own session.
        Some(found) if matches!(found.of, RelationOf::Own(_) | RelationOf::Declared(_)) => {
            flag(true)
        }
        Some(found) => has_any(call, user.as_ref(), &found.owned()),
        None if call.text(at).is_some() => call.missing(SqlState::UNDEFINED_TABLE, "relation", at),
        None => Ok(ScalarValue::Boolean(None)),
    }
}

fn relation(call: &Call<'_>) -> Result<ScalarValue> {
    of_relation(call, call.args.len() - 2, 2)
}

/// A column has the privileges of its table.
fn column(call: &Call<'_>) -> Result<ScalarValue> {
    of_relation(call, call.args.len() - 3, 3)
}

fn schema(call: &Call<'_>) -> Result<ScalarValue> {
    let (user, at) = (asked(call, 2)?, call.args.len() - 2);
    let named = call.text(at).and_then(|text| name_parts(&text)?.pop());
    let name = match named {
        Some(name) => Some(name).filter(|name| call.objects.schemas.contains_key(name.as_str())),
        None => call.int(at).and_then(|oid| call.objects.schema_name(oid)).map(ToString::to_string),
    };
    match name {
        Some(name) => {
            let object = Owned::Schema(name);
            match object.exists(&call.objects.version) {
                true => has_any(call, user.as_ref(), &object),
                false => flag(true),
            }
        }
        None => call.missing(SqlState::UNDEFINED_SCHEMA, "schema", at),
    }
}

/// The rights on a new object of a kind, by its letter, with this owner.
fn default_acl(call: &Call<'_>) -> Result<ScalarValue> {
    let kind = call.text(0).unwrap_or_default();
    let number = call.int(1).unwrap_or(0);
    let owner = call.roles().find(|name| role_oid(name) == number);
    let owner = owner.unwrap_or_else(|| number.to_string());
    let shared = |everyone: &str, own: &str| {
        vec![format!("={everyone}/{owner}"), format!("{owner}={own}/{owner}")]
    };
    let items = match kind.as_str() {
        "c" => Vec::new(),
        "r" => vec![owner_item(&owner, &OF_TABLES)],
        "s" => vec![owner_item(&owner, &OF_SEQUENCES)],
        "n" => vec![owner_item(&owner, &OF_SCHEMAS)],
        "f" => shared("X", "X"),
        "T" | "l" => shared("U", "U"),
        "d" => shared("Tc", "CTc"),
        "t" => vec![format!("{owner}=C/{owner}")],
        "F" | "S" => vec![format!("{owner}=U/{owner}")],
        "L" => vec![format!("{owner}=rw/{owner}")],
        "p" => vec![format!("{owner}=sA/{owner}")],
        _ => {
            let message = format!("unrecognized object type abbreviation: {kind}");
            return Err(SqlState::INVALID_PARAMETER.error(message));
        }
    };
    let items: Vec<ScalarValue> = items.into_iter().map(ScalarValue::from).collect();
    Ok(ScalarValue::List(ScalarValue::new_list_nullable(&items, &DataType::Utf8)))
}

fn has_role(call: &Call<'_>) -> Result<ScalarValue> {
    let user = asked(call, 2)?;
    let of = role_name(call, call.args.len() - 2)?;
    flag(user.is_none_or(|user| user.is(&of)))
}
