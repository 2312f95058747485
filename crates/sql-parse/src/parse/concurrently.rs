//! `DROP INDEX CONCURRENTLY i`, which sqlparser 0.62 does not read: without the word, since dropping an index takes no time.

use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::TokenWithSpan;

use super::postgres::{is_keyword, next};

/// Removes the word.
pub(super) fn remove(tokens: &mut Vec<TokenWithSpan>) {
    let word = || {
        let drop = next(tokens, 0).filter(|at| is_keyword(tokens, *at, Keyword::DROP))?;
        let index = next(tokens, drop + 1).filter(|at| is_keyword(tokens, *at, Keyword::INDEX))?;
        next(tokens, index + 1).filter(|at| is_keyword(tokens, *at, Keyword::CONCURRENTLY))
    };
    if let Some(word) = word() {
        tokens.remove(word);
    }
}
