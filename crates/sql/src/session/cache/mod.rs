//! Cached plans of statements that repeat, as text, by EXECUTE, or prepared by a client: one cache, whose entries are
//! of any [`point::Shape`].

pub(super) mod plan_cache;
pub(super) mod point;
pub(super) mod prepared;
pub(super) mod raw_text;
pub(super) mod statement_texts;
pub(super) mod text_scope;
