//! The kinds of statements: one function parses a text, and one `match` runs it.
//!
//! ```text
//! text ─▶ Utility      CHECKPOINT, BACKUP, EXPORT, IMPORT, VACUUM, CREATE POOL, SET CONSTRAINTS
//!       ─▶ Role         CREATE ROLE, GRANT a role
//!       ─▶ Parameter    SET, SHOW, RESET, DISCARD of PostgreSQL's settings; DDL that is ignored
//!       ─▶ Notify       LISTEN, UNLISTEN, NOTIFY
//!       ─▶ Parsed       all others, as sqlparser reads them: transactions, queries, DDL, DML
//! ```
//!
//! The first four are parsed from tokens, since sqlparser does not know them or would lose a part of them.

use datafusion::common::Result;

use crate::role::RoleStatement;
use crate::session::Session;
use crate::session::settings::parameters::ParameterStatement;
use crate::session::statement::notify::NotifyStatement;
use crate::session::statement::parsed_statement::ParsedStatement;
use crate::session::statement::utility::UtilityStatement;

/// A statement.
pub(in crate::session) enum AtollStatement {
    Utility(UtilityStatement),
    Role(RoleStatement),
    Parameter(ParameterStatement),
    Notify(NotifyStatement),
    Parsed(Box<ParsedStatement>),
}

impl Session {
    /// Parses a statement.
    ///
    /// # Errors
    /// With the position in the text, if it is known, for texts that cannot be parsed.
    pub(in crate::session) fn read(&self, sql: &str) -> Result<AtollStatement> {
        if let Some(utility) = UtilityStatement::parse(sql)? {
            return Ok(AtollStatement::Utility(utility));
        }
        if let Some(role) = RoleStatement::parse(sql)? {
            return Ok(AtollStatement::Role(role));
        }
        if let Some(parameter) = self.parameter_statement(sql) {
            return Ok(AtollStatement::Parameter(parameter));
        }
        if let Some(notify) = NotifyStatement::parse(sql)? {
            return Ok(AtollStatement::Notify(notify));
        }
        Ok(AtollStatement::Parsed(Box::new(self.parse(sql)?)))
    }
}
