//! Pieces of syntax that the parser and the dialect share: walks over a tree, functions over files with their options,
//! the first words of a statement, the tokens of a statement, a parser of statements that sqlparser does
//! not know.

mod expression;
mod file_functions;
mod file_kind;
mod file_options;
mod first_word;
mod statement_parser;
mod text;
mod tokens;
mod walk;

pub use expression::{parsed_expr, without_parentheses};
pub use file_functions::{COPY_FROM, FileFunction, Listing, is_file_function};
pub use file_kind::{FileKind, compression_named, kind_of_name};
pub use file_options::{
    DELIMITER, ESCAPE, FileOptions, NULLS, OptionValue, QUOTE, check_characters,
};
pub use first_word::{begins_with, split_first_word};
pub(crate) use statement_parser::read_tokens;
pub use statement_parser::{
    comma_separated, is_at_end, is_word, next_name, next_word, offset, parser_of,
    within_parentheses,
};
pub use text::sql_text;
pub(crate) use tokens::Tokens;
pub use walk::{
    flow, walk, walk_expressions, walk_expressions_mut, walk_mut, walk_own_expressions,
    walk_own_expressions_mut, walk_relations,
};
