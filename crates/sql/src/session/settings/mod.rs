//! Settings and variables of a session.

pub(super) mod parameters;
pub(super) mod search_path;
pub(super) mod shared_settings;
pub(super) mod variables;
