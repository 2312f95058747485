//! SQL cursors: DECLARE, FETCH, MOVE and CLOSE. A cursor is a started portal under its name.

use std::sync::Arc;

use atoll_sql::TransactionState;
use atoll_sql::datafusion::common::ScalarValue;

use super::Connection;
use super::cursor_statement::{CursorMotion, CursorOptions, CursorStatement};
use super::failure::Failure;
use super::portal::{Portal, PortalRows, PortalState, Prepared, PreparedKind, forward_only};
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
        let CursorStatement::Declare { name, query, options } = statement else {
            return self.run_cursor(statement, None).await;
        };
        let start = start + sql[..*query].chars().count();
        let sql = &sql[*query..];
        let query = self.prepare(sql, &[], start).await?;
        self.declare((name, *options), &Arc::new(query), &[]).await
    }

    /// Runs a query as a named cursor.
    pub(super) async fn declare(
        &mut self,
        (name, options): (&str, CursorOptions),
        query: &Arc<Prepared>,
        values: &[ScalarValue],
    ) -> Result<(), Failure> {
        if !options.holds && self.session.transaction_state() == TransactionState::Idle {
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
        let mut rows = PortalRows::new(result);
        if options.scrolls {
            rows.keep(self.session.kept_rows());
        }
        let state = PortalState::Running(Box::new(rows));
        let (prepared, values, formats) = (Arc::clone(query), Vec::new(), Vec::new());
        let is_committed = self.session.transaction_state() == TransactionState::Idle;
        let portal = Portal { prepared, values, formats, state, options, is_committed };
        self.portals.insert(name.to_owned(), portal);
        self.client.output().command_complete("DECLARE CURSOR");
        Ok(())
    }

    /// Runs FETCH, MOVE or CLOSE. Rows come in these formats; without formats, after a description of the columns, as
    /// text unless the cursor is binary.
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
            CursorStatement::Fetch { name, motion, moves } => {
                self.fetch_cursor(name, *motion, *moves, formats).await?;
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
        motion: CursorMotion,
        moves: bool,
        formats: Option<&[i16]>,
    ) -> Result<(), Failure> {
        self.start_cursor(name).await?;
        let Self { client, portals, .. } = self;
        let portal = portals.get_mut(name).ok_or_else(|| no_cursor(name))?;
        let columns = portal.prepared.columns();
        let own: &[i16] = if portal.options.is_binary { &[1] } else { &[] };
        if let (Some(columns), false, None) = (columns, moves, formats) {
            row_description(columns, own, client.output());
        }
        let formats = (!moves).then_some(formats.unwrap_or(own));
        let count = match std::mem::replace(&mut portal.state, PortalState::Done) {
            PortalState::Running(mut rows) => {
                client.active.watch().follow(rows.result.progress());
                let count = rows.fetch(client, &portal.prepared.sql, motion, formats).await?;
                if rows.has_more() {
                    portal.state = PortalState::Running(rows);
                }
                count
            }
            other if motion.is_forward() => {
                portal.state = other;
                0
            }
            _ => return Err(forward_only().into()),
        };
        let tag = if moves { "MOVE" } else { "FETCH" };
        client.complete(&format!("{tag} {count}"));
        Ok(())
    }
}
