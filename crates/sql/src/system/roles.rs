//! `atoll.roles`: who may log in, and what they may do.

use super::column::ColumnSpecs;
use super::{SystemTable, now};
use crate::database::Database;
use crate::role::{Role, roles as roles_of};

/// One row a role.
pub(super) fn roles(database: Database) -> SystemTable {
    ColumnSpecs::<Role>::new()
        .column("role", |role| role.name.clone())
        .column("can_login", |role| role.can_login)
        .column("is_superuser", |role| role.is_superuser)
        .column("creates_roles", |role| role.creates_roles)
        .column("has_password", |role| role.verifier.is_some())
        .column("member_of", |role| {
            let of: Vec<&str> = role.member_of.iter().map(String::as_str).collect();
            of.join(", ")
        })
        .table("roles", move |_| now(roles_of(&database.store().published())))
}
