//! Texts to lists, structs and maps, as DuckDB and [`nested_text`](super::nested_text) write them: `[1, NULL, 'a, b']`,
//! `{'a': 1}`, `{key=value}`; lists also in PostgreSQL's form: `{1,NULL,"a b"}`. JSON's arrays and objects also match.

use std::sync::Arc;

use atoll_functions::temporal::StatementClock;
use atoll_functions::{ArrayItem, bytes_of_text, nested_array_items, sql_name};
use datafusion::arrow::array::{
    Array, ArrayRef, BinaryArray, ListArray, MapArray, StringArray, StructArray, new_null_array,
};
use datafusion::arrow::buffer::{NullBuffer, OffsetBuffer};
use datafusion::arrow::compute::{cast, concat};
use datafusion::arrow::datatypes::{DataType, FieldRef, Fields};
use datafusion::common::{DataFusionError, Result, exec_err};

use super::cast::convert_in;
use super::nested_text::{is_array, is_nested};
use atoll_sql_common::error::SqlState;

/// Parses texts as values of a nested type.
///
/// # Errors
/// For the first invalid text; with `is_try` it becomes NULL instead.
pub(crate) fn nested_values(
    texts: &StringArray,
    to: &DataType,
    is_try: bool,
    clock: StatementClock<'_>,
) -> Result<ArrayRef> {
    match (all_values(texts, to, clock), is_try) {
        (Err(_), true) if texts.len() == 1 => Ok(new_null_array(to, 1)),
        (Err(_), true) => {
            let one = |row| nested_values(&texts.slice(row, 1), to, true, clock);
            let rows = (0..texts.len()).map(one).collect::<Result<Vec<_>>>()?;
            let rows: Vec<&dyn Array> = rows.iter().map(AsRef::as_ref).collect();
            Ok(concat(&rows)?)
        }
        (all, _) => all,
    }
}

fn all_values(texts: &StringArray, to: &DataType, clock: StatementClock<'_>) -> Result<ArrayRef> {
    let mut written = Vec::with_capacity(texts.len());
    for text in texts {
        written.push(match text {
            None => Written::Null,
            Some(text) => match Written::parse(text, to) {
                Some(value) => value,
                None => {
                    return Err(invalid(text, to));
                }
            },
        });
    }
    values(&written.iter().collect::<Vec<_>>(), to, clock)
}

/// The error of a text that is not a value of a type. Unlike in PostgreSQL, the number of dimensions is part of the type
/// of an array.
fn invalid(text: &str, to: &DataType) -> DataFusionError {
    let (name, example) = (sql_name(to), example(to));
    match (dimensions_of(text), dimensions(to)) {
        (Some(given), wanted) if wanted > 0 && given != wanted => {
            SqlState::FEATURE_NOT_SUPPORTED.error(format!(
                "cannot cast '{text}' to {name}: the array has {given} dimensions, the type has {wanted}; \
                 declare it with a [] for each"
            ))
        }
        _ => {
            let message = format!("cannot cast '{text}' to {name}; expected {example}");
            SqlState::INVALID_TEXT_REPRESENTATION.error(message)
        }
    }
}

/// The number of dimensions of an array in PostgreSQL's form.
fn dimensions_of(text: &str) -> Option<usize> {
    let mut items = nested_array_items(text)?;
    let mut count = 1;
    while let Some(ArrayItem::Items(inner)) = items.into_iter().next() {
        (items, count) = (inner, count + 1);
    }
    Some(count)
}

/// The number of dimensions of a type.
fn dimensions(of: &DataType) -> usize {
    match of {
        DataType::List(item) => 1 + dimensions(item.data_type()),
        _ => 0,
    }
}

/// A parsed value.
enum Written {
    Null,
    Text(String),
    /// The items of a list, the fields of a struct in its type's order, or the alternating keys and values of a map.
    Parts(Vec<Written>),
}

impl Written {
    /// Parses a text.
    fn parse(text: &str, to: &DataType) -> Option<Self> {
        if is_array(to) && text.trim_start().starts_with('{') {
            let items = nested_array_items(text).and_then(|items| Self::array(items, to));
            // Lists within a list may have different lengths, as in DuckDB.
            if items.is_some() || dimensions(to) == 1 {
                return items;
            }
        }
        let mut reader = Reader(text);
        let value = reader.value(to, "")?;
        reader.0.trim_start().is_empty().then_some(value)
    }

    /// The items of an array; None if they have another number of dimensions than the type.
    fn array(items: Vec<ArrayItem>, to: &DataType) -> Option<Self> {
        let DataType::List(of) = to else { return None };
        let items = items.into_iter().map(|item| match item {
            ArrayItem::Null => Some(Self::Null),
            ArrayItem::Text(text) => (!is_nested(of.data_type())).then_some(Self::Text(text)),
            ArrayItem::Items(items) => Self::array(items, of.data_type()),
        });
        Some(Self::Parts(items.collect::<Option<_>>()?))
    }

    fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    fn parts(&self) -> &[Self] {
        match self {
            Self::Parts(parts) => parts,
            _ => &[],
        }
    }

    fn part(&self, at: usize) -> &Self {
        self.parts().get(at).unwrap_or(&Self::Null)
    }
}

fn example(of: &DataType) -> &'static str {
    match of {
        DataType::Struct(_) => "a text such as {'a': 1}",
        DataType::Map(..) => "a text such as {key=value}",
        _ => "a text such as [1, 2] or {1,2}",
    }
}

/// The rest of a text.
struct Reader<'a>(&'a str);

impl Reader<'_> {
    /// Parses the next value; an unquoted one extends to one of the end characters.
    fn value(&mut self, to: &DataType, ends: &str) -> Option<Written> {
        let is_list = match to {
            DataType::List(_) | DataType::LargeList(_) | DataType::FixedSizeList(..) => true,
            DataType::Struct(_) | DataType::Map(..) => false,
            _ => return self.single(ends),
        };
        let close = match () {
            () if is_list && self.takes('[') => ']',
            () if self.takes('{') => '}',
            // Among nested values, NULL is the one without braces.
            () if !ends.is_empty() => {
                return self.single(ends).filter(|value| matches!(value, Written::Null));
            }
            () => return None,
        };
        let mut parts = match to {
            DataType::Struct(fields) => fields.iter().map(|_| Written::Null).collect(),
            _ => Vec::new(),
        };
        if self.takes(close) {
            return Some(Written::Parts(parts));
        }
        let inner_ends = format!(",{close}");
        loop {
            self.part(to, &inner_ends, &mut parts)?;
            if self.takes(close) {
                return Some(Written::Parts(parts));
            }
            if !self.takes(',') {
                return None;
            }
        }
    }

    fn part(&mut self, of: &DataType, ends: &str, parts: &mut Vec<Written>) -> Option<()> {
        match of {
            DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _) => {
                parts.push(self.value(item.data_type(), ends)?);
            }
            DataType::Struct(fields) => {
                let Written::Text(name) = self.single(":")? else { return None };
                let (at, field) = fields.find(&name)?;
                if !self.takes(':') {
                    return None;
                }
                parts[at] = self.value(field.data_type(), ends)?;
            }
            DataType::Map(entries, _) => {
                let DataType::Struct(fields) = entries.data_type() else { return None };
                let [key, value] = &fields[..] else { return None };
                parts.push(self.value(key.data_type(), "=")?);
                if !self.takes('=') {
                    return None;
                }
                parts.push(self.value(value.data_type(), ends)?);
            }
            _ => return None,
        }
        Some(())
    }

    /// Parses a quoted text, or one that extends to an end character.
    fn single(&mut self, ends: &str) -> Option<Written> {
        self.0 = self.0.trim_start();
        if let Some(quote) = self.0.chars().next().filter(|first| matches!(first, '\'' | '"')) {
            return self.quoted(quote).map(Written::Text);
        }
        let end = self.0.find(|letter| ends.contains(letter)).unwrap_or(self.0.len());
        let (text, rest) = self.0.split_at(end);
        self.0 = rest;
        match text.trim_end() {
            "" => None,
            text if text.eq_ignore_ascii_case("null") => Some(Written::Null),
            text => Some(Written::Text(text.to_owned())),
        }
    }

    fn quoted(&mut self, quote: char) -> Option<String> {
        let mut text = String::new();
        let mut letters = self.0[1..].chars();
        loop {
            match letters.next()? {
                '\\' => text.push(letters.next()?),
                letter if letter == quote => break,
                letter => text.push(letter),
            }
        }
        self.0 = letters.as_str();
        Some(text)
    }

    fn takes(&mut self, letter: char) -> bool {
        let rest = self.0.trim_start().strip_prefix(letter);
        rest.map(|rest| self.0 = rest).is_some()
    }
}

/// Builds an array of a type.
fn values(written: &[&Written], to: &DataType, clock: StatementClock<'_>) -> Result<ArrayRef> {
    match to {
        DataType::List(item) => Ok(Arc::new(lists(written, item, clock)?)),
        DataType::LargeList(item) | DataType::FixedSizeList(item, _) => {
            Ok(cast(&lists(written, item, clock)?, to)?)
        }
        DataType::Struct(fields) => Ok(Arc::new(structs(written, fields, clock)?)),
        DataType::Map(entries, is_sorted) => {
            let DataType::Struct(fields) = entries.data_type() else {
                return exec_err!("a map of {}", entries.data_type());
            };
            let (parts, ends) = parts(written, 2);
            let every_second = |first| parts.iter().skip(first).step_by(2).copied();
            let pairs = fields.iter().enumerate().map(|(first, field)| {
                let column: Vec<&Written> = every_second(first).collect();
                values(&column, field.data_type(), clock)
            });
            let pairs = pairs.collect::<Result<Vec<_>>>()?;
            let pairs = StructArray::try_new(fields.clone(), pairs, None)?;
            let entries = Arc::clone(entries);
            Ok(Arc::new(MapArray::try_new(entries, ends, pairs, nulls(written), *is_sorted)?))
        }
        _ => singles(written, to, clock),
    }
}

fn singles(written: &[&Written], to: &DataType, clock: StatementClock<'_>) -> Result<ArrayRef> {
    let texts: StringArray = written.iter().map(|written| written.text()).collect();
    if !to.is_binary() {
        let texts: ArrayRef = Arc::new(texts);
        return convert_in(&texts, to, false, clock);
    }
    let bytes: Result<BinaryArray, String> =
        texts.iter().map(|text| text.map(bytes_of_text).transpose()).collect();
    match bytes {
        Ok(bytes) => Ok(cast(&bytes, to)?),
        Err(why) => Err(SqlState::INVALID_TEXT_REPRESENTATION.error(why)),
    }
}

fn lists(written: &[&Written], item: &FieldRef, clock: StatementClock<'_>) -> Result<ListArray> {
    let (parts, ends) = parts(written, 1);
    let items = values(&parts, item.data_type(), clock)?;
    Ok(ListArray::try_new(Arc::clone(item), ends, items, nulls(written))?)
}

fn structs(
    written: &[&Written],
    fields: &Fields,
    clock: StatementClock<'_>,
) -> Result<StructArray> {
    let columns = fields.iter().enumerate().map(|(at, field)| {
        let column: Vec<&Written> = written.iter().map(|written| written.part(at)).collect();
        values(&column, field.data_type(), clock)
    });
    Ok(StructArray::try_new(fields.clone(), columns.collect::<Result<_>>()?, nulls(written))?)
}

/// Flattens the parts of all values and returns the end of each; `of_one` parts form one element of a list or map.
fn parts<'a>(written: &[&'a Written], of_one: usize) -> (Vec<&'a Written>, OffsetBuffer<i32>) {
    let lengths = written.iter().map(|written| written.parts().len() / of_one);
    let ends = OffsetBuffer::from_lengths(lengths);
    (written.iter().flat_map(|written| written.parts()).collect(), ends)
}

fn nulls(written: &[&Written]) -> Option<NullBuffer> {
    let is_valid = |written: &&Written| !matches!(*written, Written::Null);
    Some(written.iter().map(is_valid).collect())
}

#[cfg(test)]
mod tests {
    use super::super::nested_text::nested_texts;
    use super::*;

    use atoll_functions::temporal::TemporalStyle;

    use datafusion::arrow::array::AsArray;
    use datafusion::arrow::datatypes::Field;

    fn list(of: DataType) -> DataType {
        DataType::List(Field::new_list_field(of, true).into())
    }

    fn map(key: DataType, value: DataType) -> DataType {
        let fields = [Field::new("key", key, false), Field::new("value", value, true)];
        let entries = Field::new("entries", DataType::Struct(fields.into_iter().collect()), false);
        DataType::Map(Arc::new(entries), false)
    }

    fn pair() -> DataType {
        let fields =
            [Field::new("a b", DataType::Int32, true), Field::new("l", list(DataType::Utf8), true)];
        DataType::Struct(fields.into_iter().collect())
    }

    #[test]
    fn written_values_are_parsed_back() {
        for (text, of) in [
            ("{1,NULL,-3}", list(DataType::Int32)),
            ("{}", list(DataType::Int32)),
            ("{t,f}", list(DataType::Boolean)),
            (r#"{{a,'b},{"b, c","\"\\"},{"null",""}}"#, list(list(DataType::Utf8))),
            (r#"{{a},NULL,{},{"b, c",it's,"null",""}}"#, list(list(DataType::Utf8))),
            ("{'a b': 1, 'l': [x, NULL]}", pair()),
            ("{'a b': NULL, 'l': NULL}", pair()),
            ("{k=1, 'l='=NULL}", map(DataType::Utf8, DataType::Int64)),
            ("{}", map(DataType::Utf8, DataType::Int64)),
            ("[{1=[2]}, NULL]", list(map(DataType::Int32, list(DataType::Int32)))),
        ] {
            let texts = StringArray::from(vec![Some(text), None]);
            let values =
                nested_values(&texts, &of, false, StatementClock::default()).expect("it is one");
            assert!(values.is_null(1), "{text}");
            let again = nested_texts(&values, TemporalStyle::default()).expect("it can be written");
            assert_eq!(again.as_string::<i32>().value(0), text);
        }
    }

    #[test]
    fn json_and_other_spaces_are_read() {
        for (text, of, written) in [
            (" [ 1 ,2 ] ", list(DataType::Int32), "{1,2}"),
            (
                "[[a], NULL, [], ['b, c', 'it\\'s']]",
                list(list(DataType::Utf8)),
                "{{a},NULL,{},{\"b, c\",it's}}",
            ),
            ("{\"l\": [\"x, y\"], \"a b\": 2}", pair(), "{'a b': 2, 'l': ['x, y']}"),
            ("{a b: 2}", pair(), "{'a b': 2, 'l': NULL}"),
            ("{{1,2},{3}}", list(list(DataType::Int32)), "{{1,2},{3}}"),
        ] {
            let texts = StringArray::from(vec![text]);
            let values =
                nested_values(&texts, &of, false, StatementClock::default()).expect("it is one");
            let again = nested_texts(&values, TemporalStyle::default()).expect("it can be written");
            assert_eq!(again.as_string::<i32>().value(0), written);
        }
    }

    #[test]
    fn invalid_texts_are_errors_or_null() {
        for text in ["[1", "1]", "NULL", "[1] x", "[1,]", "[,]", "['1]", "x", "", "[a]", "{1"] {
            let texts = StringArray::from(vec!["[7]", text]);
            nested_values(&texts, &list(DataType::Int32), false, StatementClock::default())
                .expect_err(text);
            let values =
                nested_values(&texts, &list(DataType::Int32), true, StatementClock::default())
                    .expect("it is NULL");
            assert!(values.is_valid(0) && values.is_null(1), "{text}");
        }
        for text in ["{'b': 1}", "{'a b' 1}", "{a b: }", "{a b: 1, l: [}", "{'a b'}"] {
            let texts = StringArray::from(vec![text]);
            nested_values(&texts, &pair(), false, StatementClock::default()).expect_err(text);
        }
    }
}
