//! Tests of the store over a directory of this machine and over simulated ones.

mod chunk_files;
mod group_commit;
mod live_files;
mod log;
mod log_damage;
mod log_faults;
mod log_histories;
mod simulated_files;
mod support;
mod tables;
