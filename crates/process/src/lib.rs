//! Other programs: starting them under a placement (`launch`) and inspecting where they run (`inspect`).
//!
//! This crate owns all that Atoll does to and reads from processes other than its own. It is a crate of its own
//! because the commands for DBAs, the elastic mechanism and the benchmarks need it, but not each
//! other.
pub mod inspect;
pub mod launch;
