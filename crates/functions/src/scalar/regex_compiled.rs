//! Patterns as expressions that are compiled, with the options that SQL has for them.

use std::cell::RefCell;

use datafusion::common::{Result, exec_datafusion_err, plan_err};
use regex::{Regex, RegexBuilder};

use super::regex_words::regex_of;

/// Most memory that a compiled expression takes.
const COMPILED_BYTES_MAX: usize = 10 << 20;

/// The expression of the last row, which usually is that of the next one.
#[derive(Default)]
pub(super) struct Compiled(RefCell<Option<(String, Regex)>>);

impl Compiled {
    /// Calls `with` with the expression that a pattern with these options is.
    pub(super) fn with<T>(
        &self,
        pattern: &str,
        options: &str,
        whole: bool,
        with: impl FnOnce(&Regex) -> Result<T>,
    ) -> Result<T> {
        let mut last = self.0.borrow_mut();
        let key = format!("{options}/{pattern}");
        if last.as_ref().is_none_or(|(same, _)| *same != key) {
            *last = Some((key, compiled(pattern, options, whole)?));
        }
        match last.as_ref() {
            Some((_, regex)) => with(regex),
            None => plan_err!("the expression was not compiled"),
        }
    }
}

fn compiled(pattern: &str, options: &str, whole: bool) -> Result<Regex> {
    let literal = options.contains(['l', 'q']);
    let pattern = if literal { regex::escape(pattern) } else { regex_of(pattern).into_owned() };
    let pattern = if whole { format!("^(?:{pattern})$") } else { pattern };
    let mut builder = RegexBuilder::new(&pattern);
    builder.size_limit(COMPILED_BYTES_MAX).dot_matches_new_line(true);
    for option in options.chars() {
        match option {
            'i' => builder.case_insensitive(true),
            'c' => builder.case_insensitive(false),
            's' => builder.dot_matches_new_line(true),
            'n' | 'm' | 'p' => builder.dot_matches_new_line(false).multi_line(true),
            'w' => builder.dot_matches_new_line(true).multi_line(true),
            'x' => builder.ignore_whitespace(true),
            'l' | 'q' | 'g' | 'e' | 't' | ' ' => &mut builder,
            other => return plan_err!("'{other}' is not an option of regular expressions"),
        };
    }
    builder.build().map_err(|error| exec_datafusion_err!("regular expression: {error}"))
}
