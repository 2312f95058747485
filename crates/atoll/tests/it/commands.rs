use crate::support::{atoll_in, atoll_with};

fn sql(script: &str) -> String {
    atoll_with(&["sql", "--mode", "csv"], script).done()
}

#[test]
fn dot_and_backslash_are_the_same() {
    assert_eq!(sql(".help"), sql("\\?"));
    let help = sql(".help");
    for command in [".mode", ".tables", ".schema", ".read", ".output", ".maxrows", ".explain"] {
        assert!(help.contains(command), "{command} is missing in {help}");
    }
}

#[test]
fn tables_and_their_columns_are_listed() {
    let made = "CREATE TABLE towns AS SELECT 'x' AS name, 1 AS size;\n";
    assert!(sql(&format!("{made}.tables")).contains("public,towns,"), "tables");
    let columns = sql(&format!("{made}\\d towns"));
    assert!(
        columns.starts_with("column,type,nullable\nname,") && columns.contains("\nsize,BIGINT,")
    );
    assert!(sql(".schema atoll.nodes").contains("memory_bytes,"));
    let error = atoll_with(&["sql"], &format!("{made}.schema twons")).failed(1);
    assert!(error.contains("did you mean towns?"), "{error}");
}

#[test]
fn an_unknown_command_is_told_the_near_name_and_its_line() {
    let error = atoll_with(&["sql"], "SELECT 1;\n.tabels\n").failed(1);
    assert_eq!(
        error.lines().last().unwrap(),
        "error: stdin:2: unknown command .tabels; did you mean .tables?"
    );
    let error = atoll_with(&["sql"], ".mode cvs").failed(1);
    assert!(error.contains("did you mean csv?"), "{error}");
}

#[test]
fn modes_are_changed_between_statements() {
    let script = ".mode json\nSELECT 1 AS n;\n\\mode line\nSELECT 2 AS n;\n";
    assert_eq!(sql(script), "[{\"n\":1}]\n    n = 2\n");
}

#[test]
fn plans_are_shown_instead_of_rows_when_asked() {
    let plan = sql(".mode box\n.explain on\nSELECT 1 AS n;\n.explain off\nSELECT 2 AS n;\n");
    assert!(plan.contains("Exec") && plan.contains("│ 2 │"), "{plan}");
    let analyzed = sql(".mode box\n.explain analyze\nSELECT 1 AS n;\n");
    assert!(analyzed.contains("output_rows"), "{analyzed}");
}

#[test]
fn an_error_under_explain_is_on_its_own_line() {
    let error = atoll_with(&["sql"], ".explain on\nSELECT 1,\n nowhere;\n").failed(1);
    assert!(error.starts_with("error: stdin:3: "), "{error}");
}

#[test]
fn long_drawn_results_are_cut_when_asked() {
    let script = ".mode table\n.maxrows 4\nSELECT * FROM (VALUES (1),(2),(3),(4),(5),(6)) AS t(n);";
    let text = sql(script);
    let cells: Vec<&str> = text.lines().skip(3).map(|line| line.trim_matches(['|', ' '])).collect();
    assert_eq!(&cells[..5], ["1", "2", ".", "5", "6"]);
}

#[test]
fn results_go_to_a_file_and_back_to_stdout() {
    let home = tempfile::tempdir().unwrap();
    let script = ".output 'my rows.csv'\nSELECT 1 AS n;\n.output\nSELECT 2 AS n;\n";
    let ran = atoll_in(home.path(), &["sql", "--mode", "csv"], script);
    assert_eq!(ran.done(), "n\n2\n");
    assert_eq!(std::fs::read_to_string(home.path().join("my rows.csv")).unwrap(), "n\n1\n");
    let error = atoll_with(&["sql"], ".output no/such/place\n").failed(1);
    assert!(error.contains("cannot be written"), "{error}");
}

#[test]
fn quit_leaves_in_peace() {
    assert_eq!(sql("SELECT 1 AS n;\n.quit\nSELECT 2 AS n;\n"), "n\n1\n");
}

#[test]
fn patterns_choose_tables_and_those_of_the_system_are_asked_for() {
    let made = "CREATE TABLE towns AS SELECT 'x' AS name;\nCREATE VIEW trees AS SELECT 1.5 AS h;\n";
    let tables = |pattern: &str| sql(&format!("{made}.tables {pattern}"));
    let head = "schema,name,type\n";
    assert_eq!(tables(""), format!("{head}public,towns,TABLE\npublic,trees,VIEW\n"));
    assert_eq!(tables("to*"), format!("{head}public,towns,TABLE\n"));
    assert_eq!(tables("TREE?"), format!("{head}public,trees,VIEW\n"));
    assert_eq!(tables("t_wns"), head);
    assert!(tables("atoll.*").contains("atoll,nodes,VIEW"), "{}", tables("atoll.*"));
    let all = sql(&format!("{made}.schema"));
    assert!(all.starts_with("table,column,type,nullable\ntowns,name,VARCHAR,"), "{all}");
    assert!(all.contains("\ntrees,h,"), "{all}");
}

#[test]
fn what_a_statement_wrote_is_told_on_stderr() {
    let script = "CREATE TABLE t (a INT);\nINSERT INTO t VALUES (1), (2);\nUPDATE t SET a = 3;\n\
                  COPY t TO 't.csv';\nCREATE OR REPLACE VIEW v AS SELECT a FROM t;\nSELECT * FROM v LIMIT 1;\n";
    let home = tempfile::tempdir().unwrap();
    let ran = atoll_in(home.path(), &["sql", "-csv"], script);
    assert_eq!(ran.out, "a\n3\n");
    assert_eq!(ran.err, "CREATE TABLE\nINSERT 0 2\nUPDATE 2\nCOPY 2\nCREATE VIEW\n");
}

#[test]
fn headers_nulls_and_widths_are_set() {
    let row = "SELECT 1 AS n, NULL AS x;\n";
    assert_eq!(sql(&format!(".headers off\n.nullvalue -\n{row}")), "1,-\n");
    assert_eq!(sql(&format!(".nullvalue -\n.nullvalue\n{row}")), "n,x\n1,\n");
    let drawn = sql(&format!(".mode table\n.width 4 0\n.nullvalue nil\n{row}"));
    assert_eq!(drawn.lines().next(), Some("+------+-----+"), "{drawn}");
    assert!(drawn.contains("|    1 | nil |"), "{drawn}");
    let flags = ["sql", "-list", "-noheader", "--null-value", "nil", "-c", row];
    assert_eq!(atoll_with(&flags, "").done(), "1|nil\n");
}

#[test]
fn a_file_is_imported_into_a_new_table_and_into_one_that_is_there() {
    let home = tempfile::tempdir().unwrap();
    std::fs::write(home.path().join("my towns.csv"), "name,size\na,1\nb,2\n").unwrap();
    let script = ".import 'my towns.csv' towns\n.import --csv 'my towns.csv' towns;\n\
                  SELECT count(*), sum(size) FROM towns;\n.import towns\n";
    let ran = atoll_in(home.path(), &["sql", "-csv"], script);
    assert_eq!(ran.out, "count(*),sum(size)\n4,6\n");
    let error = ran.failed(1);
    assert!(error.contains("SELECT 2\nINSERT 0 2\n") && error.contains("stdin:4: usage: .import"));
}

#[test]
fn commands_of_the_system_run_and_one_result_goes_to_a_file() {
    let home = tempfile::tempdir().unwrap();
    let script = ".once n.csv\nSELECT 1 AS n;\n.shell cat n.csv\n.print done\nSELECT 2 AS n;\n\
                  .system exit 3\n";
    let ran = atoll_in(home.path(), &["sql", "-csv"], script);
    assert_eq!(ran.out, "n\n1\ndone\nn\n2\n");
    assert!(ran.failed(1).contains("stdin:6: 'exit 3' ended with exit status: 3"));
    assert!(sql(".help import").contains("For example: .import"), "{}", sql(".help import"));
}

#[test]
fn nested_values_show_null_and_quote_what_is_ambiguous() {
    let values = "SELECT [1, NULL, 3] AS l, {'a': 'x, y', 'b': NULL} AS s, INTERVAL '1 day' AS i, \
                  1e20::double AS f, MAP(['k'], [NULL]) AS m;\n";
    let plain = "[1, NULL, 3]|{'a': 'x, y', 'b': NULL}|1 day|1e+20|{k=NULL}\n";
    assert_eq!(sql(&format!(".mode list\n.headers off\n{values}")), plain);
    let json = sql(&format!(".mode ndjson\n{values}"));
    let expected =
        r#"{"l":[1,null,3],"s":{"a":"x, y","b":null},"i":"1 day","f":1e+20,"m":{"k":null}}"#;
    assert_eq!(json.trim_end(), expected);
}
