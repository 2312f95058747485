//! `atoll.roles`: the roles and their attributes.

use super::SystemTable;
use super::column::ColumnSpecs;
use crate::role::{Role, roles as roles_of};

/// One row per role.
pub(super) fn roles() -> SystemTable {
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
        .table_of("roles", |system| roles_of(&system.database.store().published()))
}
