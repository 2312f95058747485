//! Paths: answers of PostgreSQL 15, arithmetic, and texts that are invalid.

use proptest::prelude::*;

use super::super::parse::parse_jsonb;
use super::evaluate::Evaluation;
use super::parser::parse_path;

/// What a path finds, or the message of its error.
fn found(json: &str, path: &str) -> Result<Vec<String>, String> {
    let path = parse_path(path).map_err(|(_, message)| message)?;
    let value = parse_jsonb(json).expect(json);
    let items = Evaluation::new(&path, &value, None).items().map_err(|(_, message)| message)?;
    let texts = items.iter().map(|item| {
        let mut text = String::new();
        item.write(&mut text).expect(json);
        text
    });
    Ok(texts.collect())
}

#[test]
fn paths_find_what_postgresql_finds() {
    for line in include_str!("answers.tsv").lines() {
        let mut fields = line.split('\t');
        let (Some(json), Some(path), Some(answer)) = (fields.next(), fields.next(), fields.next())
        else {
            panic!("{line}");
        };
        let shown = match found(json, path) {
            Ok(items) => items.join(" "),
            Err(message) => format!("ERROR: {message}"),
        };
        assert_eq!(shown, answer, "{json} {path}");
    }
}

#[test]
fn deep_paths_are_refused() {
    for path in ["(".repeat(100_000), "-".repeat(100_000), format!("$ ? {}", "(".repeat(100_000))] {
        assert!(parse_path(&path).is_err());
    }
    assert!(parse_path(&format!("1{}", " + 1".repeat(100_000))).is_err());
    assert!(parse_path(&format!("${}", ".a".repeat(100_000))).is_ok());
}

proptest! {
    #[test]
    fn texts_are_read_or_refused(path in "[$@.\\[\\]()?*&|!=<>+/%,a-z0-9\" \\\\{}-]{0,40}") {
        let _read = found("{\"a\": [1, {\"b\": null}], \"c\": \"x\"}", &path);
        let _read = found("[1, {\"a\": 2}]", &format!("strict ${path}"));
    }

    #[test]
    fn members_and_items_are_found(keys in prop::collection::vec("[a-z\"\\\\ .]{1,6}", 1..5), at in 0_usize..3) {
        let quoted: Vec<String> = keys.iter().map(|key| format!("{key:?}")).collect();
        let mut json = "[7, 8, 9]".to_owned();
        for key in quoted.iter().rev() {
            json = format!("{{{key}: {json}}}");
        }
        let path = format!("strict $.{}[{at}]", quoted.join("."));
        prop_assert_eq!(found(&json, &path), Ok(vec![(7 + at).to_string()]));
    }

    #[test]
    fn integers_are_computed_exactly(left in -1_000_000_i64..1_000_000, right in 1_i64..1000) {
        for (symbol, result) in
            [("+", left + right), ("-", left - right), ("*", left * right), ("%", left % right)]
        {
            let path = format!("$ {symbol} {right}");
            prop_assert_eq!(found(&left.to_string(), &path), Ok(vec![result.to_string()]));
        }
    }
}
