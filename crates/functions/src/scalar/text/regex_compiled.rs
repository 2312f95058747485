//! Cached compiled regular expressions with SQL's options.

use std::cell::RefCell;

use datafusion::common::{Result, plan_err};
use regex::{Regex, RegexBuilder};

use crate::failure::FunctionFailure;
use crate::scalar::text::regex_words::{RegexOptions, regex_with};

/// Maximum memory of a compiled expression.
const COMPILED_BYTES_MAX: usize = 10 << 20;

/// The expression of the previous row, which usually is that of the next one.
#[derive(Default)]
pub(in crate::scalar) struct Compiled(RefCell<Option<CompiledPattern>>);

/// A compiled expression and its source.
struct CompiledPattern {
    pattern: String,
    options: String,
    regex: Regex,
}

impl Compiled {
    /// Calls `with` with the compiled pattern.
    pub(in crate::scalar) fn with<T>(
        &self,
        pattern: &str,
        options: &str,
        whole: bool,
        with: impl FnOnce(&Regex) -> Result<T>,
    ) -> Result<T> {
        let mut last = self.0.borrow_mut();
        let is_same = |last: &CompiledPattern| last.pattern == pattern && last.options == options;
        if !last.as_ref().is_some_and(is_same) {
            let regex = compiled(pattern, options, whole)?;
            let (pattern, options) = (pattern.to_owned(), options.to_owned());
            *last = Some(CompiledPattern { pattern, options, regex });
        }
        match last.as_ref() {
            Some(last) => with(&last.regex),
            None => plan_err!("the expression was not compiled"),
        }
    }
}

fn compiled(pattern: &str, options: &str, whole: bool) -> Result<Regex> {
    let options = match RegexOptions::read(options) {
        Ok(options) => options,
        Err(option) => {
            let message = format!(
                "invalid regular expression option: \"{option}\"; the options are c, e, g, i, l, m, n, p, q, s, t, w and x"
            );
            return Err(FunctionFailure::error("22023", message));
        }
    };
    let regex = regex_with(pattern, options, whole);
    let built = RegexBuilder::new(&regex).size_limit(COMPILED_BYTES_MAX).build();
    built.map_err(|error| {
        FunctionFailure::error("2201B", format!("invalid regular expression: {error}"))
    })
}
