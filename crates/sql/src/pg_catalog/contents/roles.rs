//! Roles and memberships.

use crate::pg_catalog::SystemCatalog;
use crate::pg_catalog::oid::{OWNER, Oid, OidSpace};
use crate::pg_catalog::rows::{Datum, Rows};
use crate::role::{PREDEFINED, Role, roles as stored_roles};

/// The role that owns everything: that of the process.
pub(crate) const OWNER_NAME: &str = "atoll";

/// The number of a role.
pub(in crate::pg_catalog) fn role_oid(name: &str) -> Oid {
    match name {
        OWNER_NAME => OWNER,
        name => OidSpace::Name.named(1, name),
    }
}

/// All roles: that of the process, the predefined ones, and the session's own if it is the process's under another
/// name.
pub(in crate::pg_catalog) fn all_roles(system: &SystemCatalog) -> Vec<Role> {
    let mut all = stored_roles(&system.database.store().published());
    let mut add = |role: Role| {
        if all.iter().all(|other| other.name != role.name) {
            all.push(role);
        }
    };
    let superuser = |name: &str| Role {
        is_superuser: true,
        creates_roles: true,
        can_login: true,
        ..Role::new(name)
    };
    add(superuser(OWNER_NAME));
    if system.identity.is_owner && !system.identity.user.is_empty() {
        add(superuser(&system.identity.user));
    }
    PREDEFINED.iter().for_each(|name| add(Role::new(name)));
    all.sort_by(|one, other| one.name.cmp(&other.name));
    all
}

/// Shown in place of a password or its verifier.
fn password(role: &Role) -> Datum {
    role.verifier.as_ref().map(|_| "********").into()
}

/// The settings of a role's sessions, as `name=value` each.
fn settings(role: &Role) -> Datum {
    let texts = role.settings.iter().map(|(name, value)| Datum::from(format!("{name}={value}")));
    if role.settings.is_empty() { Datum::Null } else { texts.collect() }
}

pub(super) fn roles(system: &SystemCatalog, rows: &mut Rows) {
    for role in all_roles(system) {
        rows.add([
            ("oid", role_oid(&role.name).into()),
            ("rolname", role.name.as_str().into()),
            ("rolsuper", role.is_superuser.into()),
            ("rolinherit", true.into()),
            ("rolcreaterole", role.creates_roles.into()),
            ("rolcreatedb", role.is_superuser.into()),
            ("rolcanlogin", role.can_login.into()),
            ("rolbypassrls", role.is_superuser.into()),
            ("rolconnlimit", (-1_i64).into()),
            ("rolpassword", password(&role)),
        ]);
        // pg_authid has none.
        rows.set("rolconfig", settings(&role));
    }
}

/// `pg_user`, and `pg_shadow` without password verifiers.
pub(super) fn users(system: &SystemCatalog, rows: &mut Rows, hides_all: bool) {
    for role in all_roles(system).iter().filter(|role| role.can_login) {
        rows.add([
            ("usename", role.name.as_str().into()),
            ("usesysid", role_oid(&role.name).into()),
            ("usecreatedb", role.is_superuser.into()),
            ("usesuper", role.is_superuser.into()),
            ("usebypassrls", role.is_superuser.into()),
            ("passwd", if hides_all { "********".into() } else { password(role) }),
            ("useconfig", settings(role)),
        ]);
    }
}

/// `pg_db_role_setting`: the settings of roles, for all databases.
pub(super) fn role_settings(system: &SystemCatalog, rows: &mut Rows) {
    for role in all_roles(system).iter().filter(|role| !role.settings.is_empty()) {
        rows.add([("setrole", role_oid(&role.name).into()), ("setconfig", settings(role))]);
    }
}

pub(super) fn groups(system: &SystemCatalog, rows: &mut Rows) {
    let all = all_roles(system);
    for group in all.iter().filter(|role| !role.can_login) {
        let members = all.iter().filter(|role| role.member_of.contains(&group.name));
        rows.add([
            ("groname", group.name.as_str().into()),
            ("grosysid", role_oid(&group.name).into()),
            ("grolist", members.map(|role| role_oid(&role.name)).collect()),
        ]);
    }
}

pub(super) fn members(system: &SystemCatalog, rows: &mut Rows) {
    for member in all_roles(system) {
        for of in &member.member_of {
            rows.add([
                ("roleid", role_oid(of).into()),
                ("member", role_oid(&member.name).into()),
                ("grantor", OWNER.into()),
            ]);
        }
    }
}
