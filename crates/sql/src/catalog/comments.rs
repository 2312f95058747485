//! The comments that COMMENT ON sets on relations, their columns and constraints, and on schemas.
//!
//! The store keeps them as a text for each object that has any, in a hidden schema, as it keeps rights.

use std::collections::BTreeMap;
use std::fmt;

use atoll_store::database::{DatabaseVersion, Relation};

use crate::role::rights::Owned;
use atoll_sql_common::names::COMMENTS;

/// Denotes the object itself in place of a column.
const ITSELF: &str = "=";

/// Comes before the name of a constraint.
const OF_CONSTRAINT: &str = "==";

/// The part of an object that a comment is on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CommentedPart {
    Column(String),
    Constraint(String),
}

/// The comments on an object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ObjectComments {
    /// On the object itself.
    pub(crate) own: Option<String>,
    /// By column.
    pub(crate) columns: BTreeMap<String, String>,
    /// By constraint.
    pub(crate) constraints: BTreeMap<String, String>,
}

impl ObjectComments {
    /// The comments on an object.
    pub(crate) fn for_object(version: &DatabaseVersion, object: &Owned) -> Self {
        match version.relation(&object.entry_in(COMMENTS)) {
            Some(Relation::External(kept)) => Self::parse(&kept.sql),
            _ => Self::default(),
        }
    }

    /// Whether there is any.
    pub(crate) fn is_some(&self) -> bool {
        self.own.is_some() || !self.columns.is_empty() || !self.constraints.is_empty()
    }

    /// Sets the comment on the object or on a part of it; `None` removes it.
    pub(crate) fn set(&mut self, part: Option<&CommentedPart>, comment: Option<String>) {
        let (comments, name) = match part {
            None => {
                self.own = comment;
                return;
            }
            Some(CommentedPart::Column(name)) => (&mut self.columns, name),
            Some(CommentedPart::Constraint(name)) => (&mut self.constraints, name),
        };
        match comment {
            Some(comment) => drop(comments.insert(name.clone(), comment)),
            None => drop(comments.remove(name)),
        }
    }

    fn parse(text: &str) -> Self {
        let mut comments = Self::default();
        for line in text.lines() {
            let Some((part, comment)) = line.split_once(' ') else { continue };
            let part = match part.strip_prefix(OF_CONSTRAINT) {
                Some(name) => Some(CommentedPart::Constraint(unescaped(name))),
                None => (part != ITSELF).then(|| CommentedPart::Column(unescaped(part))),
            };
            comments.set(part.as_ref(), Some(unescaped(comment)));
        }
        comments
    }
}

impl fmt::Display for ObjectComments {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(own) = &self.own {
            writeln!(f, "{ITSELF} {}", escaped(own))?;
        }
        for (column, comment) in &self.columns {
            writeln!(f, "{} {}", escaped(column), escaped(comment))?;
        }
        for (constraint, comment) in &self.constraints {
            writeln!(f, "{OF_CONSTRAINT}{} {}", escaped(constraint), escaped(comment))?;
        }
        Ok(())
    }
}

/// Escaped characters: those that end a line or a name, and `=`, which denotes the object.
const ESCAPES: [(char, &str); 5] =
    [('%', "%25"), ('\n', "%0A"), ('\r', "%0D"), (' ', "%20"), ('=', "%3D")];

fn escaped(text: &str) -> String {
    ESCAPES.iter().fold(text.to_owned(), |text, (letter, written)| text.replace(*letter, written))
}

fn unescaped(text: &str) -> String {
    let others = ESCAPES.iter().rev();
    others.fold(text.to_owned(), |text, (letter, written)| {
        text.replace(written, letter.encode_utf8(&mut [0; 4]))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_survive_a_round_trip() {
        let mut comments = ObjectComments::default();
        assert!(!comments.is_some());
        comments.set(None, Some("100 % = all\r\nof 'it' %20".into()));
        let column = |name: &str| CommentedPart::Column(name.into());
        comments.set(Some(&column("=")), Some("a column".into()));
        comments.set(Some(&column("a b\n")), Some("  ".into()));
        let constraint = CommentedPart::Constraint("= x".into());
        comments.set(Some(&constraint), Some("a constraint".into()));
        assert_eq!(ObjectComments::parse(&comments.to_string()), comments);
        comments.set(Some(&column("=")), None);
        comments.set(Some(&constraint), None);
        comments.set(None, None);
        assert_eq!(ObjectComments::parse(&comments.to_string()), comments);
        assert_eq!(ObjectComments::parse("\nx\n"), ObjectComments::default());
    }
}
