//! `.import FILE TABLE`.

use super::super::Shell;
use super::super::stop::Stop;
use super::tables::quoted;

const USAGE: &str = "usage: .import FILE TABLE, as in .import 'my visits.csv' visits";

impl Shell {
    /// Inserts the rows of a file into a table, or creates the table from them.
    pub(super) async fn import(&mut self, arguments: &str) -> Result<(), Stop> {
        let words = words(arguments);
        // sqlite3 needs these flags; here the file name's extension says the same.
        let words: Vec<&String> = words.iter().filter(|word| !word.starts_with("--")).collect();
        let [file, table] = words[..] else { return Err(Stop::failed(USAGE)) };
        let file = quoted(&unquoted(file));
        // Single quotes are those of a shell.
        let table = match table.starts_with('\'') {
            true => format!("\"{}\"", unquoted(table).replace('"', "\"\"")),
            false => table.clone(),
        };
        let statement = match self.has_table(&table).await? {
            true => format!("INSERT INTO {table} SELECT * FROM {file}"),
            false => format!("CREATE TABLE {table} AS SELECT * FROM {file}"),
        };
        self.run_statement(&statement, 1).await
    }
}

/// Splits words, keeping their quotes; quoted words may have spaces.
fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut rest = text.trim_end_matches([';', ' ']).trim_start();
    while !rest.is_empty() {
        let mut quote = None;
        let is_end = |letter: char| {
            match quote {
                Some(open) if open == letter => quote = None,
                None if matches!(letter, '\'' | '"') => quote = Some(letter),
                _ => {}
            }
            quote.is_none() && letter.is_whitespace()
        };
        let end = rest.find(is_end).unwrap_or(rest.len());
        words.push(rest[..end].to_owned());
        rest = rest[end..].trim_start();
    }
    words
}

/// A word without its quotes.
fn unquoted(word: &str) -> String {
    let inner =
        ['\'', '"'].iter().find_map(|quote| word.strip_prefix(*quote)?.strip_suffix(*quote));
    inner.unwrap_or(word).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_in_quotes_have_spaces_and_keep_their_quotes() {
        assert_eq!(words(" 'a b.csv'  t ;"), ["'a b.csv'", "t"]);
        assert_eq!(words("a.csv \"S\".\"my t\""), ["a.csv", "\"S\".\"my t\""]);
        assert_eq!(words("--csv a.csv"), ["--csv", "a.csv"]);
        assert!(words("").is_empty());
        assert_eq!(unquoted("'a b'"), "a b");
        assert_eq!(unquoted("'a"), "'a");
    }
}
