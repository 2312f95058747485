//! A role, and the statement that creates it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use super::statement::RoleStatement;
use super::verifier::ScramVerifier;

/// A role.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Role {
    /// Its name.
    pub name: String,
    /// Whether it may log in.
    pub can_login: bool,
    /// Whether it may do everything.
    pub is_superuser: bool,
    /// Whether it may create and change roles that are not superusers.
    pub creates_roles: bool,
    /// Verifies its password; `None` if it has none.
    pub verifier: Option<ScramVerifier>,
    /// Roles whose rights it has.
    pub member_of: BTreeSet<String>,
    /// The settings that its sessions begin with, by name.
    pub settings: BTreeMap<String, String>,
}

impl Role {
    /// A role without any rights.
    pub(crate) fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            can_login: false,
            is_superuser: false,
            creates_roles: false,
            verifier: None,
            member_of: BTreeSet::new(),
            settings: BTreeMap::new(),
        }
    }

    /// Parses what [`Display`](fmt::Display) wrote.
    pub(crate) fn parse(name: &str, sql: &str) -> Option<Self> {
        let mut role = Self::new(name);
        match RoleStatement::parse(sql) {
            Ok(Some(RoleStatement::Create { options, .. })) => options.apply(&mut role).ok()?,
            _ => return None,
        }
        Some(role)
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CREATE ROLE {}", quoted(&self.name))?;
        for (is, word) in [
            (self.is_superuser, "SUPERUSER"),
            (self.creates_roles, "CREATEROLE"),
            (self.can_login, "LOGIN"),
        ] {
            if is {
                write!(f, " {word}")?;
            }
        }
        if let Some(verifier) = &self.verifier {
            write!(f, " PASSWORD '{verifier}'")?;
        }
        for (at, role) in self.member_of.iter().enumerate() {
            write!(f, "{}{}", if at == 0 { " IN ROLE " } else { ", " }, quoted(role))?;
        }
        for (name, value) in &self.settings {
            write!(f, " SET {} TO '{}'", quoted(name), value.replace('\'', "''"))?;
        }
        Ok(())
    }
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}
