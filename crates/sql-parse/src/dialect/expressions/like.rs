//! LIKE with its own escape, as LIKE with the backslash, the only one that DataFusion supports; SIMILAR TO as a
//! regular expression over the whole text.
//!
//! ```text
//! a LIKE 'x/_%' ESCAPE '/'      a LIKE 'x\_%'
//! a LIKE b ESCAPE '/'           a LIKE replace(…b…), where b is not a literal
//! a LIKE 'x\y' ESCAPE ''        a LIKE 'x\\y'
//! a LIKE NULL                   a LIKE CAST(NULL AS VARCHAR): next to a list, NULL would be a list
//! a SIMILAR TO b ESCAPE '/'     a ~ similar_to_escape(b, '/')
//! ```

use datafusion::sql::sqlparser::ast::{BinaryOperator, DataType, Expr, Value, ValueWithSpan};

use crate::dialect::tree;

/// Rewrites an expression.
pub(in crate::dialect) fn rewrite(expr: &mut Expr) {
    if let Expr::SimilarTo { .. } = expr {
        *expr = similar(std::mem::replace(expr, Expr::value(Value::Null)));
        return;
    }
    let (Expr::Like { pattern, escape_char, .. } | Expr::ILike { pattern, escape_char, .. }) = expr
    else {
        return;
    };
    if tree::is_null(pattern) {
        **pattern = tree::cast(Expr::value(Value::Null), DataType::Varchar(None));
    }
    if escape_char.as_ref().is_some_and(is_empty) {
        let known = std::mem::replace(pattern.as_mut(), Expr::value(Value::Null));
        **pattern = match &known {
            Expr::Value(ValueWithSpan { value: Value::SingleQuotedString(text), .. }) => {
                tree::text(text.replace('\\', r"\\"))
            }
            _ => tree::call(
                "replace",
                vec![known, tree::text(r"\".to_owned()), tree::text(r"\\".to_owned())],
            ),
        };
        *escape_char = None;
        return;
    }
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

/// `a SIMILAR TO b` as `a ~ similar_to_escape(b)`.
fn similar(expr: Expr) -> Expr {
    let Expr::SimilarTo { negated, expr, pattern, escape_char } = expr else { return expr };
    let mut arguments = vec![*pattern];
    arguments.extend(escape_char.map(Expr::Value));
    let regex = tree::call("similar_to_escape", arguments);
    let op = if negated { BinaryOperator::PGRegexNotMatch } else { BinaryOperator::PGRegexMatch };
    Expr::Nested(Box::new(tree::binary(*expr, op, regex)))
}

/// Whether no character escapes others.
fn is_empty(escape: &ValueWithSpan) -> bool {
    matches!(&escape.value, Value::SingleQuotedString(text) if text.is_empty())
}

/// The single character of an escape other than the backslash.
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
    // An escaped escape is that character.
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
