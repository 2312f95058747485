//! Command tags of PostgreSQL: `INSERT 0 3`, `SELECT 10`, `CREATE VIEW`.

use std::borrow::Cow;
use std::fmt::Display;

use datafusion::arrow::array::{AsArray, RecordBatch};
use datafusion::arrow::datatypes::UInt64Type;
use datafusion::logical_expr::DdlStatement;
use datafusion::sql::parser::Statement as Parsed;
use datafusion::sql::sqlparser::ast::{SetExpr, Statement as Ast};

use atoll_sql_parse::parse::is_copy;

/// The tag of a statement with its notices, one a line.
pub(in crate::session) fn with_notices(tag: &str, passed: &[String]) -> Cow<'static, str> {
    match passed.is_empty() {
        true => tag.to_owned().into(),
        false => format!("{tag}: {}", passed.join("\n")).into(),
    }
}

/// The notice that an object does not exist, which the statement allows.
pub(in crate::session) fn missing(what: &str, name: impl Display) -> String {
    format!("{what} \"{name}\" does not exist, skipping")
}

/// The notice that an object exists already, which the statement allows.
pub(in crate::session) fn there(what: &str, name: impl Display) -> String {
    format!("{what} \"{name}\" already exists, skipping")
}

/// A tag, complete once all batches of the result were read.
#[derive(Debug)]
pub(in crate::session) struct StatementTag {
    words: Cow<'static, str>,
    count: TagCount,
}

#[derive(Clone, Copy, Debug)]
enum TagCount {
    /// No count.
    None,
    /// The number of rows in the result.
    Rows(u64),
    /// The sum of the numbers in its first column, which only the tag shows.
    Values(u64),
}

impl StatementTag {
    /// The tag of a statement without a result.
    pub(in crate::session) fn done(words: String) -> Self {
        Self { words: words.into(), count: TagCount::None }
    }

    /// The tag of a query.
    pub(in crate::session) fn rows() -> Self {
        Self { words: "SELECT".into(), count: TagCount::Rows(0) }
    }

    /// The tag of a statement that is planned as a query or a write.
    pub(in crate::session) fn from_statement(statement: &Parsed) -> Self {
        match statement {
            Parsed::Statement(ast) => Self::of_ast(ast),
            Parsed::CopyTo(_) => Self { words: "COPY".into(), count: TagCount::Values(0) },
            Parsed::Explain(_) => Self::shown("EXPLAIN"),
            Parsed::CreateExternalTable(_) | Parsed::Reset(_) => Self::rows(),
        }
    }

    /// As [`from_statement`](Self::from_statement).
    pub(in crate::session) fn of_ast(ast: &Ast) -> Self {
        let (words, returning) = match ast {
            Ast::Insert(insert) if is_copy(insert) => ("COPY", false),
            Ast::Insert(insert) => ("INSERT 0", insert.returning.is_some()),
            Ast::Update(update) => ("UPDATE", update.returning.is_some()),
            Ast::Delete(delete) => ("DELETE", delete.returning.is_some()),
            Ast::Merge(_) => ("MERGE", false),
            Ast::Copy { .. } => ("COPY", false),
            Ast::Truncate(_) => ("TRUNCATE TABLE", false),
            Ast::Query(query) => match query.body.as_ref() {
                SetExpr::Insert(ast)
                | SetExpr::Update(ast)
                | SetExpr::Delete(ast)
                | SetExpr::Merge(ast) => return Self::of_ast(ast),
                _ => return Self::rows(),
            },
            Ast::ShowVariable { .. } | Ast::ShowColumns { .. } | Ast::ShowTables { .. } => {
                return Self::shown("SHOW");
            }
            _ => return Self::rows(),
        };
        let count = if returning { TagCount::Rows(0) } else { TagCount::Values(0) };
        Self { words: words.into(), count }
    }

    /// The tag of a statement that wrote these rows.
    pub(in crate::session) fn written(words: &'static str) -> Self {
        Self { words: words.into(), count: TagCount::Values(0) }
    }

    /// The tag of a statement that returns the rows which it wrote.
    pub(in crate::session) fn returned(words: &'static str) -> Self {
        Self { words: words.into(), count: TagCount::Rows(0) }
    }

    /// The tag of a statement that shows something.
    pub(in crate::session) fn shown(words: &'static str) -> Self {
        Self { words: words.into(), count: TagCount::None }
    }

    /// Whether the tag holds the whole result.
    pub(in crate::session) fn tells_all(&self) -> bool {
        matches!(self.count, TagCount::Values(_))
    }

    /// Whether the result has rows.
    pub(in crate::session) fn counts_rows(&self) -> bool {
        matches!(self.count, TagCount::Rows(_))
    }

    /// Counts a batch of the result.
    pub(in crate::session) fn add(&mut self, batch: &RecordBatch) {
        match &mut self.count {
            TagCount::None => {}
            TagCount::Rows(rows) => *rows += batch.num_rows() as u64,
            TagCount::Values(sum) => {
                let counts =
                    batch.columns().first().and_then(|c| c.as_primitive_opt::<UInt64Type>());
                *sum += counts.map_or(0, |counts| counts.values().iter().sum());
            }
        }
    }

    pub(in crate::session) fn text(&self) -> String {
        match self.count {
            TagCount::Rows(count) | TagCount::Values(count) if self.words != "TRUNCATE TABLE" => {
                format!("{} {count}", self.words)
            }
            _ => self.words.to_string(),
        }
    }
}

/// The tag of a statement that changes names.
pub(in crate::session) fn ddl_tag(ddl: &DdlStatement) -> &'static str {
    match ddl {
        DdlStatement::CreateMemoryTable(_) => "CREATE TABLE",
        DdlStatement::CreateExternalTable(_) => "CREATE EXTERNAL TABLE",
        DdlStatement::CreateView(_) => "CREATE VIEW",
        DdlStatement::CreateCatalogSchema(_) => "CREATE SCHEMA",
        DdlStatement::CreateCatalog(_) => "CREATE DATABASE",
        DdlStatement::CreateIndex(_) => "CREATE INDEX",
        DdlStatement::CreateFunction(_) => "CREATE FUNCTION",
        DdlStatement::DropTable(_) => "DROP TABLE",
        DdlStatement::DropView(_) => "DROP VIEW",
        DdlStatement::DropCatalogSchema(_) => "DROP SCHEMA",
        DdlStatement::DropFunction(_) => "DROP FUNCTION",
    }
}
