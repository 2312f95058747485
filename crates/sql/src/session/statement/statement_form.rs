//! The parts of a statement that are needed after planning.

use datafusion::common::{Result, internal_datafusion_err};
use datafusion::sql::parser::Statement as Parsed;
use datafusion::sql::sqlparser::ast::Statement as Ast;

use crate::session::ddl::declared_table::DeclaredTable;
use atoll_sql_parse::syntax::sql_text;

/// The parts of a statement that are stored, or that its plan does not hold.
pub(in crate::session) struct StatementForm {
    /// The statement, if it is stored under a name.
    statement: Option<Ast>,
    /// The typed text, if that is the statement.
    text: Option<String>,
    /// Its declarations besides names and types of columns.
    pub(in crate::session) declared: DeclaredTable,
}

impl StatementForm {
    pub(in crate::session) fn new(statement: &Parsed, sql: &str) -> Self {
        match statement {
            Parsed::Statement(ast) => {
                let is_view = matches!(ast.as_ref(), Ast::CreateView(_));
                let text = is_view.then(|| sql.trim().trim_end_matches(';').trim_end().to_owned());
                Self { text, ..Self::of_ast(ast) }
            }
            _ => Self { statement: None, text: None, declared: DeclaredTable::default() },
        }
    }

    pub(in crate::session) fn of_ast(ast: &Ast) -> Self {
        let is_kept = matches!(ast, Ast::CreateView(_) | Ast::Prepare { .. });
        let declared = match ast {
            // Errors in it are reported when it is planned.
            Ast::CreateTable(create) => {
                DeclaredTable::take(&mut create.clone()).unwrap_or_default()
            }
            _ => DeclaredTable::default(),
        };
        Self { statement: is_kept.then(|| ast.clone()), text: None, declared }
    }

    /// The text of a view: as typed, since the syntax tree is of the rewritten text.
    pub(in crate::session) fn kept_text(mut self) -> Result<String> {
        match self.text.take() {
            Some(text) => Ok(text),
            None => self.kept().map(|ast| sql_text(&ast)),
        }
    }

    pub(in crate::session) fn kept(self) -> Result<Ast> {
        self.statement.ok_or_else(|| internal_datafusion_err!("the statement was not kept"))
    }
}
