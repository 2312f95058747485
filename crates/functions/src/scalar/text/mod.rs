//! Strings, substrings, patterns, and formatting.

pub(super) mod patterns;
pub(super) mod printf;
pub(super) mod regex_compiled;
pub(super) mod regex_places;
pub(super) mod regex_replace;
pub(super) mod regex_words;
pub(super) mod similar;
pub(super) mod similar_to;
pub(super) mod slices;
pub(super) mod spec;
pub(crate) mod substr;
pub(super) mod texts;
