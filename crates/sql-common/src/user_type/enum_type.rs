//! An ENUM: its labels and their codes.

use std::fmt::{self, Write};
use std::sync::Arc;

use datafusion::arrow::datatypes::DataType;
use datafusion::common::utils::quote_identifier;
use datafusion::common::{Result, ScalarValue};

use super::enum_data_type;
use crate::error::{SqlState, stated_err};

/// Bytes of a label, at most, as in PostgreSQL.
const LABEL_BYTES_MAX: usize = 63;

/// Distance of the codes of neighbors: room for new labels between them.
const GAP: i64 = 1 << 16;

/// A label and its code.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Label {
    /// The code, which values in tables are.
    pub code: i64,
    /// The text.
    pub text: Arc<str>,
}

/// An ENUM.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct EnumType {
    /// The schema.
    pub schema: Arc<str>,
    /// The name.
    pub name: Arc<str>,
    /// The OID, which the values in tables carry.
    pub oid: u32,
    /// Labels in their order, which is that of their codes.
    pub labels: Vec<Label>,
}

/// The neighbor of a new label.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Neighbor<'a> {
    /// The new label precedes this one.
    Before(&'a str),
    /// The new label follows this one.
    After(&'a str),
}

impl EnumType {
    /// Creates a type of these labels.
    ///
    /// # Errors
    /// If a label is too long or appears twice.
    pub fn new(
        schema: Arc<str>,
        name: Arc<str>,
        oid: u32,
        labels: impl IntoIterator<Item = String>,
    ) -> Result<Self> {
        let mut made = Self { schema, name, oid, labels: Vec::new() };
        for label in labels {
            check_label(&label)?;
            if made.code(&label).is_some() {
                return stated_err!(
                    UNIQUE_VIOLATION,
                    "enum label \"{label}\" is given twice; each label of an enum is unique"
                );
            }
            let code = made.code_at(made.labels.len())?;
            made.labels.push(Label { code, text: label.into() });
        }
        Ok(made)
    }

    /// Returns the name as messages and `format_type` show it; visible types need no schema.
    pub fn shown(&self, is_visible: bool) -> String {
        let name = quote_identifier(&self.name);
        match is_visible {
            true => name.into_owned(),
            false => format!("{}.{name}", quote_identifier(&self.schema)),
        }
    }

    /// Returns the type of its values.
    pub fn data_type(&self) -> DataType {
        enum_data_type(self.oid)
    }

    /// Returns a value, or NULL.
    pub fn value(&self, code: Option<i64>) -> ScalarValue {
        match self.data_type() {
            DataType::Timestamp(_, zone) => ScalarValue::TimestampSecond(code, zone),
            _ => ScalarValue::Null,
        }
    }

    /// Returns the code of a label.
    pub fn code(&self, label: &str) -> Option<i64> {
        self.labels.iter().find(|it| &*it.text == label).map(|it| it.code)
    }

    /// Returns the code of a label.
    ///
    /// # Errors
    /// If the type does not have the label.
    pub fn try_code(&self, label: &str) -> Result<i64> {
        match self.code(label) {
            Some(code) => Ok(code),
            None => stated_err!(
                INVALID_TEXT_REPRESENTATION,
                "invalid input value for enum {}: \"{label}\"",
                quote_identifier(&self.name)
            ),
        }
    }

    /// Returns the label of a code.
    pub fn label(&self, code: i64) -> Option<&Arc<str>> {
        let at = self.labels.binary_search_by_key(&code, |it| it.code).ok()?;
        Some(&self.labels[at].text)
    }

    /// Adds a label at the end, or next to another one.
    ///
    /// # Errors
    /// If the label is too long or exists, the neighbor does not exist, or no code is left between the neighbors.
    pub fn add(&mut self, label: &str, neighbor: Option<Neighbor<'_>>) -> Result<()> {
        check_label(label)?;
        if self.code(label).is_some() {
            return stated_err!(DUPLICATE_OBJECT, "enum label \"{label}\" already exists");
        }
        let at = match neighbor {
            None => self.labels.len(),
            Some(Neighbor::Before(other)) => self.place(other)?,
            Some(Neighbor::After(other)) => self.place(other)? + 1,
        };
        let code = self.code_at(at)?;
        self.labels.insert(at, Label { code, text: label.into() });
        Ok(())
    }

    /// Renames a label.
    ///
    /// # Errors
    /// If it does not exist, or the new name is too long or exists.
    pub fn rename(&mut self, from: &str, to: &str) -> Result<()> {
        check_label(to)?;
        let at = self.place(from)?;
        if self.code(to).is_some() {
            return stated_err!(DUPLICATE_OBJECT, "enum label \"{to}\" already exists");
        }
        self.labels[at].text = to.into();
        Ok(())
    }

    fn place(&self, label: &str) -> Result<usize> {
        match self.labels.iter().position(|it| &*it.text == label) {
            Some(at) => Ok(at),
            None => stated_err!(INVALID_PARAMETER, "\"{label}\" is not an existing enum label"),
        }
    }

    /// The code of a label that comes to lie at this place.
    fn code_at(&self, at: usize) -> Result<i64> {
        let code = |at: usize| self.labels.get(at).map(|it| it.code);
        let between = match (at.checked_sub(1).and_then(code), code(at)) {
            (None, None) => Some(GAP),
            (Some(before), None) => before.checked_add(GAP),
            (None, Some(after)) => after.checked_sub(GAP),
            (Some(before), Some(after)) => {
                let middle = before + (after - before) / 2;
                (middle > before).then_some(middle)
            }
        };
        match between {
            Some(code) => Ok(code),
            None => stated_err!(
                PROGRAM_LIMIT_EXCEEDED,
                "too many labels were added at one place of enum {}; add the label elsewhere, or create a type of all \
                 labels and change the columns to it",
                quote_identifier(&self.name)
            ),
        }
    }

    /// Parses a stored type: the OID, then a code and a text with the number of its bytes for each label.
    pub fn parse(schema: Arc<str>, name: Arc<str>, stored: &str) -> Option<Self> {
        let (oid, mut rest) = stored.strip_prefix("enum ")?.split_once('\n')?;
        let mut labels = Vec::new();
        while !rest.is_empty() {
            let (code, after) = rest.split_once(' ')?;
            let (bytes, after) = after.split_once(':')?;
            let (text, after) = after.split_at_checked(bytes.parse().ok()?)?;
            labels.push(Label { code: code.parse().ok()?, text: text.into() });
            rest = after;
        }
        Some(Self { schema, name, oid: oid.parse().ok()?, labels })
    }
}

/// The text that is stored.
impl fmt::Display for EnumType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "enum {}", self.oid)?;
        for Label { code, text } in &self.labels {
            write!(f, "{code} {}:{text}", text.len())?;
        }
        Ok(())
    }
}

impl EnumType {
    /// Returns the statement that creates the type.
    pub fn definition(&self) -> String {
        let mut sql = format!("CREATE TYPE {} AS ENUM (", self.shown(false));
        for (at, label) in self.labels.iter().enumerate() {
            let comma = if at == 0 { "" } else { ", " };
            let _ = write!(sql, "{comma}'{}'", label.text.replace('\'', "''"));
        }
        sql.push(')');
        sql
    }
}

fn check_label(label: &str) -> Result<()> {
    if label.len() > LABEL_BYTES_MAX {
        return Err(SqlState::INVALID_NAME.error(format!(
            "invalid enum label \"{label}\": labels have at most {LABEL_BYTES_MAX} bytes"
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mood() -> EnumType {
        let labels = ["sad", "it's: 1 2", "happy"].map(str::to_owned);
        EnumType::new("public".into(), "mood".into(), 16_777_216, labels).expect("labels differ")
    }

    #[test]
    fn a_stored_type_is_read_as_it_was_written() {
        let mood = mood();
        let read = EnumType::parse("public".into(), "mood".into(), &mood.to_string());
        assert_eq!(read.as_ref(), Some(&mood));
        assert_eq!(EnumType::parse("a".into(), "b".into(), "enum 1\n5 9:sad"), None);
        assert!(mood.definition().ends_with("AS ENUM ('sad', 'it''s: 1 2', 'happy')"));
    }

    #[test]
    fn new_labels_keep_the_order_of_codes() {
        let mut mood = mood();
        mood.add("worst", Some(Neighbor::Before("sad"))).expect("it is new");
        mood.add("best", None).expect("it is new");
        for at in 0..20 {
            let label = format!("a{at}");
            match mood.add(&label, Some(Neighbor::After("sad"))) {
                Ok(()) => {}
                Err(_) => assert!(at >= 15, "there is room for {at} labels"),
            }
        }
        assert!(mood.labels.is_sorted_by(|one, other| one.code < other.code));
        assert!(mood.labels.iter().all(|it| mood.label(it.code) == Some(&it.text)));
        assert!(mood.add("sad", None).is_err() && mood.rename("sad", "best").is_err());
        mood.rename("sad", "sadder").expect("the name is free");
        assert_eq!(mood.code("sad"), None);
    }
}
