//! Options of the functions that read files: `name = value`, by DuckDB's names.

use datafusion::arrow::datatypes::DataType;
use datafusion::common::{Result, plan_datafusion_err, plan_err};
use datafusion::sql::sqlparser::ast::{Array, DictionaryField, Expr, Ident, UnaryOperator, Value};

/// The names of the options that define how CSV values are separated.
pub const DELIMITER: &[&str] = &["delim", "sep", "delimiter"];
/// The option for the character around texts.
pub const QUOTE: &[&str] = &["quote"];
/// The option for the character before a quote in a text.
pub const ESCAPE: &[&str] = &["escape"];
/// The option for the text of NULL.
pub const NULLS: &[&str] = &["nullstr", "null"];

/// The value of an option.
#[derive(Clone, Debug, PartialEq)]
pub enum OptionValue {
    /// NULL.
    Null,
    /// True or false.
    Bool(bool),
    /// A number as it is written.
    Number(String),
    /// A text, or a word without quotes.
    Text(String),
    /// A list of values.
    List(Vec<OptionValue>),
    /// Named values.
    Map(Vec<(String, OptionValue)>),
}

impl OptionValue {
    /// The value of an expression; unquoted names are texts.
    pub fn from_expr(expr: &Expr) -> Result<Self> {
        Ok(match expr {
            Expr::Value(value) => Self::of_value(&value.value)?,
            Expr::Identifier(word) => Self::Text(word.value.clone()),
            Expr::Nested(inner) => Self::from_expr(inner)?,
            Expr::UnaryOp { op: UnaryOperator::Minus, expr } => match Self::from_expr(expr)? {
                Self::Number(number) => Self::Number(format!("-{number}")),
                _ => return plan_err!("expected a value, found {expr}"),
            },
            Expr::Array(array) => {
                Self::List(array.elem.iter().map(Self::from_expr).collect::<Result<_>>()?)
            }
            Expr::Tuple(values) => {
                Self::List(values.iter().map(Self::from_expr).collect::<Result<_>>()?)
            }
            Expr::Dictionary(fields) => {
                let entry = |name: String, value| Ok((name, Self::from_expr(value)?));
                let fields = fields.iter().map(|it| entry(it.key.value.clone(), &it.value));
                Self::Map(fields.collect::<Result<_>>()?)
            }
            other => {
                return plan_err!(
                    "expected a value such as 'text', 1, true, ['a', 'b'] or {{'a': 'b'}}, found {other}"
                );
            }
        })
    }

    fn of_value(value: &Value) -> Result<Self> {
        Ok(match value {
            Value::Null => Self::Null,
            Value::Boolean(value) => Self::Bool(*value),
            Value::Number(text, _) => Self::Number(text.clone()),
            Value::SingleQuotedString(text)
            | Value::DoubleQuotedString(text)
            | Value::NationalStringLiteral(text) => Self::Text(text.clone()),
            Value::EscapedStringLiteral(text) => Self::Text(text.clone()),
            Value::DollarQuotedString(text) => Self::Text(text.value.clone()),
            other => return plan_err!("expected a value, found {other}"),
        })
    }

    /// The value as an expression.
    pub(crate) fn into_expr(self) -> Expr {
        let text = |text| Expr::value(Value::SingleQuotedString(text));
        match self {
            Self::Null => Expr::value(Value::Null),
            Self::Bool(value) => Expr::value(Value::Boolean(value)),
            Self::Number(number) => Expr::value(Value::Number(number, false)),
            Self::Text(value) => text(value),
            Self::List(values) => {
                let elem = values.into_iter().map(Self::into_expr).collect();
                Expr::Array(Array { elem, named: false })
            }
            Self::Map(fields) => {
                let field = |(key, value): (String, Self)| DictionaryField {
                    key: Ident::with_quote('\'', key),
                    value: Box::new(value.into_expr()),
                };
                Expr::Dictionary(fields.into_iter().map(field).collect())
            }
        }
    }

    /// The value as a text, if it is a single one.
    pub fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) | Self::Number(text) => Some(text),
            Self::Bool(true) => Some("true"),
            Self::Bool(false) => Some("false"),
            _ => None,
        }
    }

    fn bool(&self) -> Option<bool> {
        match self {
            Self::Bool(value) => Some(*value),
            _ => match self.text()?.to_ascii_lowercase().as_str() {
                "true" | "1" | "on" | "yes" | "t" => Some(true),
                "false" | "0" | "off" | "no" | "f" => Some(false),
                _ => None,
            },
        }
    }

    /// The texts of a list, or of a single value.
    pub fn texts(&self) -> Option<Vec<String>> {
        match self {
            Self::List(values) => values.iter().map(|it| it.text().map(str::to_owned)).collect(),
            single => Some(vec![single.text()?.to_owned()]),
        }
    }

    /// Names with texts.
    pub fn pairs(&self) -> Option<Vec<(String, String)>> {
        let Self::Map(fields) = self else { return None };
        fields.iter().map(|(name, value)| Some((name.clone(), value.text()?.to_owned()))).collect()
    }
}

/// The options of one call, in lower case.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FileOptions {
    values: Vec<(String, OptionValue)>,
    /// The target columns of the rows, in the order of the files' columns.
    pub target: Option<Vec<(String, DataType)>>,
    /// Whether the files are in PostgreSQL's text format.
    pub is_text: bool,
}

impl FileOptions {
    /// Adds an option.
    ///
    /// # Errors
    /// If it is already set.
    pub fn add(&mut self, name: &str, value: OptionValue) -> Result<()> {
        let name = name.to_ascii_lowercase();
        if self.values.iter().any(|(other, _)| *other == name) {
            return plan_err!("option {name} is given twice");
        }
        self.values.push((name, value));
        Ok(())
    }

    /// The options with their values.
    pub(crate) fn into_values(self) -> impl Iterator<Item = (String, OptionValue)> {
        self.values.into_iter()
    }

    /// Takes an option out.
    pub fn take(&mut self, name: &str) -> Option<OptionValue> {
        let at = self.values.iter().position(|(known, _)| known == name)?;
        Some(self.values.swap_remove(at).1)
    }

    /// Fails if the function does not support an option.
    pub fn check(&self, function: &str, known: &[&[&str]]) -> Result<()> {
        let is_known = |name: &str| known.iter().any(|names| names.contains(&name));
        match self.values.iter().find(|(name, _)| !is_known(name)) {
            None => Ok(()),
            Some((name, _)) => {
                let mut all: Vec<&str> =
                    known.iter().flat_map(|names| names.iter().copied()).collect();
                all.sort_unstable();
                plan_err!(
                    "unknown option '{name}' of {function}; expected one of {}",
                    all.join(", ")
                )
            }
        }
    }

    /// The value of an option under any of its names.
    pub fn get(&self, names: &[&str]) -> Option<&OptionValue> {
        self.values.iter().find(|(name, _)| names.contains(&name.as_str())).map(|(_, value)| value)
    }

    fn parsed<T>(
        &self,
        names: &[&str],
        expected: &str,
        parse: impl FnOnce(&OptionValue) -> Option<T>,
    ) -> Result<Option<T>> {
        let Some(value) = self.get(names) else { return Ok(None) };
        let invalid =
            || plan_datafusion_err!("invalid value of option {}; expected {expected}", names[0]);
        parse(value).ok_or_else(invalid).map(Some)
    }

    /// true or false.
    pub fn bool(&self, names: &[&str]) -> Result<Option<bool>> {
        self.parsed(names, "true or false", OptionValue::bool)
    }

    /// A text.
    pub fn text(&self, names: &[&str]) -> Result<Option<String>> {
        self.parsed(names, "a text", |value| value.text().map(str::to_owned))
    }

    /// A number from 0; -1 is the largest.
    pub fn count(&self, names: &[&str]) -> Result<Option<usize>> {
        self.parsed(names, "a number", |value| match value.text()? {
            "-1" => Some(usize::MAX),
            text => text.parse().ok(),
        })
    }

    /// One character of a single byte; `None` if the text is empty.
    pub fn byte(&self, names: &[&str]) -> Result<Option<Option<u8>>> {
        self.parsed(names, "one ASCII character", |value| match value.text()? {
            "\\t" => Some(Some(b'\t')),
            text => match text.as_bytes() {
                [] => Some(None),
                [byte] => Some(Some(*byte)),
                _ => None,
            },
        })
    }

    /// A text or a list of texts.
    pub fn texts(&self, names: &[&str]) -> Result<Option<Vec<String>>> {
        self.parsed(names, "a text or a list such as ['a', 'b']", OptionValue::texts)
    }

    /// Names with texts, such as `{'a': 'INTEGER'}`.
    pub fn pairs(&self, names: &[&str]) -> Result<Option<Vec<(String, String)>>> {
        self.parsed(names, "names with values such as {'a': 'INTEGER'}", OptionValue::pairs)
    }
}

/// Fails if the characters that separate values are ambiguous.
pub fn check_characters(options: &FileOptions, is_text: bool) -> Result<()> {
    let names = [(DELIMITER, "delimiter"), (QUOTE, "quote"), (ESCAPE, "escape")];
    for (option, name) in names {
        if matches!(options.byte(option)?.flatten(), Some(b'\n' | b'\r')) {
            return plan_err!("a line break cannot be the {name}");
        }
    }
    let Some(delimiter) = options.byte(DELIMITER)?.flatten() else { return Ok(()) };
    let quote = options.byte(QUOTE)?.unwrap_or(Some(b'"'));
    if !is_text && Some(delimiter) == quote {
        return plan_err!("delimiter and quote must be different characters");
    }
    let nulls = options.texts(NULLS)?.unwrap_or_default();
    match nulls.iter().any(|null| null.as_bytes().contains(&delimiter)) {
        true => plan_err!("the delimiter must not be part of the text of NULL"),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(values: &[(&str, OptionValue)]) -> FileOptions {
        let mut options = FileOptions::default();
        for (name, value) in values {
            options.add(name, value.clone()).expect("unique options");
        }
        options
    }

    #[test]
    fn an_unknown_option_is_refused_with_the_known_ones() {
        let given = options(&[("Delimm", OptionValue::Text(",".to_owned()))]);
        let told = given.check("read_csv", &[&["sep", "delim"], &["header"]]).expect_err("unknown");
        let told = told.to_string();
        assert!(told.contains("unknown option 'delimm' of read_csv"), "{told}");
        assert!(told.contains("expected one of delim, header, sep"), "{told}");
    }

    #[test]
    fn values_are_read_in_the_forms_that_people_write() {
        let given = options(&[
            ("HEADER", OptionValue::Number("1".to_owned())),
            ("sep", OptionValue::Text("\\t".to_owned())),
            ("quote", OptionValue::Text(String::new())),
            ("skip", OptionValue::Text("three".to_owned())),
        ]);
        assert_eq!(given.bool(&["header"]).expect("a truth value"), Some(true));
        assert_eq!(given.byte(&["delim", "sep"]).expect("a byte"), Some(Some(b'\t')));
        assert_eq!(given.byte(&["quote"]).expect("nothing"), Some(None));
        assert_eq!(given.bool(&["all_varchar"]).expect("not given"), None);
        let told = given.count(&["skip"]).expect_err("no number").to_string();
        assert!(told.contains("invalid value of option skip; expected a number"), "{told}");
        let twice = given.clone().add("Skip", OptionValue::Null);
        assert!(twice.expect_err("twice").to_string().contains("option skip is given twice"));
    }
}
