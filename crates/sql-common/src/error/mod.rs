//! Errors for people: what went wrong, where in the SQL, and what to do next.

mod overflow;
mod planned;
mod state;
mod store;
mod type_names;
mod wording;

use std::fmt;

use atoll_store::database::TransactionError;
use atoll_topology::nearest_name;
use datafusion::common::{DataFusionError, Span};
use datafusion::sql::sqlparser::tokenizer::Location;

use crate::settings::SCHEMA;
pub use overflow::ArithmeticOverflow;
pub use state::SqlState;
pub use store::{table_error, transaction_error};
use wording::{Wording, wording};

/// Creates an error with a state, as `plan_err!` does from a message.
#[macro_export]
macro_rules! stated_err {
    ($state:ident, $($message:tt)*) => {
        Err($crate::error::SqlState::$state.error(format!($($message)*)))
    };
}

pub use stated_err;

/// A line and a column of a statement, both counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SourcePosition {
    /// Line, from 1.
    pub line: u64,
    /// Column in characters, from 1.
    pub column: u64,
    /// Number of marked characters, at least 1.
    pub width: u64,
}

impl SourcePosition {
    /// The position of one character.
    pub fn from_location(location: Location) -> Self {
        Self { line: location.line, column: location.column, width: 1 }
    }

    fn of_span(span: Span) -> Self {
        let same_line = span.start.line == span.end.line;
        let width = if same_line { span.end.column.saturating_sub(span.start.column) } else { 1 };
        Self { line: span.start.line, column: span.start.column, width: width.max(1) }
    }

    /// Parses the words with which the parser ends its messages.
    fn in_message(message: &str) -> Option<Self> {
        let after = message.rsplit_once("Line: ")?.1;
        let (line, rest) = after.split_once(", Column: ")?;
        let column: String = rest.chars().take_while(char::is_ascii_digit).collect();
        Some(Self { line: line.parse().ok()?, column: column.parse().ok()?, width: 1 })
    }
}

/// Why a statement failed. `Display` prints the message, the line with a marker under the position,
/// and the hint.
#[derive(Clone, Debug)]
pub struct SqlError {
    /// What went wrong, in one line.
    pub message: String,
    /// Where in the statement.
    pub place: Option<SourcePosition>,
    /// What to do next.
    pub helps: Vec<String>,
    /// Its SQLSTATE.
    pub state: SqlState,
    context: Box<ErrorContext>,
}

/// What an error contains besides its message.
#[derive(Clone, Debug, Default)]
struct ErrorContext {
    /// The statement's line at the position.
    excerpt: Option<Excerpt>,
    /// The table that was not found.
    missing_table: Option<String>,
    /// More about this case.
    detail: Option<String>,
    violated: Option<ViolatedConstraint>,
}

/// The constraint that a change would have violated.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ViolatedConstraint {
    /// The schema of the table.
    pub schema: String,
    /// The table.
    pub table: String,
    /// The NOT NULL column, if that is the constraint.
    pub column: Option<String>,
    /// The name of the constraint, if it has one.
    pub constraint: Option<String>,
}

impl ViolatedConstraint {
    /// A constraint of a table, whose name may be qualified by its schema.
    pub fn of_table(name: &str) -> Self {
        let (schema, table) = name.rsplit_once('.').unwrap_or((SCHEMA, name));
        Self { schema: schema.to_owned(), table: table.to_owned(), ..Self::default() }
    }

    fn from_error(error: &DataFusionError) -> Option<Self> {
        let DataFusionError::External(error) = error else { return None };
        match error.downcast_ref() {
            Some(TransactionError::UniqueViolation { schema, table, constraint, .. }) => {
                let (schema, table) = (schema.clone(), table.clone());
                Some(Self { schema, table, constraint: Some(constraint.clone()), column: None })
            }
            Some(TransactionError::ForeignKey(violation)) => Some(Self {
                schema: violation.schema.clone(),
                table: violation.table.clone(),
                constraint: Some(violation.constraint.clone()),
                column: None,
            }),
            _ => state::violated(error.as_ref()).cloned(),
        }
    }
}

impl std::error::Error for SqlError {}

/// Returns the message of an error about a value that is not part of a statement's text.
pub fn value_message(error: &DataFusionError) -> String {
    wording(&error.find_root().strip_backtrace()).message
}

impl SqlError {
    /// Whether a quote or comment is still open at the end of the text, so that a later line may close it.
    pub fn is_unfinished(&self) -> bool {
        is_unfinished(&self.message)
    }

    /// Converts a DataFusion error of this statement.
    pub fn new(error: DataFusionError, sql: &str) -> Self {
        let diagnostic = error.diagnostic().cloned();
        let (root, state) = (error.find_root(), SqlState::from_error(&error));
        let text = root.strip_backtrace();
        let place = diagnostic
            .as_ref()
            .and_then(|diagnostic| diagnostic.span)
            .map(SourcePosition::of_span)
            .or_else(|| SourcePosition::in_message(&text));
        let mut helps: Vec<String> = diagnostic
            .iter()
            .flat_map(|diagnostic| &diagnostic.helps)
            .map(|help| help.message.clone())
            .collect();
        helps.extend(advice(root).map(str::to_owned));
        let Wording { message, help } = wording(&text);
        helps.extend(help);
        let missing_table = missing_table(&message);
        let refused = refusal_of(root);
        helps.extend(refused.and_then(TransactionError::hint).map(str::to_owned));
        let (beside, help) = beside_of(root).unwrap_or_default();
        helps.extend(help.map(str::to_owned));
        let detail = refused.and_then(TransactionError::detail).or(beside.map(str::to_owned));
        let (excerpt, violated) = (excerpt(sql, place), ViolatedConstraint::from_error(root));
        let context = Box::new(ErrorContext { excerpt, missing_table, detail, violated });
        Self { message, place, helps, state, context }
    }

    /// Returns more about this case, if there is more: the existing key, or which transaction waits for which.
    pub fn detail(&self) -> Option<&str> {
        self.context.detail.as_deref()
    }

    /// Returns the constraint that the statement would have violated, if that is why it failed.
    pub fn violated(&self) -> Option<&ViolatedConstraint> {
        self.context.violated.as_ref()
    }

    /// Creates a parser error at this position of a statement.
    pub fn syntax(message: String, place: SourcePosition, sql: &str) -> Self {
        Self {
            message: format!("syntax error: {message}"),
            place: Some(place),
            helps: Vec::new(),
            state: SqlState::SYNTAX_ERROR,
            context: Box::new(ErrorContext {
                excerpt: excerpt(sql, Some(place)),
                ..ErrorContext::default()
            }),
        }
    }

    /// Suggests the table with the name nearest to the one that was not found.
    pub fn with_near_names(mut self, tables: impl FnOnce() -> Vec<String>) -> Self {
        let Some(missing) = self.context.missing_table.take() else { return self };
        let wanted = last_part(&missing);
        let names = tables();
        let near = nearest_name(wanted, names.iter().map(|name| last_part(name)));
        match near.and_then(|near| names.iter().find(|name| last_part(name) == near)) {
            Some(name) => self.helps.push(format!("Did you mean '{name}'?")),
            None if names.is_empty() => self.helps.push(
                "no table exists yet; create one with CREATE TABLE t AS SELECT * FROM \
                 'file.parquet'"
                    .to_owned(),
            ),
            None => {}
        }
        self
    }
}

/// Returns the transaction error that an error wraps.
fn refusal_of(error: &DataFusionError) -> Option<&TransactionError> {
    match error {
        DataFusionError::External(error) => error.downcast_ref(),
        _ => None,
    }
}

/// Returns the detail and the hint of an Atoll error.
fn beside_of(error: &DataFusionError) -> Option<(Option<&str>, Option<&str>)> {
    match error {
        DataFusionError::External(error) => state::said_beside(error.as_ref()),
        _ => None,
    }
}

fn advice(error: &DataFusionError) -> Option<&'static str> {
    match error {
        DataFusionError::ResourcesExhausted(_) => Some(
            "raise --memory-limit, drop tables that are not needed, or SET atoll.join = 'merge' and \
             atoll.aggregate = 'off'",
        ),
        _ => None,
    }
}

/// A name without the schema or table before it.
fn last_part(name: &str) -> &str {
    name.rsplit('.').next().unwrap_or(name)
}

fn missing_table(message: &str) -> Option<String> {
    let name = message.strip_prefix("relation \"")?.strip_suffix("\" does not exist")?;
    Some(name.to_owned())
}

/// Characters of a long line that are shown before the position and in all.
const EXCERPT_BEFORE: usize = 60;
const EXCERPT_WIDTH: usize = 120;

/// Returns the line at a position, and the first column that is shown.
fn excerpt(sql: &str, place: Option<SourcePosition>) -> Option<Excerpt> {
    let place = place?;
    let number = usize::try_from(place.line).ok()?.checked_sub(1)?;
    let line = sql.lines().nth(number)?;
    if line.len() <= EXCERPT_WIDTH {
        return Some(Excerpt { text: line.to_owned(), skipped: 0 });
    }
    let column = usize::try_from(place.column).unwrap_or(usize::MAX).saturating_sub(1);
    let first = column.saturating_sub(EXCERPT_BEFORE);
    let mut rest = line.chars().skip(first);
    let shown: String = rest.by_ref().take(EXCERPT_WIDTH).collect();
    let (before, after) =
        (if first > 0 { "…" } else { "" }, if rest.next().is_some() { "…" } else { "" });
    let skipped = first.saturating_sub(before.chars().count()) as u64;
    Some(Excerpt { text: format!("{before}{shown}{after}"), skipped })
}

/// The visible part of a line.
#[derive(Clone, Debug)]
struct Excerpt {
    text: String,
    /// Number of characters of the line that are cut off before it.
    skipped: u64,
}

/// Whether an error message is about a quote or a comment that a later line may close.
pub fn is_unfinished(message: &str) -> bool {
    let message = message.to_ascii_lowercase();
    ["unterminated", "unexpected eof", "before eof"].iter().any(|words| message.contains(words))
}

impl fmt::Display for SqlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        if let (Some(place), Some(excerpt)) = (self.place, &self.context.excerpt) {
            let number = place.line.to_string();
            let margin = " ".repeat(number.len());
            let text = &excerpt.text;
            let column = place.column.saturating_sub(excerpt.skipped);
            let before = " ".repeat(column.saturating_sub(1) as usize);
            let left = (text.chars().count() as u64 + 1).saturating_sub(column).max(1);
            let marker = "^".repeat(place.width.min(left) as usize);
            write!(f, "\n{margin} |\n{number} | {text}\n{margin} | {before}{marker}")?;
        }
        for line in self.detail().into_iter().flat_map(str::lines) {
            write!(f, "\ndetail: {line}")?;
        }
        for help in &self.helps {
            write!(f, "\nhelp: {help}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_marks_its_position_under_the_line() {
        let error = SqlError::syntax(
            "bad".to_owned(),
            SourcePosition { line: 2, column: 3, width: 2 },
            "a\nb c d",
        );
        assert_eq!(error.to_string(), "syntax error: bad\n  |\n2 | b c d\n  |   ^^");
    }

    #[test]
    fn a_long_line_is_cut_around_the_position() {
        let line = format!("{}bad{}", "ä, ".repeat(400_000), " x".repeat(400_000));
        let place = SourcePosition { line: 1, column: 1_200_001, width: 3 };
        let shown = SqlError::syntax("no".to_owned(), place, &line).to_string();
        let lines: Vec<&str> = shown.lines().collect();
        assert!(lines.iter().all(|line| line.chars().count() < 140), "{shown}");
        let at = lines[3].chars().position(|c| c == '^').unwrap();
        let marked: String = lines[2].chars().skip(at).take(3).collect();
        assert_eq!(marked, "bad", "{shown}");
        assert!(lines[2].contains('…') && lines[3].ends_with(" ^^^"), "{shown}");
    }
}
