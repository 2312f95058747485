//! Statements of other engines that are not supported, told by the words that they begin with, with what does it here.

use datafusion::common::{DataFusionError, Result};
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};

const NO_PROCEDURES: &str = "CREATE MACRO f(x) AS …, or AS TABLE SELECT …, names an expression or a query, and the program that \
                             connects does the rest";
const NO_INDEXES: &str =
    "PRIMARY KEY and UNIQUE make one, and scans skip blocks by their least and greatest values";
const KEPT_ROLE: &str = "log in as the role whose rights are meant";

const NO_EXTENSIONS: &str = "there are none to load: Parquet, CSV, JSON and Arrow files and the functions that \\df lists are built in";
const CURSORS: &str = "results come row by row as they are read; a client of a server declares cursors in a transaction";

/// The words that a statement begins with, and what to do instead. `TEMP`, `OR REPLACE` and `IF EXISTS` are passed
/// over.
const REFUSED: &[(&[&str], &str)] = &[
    (
        &["MERGE"],
        "write INSERT … ON CONFLICT (key) DO UPDATE SET …, or UPDATE … FROM and DELETE … USING",
    ),
    (
        &["CREATE", "MATERIALIZED", "VIEW"],
        "CREATE TABLE … AS keeps the rows of a query, and CREATE VIEW the query",
    ),
    (
        &["REFRESH", "MATERIALIZED", "VIEW"],
        "CREATE OR REPLACE TABLE … AS SELECT … makes the rows anew",
    ),
    (&["ALTER", "MATERIALIZED", "VIEW"], "CREATE TABLE … AS keeps the rows of a query"),
    (&["DROP", "MATERIALIZED", "VIEW"], "there are none; DROP TABLE and DROP VIEW drop the others"),
    (
        &["CREATE", "TRIGGER"],
        "DEFAULT, CHECK and generated columns check and fill rows as they are written",
    ),
    (
        &["CREATE", "CONSTRAINT", "TRIGGER"],
        "DEFAULT, CHECK and generated columns check and fill rows as they are written",
    ),
    (&["CREATE", "EVENT", "TRIGGER"], "the audit log of a server tells of statements"),
    (&["DROP", "TRIGGER"], "there are none"),
    (&["CREATE", "RULE"], "write views, and statements for the tables below them"),
    (&["CREATE", "EXTENSION"], NO_EXTENSIONS),
    (&["DROP", "EXTENSION"], NO_EXTENSIONS),
    (&["CREATE", "DOMAIN"], "use the type itself, with CHECK on the columns: a INT CHECK (a > 0)"),
    (&["DO"], NO_PROCEDURES),
    (&["CALL"], NO_PROCEDURES),
    (&["CREATE", "PROCEDURE"], NO_PROCEDURES),
    (
        &["CREATE", "AGGREGATE"],
        "CREATE MACRO f(x) AS … may be made of the aggregates that \\df lists",
    ),
    (&["CREATE", "OPERATOR"], "call a function, or a macro: CREATE MACRO f(a, b) AS …"),
    (&["CREATE", "CAST"], "call a function, or a macro: CREATE MACRO f(a) AS …"),
    (
        &["CREATE", "COLLATION"],
        "texts are ordered by their bytes; ORDER BY lower(x) leaves the case out",
    ),
    (
        &["CREATE", "STATISTICS"],
        "the least and greatest values of blocks are kept, and samples are taken as needed",
    ),
    (
        &["CREATE", "FOREIGN"],
        "FROM 'file', read_csv, read_parquet and read_json read files where they are",
    ),
    (
        &["CREATE", "SERVER"],
        "FROM 'file', read_csv, read_parquet and read_json read files where they are",
    ),
    (&["CREATE", "TABLESPACE"], "all tables are in memory, and kept in the directory of --data"),
    (&["CREATE", "PUBLICATION"], "BACKUP DATABASE TO 'dir' copies a database"),
    (&["CREATE", "SUBSCRIPTION"], "BACKUP DATABASE TO 'dir' copies a database"),
    (&["CREATE", "POLICY"], "GRANT SELECT on a view shows a role some of the rows"),
    (&["CREATE", "SECRET"], "only files on this machine are read and written"),
    (&["CREATE", "INDEX"], NO_INDEXES),
    (&["CREATE", "UNIQUE", "INDEX"], NO_INDEXES),
    (&["REINDEX"], "indexes are kept in order as rows are written; leave it out"),
    (
        &["CLUSTER"],
        "CREATE OR REPLACE TABLE t AS SELECT * FROM t ORDER BY … orders the rows of a table",
    ),
    (&["SET", "ROLE"], KEPT_ROLE),
    (&["SET", "LOCAL", "ROLE"], KEPT_ROLE),
    (&["SET", "SESSION", "ROLE"], KEPT_ROLE),
    (&["SET", "SESSION", "AUTHORIZATION"], KEPT_ROLE),
    (&["LOCK"], "SELECT … FOR UPDATE locks rows until the transaction ends"),
    (&["LISTEN"], "a client asks again, or is told by the program that writes"),
    (&["NOTIFY"], "a client asks again, or is told by the program that writes"),
    (&["DECLARE"], CURSORS),
    (&["FETCH"], CURSORS),
    (&["MOVE"], CURSORS),
    (&["CLOSE"], CURSORS),
    (&["SECURITY", "LABEL"], "GRANT and REVOKE say who may do what"),
    (&["FLUSH"], "CHECKPOINT writes a database that has a directory"),
    (&["UNLOCK"], "COMMIT and ROLLBACK end the locks of a transaction"),
    (&["RENAME", "TABLE"], "write ALTER TABLE a RENAME TO b"),
    (&["HANDLER"], CURSORS),
];

/// Words that may stand between those that name the statement.
const PASSED: [&str; 4] = ["OR", "REPLACE", "TEMP", "TEMPORARY"];

/// Refuses a statement that begins with the words of one that is not supported.
pub(crate) fn refuse_statement(tokens: &[TokenWithSpan]) -> Result<()> {
    let mut words = tokens.iter().filter_map(|token| match &token.token {
        Token::Whitespace(_) => None,
        other => Some(other),
    });
    let mut begun: Vec<String> = Vec::new();
    while begun.len() < 3 {
        match words.next() {
            Some(Token::Word(word)) if word.quote_style.is_none() => {
                let word = word.value.to_ascii_uppercase();
                if begun.is_empty() || !PASSED.contains(&word.as_str()) {
                    begun.push(word);
                }
            }
            _ => break,
        }
    }
    let begins = |words: &[&str]| {
        begun.len() >= words.len() && words.iter().zip(&begun).all(|(word, begun)| word == begun)
    };
    let found = REFUSED.iter().find(|(words, _)| begins(words));
    if let Some((words, instead)) = found {
        return Err(refused(&words.join(" "), instead));
    }
    let is_written = words.any(|token| match token {
        Token::Word(word) => {
            ["RETURNS", "LANGUAGE"].contains(&word.value.to_ascii_uppercase().as_str())
        }
        _ => false,
    });
    if begins(&["CREATE", "FUNCTION"]) && is_written {
        let instead =
            "CREATE MACRO f(x) AS x + 1, or AS TABLE SELECT …, names an expression or a query";
        return Err(refused("CREATE FUNCTION … LANGUAGE", instead));
    }
    Ok(())
}

fn refused(statement: &str, instead: &str) -> DataFusionError {
    DataFusionError::NotImplemented(format!("{statement} is not supported; {instead}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::sql::sqlparser::dialect::GenericDialect;
    use datafusion::sql::sqlparser::tokenizer::Tokenizer;

    fn told(sql: &str) -> Option<String> {
        let tokens = Tokenizer::new(&GenericDialect {}, sql).tokenize_with_location();
        let error = refuse_statement(&tokens.expect("it can be cut into tokens")).err()?;
        Some(error.strip_backtrace())
    }

    #[test]
    fn statements_are_told_by_their_first_words() {
        for sql in [
            "MERGE INTO t USING u ON t.a = u.a WHEN MATCHED THEN DELETE",
            "create or replace trigger x",
            "CREATE TEMP FUNCTION f(a INT) RETURNS INT AS 'x' LANGUAGE sql",
            "/* a */ DO $$ BEGIN END $$",
            "LOCK TABLE t",
        ] {
            let told = told(sql).unwrap_or_default();
            assert!(told.contains(" is not supported; "), "{sql}: {told}");
        }
        for sql in [
            "SELECT 1",
            "",
            "CREATE FUNCTION f(a) AS a + 1",
            "\"DO\"",
            "CREATE TABLE language (returns INT)",
            "CREATE MACRO returns(language) AS language",
        ] {
            assert_eq!(told(sql), None, "{sql}");
        }
    }
}
