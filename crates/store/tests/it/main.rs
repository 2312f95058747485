//! Tests of the store over a directory of this machine and over simulated ones.

mod backups;
mod chunk_files;
mod clock_scan;
mod commit_crashes;
mod crash;
mod deferred_keys;
mod durable;
mod foreign_keys;
mod group_commit;
mod history;
mod kills;
mod live_files;
mod locks;
mod log;
mod log_damage;
mod log_faults;
mod log_histories;
mod prepared;
mod rows;
mod simulated_files;
mod small_database;
mod stepped;
mod support;
mod table_versions;
mod tables;
mod transactions;
