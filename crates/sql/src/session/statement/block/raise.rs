//! RAISE, and what blocks know about a handled error.

use datafusion::common::{DataFusionError, Result};

use super::condition::code_of;
use super::run::BlockRun;
use super::tree::{Message, Target};
use super::variables::{Cell, Scope, Variable, VariableType};
use atoll_sql_common::error::{SqlError, SqlState, ViolatedConstraint, stated_err};

/// An error that a block handles.
#[derive(Clone, Debug)]
pub(super) struct HandledError {
    state: SqlState,
    message: String,
    detail: Option<String>,
    hint: Option<String>,
    violated: Option<ViolatedConstraint>,
}

impl HandledError {
    pub(super) fn new(error: DataFusionError) -> Self {
        let error = SqlError::new(error, "");
        let detail = error.detail().map(str::to_owned);
        let (violated, hint) = (error.violated().cloned(), error.helps.first().cloned());
        Self { state: error.state, message: error.message, detail, hint, violated }
    }

    /// SQLSTATE and SQLERRM.
    pub(super) fn scope(&self) -> Scope {
        let variable = |name: &str, text: &str| Variable {
            name: name.to_owned(),
            of: VariableType::Cast("text".to_owned()),
            is_constant: true,
            is_not_null: false,
            cell: Cell::text(text),
        };
        let variables =
            vec![variable("sqlstate", self.state.code()), variable("sqlerrm", &self.message)];
        Scope { label: None, variables }
    }

    /// An item of GET STACKED DIAGNOSTICS.
    fn item(&self, name: &str) -> Option<String> {
        let of_violated = |part: fn(&ViolatedConstraint) -> Option<String>| {
            Some(self.violated.as_ref().and_then(part).unwrap_or_default())
        };
        match name {
            "returned_sqlstate" => Some(self.state.code().to_owned()),
            "message_text" => Some(self.message.clone()),
            "pg_exception_detail" => Some(self.detail.clone().unwrap_or_default()),
            "pg_exception_hint" => Some(self.hint.clone().unwrap_or_default()),
            "constraint_name" => of_violated(|it| it.constraint.clone()),
            "column_name" => of_violated(|it| it.column.clone()),
            "table_name" => of_violated(|it| Some(it.table.clone())),
            "schema_name" => of_violated(|it| Some(it.schema.clone())),
            "pg_datatype_name" | "pg_exception_context" => Some(String::new()),
            _ => None,
        }
    }
}

impl BlockRun<'_> {
    /// RAISE of the handled error.
    pub(super) fn again(&self) -> DataFusionError {
        match self.handled.last().cloned() {
            Some(HandledError { state, message, detail, hint, violated }) => match violated {
                Some(violated) if detail.is_none() && hint.is_none() => {
                    state.violation(message, violated)
                }
                _ => state.told(message, detail, hint),
            },
            None => SqlState::STACKED_DIAGNOSTICS
                .error("RAISE without parameters cannot be used outside an exception handler"),
        }
    }

    pub(super) async fn raise(&mut self, message: &Message) -> Result<()> {
        let mut parts = message.parts.iter();
        let mut text = parts.next().cloned().unwrap_or_default();
        for (argument, part) in message.arguments.iter().zip(parts) {
            let value = self.text(argument).await?;
            text.push_str(value.as_deref().unwrap_or("<NULL>"));
            text.push_str(part);
        }
        let (mut code, mut detail, mut hint) = (message.code.clone(), None, None);
        for (word, value) in &message.using {
            let value = self.text(value).await?;
            let Some(value) = value else {
                return stated_err!(
                    NULL_VALUE_NOT_ALLOWED,
                    "RAISE statement option cannot be null"
                );
            };
            match word.as_str() {
                "message" => text = value,
                "errcode" => code = Some(code_of(&value).unwrap_or(value)),
                "detail" => detail = Some(value),
                "hint" => hint = Some(value),
                "column" | "constraint" | "datatype" | "table" | "schema" => {}
                _ => return stated_err!(SYNTAX_ERROR, "unrecognized RAISE statement option"),
            }
        }
        if !message.is_error {
            if message.is_shown {
                self.notices.push(text);
            }
            return Ok(());
        }
        let state = match code {
            None => SqlState::RAISE_EXCEPTION,
            Some(code) => SqlState::from_code(&code).ok_or_else(|| {
                SqlState::SYNTAX_ERROR.error(format!("invalid SQLSTATE code '{code}'"))
            })?,
        };
        if text.is_empty() {
            state.code().clone_into(&mut text);
        }
        Err(state.told(text, detail, hint))
    }

    pub(super) async fn diagnose(
        &mut self,
        is_stacked: bool,
        items: &[(Target, String)],
    ) -> Result<()> {
        for (target, name) in items {
            let value = match (is_stacked, name.as_str()) {
                (false, "row_count") => Some(Cell::new(self.row_count.into())),
                (false, "pg_context") => Some(Cell::text("")),
                (false, _) => None,
                (true, name) => match self.handled.last() {
                    Some(error) => error.item(name).map(Cell::text),
                    None => {
                        return stated_err!(
                            STACKED_DIAGNOSTICS,
                            "GET STACKED DIAGNOSTICS cannot be used outside an exception handler"
                        );
                    }
                },
            };
            let Some(value) = value else {
                return stated_err!(SYNTAX_ERROR, "unrecognized GET DIAGNOSTICS item: {name}");
            };
            self.put_row(std::slice::from_ref(target), vec![value]).await?;
        }
        Ok(())
    }
}
