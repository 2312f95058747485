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
        columns.starts_with("column,type,nullable\nname,") && columns.contains("\nsize,Int64,")
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
