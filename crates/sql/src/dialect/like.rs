//! LIKE with an escape of its own, as LIKE with the backslash, the only one that DataFusion knows; SIMILAR TO as the
//! regular expression that it is of all of the text.
//!
//! ```text
//! a LIKE 'x/_%' ESCAPE '/'      a LIKE 'x\_%'
//! a LIKE b ESCAPE '/'           a LIKE replace(…b…), where b is not a literal
//! a SIMILAR TO '(b|c)_%'        a ~ '^(?:(b|c)..*)$'
//! ```

use datafusion::sql::sqlparser::ast::{BinaryOperator, Expr, Value, ValueWithSpan};

use super::tree;

/// Rewrites an expression.
pub(super) fn rewrite(expr: &mut Expr) {
    if let Expr::SimilarTo { .. } = expr {
        *expr = similar(std::mem::replace(expr, Expr::value(Value::Null)));
        return;
    }
    let (Expr::Like { pattern, escape_char, .. } | Expr::ILike { pattern, escape_char, .. }) = expr
    else {
        return;
    };
    let Some(escape) = escape_char.as_ref().and_then(escape_of) else { return };
    let known = std::mem::replace(pattern.as_mut(), Expr::value(Value::Null));
    **pattern = match &known {
        Expr::Value(ValueWithSpan { value: Value::SingleQuotedString(text), .. }) => {
            tree::text(with_backslash(text, escape))
        }
        _ => computed(known, escape),
    };
    *escape_char = None;
}

/// `a SIMILAR TO b` as `a ~ b`, anchored.
fn similar(expr: Expr) -> Expr {
    let Expr::SimilarTo { negated, expr, pattern, escape_char } = expr else { return expr };
    let escape = escape_char.as_ref().and_then(escape_of).unwrap_or('\\');
    let regex = match *pattern {
        Expr::Value(ValueWithSpan { value: Value::SingleQuotedString(text), .. }) => {
            tree::text(format!("^(?:{})$", similar_regex(&text, escape)))
        }
        // Of what is known when the statement runs, without an escape.
        pattern => {
            let steps = [(".", "\\."), ("%", ".*"), ("_", ".")];
            let regex = steps.into_iter().fold(pattern, |regex, (from, to)| {
                tree::call("replace", vec![regex, tree::text(from.into()), tree::text(to.into())])
            });
            let parts = vec![tree::text("^(?:".into()), regex, tree::text(")$".into())];
            parts
                .into_iter()
                .reduce(|left, right| tree::binary(left, BinaryOperator::StringConcat, right))
                .map_or_else(|| Expr::value(Value::Null), |all| Expr::Nested(Box::new(all)))
        }
    };
    let op = if negated { BinaryOperator::PGRegexNotMatch } else { BinaryOperator::PGRegexMatch };
    Expr::Nested(Box::new(tree::binary(*expr, op, regex)))
}

/// SQL's pattern as a regular expression: `%` and `_` are LIKE's, and the point, `^` and `$` are themselves.
fn similar_regex(pattern: &str, escape: char) -> String {
    let mut regex = String::with_capacity(pattern.len() * 2);
    let (mut letters, mut in_brackets) = (pattern.chars(), false);
    while let Some(letter) = letters.next() {
        match letter {
            _ if letter == escape => {
                let next = letters.next().unwrap_or(escape);
                if !next.is_alphanumeric() {
                    regex.push('\\');
                }
                regex.push(next);
            }
            '[' | ']' => {
                in_brackets = letter == '[';
                regex.push(letter);
            }
            _ if in_brackets => regex.push(letter),
            '%' => regex.push_str(".*"),
            '_' => regex.push('.'),
            '.' | '^' | '$' | '\\' => regex.extend(['\\', letter]),
            _ => regex.push(letter),
        }
    }
    regex
}

/// The one character of an escape that is not the backslash.
fn escape_of(escape: &ValueWithSpan) -> Option<char> {
    let Value::SingleQuotedString(text) = &escape.value else { return None };
    let mut letters = text.chars();
    let first = letters.next()?;
    (letters.next().is_none() && first != '\\').then_some(first)
}

fn with_backslash(pattern: &str, escape: char) -> String {
    let mut out = String::with_capacity(pattern.len());
    let mut letters = pattern.chars();
    while let Some(letter) = letters.next() {
        match letter {
            _ if letter == escape => {
                out.push('\\');
                out.extend(letters.next());
            }
            '\\' => out.push_str("\\\\"),
            _ => out.push(letter),
        }
    }
    out
}

/// The same of a pattern that is known when the statement runs.
fn computed(pattern: Expr, escape: char) -> Expr {
    // Stands for an escape that is escaped, which is that character.
    const MARK: &str = "\u{1}";
    let escape = escape.to_string();
    let twice = escape.repeat(2);
    let steps: [(&str, &str); 4] =
        [("\\", "\\\\"), (&twice, MARK), (&escape, "\\"), (MARK, &escape)];
    steps.into_iter().fold(Expr::Nested(Box::new(pattern)), |pattern, (from, to)| {
        tree::call("replace", vec![pattern, tree::text(from.to_owned()), tree::text(to.to_owned())])
    })
}

#[cfg(test)]
mod tests {
    use super::with_backslash;

    #[test]
    fn escapes_become_backslashes() {
        assert_eq!(with_backslash("a/_b/%%", '/'), "a\\_b\\%%");
        assert_eq!(with_backslash("a//b\\c", '/'), "a\\/b\\\\c");
        assert_eq!(with_backslash("a/", '/'), "a\\");
    }
}
