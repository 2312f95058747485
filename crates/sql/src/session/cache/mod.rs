//! Plans that are kept: prepared statements, statements about one row, and texts that come again.

pub(super) mod planned_texts;
pub(super) mod point;
pub(super) mod prepared;
pub(super) mod raw_text;
pub(super) mod statement_texts;
pub(super) mod text_scope;
