//! The extended query protocol: prepares statements, binds values, and returns rows in portions.
//!
//! A group of messages ends with Sync. A group with a single Execute is a transaction of its own and takes the fast
//! path of prepared statements; if the client has already sent more, the whole group is one transaction.

use std::borrow::Cow;
use std::sync::Arc;

use atoll_sql::arrow::datatypes::DataType;
use atoll_sql::datafusion::common::ScalarValue;
use atoll_sql::temporal::{StatementClock, TemporalStyle, is_temporal};
use atoll_sql::{DeclaredType, PreparedStatement, Session, SqlError};
use tokio::time::Instant;

use super::Connection;
use super::cursor_statement::{CursorOptions, CursorStatement};
use super::failure::{End, Failure};
use super::portal::{Portal, PortalRows, PortalState, Prepared, PreparedKind, check_columns};
use super::statement::{Control, complete};
use crate::copy::CopyStatement;
use crate::error_fields::error_fields;
use crate::value::{Format, PgType, TIMETZ, arrow_type, from_client, parameter, row_description};
use crate::wire::{BindMessage, ErrorFields, FrontendMessage, Target};
use atoll_sql::TextEncoding;

impl Connection {
    /// Handles a message of the extended protocol.
    pub(super) async fn extended(&mut self, message: FrontendMessage) -> Result<(), Failure> {
        self.begun = Instant::now();
        match message {
            FrontendMessage::Parse { name, sql, types } => {
                // A statement refused at Parse is logged here; others are logged at Execute.
                let text = self.server.logs.has_audit().then(|| sql.clone());
                let parsed = self.parse(name, sql, types).await;
                if let (Some(text), Err(_)) = (text, &parsed) {
                    self.audit(&text, &parsed);
                }
                parsed
            }
            FrontendMessage::Bind(bind) => self.bind(bind),
            FrontendMessage::Describe(Target::Statement(name)) => self.describe_statement(&name),
            FrontendMessage::Describe(Target::Portal(name)) => self.describe_portal(&name),
            FrontendMessage::Execute { portal, rows_max } => {
                let prepared = self.portals.get(&portal).map(|it| Arc::clone(&it.prepared));
                let executed = self.execute(&portal, rows_max).await;
                if let Some(prepared) = prepared {
                    self.audit(&prepared.sql, &executed);
                }
                executed
            }
            FrontendMessage::Close(target) => {
                match target {
                    Target::Statement(name) => {
                        self.prepared.remove(&name);
                        self.session.forget_client_statement(Some(&name));
                    }
                    Target::Portal(name) => drop(self.portals.remove(&name)),
                }
                self.client.output().empty(b'3');
                Ok(())
            }
            FrontendMessage::Flush => Ok(self.client.channel.send().await?),
            other => {
                let kind = match other {
                    FrontendMessage::Password(_) => "a password",
                    _ => "this message",
                };
                Err(ErrorFields::error("08P01", format!("unexpected {kind}")).into())
            }
        }
    }

    /// Ends a group of messages.
    pub(super) async fn sync(&mut self) -> Result<(), End> {
        self.is_skipping = false;
        match self.end_group().await {
            Ok(()) => {}
            Err(Failure::Ends(end)) => return Err(end),
            Err(Failure::Statement(error)) => self.client.output().error(&error),
        }
        self.ready().await
    }

    async fn parse(&mut self, name: String, sql: String, types: Vec<u32>) -> Result<(), Failure> {
        if !name.is_empty() && self.prepared.contains_key(&name) {
            let message = format!("prepared statement \"{name}\" already exists");
            return Err(ErrorFields::error("42P05", message).into());
        }
        self.begin(&sql);
        let declared =
            types.iter().map(|oid| DeclaredType { data_type: arrow_type(*oid), oid: *oid });
        let declared: Vec<_> = declared.collect();
        let statements = self.count(&sql)?;
        if statements > 1 {
            let message = "cannot insert multiple commands into a prepared statement";
            return Err(ErrorFields::error("42601", message).into());
        }
        let kind = if statements == 0 {
            PreparedKind::Empty
        } else if let Some(copy) = CopyStatement::parse(&sql)? {
            PreparedKind::Copy(copy)
        } else {
            match CursorStatement::parse(&sql)? {
                Some(CursorStatement::Declare { name, query, options }) => {
                    let start = sql[..query].chars().count();
                    let query = self.prepare(&sql[query..], &declared, start).await?;
                    PreparedKind::Declare { name, options, query: Arc::new(query) }
                }
                Some(other) => PreparedKind::Cursor(other),
                None => self.prepare(&sql, &declared, 0).await?.kind,
            }
        };
        let mut prepared = Prepared { types: Vec::new(), sql, kind };
        if let Some(statement) = prepared.statement() {
            let wanted = (0..statement.parameter_types().len()).map(|at| match types.get(at) {
                None | Some(0) => statement.parameter_oid(at),
                Some(declared) => *declared,
            });
            prepared.types = wanted.collect();
        }
        if !name.is_empty() {
            let types = prepared.types.clone();
            self.session.keep_client_statement(&name, &prepared.sql, types);
        }
        self.prepared.insert(name, Arc::new(prepared));
        self.client.active.prepared();
        self.running = None;
        self.client.output().empty(b'1');
        Ok(())
    }

    /// Prepares a statement that begins at character `start`, counted from 0, of the client's text.
    pub(super) async fn prepare(
        &mut self,
        sql: &str,
        declared: &[DeclaredType],
        start: usize,
    ) -> Result<Prepared, Failure> {
        let Self { client, session, .. } = self;
        let statement = client.unless_ended(session.prepare_as(sql, declared)).await?;
        let statement = statement.map_err(|error| error_fields(&error, sql, start))?;
        let kind = PreparedKind::Statement(Box::new(statement));
        Ok(Prepared { sql: sql.to_owned(), kind, types: Vec::new() })
    }

    fn prepared(&self, name: &str) -> Result<&Arc<Prepared>, Failure> {
        self.prepared.get(name).ok_or_else(|| {
            let message = match name {
                "" => "unnamed prepared statement does not exist".to_owned(),
                name => format!("prepared statement \"{name}\" does not exist"),
            };
            ErrorFields::error("26000", message).into()
        })
    }

    fn bind(&mut self, bind: BindMessage) -> Result<(), Failure> {
        let prepared = Arc::clone(self.prepared(&bind.statement)?);
        if !bind.portal.is_empty() && self.portals.contains_key(&bind.portal) {
            let message = format!("portal \"{}\" already exists", bind.portal);
            return Err(ErrorFields::error("42P03", message).into());
        }
        let encoding = self.client.output().encoding;
        let values = values(&prepared, &bind, encoding, &self.session)?;
        let formats = bind.result_formats;
        let (state, options) = (PortalState::Bound, CursorOptions::default());
        let portal = Portal { prepared, values, formats, state, options, is_committed: false };
        self.portals.insert(bind.portal, portal);
        self.client.output().empty(b'2');
        Ok(())
    }

    fn describe_statement(&mut self, name: &str) -> Result<(), Failure> {
        let prepared = Arc::clone(self.prepared(name)?);
        let output = self.client.output();
        output.message(b't', |body| {
            body.extend_from_slice(&(prepared.types.len() as u16).to_be_bytes());
            prepared.types.iter().for_each(|oid| body.extend_from_slice(&oid.to_be_bytes()));
        });
        self.describe(&prepared, &[]);
        Ok(())
    }

    fn describe_portal(&mut self, name: &str) -> Result<(), Failure> {
        let portal = self.portals.get(name).ok_or_else(|| no_portal(name))?;
        let (prepared, formats) = (Arc::clone(&portal.prepared), portal.formats.clone());
        self.describe(&prepared, &formats);
        Ok(())
    }

    /// Describes the columns of a statement; FETCH has those of its cursor.
    fn describe(&mut self, prepared: &Prepared, formats: &[i16]) {
        let Self { portals, client, .. } = self;
        let columns = match &prepared.kind {
            PreparedKind::Cursor(CursorStatement::Fetch { name, moves: false, .. }) => {
                portals.get(name).and_then(|portal| portal.prepared.columns())
            }
            _ => prepared.columns(),
        };
        match columns {
            Some(columns) => row_description(columns, formats, client.output()),
            None => client.output().empty(b'n'),
        }
    }

    async fn execute(&mut self, name: &str, rows_max: u32) -> Result<(), Failure> {
        let portal = self.portals.get(name).ok_or_else(|| no_portal(name))?;
        let prepared = Arc::clone(&portal.prepared);
        self.begin(&prepared.sql);
        self.take_style();
        let portal = self.portals.get_mut(name).ok_or_else(|| no_portal(name))?;
        let state = std::mem::replace(&mut portal.state, PortalState::Done);
        let statement = match &prepared.kind {
            PreparedKind::Statement(statement) => statement,
            PreparedKind::Empty => {
                self.client.output().empty(b'I');
                self.ended(None);
                return Ok(());
            }
            PreparedKind::Copy(copy) => {
                if self.is_group() {
                    self.begin_group().await?;
                }
                self.copy(copy, 0).await?;
                self.ended(None);
                return Ok(());
            }
            PreparedKind::Declare { name, options, query } => {
                let values = std::mem::take(&mut portal.values);
                if self.is_group() {
                    self.begin_group().await?;
                }
                self.declare((name, *options), query, &values).await?;
                self.ended(None);
                return Ok(());
            }
            PreparedKind::Cursor(cursor) => {
                let formats = portal.formats.clone();
                self.run_cursor(cursor, Some(&formats)).await?;
                self.ended(None);
                return Ok(());
            }
        };
        let rows = match state {
            PortalState::Running(rows) => rows,
            PortalState::Exhausted(tag) => {
                self.client.complete(&tag);
                portal.state = PortalState::Exhausted(tag);
                self.ended(None);
                return Ok(());
            }
            PortalState::Done => {
                let message = format!("portal \"{name}\" has ended");
                return Err(ErrorFields::error("55000", message).into());
            }
            PortalState::Bound => {
                let values = std::mem::take(&mut portal.values);
                let control = Control::from_sql(&prepared.sql);
                if control != Control::None {
                    let Self { client, session, is_implicit, .. } = self;
                    Self::control(client, session, is_implicit, control, &prepared.sql).await?;
                    if control == Control::End {
                        self.transaction_ended(&prepared.sql);
                    }
                    self.ended(None);
                    return Ok(());
                }
                if self.deallocate(&prepared.sql) {
                    self.ended(None);
                    return Ok(());
                }
                if self.is_group() {
                    self.begin_group().await?;
                }
                self.start(name, &prepared, statement, &values).await?
            }
        };
        self.fetch(name, rows, rows_max).await
    }

    /// Runs the statement of a portal.
    pub(super) async fn start(
        &mut self,
        name: &str,
        prepared: &Prepared,
        statement: &PreparedStatement,
        values: &[ScalarValue],
    ) -> Result<Box<PortalRows>, Failure> {
        let failed = |error: SqlError| error_fields(&error, &prepared.sql, 0);
        let formats = self.portals.get(name).map_or(&[][..], |portal| &portal.formats);
        // Before it changes rows, since the client runs it again after this error.
        if let Some(told) = statement.columns()
            && let Some(now) = statement.columns_to_write().await.map_err(failed)?
        {
            check_columns(told, &now, formats)?;
        }
        let result = self.client.unless_ended(statement.execute(values)).await?;
        let rows = PortalRows::try_new(result.map_err(failed)?, prepared, formats)?;
        Ok(Box::new(rows))
    }

    /// Whether the group may have more statements: if the client has already sent Sync after this one, it needs no
    /// transaction around it.
    fn is_group(&self) -> bool {
        self.client.next_kind() != Some(b'S')
    }

    /// Sends at most this many rows of a portal; 0 means all.
    async fn fetch(
        &mut self,
        name: &str,
        mut rows: Box<PortalRows>,
        rows_max: u32,
    ) -> Result<(), Failure> {
        let Some(portal) = self.portals.get_mut(name) else { return Err(no_portal(name)) };
        let client = &mut self.client;
        // The portal may have been started by an earlier statement.
        client.active.watch().follow(rows.result.progress());
        let formats = (!rows.result.is_told_by_tag()).then_some(portal.formats.as_slice());
        let has_rows = formats.is_some();
        let most = match rows_max {
            0 => usize::MAX,
            _ if !has_rows => usize::MAX,
            most => most as usize,
        };
        let count = rows.send(client, &portal.prepared.sql, most, formats).await?;
        if count == most {
            portal.state = PortalState::Running(rows);
            client.add_rows(count);
            client.output().empty(b's');
        } else if has_rows {
            complete(client, &self.session, &rows.tag(count));
            portal.state = match rows.has_more() {
                true => PortalState::Running(rows),
                false => PortalState::Exhausted(rows.tag(0)),
            };
        } else {
            complete(client, &self.session, &rows.result.tag());
        }
        self.ended(None);
        Ok(())
    }
}

fn no_portal(name: &str) -> Failure {
    ErrorFields::error("34000", format!("portal \"{name}\" does not exist")).into()
}

fn values(
    prepared: &Prepared,
    bind: &BindMessage,
    encoding: TextEncoding,
    session: &Session,
) -> Result<Vec<ScalarValue>, Failure> {
    let wanted = prepared.statement().map(PreparedStatement::parameter_types).unwrap_or_default();
    if bind.values.len() != wanted.len() {
        let (given, wanted) = (bind.values.len(), wanted.len());
        let message = format!(
            "bind message supplies {given} parameters, but the statement requires {wanted}"
        );
        return Err(ErrorFields::error("08P01", message).into());
    }
    // Text may be `today` or `01/02/03`, and a timestamp may become text or local time, so these need the session's time
    // zone and styles.
    let is_of_session = |(of, oid): (&DataType, &u32)| {
        let is_moment = || arrow_type(*oid).as_ref().is_some_and(is_temporal);
        of.is_nested() || is_temporal(of) || *oid == TIMETZ || is_moment()
    };
    let (time_zone, style) = match wanted.iter().zip(&prepared.types).any(is_of_session) {
        true => (session.time_zone(), session.temporal_style()),
        false => (None, TemporalStyle::default()),
    };
    let clock = StatementClock { time_zone: time_zone.as_deref(), begun: None, style };
    let each = bind.values.iter().zip(wanted).zip(&prepared.types).enumerate();
    let values = each.map(|(at, ((bytes, wanted), oid))| {
        let format = Format::for_column(&bind.formats, at);
        let bytes = match bytes {
            Some(bytes) if !encoding.is_utf8() => {
                let oid = if *oid == 0 { PgType::from_data_type(wanted).oid } else { *oid };
                let read = from_client(bytes, oid, format, encoding);
                Some(read.map_err(ErrorFields::from)?)
            }
            bytes => bytes.as_deref().map(Cow::Borrowed),
        };
        parameter(bytes.as_deref(), format, *oid, wanted, clock).map_err(|error| {
            let message = format!("parameter ${}: {error}", at + 1);
            ErrorFields::error(error.state(), message).into()
        })
    });
    values.collect()
}
