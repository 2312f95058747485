//! What the definition of a table keeps as text, and how it reads as SQL.

mod foreign_key;
mod generated;

pub(crate) use foreign_key::{action_word, foreign_key_text};
pub(crate) use generated::{
    as_default, columns_named, computed, generated_columns, generated_sql, is_generated, reads,
};
