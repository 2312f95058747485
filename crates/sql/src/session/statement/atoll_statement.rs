//! What a text asks for: one function reads it, and one `match` carries it out.
//!
//! ```text
//! text ─▶ Utility      CHECKPOINT, BACKUP, EXPORT, IMPORT, VACUUM, CREATE POOL, SET CONSTRAINTS
//!       ─▶ Role         CREATE ROLE, GRANT a role
//!       ─▶ Parameter    SET, SHOW, RESET, DISCARD of PostgreSQL's settings; DDL that is ignored
//!       ─▶ Parsed       all others, as sqlparser reads them: transactions, queries, DDL, DML
//! ```
//!
//! The first three are read from tokens, since sqlparser does not know them or would lose a part of them.

use datafusion::common::Result;

use crate::role::RoleStatement;
use crate::session::Session;
use crate::session::settings::parameters::ParameterStatement;
use crate::session::statement::parsed_statement::ParsedStatement;
use crate::session::statement::utility::UtilityStatement;

/// What a text asks for.
pub(in crate::session) enum AtollStatement {
    Utility(UtilityStatement),
    Role(RoleStatement),
    Parameter(ParameterStatement),
    Parsed(Box<ParsedStatement>),
}

impl Session {
    /// Reads a statement.
    ///
    /// # Errors
    /// With the place in the text where it is known, when nothing can be made of it.
    pub(in crate::session) fn read(&self, sql: &str) -> Result<AtollStatement> {
        if let Some(utility) = UtilityStatement::of(sql)? {
            return Ok(AtollStatement::Utility(utility));
        }
        if let Some(role) = RoleStatement::of(sql)? {
            return Ok(AtollStatement::Role(role));
        }
        if let Some(parameter) = self.parameter_statement(sql) {
            return Ok(AtollStatement::Parameter(parameter));
        }
        Ok(AtollStatement::Parsed(Box::new(self.parse(sql)?)))
    }
}
