//! The repository as the checks read it: files, Rust code, manifests, tables.

pub(super) mod manifest;
pub(super) mod markdown;
pub(super) mod rust_code;
pub(super) mod tree;
