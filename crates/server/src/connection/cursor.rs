//! SQL cursors: DECLARE, FETCH, MOVE and CLOSE. A cursor is a started portal under its name.

use std::sync::Arc;

use atoll_sql::TransactionState;
use atoll_sql::datafusion::common::ScalarValue;

use super::Connection;
use super::cursor_statement::CursorStatement;
use super::failure::Failure;
use super::portal::{Portal, PortalRows, PortalState, Prepared, PreparedKind};
use crate::error_fields::error_fields;
use crate::value::row_description;
use crate::wire::ErrorFields;

fn no_cursor(name: &str) -> Failure {
    ErrorFields::error("34000", format!("cursor \"{name}\" does not exist")).into()
}

impl Connection {
    /// Runs a cursor statement from the simple protocol; it begins at character `start`, counted from 0, of the
    /// client's text.
    pub(super) async fn cursor(
        &mut self,
        statement: &CursorStatement,
        sql: &str,
        start: usize,
    ) -> Result<(), Failure> {
        let CursorStatement::Declare { name, query, holds } = statement else {
            return self.run_cursor(statement, None).await;
        };
        let start = start + sql[..*query].chars().count();
        let sql = &sql[*query..];
        let query = self.prepare(sql, &[], start).await?;
        self.declare((name, *holds), &Arc::new(query), &[]).await
    }

    /// Runs a query as a named cursor, which may outlive its transaction.
    pub(super) async fn declare(
        &mut self,
        (name, holds): (&str, bool),
        query: &Arc<Prepared>,
        values: &[ScalarValue],
    ) -> Result<(), Failure> {
        if !holds && self.session.transaction_state() == TransactionState::Idle {
            let message = "DECLARE CURSOR can only be used in transaction blocks";
            return Err(ErrorFields::error("25P01", message).into());
        }
        if self.portals.contains_key(name) {
            let message = format!("cursor \"{name}\" already exists");
            return Err(ErrorFields::error("42P03", message).into());
        }
        let Some(statement) = query.statement() else { return Err(no_cursor(name)) };
        let result = self.client.unless_ended(statement.execute(values)).await?;
        let result = result.map_err(|error| error_fields(&error, &query.sql, 0))?;
        let state = PortalState::Running(Box::new(PortalRows::new(result)));
        let (prepared, values, formats) = (Arc::clone(query), Vec::new(), Vec::new());
        let is_committed = self.session.transaction_state() == TransactionState::Idle;
        let portal = Portal { prepared, values, formats, state, holds, is_committed };
        self.portals.insert(name.to_owned(), portal);
        self.client.output().command_complete("DECLARE CURSOR");
        Ok(())
    }

    /// Runs FETCH, MOVE or CLOSE. Rows come in these formats; without formats, as text after a description of the
    /// columns.
    pub(super) async fn run_cursor(
        &mut self,
        statement: &CursorStatement,
        formats: Option<&[i16]>,
    ) -> Result<(), Failure> {
        // A query that has failed since the last FETCH reports its own error.
        let tells = matches!(statement, CursorStatement::Fetch { name, .. } if self.portals.contains_key(name));
        if !tells && self.session.transaction_state() == TransactionState::Failed {
            let message =
                "current transaction is aborted, commands ignored until end of transaction block";
            return Err(ErrorFields::error("25P02", message).into());
        }
        match statement {
            CursorStatement::Fetch { name, count, moves } => {
                self.fetch_cursor(name, count.unwrap_or(usize::MAX), *moves, formats).await?;
            }
            CursorStatement::Close { name: Some(name) } => {
                self.portals.remove(name).ok_or_else(|| no_cursor(name))?;
                self.client.output().command_complete("CLOSE CURSOR");
            }
            _ => {
                self.portals.clear();
                self.client.output().command_complete("CLOSE CURSOR ALL");
            }
        }
        Ok(())
    }

    /// Runs the statement of a portal that is bound and has returned no rows yet.
    async fn start_cursor(&mut self, name: &str) -> Result<(), Failure> {
        let portal = self.portals.get_mut(name).ok_or_else(|| no_cursor(name))?;
        let prepared = Arc::clone(&portal.prepared);
        let (PortalState::Bound, PreparedKind::Statement(statement)) =
            (&portal.state, &prepared.kind)
        else {
            return Ok(());
        };
        portal.state = PortalState::Done;
        let values = std::mem::take(&mut portal.values);
        let rows = self.start(name, &prepared, statement, &values).await?;
        let portal = self.portals.get_mut(name).ok_or_else(|| no_cursor(name))?;
        portal.state = PortalState::Running(rows);
        Ok(())
    }

    async fn fetch_cursor(
        &mut self,
        name: &str,
        most: usize,
        moves: bool,
        formats: Option<&[i16]>,
    ) -> Result<(), Failure> {
        self.start_cursor(name).await?;
        let Self { client, portals, .. } = self;
        let portal = portals.get_mut(name).ok_or_else(|| no_cursor(name))?;
        let columns = portal.prepared.columns();
        if let (Some(columns), false, None) = (columns, moves, formats) {
            row_description(columns, &[], client.output());
        }
        let state = std::mem::replace(&mut portal.state, PortalState::Done);
        let mut count = 0;
        if let PortalState::Running(mut rows) = state {
            client.active.watch().follow(rows.result.progress());
            let formats = (!moves).then_some(formats.unwrap_or_default());
            count = rows.send(client, &portal.prepared.sql, most, formats).await?;
            if count == most {
                portal.state = PortalState::Running(rows);
            }
        }
        let tag = if moves { "MOVE" } else { "FETCH" };
        client.complete(&format!("{tag} {count}"));
        Ok(())
    }
}
