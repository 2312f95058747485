//! Arrays as texts, in PostgreSQL's form: `{1,NULL,"a b"}`.

use datafusion::sql::sqlparser::ast::{
    Array, ArrayElemTypeDef, BinaryOperator, DataType, Expr, Function, FunctionArg,
    FunctionArgExpr, FunctionArguments, Value,
};

use super::tree;

/// The items of a list of one dimension; none where it is not one.
pub fn array_items(text: &str) -> Option<Vec<Option<String>>> {
    let inner = text.trim_matches(is_blank).strip_prefix('{')?.strip_suffix('}')?;
    let mut items = Vec::new();
    if inner.trim_matches(is_blank).is_empty() {
        return Some(items);
    }
    let mut chars = inner.chars().peekable();
    loop {
        while chars.peek().is_some_and(|it| is_blank(*it)) {
            chars.next();
        }
        let mut item = String::new();
        let is_quoted = chars.next_if_eq(&'"').is_some();
        loop {
            match chars.peek() {
                None if is_quoted => return None,
                None => break,
                Some(',') if !is_quoted => break,
                Some('{' | '}' | '"') if !is_quoted => return None,
                Some(_) => {}
            }
            match chars.next()? {
                '"' => break,
                '\\' => item.push(chars.next()?),
                other => item.push(other),
            }
        }
        if is_quoted {
            while chars.peek().is_some_and(|it| is_blank(*it)) {
                chars.next();
            }
        } else {
            item.truncate(item.trim_end_matches(is_blank).len());
        }
        let is_null = !is_quoted && item.eq_ignore_ascii_case("null");
        if item.is_empty() && !is_quoted {
            return None;
        }
        items.push((!is_null).then_some(item));
        match chars.next() {
            None => return Some(items),
            Some(',') => {}
            Some(_) => return None,
        }
    }
}

/// What may stand around an item: other spaces are part of it.
fn is_blank(letter: char) -> bool {
    letter.is_ascii_whitespace() || letter == '\u{b}'
}

/// Rewrites a text that is cast to an array, that stands behind ANY or ALL, or that is a path, as an array.
pub(super) fn rewrite(expr: &mut Expr) {
    match expr {
        Expr::Cast { expr: text, data_type: DataType::Array(_), .. }
        | Expr::AnyOp { right: text, .. }
        | Expr::AllOp { right: text, .. } => {
            if let Some(array) = array(text) {
                **text = array;
            }
        }
        Expr::BinaryOp {
            op:
                BinaryOperator::HashArrow
                | BinaryOperator::HashLongArrow
                | BinaryOperator::HashMinus
                | BinaryOperator::QuestionAnd
                | BinaryOperator::QuestionPipe,
            right: text,
            ..
        } => {
            if let Some(array) = text_array(text) {
                **text = array;
            }
        }
        Expr::Function(function) => path(function),
        _ => {}
    }
}

/// Rewrites the path of `jsonb_set(a, '{b,0}', c)`.
fn path(function: &mut Function) {
    let name = function.name.to_string();
    if !["jsonb_set", "jsonb_insert", "jsonb_delete_path"]
        .iter()
        .any(|known| name.eq_ignore_ascii_case(known))
    {
        return;
    }
    let FunctionArguments::List(list) = &mut function.args else { return };
    if let Some(FunctionArg::Unnamed(FunctionArgExpr::Expr(text))) = list.args.get_mut(1)
        && let Some(array) = text_array(text)
    {
        *text = array;
    }
}

/// An array of texts where only that can stand, which a parameter is, too.
fn text_array(text: &Expr) -> Option<Expr> {
    match text {
        Expr::Nested(inner) => text_array(inner),
        Expr::Value(literal) if matches!(literal.value, Value::Placeholder(_)) => {
            let texts = ArrayElemTypeDef::SquareBracket(Box::new(DataType::Text), None);
            Some(tree::cast(text.clone(), DataType::Array(texts)))
        }
        _ => array(text),
    }
}

fn array(text: &Expr) -> Option<Expr> {
    let text = match text {
        Expr::Nested(inner) => return array(inner),
        Expr::Cast { expr, data_type: data_type @ DataType::Array(_), .. } => {
            let mut cast = tree::cast(array(expr)?, data_type.clone());
            rewrite(&mut cast);
            return Some(cast);
        }
        Expr::Value(literal) => match &literal.value {
            Value::SingleQuotedString(text) => text,
            _ => return None,
        },
        _ => return None,
    };
    let items = array_items(text)?.into_iter().map(|item| match item {
        Some(text) => tree::text(text),
        None => Expr::value(Value::Null),
    });
    Some(Expr::Array(Array { elem: items.collect(), named: true }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn items(text: &str) -> Option<Vec<Option<String>>> {
        array_items(text)
    }

    #[test]
    fn lists_are_split_at_their_commas() {
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(items("{}"), Some(vec![]));
        assert_eq!(items("{1, 2,NULL}"), Some(vec![some("1"), some("2"), None]));
        assert_eq!(
            items(r#"{"a,b", "\"", "NULL", ""}"#),
            Some(vec![some("a,b"), some("\""), some("NULL"), some("")])
        );
        assert_eq!(
            items("{\u{85}, \u{a0}a\u{a0} ,\u{b}b\n}"),
            Some(vec![some("\u{85}"), some("\u{a0}a\u{a0}"), some("b")])
        );
        for bad in ["", "1", "{1", "{1,}", "{\"a}", "{{1}}", "{\"a\"b}", "{\\}"] {
            assert_eq!(items(bad), None, "{bad}");
        }
    }
}
