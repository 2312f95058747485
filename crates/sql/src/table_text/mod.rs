//! The parts of a table's definition that are stored as text, and their SQL form.

mod domain;
mod foreign_key;
mod generated;
mod index;

pub(crate) use domain::{DOMAIN_VALID, belongs_to_type, checked_domain, domain_call};
pub(crate) use foreign_key::{action_word, foreign_key_text};
pub(crate) use generated::{
    as_default, columns_named, computed, generated_columns, generated_sql, identity_words,
    is_generated, reads,
};
pub(crate) use index::{IndexParts, unique_text};
