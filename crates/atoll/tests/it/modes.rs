use crate::support::atoll;

/// NULLs, quotes, newlines, wide characters, an exact decimal, a number beyond 2^53, NaN.
const AWKWARD: &str = "SELECT * FROM (VALUES \
    (1, 'a,\"b\"\nc', CAST(12.30 AS DECIMAL(10,2)), 1.5), \
    (9007199254740993, 'zürich 東京', CAST(-0.05 AS DECIMAL(10,2)), CAST('NaN' AS DOUBLE)), \
    (NULL, '', NULL, NULL), (-7, NULL, NULL, NULL)) AS t(n, text, price, x)";

fn written(mode: &str) -> String {
    atoll(&["sql", "--threads", "1", "--mode", mode, "-c", AWKWARD]).done()
}

#[test]
fn csv_is_quoted_and_distinguishes_null_from_empty() {
    assert_eq!(
        written("csv"),
        "n,text,price,x\n\
         1,\"a,\"\"b\"\"\nc\",12.30,1.5\n\
         9007199254740993,zürich 東京,-0.05,NaN\n\
         ,\"\",,\n\
         -7,,,\n"
    );
}

#[test]
fn json_is_one_document_with_exact_numbers() {
    let text = written("json");
    let rows: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(rows.as_array().unwrap().len(), 4);
    assert_eq!(rows[0]["text"], "a,\"b\"\nc");
    assert_eq!(rows[1]["n"], 9_007_199_254_740_993_i64);
    assert_eq!(rows[1]["x"], "NaN");
    assert!(rows[2]["n"].is_null() && rows[2]["text"] == "");
    assert!(text.contains("\"price\":12.30"), "{text}");
    let flag = atoll(&["sql", "--threads", "1", "--json", "-c", AWKWARD]).done();
    assert_eq!(flag, text);
}

#[test]
fn ndjson_is_a_document_a_line() {
    let text = written("ndjson");
    let rows: Vec<serde_json::Value> =
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(rows.len(), 4);
    assert_eq!(rows[3]["n"], -7);
}

#[test]
fn drawn_modes_show_null_and_put_nothing_else_on_stdout() {
    let text = written("box");
    assert!(text.starts_with("┌") && text.ends_with("┘\n"), "{text}");
    assert!(text.contains("│ NULL"), "{text}");
    assert!(!text.contains('\x1b'), "colours are for terminals only: {text}");
    assert!(written("table").starts_with("+-"));
}

#[test]
fn markdown_keeps_a_row_on_a_line() {
    let text = written("markdown");
    assert_eq!(text.lines().count(), 6);
    assert!(text.contains("| 1 | a,\"b\"<br>c | 12.30 | 1.5 |"), "{text}");
}

#[test]
fn line_writes_a_value_a_line() {
    assert!(written("line").contains("    n = -7\n text = NULL\nprice = NULL\n    x = NULL\n"));
}

#[test]
fn a_large_result_is_written_whole_in_every_streaming_mode() {
    let query = "SELECT l_orderkey, l_linenumber, l_comment FROM lineitem";
    let count = "SELECT count(*) AS n FROM lineitem";
    let run = |mode: &str, query: &str| {
        atoll(&["sql", "--tpch", "0.01", "--mode", mode, "-c", query]).done()
    };
    let rows: usize = run("csv", count).lines().nth(1).unwrap().parse().unwrap();
    assert!(rows > 50_000);
    assert_eq!(run("csv", query).lines().count(), rows + 1);
    assert_eq!(run("ndjson", query).lines().count(), rows);
    let json: serde_json::Value = serde_json::from_str(&run("json", query)).unwrap();
    assert_eq!(json.as_array().unwrap().len(), rows);
    assert_eq!(run("line", query).lines().filter(|line| line.is_empty()).count(), rows - 1);
}
