//! Tests of the store over a directory of this machine and over simulated ones.

mod live_files;
mod tables;
