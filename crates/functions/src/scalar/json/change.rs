//! Changes parts of JSON, like PostgreSQL's jsonb functions.

use std::borrow::Cow;

use datafusion::arrow::array::{ArrayRef, AsArray};
use datafusion::common::Result;

use super::super::call::Call;
use super::super::entry::{Arguments, Entry, Takes, text};
use super::extract::{parsed, told};
use super::jsonb;
use super::value::{Json, JsonFailure, order_keys};

/// What happens to the value at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PathChange {
    /// Replace the value; if there is none, nothing changes.
    Replace,
    /// Replace the value, or add it if only the last step of the path is missing.
    ReplaceOrAdd,
    /// Insert a new value before it in a list; a key must be new.
    InsertBefore,
    /// The same after it.
    InsertAfter,
    /// Delete it.
    Delete,
}

impl PathChange {
    fn adds(self) -> bool {
        !matches!(self, Self::Replace | Self::Delete)
    }

    fn inserts(self) -> bool {
        matches!(self, Self::InsertBefore | Self::InsertAfter)
    }
}

/// A change at the end of a path.
struct ValueChange<'p, 'a> {
    path: &'p [Option<String>],
    kind: PathChange,
    value: Json<'a>,
}

impl<'a> ValueChange<'_, 'a> {
    /// Applies the change to the value that the first `done` steps of the path lead to.
    fn apply(&self, target: Json<'a>, done: usize) -> Result<Json<'a>, JsonFailure> {
        let Some(step) = self.path.get(done) else { return Ok(target) };
        let Some(step) = step else {
            return Err(("22004", format!("path element at position {} is null", done + 1)));
        };
        match target {
            Json::Object(pairs) => self.of_object(pairs, step, done).map(Json::Object),
            Json::List(items) => self.of_list(items, step, done).map(Json::List),
            scalar => Ok(scalar),
        }
    }

    fn is_last(&self, done: usize) -> bool {
        done + 1 == self.path.len()
    }

    fn of_object(
        &self,
        mut pairs: Vec<(Cow<'a, str>, Json<'a>)>,
        key: &str,
        done: usize,
    ) -> Result<Vec<(Cow<'a, str>, Json<'a>)>, JsonFailure> {
        match (pairs.iter_mut().find(|(name, _)| name == key), self.is_last(done)) {
            (Some((_, value)), false) => {
                *value = self.apply(std::mem::replace(value, Json::Null), done + 1)?;
            }
            (Some(_), true) if self.kind.inserts() => {
                let message =
                    format!("cannot replace existing key '{key}'; use jsonb_set for that");
                return Err(("22023", message));
            }
            (Some(_), true) if self.kind == PathChange::Delete => {
                pairs.retain(|(name, _)| name != key);
            }
            (Some((_, value)), true) => *value = self.value.clone(),
            (None, true) if self.kind.adds() => {
                pairs.push((Cow::Owned(key.to_owned()), self.value.clone()));
                order_keys(&mut pairs);
            }
            (None, _) => {}
        }
        Ok(pairs)
    }

    fn of_list(
        &self,
        mut items: Vec<Json<'a>>,
        index: &str,
        done: usize,
    ) -> Result<Vec<Json<'a>>, JsonFailure> {
        let Ok(index) = index.trim().parse::<i32>() else {
            let message =
                format!("path element at position {} is not an integer: '{index}'", done + 1);
            return Err(("22P02", message));
        };
        let at = place(index, items.len());
        match (at.filter(|at| *at < items.len()), self.is_last(done)) {
            (Some(at), false) => {
                let before = std::mem::replace(&mut items[at], Json::Null);
                items[at] = self.apply(before, done + 1)?;
            }
            (Some(at), true) => match self.kind {
                PathChange::Replace | PathChange::ReplaceOrAdd => {
                    items[at] = self.value.clone();
                }
                PathChange::InsertBefore => items.insert(at, self.value.clone()),
                PathChange::InsertAfter => items.insert(at + 1, self.value.clone()),
                PathChange::Delete => drop(items.remove(at)),
            },
            (None, true) if self.kind.adds() => items.insert(at.unwrap_or(0), self.value.clone()),
            (None, _) => {}
        }
        Ok(items)
    }
}

/// Resolves an index into a list of this length, counted from its end if negative: at most after the last item,
/// and None before the first.
fn place(index: i32, count: usize) -> Option<usize> {
    match usize::try_from(index) {
        Ok(index) => Some(index.min(count)),
        Err(_) => count.checked_sub(index.unsigned_abs() as usize),
    }
}

/// The steps of a row's path.
fn path(call: &Call, row: usize) -> Vec<Option<String>> {
    let list = call.list(1).value(row);
    list.as_string::<i32>().iter().map(|step| step.map(str::to_owned)).collect()
}

/// Changes the value of each row; the fourth argument selects one of two modes.
fn changed(
    call: &Call,
    by_default: PathChange,
    flag: bool,
    flagged: PathChange,
) -> Result<ArrayRef> {
    call.texts(|row, out| {
        let is_flagged = call.count() > 3 && call.flag(3).value(row) == flag;
        let kind = if is_flagged { flagged } else { by_default };
        let (target, path) = (parsed(call, 0, row)?, path(call, row));
        if !matches!(target, Json::List(_) | Json::Object(_)) {
            return call.fails_as("22023", "cannot set a path in a scalar");
        }
        let change = ValueChange { path: &path, kind, value: parsed(call, 2, row)? };
        told(call, change.apply(target, 0).and_then(|value| jsonb::write(&value, out)))?;
        Ok(true)
    })
}

/// Deletes the value at each row's path.
fn deleted(call: &Call) -> Result<ArrayRef> {
    call.texts(|row, out| {
        let (target, path) = (parsed(call, 0, row)?, path(call, row));
        if !matches!(target, Json::List(_) | Json::Object(_)) {
            return call.fails_as("22023", "cannot delete path in scalar");
        }
        let change = ValueChange { path: &path, kind: PathChange::Delete, value: Json::Null };
        told(call, change.apply(target, 0).and_then(|value| jsonb::write(&value, out)))?;
        Ok(true)
    })
}

/// Removes the keys with null values.
fn without_nulls(value: Json<'_>) -> Json<'_> {
    match value {
        Json::Object(pairs) => {
            let pairs = pairs.into_iter().filter(|(_, value)| *value != Json::Null);
            Json::Object(pairs.map(|(key, value)| (key, without_nulls(value))).collect())
        }
        Json::List(items) => Json::List(items.into_iter().map(without_nulls).collect()),
        other => other,
    }
}

fn stripped(call: &Call) -> Result<ArrayRef> {
    call.texts(|row, out| {
        let value = without_nulls(parsed(call, 0, row)?);
        match call.is_jsonb {
            true => told(call, jsonb::write(&value, out))?,
            false => value.write(out),
        }
        Ok(true)
    })
}

const AT_PATH: &[Arguments] = &[
    Arguments::Are(&[Takes::Json, Takes::Texts, Takes::Json]),
    Arguments::Are(&[Takes::Json, Takes::Texts, Takes::Json, Takes::Flag]),
];

pub(super) const ALL: &[Entry] = &[
    Entry {
        name: "jsonb_set",
        aliases: &[],
        arguments: "json, path, value[, whether to add]",
        about: "JSON with another value where a path of keys and numbers of elements ends; a last key that is \
                not there is added, unless the fourth argument is false.",
        example: "jsonb_set('{\"a\": [1, 2]}', '{a,0}', '9') = '{\"a\": [9, 2]}'",
        takes: AT_PATH,
        gives: text,
        volatile: false,
        run: |call| changed(call, PathChange::ReplaceOrAdd, false, PathChange::Replace),
    },
    Entry {
        name: "jsonb_insert",
        aliases: &[],
        arguments: "json, path, value[, insert after]",
        about: "JSON with an additional value: before the list element at a path, after it if the fourth \
                argument is true, or under a new key.",
        example: "jsonb_insert('{\"a\": [1, 2]}', '{a,0}', '9') = '{\"a\": [9, 1, 2]}'",
        takes: AT_PATH,
        gives: text,
        volatile: false,
        run: |call| changed(call, PathChange::InsertBefore, true, PathChange::InsertAfter),
    },
    Entry {
        name: "json_strip_nulls",
        aliases: &[],
        arguments: "json",
        about: "JSON without the keys of objects whose values are null; elements of lists stay.",
        example: "json_strip_nulls('{\"a\": null, \"b\": [null]}') = '{\"b\":[null]}'",
        takes: &[Arguments::Are(&[Takes::Json])],
        gives: text,
        volatile: false,
        run: stripped,
    },
    Entry {
        name: "jsonb_strip_nulls",
        aliases: &[],
        arguments: "json",
        about: "The same as JSONB.",
        example: "jsonb_strip_nulls('{\"a\": null, \"b\": [null]}') = '{\"b\": [null]}'",
        takes: &[Arguments::Are(&[Takes::Json])],
        gives: text,
        volatile: false,
        run: stripped,
    },
    Entry {
        name: "jsonb_delete_path",
        aliases: &[],
        arguments: "json, path",
        about: "JSONB without what a path of keys and numbers of elements leads to; the operator #-.",
        example: "jsonb_delete_path('{\"a\": [1, 2]}', '{a,0}') = '{\"a\": [2]}'",
        takes: &[Arguments::Are(&[Takes::Json, Takes::Texts])],
        gives: text,
        volatile: false,
        run: deleted,
    },
];
