//! The system tables as foreign tables: clients that list tables and views pass over them.

use crate::pg_catalog::objects::{PgObjects, PgRelation, RelationOf};
use crate::pg_catalog::oid::{OWNER, Oid};
use crate::pg_catalog::rows::Rows;

/// The tables `pg_foreign_data_wrapper` and `pg_foreign_server`.
pub(super) const WRAPPERS: Oid = 2328;
pub(super) const SERVERS: Oid = 1417;

/// The foreign-data wrapper and the server of the system tables.
pub(super) const WRAPPER: Oid = 13_901;
pub(super) const SERVER: Oid = 13_902;
const NAME: &str = "atoll";

pub(super) fn wrappers(rows: &mut Rows) {
    rows.add([("oid", WRAPPER.into()), ("fdwname", NAME.into()), ("fdwowner", OWNER.into())]);
}

pub(super) fn servers(rows: &mut Rows) {
    rows.add([
        ("oid", SERVER.into()),
        ("srvname", NAME.into()),
        ("srvowner", OWNER.into()),
        ("srvfdw", WRAPPER.into()),
    ]);
}

pub(super) fn tables(objects: &PgObjects, rows: &mut Rows) {
    let is_foreign = |it: &&PgRelation| matches!(it.of, RelationOf::Own(_)) && it.kind() == "f";
    for table in objects.relations.iter().filter(is_foreign) {
        rows.add([("ftrelid", table.oid.into()), ("ftserver", SERVER.into())]);
    }
}
