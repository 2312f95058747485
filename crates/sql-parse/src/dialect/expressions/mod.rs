//! Expressions and types.

pub(super) mod array_text;
pub(super) mod arrays;
pub(super) mod bare_calls;
pub(super) mod calls;
pub(super) mod catalog;
pub(super) mod comprehension;
pub(super) mod json_marks;
pub(super) mod lambda;
pub(super) mod like;
pub(super) mod numerics;
pub(super) mod object_names;
pub(super) mod operators;
pub(super) mod outer_aggregates;
pub(super) mod precisions;
pub(super) mod quantified;
pub(super) mod times;
pub(super) mod tuples;
pub(super) mod types;
pub(super) mod whole_numbers;
