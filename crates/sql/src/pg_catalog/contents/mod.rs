//! The rows of the tables, by subject.

mod dependencies;
mod domains;
mod foreign;
mod information;
mod relations;
mod roles;
mod server;
mod types;
mod views;

use datafusion::catalog::Session;

pub(super) use domains::definition_of_check;
pub(crate) use roles::OWNER_NAME;
pub(super) use roles::role_oid;
pub(super) use types::{function_name, function_oid};

use super::objects::{PgObjects, PgRelation, RelationOf};
use super::rows::Rows;
use super::table::PgTable;

/// Fills a table.
pub(super) fn fill(table: &PgTable, session: &dyn Session, rows: &mut Rows) {
    let objects = || table.names.objects();
    let system = &table.system;
    match table.declared.name {
        "pg_namespace" => relations::namespaces(&objects(), rows),
        "pg_class" => relations::classes(&objects(), &table.names, rows),
        "pg_attribute" => relations::attributes(&objects(), &table.names, rows),
        "pg_attrdef" => relations::defaults(&objects(), rows),
        "pg_index" => relations::indexes(&objects(), rows),
        "pg_description" => relations::descriptions(&objects(), rows),
        "pg_constraint" => relations::constraints(&objects(), rows),
        "pg_sequence" => relations::sequences(&objects(), rows),
        "pg_depend" => dependencies::dependencies(&objects(), rows),
        "pg_rewrite" => dependencies::rules(&objects(), rows),
        "pg_foreign_data_wrapper" => foreign::wrappers(rows),
        "pg_foreign_server" => foreign::servers(rows),
        "pg_foreign_table" => foreign::tables(&objects(), rows),
        "pg_extension" => dependencies::extensions(&objects(), rows),
        "pg_tables" => views::tables(&objects(), rows),
        "pg_views" => views::views(&objects(), rows),
        "pg_matviews" => views::materialized_views(&objects(), rows),
        "pg_indexes" => views::indexes(&objects(), rows),
        "pg_sequences" => views::sequences(&objects(), &system.database, rows),
        "pg_stat_all_tables" | "pg_stat_user_tables" => views::table_statistics(&objects(), rows),
        "pg_statio_all_tables" | "pg_statio_user_tables" => views::table_reads(&objects(), rows),
        "pg_stat_user_indexes" => views::index_statistics(&objects(), rows),
        "pg_type" => types::types(&objects(), rows),
        "pg_enum" => types::labels(&objects(), rows),
        "pg_range" => types::ranges(rows),
        "pg_proc" => types::functions(&objects(), session, rows),
        "pg_collation" => types::collations(rows),
        "pg_am" => types::access_methods(rows),
        "pg_opclass" => types::operator_classes(rows),
        "pg_language" => types::languages(rows),
        "pg_keywords" => types::keywords(rows),
        "pg_roles" | "pg_authid" => roles::roles(system, rows),
        "pg_user" => roles::users(system, rows, true),
        "pg_shadow" => roles::users(system, rows, false),
        "pg_db_role_setting" => roles::role_settings(system, rows),
        "pg_group" => roles::groups(system, rows),
        "pg_auth_members" => roles::members(system, rows),
        "pg_database" => server::databases(rows),
        "pg_tablespace" => server::tablespaces(rows),
        "pg_prepared_statements" => server::prepared_statements(system, rows),
        "pg_settings" => server::settings(system, rows),
        "pg_stat_activity" => server::activity(system, rows),
        "pg_prepared_xacts" => server::prepared_transactions(system, rows),
        "pg_locks" => server::locks(system, rows),
        "pg_stat_database" => server::database_statistics(system, rows),
        "table_constraints" => information::constraints(&objects(), rows),
        "key_column_usage" => information::key_columns(&objects(), rows),
        "referential_constraints" => information::references(&objects(), rows),
        "constraint_column_usage" => information::constraint_columns(&objects(), rows),
        "check_constraints" => information::checks(&objects(), rows),
        "routines" => types::routines(&objects(), rows),
        "domains" => domains::information(&objects(), rows),
        "domain_constraints" => domains::constraint_names(&objects(), rows),
        "sequences" => information::sequences(&objects(), rows),
        "role_table_grants" | "table_privileges" => information::privileges(&objects(), rows),
        _ => {}
    }
}

/// The database's name in the columns of `information_schema`.
const DATABASE_NAME: &str = atoll_sql_common::names::CATALOG;

/// The tables, views, … of users and of the session; not those of PostgreSQL.
fn user_relations(objects: &PgObjects) -> impl Iterator<Item = &PgRelation> {
    objects.relations.iter().filter(|it| !matches!(it.of, RelationOf::Declared(_)))
}
