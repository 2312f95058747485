//! `atoll.pools`: the workers of pools, and the common ones.

use super::SystemTable;
use super::column::ColumnSpecs;
use crate::database::PoolReport;

/// The common workers, whose name is NULL, and one row per pool.
pub(super) fn pools() -> SystemTable {
    ColumnSpecs::<PoolReport>::new()
        .column("pool", |pool| pool.name.clone())
        .column("cpus", |pool| pool.cpus.to_string())
        .column("nodes", |pool| pool.nodes.to_string())
        .column("workers", |pool| pool.workers)
        .column("users", |pool| pool.users)
        .column("cores", |pool| pool.cores)
        .column("cores_setting", |pool| pool.setting.clone())
        .column("cores_why", |pool| pool.why.clone())
        .table_of("pools", |system| system.database.pools().reports())
}
