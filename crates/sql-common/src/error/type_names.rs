//! Translates Arrow's type names and DataFusion's literals to SQL.

use atoll_functions::sql_name;
use datafusion::arrow::datatypes::DataType;

/// Names that always mean types.
const TYPES: [&str; 26] = [
    "Boolean",
    "Int8",
    "Int16",
    "Int32",
    "Int64",
    "UInt8",
    "UInt16",
    "UInt32",
    "UInt64",
    "Float16",
    "Float32",
    "Float64",
    "Utf8",
    "LargeUtf8",
    "Utf8View",
    "LargeBinary",
    "BinaryView",
    "Date32",
    "Date64",
    "Time32",
    "Time64",
    "Decimal32",
    "Decimal64",
    "Decimal128",
    "Decimal256",
    "IntervalMonthDayNano",
];

/// Names that mean types if parentheses follow.
const WITH_PARAMETERS: [&str; 11] = [
    "Timestamp",
    "Interval",
    "Duration",
    "List",
    "LargeList",
    "ListView",
    "FixedSizeList",
    "FixedSizeBinary",
    "Struct",
    "Map",
    "Dictionary",
];

/// Rewrites a message with SQL's names: `Int32` is `INTEGER`, `List(Utf8View)` is `VARCHAR[]`, `Utf8("x")` is `'x'`.
pub(super) fn in_sql(text: &str) -> String {
    let is_letter = |letter: char| letter.is_alphanumeric() || letter == '_';
    let mut told = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find(is_letter) {
        let (between, word) = rest.split_at(start);
        told.push_str(between);
        let end = word.find(|letter| !is_letter(letter)).unwrap_or(word.len());
        let (name, behind) = word.split_at(end);
        // Text in quotes is a name or a value of the statement.
        let is_quoted = ['\'', '"'].iter().any(|q| told.ends_with(*q) && behind.starts_with(*q));
        let found = if is_quoted { None } else { renamed(name, behind) };
        let (sql, length) = found.unwrap_or_else(|| (name.to_owned(), 0));
        told.push_str(&sql);
        rest = &behind[length..];
    }
    told.push_str(rest);
    told
}

/// Translates a word and the text after it to SQL; returns how much of that text it consumed.
fn renamed(name: &str, behind: &str) -> Option<(String, usize)> {
    let is_type = TYPES.contains(&name);
    if !is_type && !WITH_PARAMETERS.contains(&name) {
        return None;
    }
    if let Some(inside) = in_parentheses(behind) {
        let whole = format!("{name}({inside})");
        let sql = match whole.parse::<DataType>() {
            Ok(known) => Some(sql_name(&known)),
            Err(_) if is_type => literal(inside),
            Err(_) => None,
        };
        return sql.map(|sql| (sql, inside.len() + 2));
    }
    match name.parse::<DataType>() {
        Ok(known) if is_type => Some((sql_name(&known), 0)),
        _ if name.starts_with("Decimal") => Some(("DECIMAL".to_owned(), 0)),
        _ if name.starts_with("Time") && is_type => Some(("TIME".to_owned(), 0)),
        _ => None,
    }
}

/// Translates a literal to SQL; returns None if DataFusion writes more than its value.
fn literal(inside: &str) -> Option<String> {
    match inside.strip_prefix('"').and_then(|text| text.strip_suffix('"')) {
        Some(text) => Some(format!("'{text}'")),
        None if inside.contains(['(', ',', '"']) => None,
        None => Some(inside.to_owned()),
    }
}

/// Returns the text between the leading parentheses.
fn in_parentheses(text: &str) -> Option<&str> {
    let (mut depth, mut is_quoted) = (0_usize, false);
    for (at, letter) in text.char_indices() {
        match letter {
            '"' => is_quoted = !is_quoted,
            '(' if !is_quoted => depth += 1,
            ')' if !is_quoted => depth = depth.saturating_sub(1),
            _ => {}
        }
        match depth {
            0 if at == 0 => return None,
            0 => return Some(&text[1..at]),
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::in_sql;

    #[test]
    fn types_and_literals_are_those_of_sql() {
        for (told, sql) in [
            (
                "Cannot cast string 'abc' to value of Int32 type",
                "Cannot cast string 'abc' to value of INTEGER type",
            ),
            (
                "Unsupported CAST from List(Int64) to Int32",
                "Unsupported CAST from BIGINT[] to INTEGER",
            ),
            ("from Struct(\"a\": Int32) to Utf8View", "from STRUCT(a INTEGER) to VARCHAR"),
            (
                "comparison operation Timestamp(µs) > Int64",
                "comparison operation TIMESTAMP > BIGINT",
            ),
            ("Timestamp(µs, \"+00:00\")", "TIMESTAMP WITH TIME ZONE"),
            ("to Interval(MonthDayNano)", "to INTERVAL"),
            ("value of Decimal128(38, 10) type", "value of DECIMAL(38,10) type"),
            ("a Decimal128 of precision 5", "a DECIMAL of precision 5"),
            ("predicate 'Utf8(\"x\")' returning Utf8", "predicate ''x'' returning VARCHAR"),
            ("Int64(5) and Boolean(NULL)", "5 and NULL"),
            ("Int32x, my_Int32, 'Int32', \"Utf8\"", "Int32x, my_Int32, 'Int32', \"Utf8\""),
            ("List of Map (x), Timestamp", "List of Map (x), Timestamp"),
            ("Int64(", "BIGINT("),
            ("é Int8", "é TINYINT"),
        ] {
            assert_eq!(in_sql(told), sql);
        }
    }
}
