//! Other programs: started under a placement (`launch`), and looked at where they run (`inspect`).
//!
//! It owns what Atoll does to and knows of processes that are not its own. It is a crate of its own
//! because a DBA's commands, the elastic mechanism and the benchmarks need it, and none of them the
//! others.
pub mod inspect;
pub mod launch;
