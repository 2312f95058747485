//! Domains and their constraints.

use std::sync::Arc;

use atoll_store::database::RelationName;

use super::DATABASE_NAME;
use super::relations::DEFAULT_COLLATION;
use super::roles::role_oid;
use super::types::function_oid;
use crate::pg_catalog::objects::PgObjects;
use crate::pg_catalog::oid::{Oid, OidSpace};
use crate::pg_catalog::rows::Rows;
use crate::role::rights::Owned;
use atoll_sql_common::names::PG_CATALOG_SCHEMA;
use atoll_sql_common::pg_type::{TypeEntry, declared_modifier, format_type, type_named, type_oid};
use atoll_sql_common::user_type::{DomainCheck, DomainType};

/// The constraints, with their domains.
pub(super) fn checks(objects: &PgObjects) -> impl Iterator<Item = (&DomainType, &DomainCheck)> {
    let domains = objects.types.domains().iter();
    domains.flat_map(|domain| domain.checks.iter().map(move |check| (domain.as_ref(), check)))
}

fn constraint_oid(domain: &DomainType, check: &DomainCheck) -> Oid {
    OidSpace::Constraint.named(domain.oid.into(), &check.name)
}

/// The text of the constraint with an OID.
pub(in crate::pg_catalog) fn definition_of_check(objects: &PgObjects, oid: Oid) -> Option<String> {
    let (_, check) =
        checks(objects).find(|(domain, check)| constraint_oid(domain, check) == oid)?;
    Some(format!("CHECK (({}))", check.sql))
}

/// The rows of `pg_type`.
pub(super) fn types(objects: &PgObjects, rows: &mut Rows) {
    for domain in objects.types.domains() {
        let Some(schema) = objects.schemas.get(&domain.schema).copied() else { continue };
        let name = RelationName::new(Arc::clone(&domain.schema), Arc::clone(&domain.name));
        let owner = role_oid(&objects.owner(&Owned::Relation(name)));
        let base = type_named(&domain.base).unwrap_or(0);
        let entry = u32::try_from(base).ok().and_then(TypeEntry::numbered);
        let category = entry.map_or("U", |entry| entry.category);
        let function = |suffix: &str| {
            function_oid(&format!("{}{suffix}", entry.map_or("text", |entry| entry.name)))
        };
        rows.add([
            ("oid", i64::from(domain.oid).into()),
            ("typname", (&domain.name).into()),
            ("typnamespace", schema.into()),
            ("typowner", owner.into()),
            ("typlen", entry.map_or(-1, |entry| i64::from(entry.length)).into()),
            ("typbyval", entry.is_some_and(|it| matches!(it.length, 1 | 2 | 4 | 8)).into()),
            ("typtype", "d".into()),
            ("typcategory", category.into()),
            ("typisdefined", true.into()),
            ("typdelim", ",".into()),
            ("typinput", function_oid("domain_in").into()),
            ("typoutput", function("out").into()),
            ("typreceive", function_oid("domain_recv").into()),
            ("typsend", function("send").into()),
            ("typalign", "i".into()),
            ("typstorage", if entry.is_some_and(|it| it.length != -1) { "p" } else { "x" }.into()),
            ("typnotnull", domain.not_null.into()),
            ("typbasetype", base.into()),
            ("typtypmod", i64::from(declared_modifier(&domain.base)).into()),
            ("typcollation", if category == "S" { DEFAULT_COLLATION } else { 0 }.into()),
            ("typdefault", domain.default.as_ref().into()),
            ("typdefaultbin", domain.default.as_ref().into()),
        ]);
    }
}

/// The rows of `pg_constraint`.
pub(super) fn constraints(objects: &PgObjects, rows: &mut Rows) {
    for (domain, check) in checks(objects) {
        let Some(schema) = objects.schemas.get(&domain.schema).copied() else { continue };
        rows.add([
            ("oid", constraint_oid(domain, check).into()),
            ("conname", (&check.name).into()),
            ("connamespace", schema.into()),
            ("contype", "c".into()),
            ("convalidated", true.into()),
            ("contypid", i64::from(domain.oid).into()),
            ("confupdtype", " ".into()),
            ("confdeltype", " ".into()),
            ("confmatchtype", " ".into()),
            ("conislocal", true.into()),
            ("conbin", (&check.sql).into()),
        ]);
    }
}

/// The rows of `information_schema.domains`.
pub(super) fn information(objects: &PgObjects, rows: &mut Rows) {
    for domain in objects.types.domains() {
        let base = type_named(&domain.base).unwrap_or(0);
        let entry = u32::try_from(base).ok().and_then(TypeEntry::numbered);
        rows.add([
            ("domain_catalog", DATABASE_NAME.into()),
            ("domain_schema", (&domain.schema).into()),
            ("domain_name", (&domain.name).into()),
            ("data_type", format_type(base, -1).into()),
            ("domain_default", domain.default.as_ref().into()),
            ("udt_catalog", DATABASE_NAME.into()),
            ("udt_schema", PG_CATALOG_SCHEMA.into()),
            ("udt_name", entry.map_or("text", |entry| entry.name).into()),
            ("dtd_identifier", "1".into()),
        ]);
        let modifier = i64::from(declared_modifier(&domain.base) - 4);
        match entry.map(|entry| entry.oid) {
            Some(type_oid::VARCHAR | type_oid::BPCHAR) if modifier > 0 => {
                rows.set("character_maximum_length", modifier.into());
                rows.set("character_octet_length", (modifier * 4).into());
            }
            Some(type_oid::TEXT | type_oid::VARCHAR | type_oid::BPCHAR) => {
                rows.set("character_octet_length", (1_i64 << 30).into());
            }
            Some(type_oid::NUMERIC) => {
                rows.set("numeric_precision_radix", 10_i64.into());
                if modifier > 0 {
                    rows.set("numeric_precision", (modifier >> 16).into());
                    rows.set("numeric_scale", (modifier & 0x7ff).into());
                }
            }
            Some(type_oid::INT2 | type_oid::INT4 | type_oid::INT8) => {
                let bits = entry.map_or(0, |entry| i64::from(entry.length) * 8);
                rows.set("numeric_precision", bits.into());
                rows.set("numeric_precision_radix", 2_i64.into());
                rows.set("numeric_scale", 0_i64.into());
            }
            _ => {}
        }
    }
}

/// The rows of `information_schema.domain_constraints`.
pub(super) fn constraint_names(objects: &PgObjects, rows: &mut Rows) {
    for (domain, check) in checks(objects) {
        rows.add([
            ("constraint_catalog", DATABASE_NAME.into()),
            ("constraint_schema", (&domain.schema).into()),
            ("constraint_name", (&check.name).into()),
            ("domain_catalog", DATABASE_NAME.into()),
            ("domain_schema", (&domain.schema).into()),
            ("domain_name", (&domain.name).into()),
            ("is_deferrable", "NO".into()),
            ("initially_deferred", "NO".into()),
        ]);
    }
}
