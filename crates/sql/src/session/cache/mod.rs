//! Plan caches: prepared statements, point statements, and repeated texts.

pub(super) mod planned_texts;
pub(super) mod point;
pub(super) mod prepared;
pub(super) mod raw_text;
pub(super) mod statement_texts;
pub(super) mod text_scope;
