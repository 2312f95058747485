//! Statements that are queries in other dialects, and those that are refused with the alternative here.

pub(super) mod catalog_statements;
pub(super) mod forms;
pub(super) mod refused;
pub(super) mod summarize;
