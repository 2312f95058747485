//! JSON with a part changed, as PostgreSQL's functions of jsonb do.

use std::borrow::Cow;

use datafusion::arrow::array::{ArrayRef, AsArray};
use datafusion::common::Result;

use super::super::call::Call;
use super::super::entry::{Arguments, Entry, Takes, text};
use super::extract::parsed;
use super::value::Json;

/// What becomes of the place that a path names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PathChange {
    /// Its value is replaced; where there is none nothing changes.
    Replace,
    /// Its value is replaced, or added where only the last step of the path is missing.
    ReplaceOrAdd,
    /// A new value comes before it in a list; a key must be new.
    InsertBefore,
    /// Likewise behind it.
    InsertAfter,
}

impl PathChange {
    fn adds(self) -> bool {
        self != Self::Replace
    }

    fn inserts(self) -> bool {
        matches!(self, Self::InsertBefore | Self::InsertAfter)
    }
}

/// Why a value cannot be changed: SQLSTATE and message.
type PathFailure = (&'static str, String);

/// A change at the end of a path.
struct ValueChange<'p, 'a> {
    path: &'p [Option<String>],
    kind: PathChange,
    value: Json<'a>,
}

impl<'a> ValueChange<'_, 'a> {
    /// The value changed below the first `done` steps of the path, which lead to it.
    fn of(&self, target: Json<'a>, done: usize) -> Result<Json<'a>, PathFailure> {
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
    ) -> Result<Vec<(Cow<'a, str>, Json<'a>)>, PathFailure> {
        match (pairs.iter_mut().find(|(name, _)| name == key), self.is_last(done)) {
            (Some((_, value)), false) => {
                *value = self.of(std::mem::replace(value, Json::Null), done + 1)?;
            }
            (Some(_), true) if self.kind.inserts() => {
                let message =
                    format!("cannot replace existing key '{key}'; use jsonb_set for that");
                return Err(("22023", message));
            }
            (Some((_, value)), true) => *value = self.value.clone(),
            (None, true) if self.kind.adds() => {
                pairs.push((Cow::Owned(key.to_owned()), self.value.clone()));
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
    ) -> Result<Vec<Json<'a>>, PathFailure> {
        let Ok(index) = index.trim().parse::<i32>() else {
            let message =
                format!("path element at position {} is not an integer: '{index}'", done + 1);
            return Err(("22P02", message));
        };
        let at = place(index, items.len());
        match (at.filter(|at| *at < items.len()), self.is_last(done)) {
            (Some(at), false) => {
                let before = std::mem::replace(&mut items[at], Json::Null);
                items[at] = self.of(before, done + 1)?;
            }
            (Some(at), true) => match self.kind {
                PathChange::Replace | PathChange::ReplaceOrAdd => {
                    items[at] = self.value.clone();
                }
                PathChange::InsertBefore => items.insert(at, self.value.clone()),
                PathChange::InsertAfter => items.insert(at + 1, self.value.clone()),
            },
            (None, true) if self.kind.adds() => items.insert(at.unwrap_or(0), self.value.clone()),
            (None, _) => {}
        }
        Ok(items)
    }
}

/// Where a number points in a list of so many items, from its end on where it is negative: behind the last one at
/// most, and nowhere before the first.
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

/// Changes the value of each row; the fourth argument chooses between two ways.
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
        match change.of(target, 0) {
            Ok(value) => value.write(out),
            Err((state, why)) => return call.fails_as(state, why),
        }
        Ok(true)
    })
}

/// A value without the keys whose values are null.
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

const AT_PATH: &[Arguments] = &[
    Arguments::Are(&[Takes::Text, Takes::Texts, Takes::Text]),
    Arguments::Are(&[Takes::Text, Takes::Texts, Takes::Text, Takes::Flag]),
];

pub(super) const ALL: &[Entry] = &[
    Entry {
        name: "jsonb_set",
        aliases: &[],
        arguments: "json, path, value[, whether to add]",
        about: "JSON with another value where a path of keys and numbers of elements ends; a last key that is \
                not there is added, unless the fourth argument is false.",
        example: "jsonb_set('{\"a\": [1, 2]}', '{a,0}', '9') = '{\"a\":[9,2]}'",
        takes: AT_PATH,
        gives: text,
        volatile: false,
        run: |call| changed(call, PathChange::ReplaceOrAdd, false, PathChange::Replace),
    },
    Entry {
        name: "jsonb_insert",
        aliases: &[],
        arguments: "json, path, value[, whether behind it]",
        about: "JSON with a value more: before the element of a list that a path names, behind it where the \
                fourth argument is true, or under a new key.",
        example: "jsonb_insert('{\"a\": [1, 2]}', '{a,0}', '9') = '{\"a\":[9,1,2]}'",
        takes: AT_PATH,
        gives: text,
        volatile: false,
        run: |call| changed(call, PathChange::InsertBefore, true, PathChange::InsertAfter),
    },
    Entry {
        name: "json_strip_nulls",
        aliases: &["jsonb_strip_nulls"],
        arguments: "json",
        about: "JSON without the keys of objects whose values are null; elements of lists stay.",
        example: "json_strip_nulls('{\"a\": null, \"b\": [null]}') = '{\"b\":[null]}'",
        takes: &[Arguments::Are(&[Takes::Text])],
        gives: text,
        volatile: false,
        run: |call| {
            call.texts(|row, out| {
                without_nulls(parsed(call, 0, row)?).write(out);
                Ok(true)
            })
        },
    },
];
