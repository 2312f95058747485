//! The commands as a user runs them, through the `atoll-tools` binary.

mod bench;
mod data;
mod elastic;
mod lab;
mod mariadb;
mod postgres;
mod refused;
mod report;
mod run;
mod shuffle;
mod support;
mod topo;
mod tune;
mod whereabouts;
