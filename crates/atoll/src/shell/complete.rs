//! Completion of keywords, tables, columns, commands and files.

use std::collections::BTreeSet;

use atoll_sql::Session;

use super::command::COMMANDS;
use super::highlight::KEYWORDS;

/// Words that complete statements.
#[derive(Debug, Default)]
pub(super) struct CompletionNames(BTreeSet<String>);

impl CompletionNames {
    /// Tables and columns of a session, from its catalog, without a query.
    pub(super) async fn from_session(session: &Session) -> Self {
        let mut names = BTreeSet::new();
        for table in session.table_names() {
            if !table.starts_with("information_schema.") {
                names.extend(session.column_names(&table).await);
                names.insert(table);
            }
        }
        Self(names)
    }

    /// Start of the last word of a text, and its completions.
    pub(super) fn complete(&self, text: &str) -> (usize, Vec<String>) {
        let start = text.rfind(|c: char| !is_word(c)).map_or(0, |at| at + last_len(text, at));
        let word = &text[start..];
        if text.starts_with(['.', '\\']) && !text.contains(char::is_whitespace) {
            return (1, commands(&text[1..]));
        }
        if word.is_empty() {
            return (start, Vec::new());
        }
        let lower = word.to_lowercase();
        let names = self.0.iter().filter(|name| name.to_lowercase().starts_with(&lower)).cloned();
        (start, names.chain(keywords(word)).collect())
    }
}

fn last_len(text: &str, at: usize) -> usize {
    text[at..].chars().next().map_or(1, char::len_utf8)
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == '.' || c == '\\'
}

fn commands(start: &str) -> Vec<String> {
    let names = COMMANDS.iter().map(|command| command.names[0]);
    names.filter(|name| name.starts_with(start)).map(str::to_owned).collect()
}

/// Keywords in the case of the typed prefix.
fn keywords(word: &str) -> impl Iterator<Item = String> {
    let is_lower = word.starts_with(char::is_lowercase);
    let upper = word.to_uppercase();
    let found = KEYWORDS.into_iter().filter(move |keyword| keyword.starts_with(&upper));
    found.map(move |keyword| match is_lower {
        true => keyword.to_lowercase(),
        false => keyword.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names() -> CompletionNames {
        CompletionNames(["orders", "o_orderkey", "atoll.nodes"].map(str::to_owned).into())
    }

    #[test]
    fn names_come_before_keywords_in_the_case_typed() {
        assert_eq!(
            names().complete("SELECT * FROM or"),
            (14, vec!["orders".into(), "or".into(), "order".into()])
        );
        assert_eq!(names().complete("SEL"), (0, vec!["SELECT".into()]));
        assert_eq!(names().complete("é o_"), (3, vec!["o_orderkey".into()]));
        assert_eq!(names().complete("FROM atoll.n"), (5, vec!["atoll.nodes".into()]));
        assert_eq!(names().complete("SELECT "), (7, vec![]));
    }

    #[test]
    fn commands_are_completed_after_their_dot() {
        assert_eq!(names().complete(".ta"), (1, vec!["tables".into()]));
        assert_eq!(names().complete("\\sh"), (1, vec!["shell".into(), "show".into()]));
    }
}
