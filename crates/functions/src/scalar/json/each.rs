//! The values in a JSON text, one by one: `json_each` for the top level, `json_tree` for all levels.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, ListArray, StringBuilder, StructArray, UInt64Builder};
use datafusion::arrow::buffer::OffsetBuffer;
use datafusion::arrow::datatypes::{DataType, Field, Fields};
use datafusion::common::{Result, ScalarValue, exec_err};

use super::super::call::Call;
use super::super::entry::{Arguments, Entry, Takes};
use super::extract::{Paths, parsed};
use super::value::{Json, quote};

const ONE_OR_PATH: &[Arguments] =
    &[Arguments::Are(&[Takes::Text]), Arguments::Are(&[Takes::Text, Takes::Text])];

fn fields() -> Fields {
    let texts = ["key", "value", "type", "atom"].map(|name| Field::new(name, DataType::Utf8, true));
    let numbers = ["id", "parent"].map(|name| Field::new(name, DataType::UInt64, true));
    let paths = ["fullkey", "path"].map(|name| Field::new(name, DataType::Utf8, true));
    texts.into_iter().chain(numbers).chain(paths).collect()
}

fn lists(_: &[DataType], _: &[Option<&ScalarValue>]) -> Result<DataType> {
    Ok(DataType::new_list(DataType::Struct(fields()), true))
}

/// Collected values, column by column.
#[derive(Default)]
struct Found {
    /// Key, value, type, atom.
    texts: [StringBuilder; 4],
    /// Id and parent: the index of a value among all values and keys of the text.
    numbers: [UInt64Builder; 2],
    /// Full key and path.
    paths: [StringBuilder; 2],
    count: usize,
}

/// The position of a value.
struct Place<'a> {
    key: Option<&'a str>,
    id: u64,
    parent: Option<u64>,
    fullkey: &'a str,
    path: &'a str,
}

impl Found {
    fn add(&mut self, value: &Json<'_>, place: &Place<'_>) {
        let mut text = String::new();
        value.write(&mut text);
        let is_atom = !matches!(value, Json::Null | Json::List(_) | Json::Object(_));
        let [key, whole, kind, atom] = &mut self.texts;
        key.append_option(place.key);
        whole.append_value(&text);
        kind.append_value(value.type_name());
        atom.append_option(is_atom.then_some(&text));
        let [id, parent] = &mut self.numbers;
        id.append_value(place.id);
        parent.append_option(place.parent);
        let [fullkey, path] = &mut self.paths;
        fullkey.append_value(place.fullkey);
        path.append_value(place.path);
        self.count += 1;
    }

    fn finish(self) -> Result<StructArray> {
        let array = |mut texts: StringBuilder| -> ArrayRef { Arc::new(texts.finish()) };
        let numbers = self.numbers.map(|mut numbers| -> ArrayRef { Arc::new(numbers.finish()) });
        let columns = self.texts.map(array).into_iter().chain(numbers);
        let columns = columns.chain(self.paths.map(array)).collect();
        Ok(StructArray::try_new(fields(), columns, None)?)
    }
}

/// Walks over the values of a text, from the value at a path downwards.
struct Walk<'a> {
    start: &'a Json<'a>,
    whole_tree: bool,
    found: &'a mut Found,
    next: u64,
}

impl Walk<'_> {
    /// Visits a value; `depth` is its depth below the selected value.
    fn pass(&mut self, value: &Json<'_>, mut place: Place<'_>, mut depth: Option<usize>) {
        place.id = self.next;
        self.next += 1;
        if std::ptr::eq(
            std::ptr::from_ref(value).cast::<u8>(),
            std::ptr::from_ref(self.start).cast(),
        ) {
            depth = Some(0);
            place = Place { key: None, parent: None, path: place.fullkey, ..place };
        }
        let is_leaf = !matches!(value, Json::List(_) | Json::Object(_));
        let is_wanted = match depth {
            None => false,
            Some(0) => self.whole_tree || is_leaf,
            Some(depth) => self.whole_tree || depth == 1,
        };
        if is_wanted {
            self.found.add(value, &place);
        }
        let (id, parent_path) = (place.id, place.fullkey);
        let within = depth.map(|depth| depth + 1);
        let parent = self.whole_tree.then_some(id);
        match value {
            Json::List(items) => {
                for (at, item) in items.iter().enumerate() {
                    let (key, fullkey) = (at.to_string(), format!("{parent_path}[{at}]"));
                    let (key, path) = (Some(key.as_str()), parent_path);
                    self.pass(item, Place { key, id, parent, fullkey: &fullkey, path }, within);
                }
            }
            Json::Object(pairs) => {
                for (key, item) in pairs {
                    // Keys have their own numbers.
                    self.next += 1;
                    let mut fullkey = format!("{parent_path}.");
                    write_key(key, &mut fullkey);
                    let (key, path) = (Some(key.as_ref()), parent_path);
                    self.pass(item, Place { key, id, parent, fullkey: &fullkey, path }, within);
                }
            }
            _ => {}
        }
    }
}

fn write_key(key: &str, out: &mut String) {
    let is_plain = key.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        && key.bytes().next().is_some_and(|first| !first.is_ascii_digit());
    if is_plain { out.push_str(key) } else { quote(key, out) }
}

/// Maximum number of values in a batch, because their paths are texts.
const VALUES_MAX: usize = 100_000_000;

fn each(call: &Call, whole_tree: bool) -> Result<ArrayRef> {
    let paths = if call.count() > 1 { Some(Paths::try_from_call(call)?) } else { None };
    let mut found = Found::default();
    let mut offsets = vec![0_i32];
    for row in 0..call.rows {
        if !call.is_null(row) {
            let value = parsed(call, 0, row)?;
            let mut walk = |start: Option<&Json<'_>>| {
                let Some(start) = start else { return };
                let mut walk = Walk { start, whole_tree, found: &mut found, next: 0 };
                let (fullkey, path) = ("$", "$");
                walk.pass(&value, Place { key: None, id: 0, parent: None, fullkey, path }, None);
            };
            match &paths {
                None => walk(Some(&value)),
                Some(paths) => paths.with(row, |path| walk(path.first(&value)))?,
            }
        }
        match i32::try_from(found.count) {
            Ok(count) if found.count <= VALUES_MAX => offsets.push(count),
            _ => return exec_err!("{}: more than {VALUES_MAX} values at once", call.name),
        }
    }
    let item = Arc::new(Field::new_list_field(DataType::Struct(fields()), true));
    let values = Arc::new(found.finish()?);
    Ok(Arc::new(ListArray::try_new(item, OffsetBuffer::new(offsets.into()), values, None)?))
}

pub(super) const ALL: &[Entry] = &[
    Entry {
        name: "json_each",
        aliases: &[],
        arguments: "json[, path]",
        about: "The values of an object or list, as structs; in FROM a row for each of them.",
        example: "SELECT key, value FROM json_each('{\"a\": 1}')",
        takes: ONE_OR_PATH,
        gives: lists,
        volatile: false,
        run: |call| each(call, false),
    },
    Entry {
        name: "json_tree",
        aliases: &[],
        arguments: "json[, path]",
        about: "A value and all values inside of it, as structs; in FROM a row for each of them.",
        example: "SELECT fullkey, atom FROM json_tree('{\"a\": [1, 2]}')",
        takes: ONE_OR_PATH,
        gives: lists,
        volatile: false,
        run: |call| each(call, true),
    },
];
