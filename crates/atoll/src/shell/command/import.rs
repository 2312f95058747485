//! `.import FILE TABLE`.

use super::super::Shell;
use super::super::stop::Stop;
use super::tables::quoted;

const USAGE: &str = "usage: .import FILE TABLE, as in .import 'my visits.csv' visits";

impl Shell {
    /// Inserts the rows of a file into a table, or makes one of them.
    pub(super) async fn import(&mut self, arguments: &str) -> Result<(), Stop> {
        let words = words(arguments);
        // The endings of names say what sqlite3 is told by these.
        let words: Vec<&String> = words.iter().filter(|word| !word.starts_with("--")).collect();
        let [file, table] = words[..] else { return Err(Stop::failed(USAGE)) };
        let file = quoted(file);
        let statement = match self.has_table(table).await? {
            true => format!("INSERT INTO {table} SELECT * FROM {file}"),
            false => format!("CREATE TABLE {table} AS SELECT * FROM {file}"),
        };
        self.run_statement(&statement, 1).await
    }
}

/// Words, of which those in quotes may have spaces.
fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut rest = text.trim_end_matches([';', ' ']).trim_start();
    while let Some(first) = rest.chars().next() {
        let (word, after) = match first {
            '\'' | '"' => rest[1..].split_once(first).unwrap_or((&rest[1..], "")),
            _ => rest.split_once(char::is_whitespace).unwrap_or((rest, "")),
        };
        words.push(word.to_owned());
        rest = after.trim_start();
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_in_quotes_have_spaces() {
        assert_eq!(words(" 'a b.csv'  t ;"), ["a b.csv", "t"]);
        assert_eq!(words("a.csv t"), ["a.csv", "t"]);
        assert_eq!(words("--csv a.csv"), ["--csv", "a.csv"]);
        assert!(words("").is_empty());
    }
}
