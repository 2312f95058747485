//! Columns whose values are in the names of directories: `year=2024/month=5/…`.

use std::path::Path;

use datafusion::arrow::datatypes::{DataType, Field};
use datafusion::common::{Result, ScalarValue, plan_err};

use crate::source::found::SourceFile;
use crate::source::type_names::TypeNames;
use atoll_sql_parse::syntax::FileOptions;

const PARTITIONING: &[&str] = &["hive_partitioning"];
const TYPES: &[&str] = &["hive_types"];
const AUTOCAST: &[&str] = &["hive_types_autocast"];

/// The options that this module reads.
pub(crate) const KNOWN: &[&[&str]] = &[PARTITIONING, TYPES, AUTOCAST];

/// The name of NULL in a directory.
const NULL: &str = "__HIVE_DEFAULT_PARTITION__";

/// The columns, and their values for each file.
#[derive(Debug, Default)]
pub(crate) struct HiveColumns {
    pub(crate) fields: Vec<Field>,
    pub(crate) values: Vec<Vec<ScalarValue>>,
}

impl HiveColumns {
    /// The columns that the directories of all files name.
    pub(crate) fn from_files(
        files: &[SourceFile],
        options: &FileOptions,
        types: &TypeNames<'_>,
    ) -> Result<Self> {
        let given = options.pairs(TYPES)?.unwrap_or_default();
        let wanted = options.bool(PARTITIONING)?;
        let none = Self { fields: Vec::new(), values: vec![Vec::new(); files.len()] };
        if wanted == Some(false) {
            return Ok(none);
        }
        let pairs: Vec<Vec<(String, String)>> =
            files.iter().map(|file| pairs(&file.path)).collect();
        let Some(first) = pairs.first() else { return Ok(none) };
        let names: Vec<String> = first.iter().map(|(name, _)| name.clone()).collect();
        let same = |of: &Vec<(String, String)>| of.iter().map(|(name, _)| name).eq(names.iter());
        if !pairs.iter().all(same) {
            let told = wanted == Some(true) || !given.is_empty();
            return match told {
                true => plan_err!("the directories of the files name different columns"),
                false => Ok(none),
            };
        }
        let autocast = options.bool(AUTOCAST)?.unwrap_or(true);
        let mut columns = Self { fields: Vec::new(), values: vec![Vec::new(); files.len()] };
        // In the order of their names, as in DuckDB.
        let mut ordered: Vec<(usize, &String)> = names.iter().enumerate().collect();
        ordered.sort_by_key(|(_, name)| *name);
        for (at, name) in ordered {
            let texts = pairs.iter().map(|pairs| pairs[at].1.as_str());
            let data_type = match given.iter().find(|(given, _)| given.eq_ignore_ascii_case(name)) {
                Some((_, text)) => types.resolve(name, text)?,
                None if autocast => narrowest(texts.clone()),
                None => DataType::Utf8,
            };
            for (values, text) in columns.values.iter_mut().zip(texts) {
                values.push(value(name, text, &data_type)?);
            }
            columns.fields.push(Field::new(name, data_type, true));
        }
        Ok(columns)
    }
}

/// The names and values in the directories of a path.
fn pairs(path: &Path) -> Vec<(String, String)> {
    let directories = path.parent().into_iter().flat_map(Path::iter);
    let pair = |part: &std::ffi::OsStr| {
        let part = part.to_string_lossy();
        let (name, value) = part.split_once('=')?;
        (!name.is_empty()).then(|| (name.to_owned(), decoded(value)))
    };
    directories.filter_map(pair).collect()
}

/// A value with its percent encoding decoded.
fn decoded(text: &str) -> String {
    let (mut bytes, mut rest) = (Vec::new(), text.as_bytes());
    while let [first, after @ ..] = rest {
        let code = after.get(..2).and_then(|hex| std::str::from_utf8(hex).ok());
        match code.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(byte) if *first == b'%' => {
                bytes.push(byte);
                rest = &after[2..];
            }
            _ => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// BIGINT, DATE or TIMESTAMP if all values fit, else VARCHAR; as in DuckDB.
fn narrowest<'a>(texts: impl Iterator<Item = &'a str> + Clone) -> DataType {
    let all = |data_type: &DataType| {
        texts.clone().filter(|text| *text != NULL).all(|text| {
            let digits = text.trim_start_matches('-').as_bytes();
            let padded = matches!(digits, [b'0', _, ..]) && *data_type == DataType::Int64;
            !padded && ScalarValue::try_from_string(text.to_owned(), data_type).is_ok()
        })
    };
    if texts.clone().all(|text| text == NULL) {
        return DataType::Utf8;
    }
    [DataType::Int64, DataType::Date32]
        .into_iter()
        .find(|data_type| all(data_type))
        .unwrap_or(DataType::Utf8)
}

fn value(name: &str, text: &str, data_type: &DataType) -> Result<ScalarValue> {
    if text == NULL {
        return ScalarValue::try_from(data_type);
    }
    match ScalarValue::try_from_string(text.to_owned(), data_type) {
        Ok(value) => Ok(value),
        Err(_) => plan_err!(
            "directory '{name}={text}' does not have the type {data_type} that hive_types gives '{name}'"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_give_names_and_values() {
        let found = pairs(Path::new("/data/year=2024/note=a%20b%3D/=x/f.csv"));
        let expected = [("year", "2024"), ("note", "a b=")];
        assert_eq!(found, expected.map(|(a, b)| (a.to_owned(), b.to_owned())));
    }

    #[test]
    fn values_have_the_narrowest_type() {
        assert_eq!(narrowest(["1", "-20"].into_iter()), DataType::Int64);
        assert_eq!(narrowest(["2024-01-01", NULL].into_iter()), DataType::Date32);
        assert_eq!(narrowest(["01", "02"].into_iter()), DataType::Utf8);
        assert_eq!(narrowest(["a"].into_iter()), DataType::Utf8);
        assert_eq!(narrowest([NULL].into_iter()), DataType::Utf8);
    }
}
