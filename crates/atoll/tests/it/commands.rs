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
    assert!(sql("\\d atoll.nodes").contains("memory_bytes,"));
    let error = atoll_with(&["sql"], &format!("{made}.schema twons")).failed(1);
    assert!(error.contains("did you mean towns?"), "{error}");
}

#[test]
fn indexes_extensions_and_the_database_are_listed() {
    let made = "CREATE TABLE towns (name TEXT PRIMARY KEY, size INT UNIQUE);\n";
    let indexes = sql(&format!("{made}\\di"));
    assert!(indexes.starts_with("schema,name,table,definition\npublic,towns_"), "{indexes}");
    assert_eq!(indexes.lines().count(), 3, "{indexes}");
    assert_eq!(sql(&format!("{made}.indexes towns_p*")).lines().count(), 2);
    assert!(sql("\\dx").starts_with("name,version,schema\n"));
    let told = sql("\\conninfo");
    assert!(told.starts_with("database \"") && told.contains("\" in memory, as user \""), "{told}");
}

#[test]
fn an_unknown_command_is_reported_with_a_similar_name_and_its_line() {
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
    assert!(error.contains("cannot write"), "{error}");
}

#[test]
fn quit_ends_the_shell_successfully() {
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
    assert_eq!(sql(&format!("{made}\\dv")), format!("{head}public,trees,VIEW\n"));
    let all = sql(&format!("{made}.describe"));
    assert!(all.starts_with("table,column,type,nullable\ntowns,name,VARCHAR,"), "{all}");
    assert!(all.contains("\ntrees,h,"), "{all}");
}

#[test]
fn the_effect_of_a_statement_is_reported_on_stderr() {
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
fn a_table_to_import_into_may_have_quotes_and_a_schema() {
    let home = tempfile::tempdir().unwrap();
    std::fs::write(home.path().join("f.csv"), "a\n1\n2\n").unwrap();
    let script = "CREATE SCHEMA s;\n.import f.csv \"My T\"\n.import f.csv \"My T\"\n.import f.csv 's t'\n\
                  .import f.csv s.T\n.import f.csv S.t\nSELECT (SELECT count(*) FROM \"My T\") AS a, \
                  (SELECT count(*) FROM \"s t\") AS b, (SELECT count(*) FROM s.t) AS c;\n\
                  SET datafusion.catalog.default_schema = 's';\n.import f.csv t\nSELECT count(*) AS n FROM s.t;\n";
    let ran = atoll_in(home.path(), &["sql", "-csv"], script);
    assert_eq!(ran.done(), "a,b,c\n4,2,4\nn\n6\n");
}

#[test]
fn the_statements_that_make_tables_are_shown() {
    let made = "CREATE TABLE t (id INT PRIMARY KEY, name TEXT DEFAULT 'x' NOT NULL, n DECIMAL(9, 2) CHECK (n > 0));\n\
                CREATE SCHEMA s;\nCREATE TABLE s.\"U\" (a INT[] UNIQUE);\nCREATE VIEW v AS SELECT id FROM t;\n\
                CREATE INDEX ON t (name, n DESC);\nCREATE UNIQUE INDEX ON s.\"U\" (a);\n";
    let t = "CREATE TABLE t (id INTEGER, name TEXT NOT NULL DEFAULT 'x', n DECIMAL(9,2), \
             CONSTRAINT t_pkey PRIMARY KEY (id), CONSTRAINT t_n_check CHECK (n > 0));\n\
             CREATE INDEX t_name_n_idx ON public.t USING btree (name, n DESC);\n";
    let all = sql(&format!("{made}.schema"));
    assert_eq!(
        all,
        format!(
            "{t}CREATE TABLE s.\"U\" (a INTEGER[], CONSTRAINT \"U_a_key\" UNIQUE (a));\n\
             CREATE UNIQUE INDEX \"U_a_idx\" ON s.\"U\" USING btree (a);\n\
             CREATE VIEW v AS SELECT id FROM t;\n"
        )
    );
    assert_eq!(sql(&format!("{made}.schema T")), t);
    // What is shown makes the same again.
    assert_eq!(sql(&format!("CREATE SCHEMA s;\n{all}.schema")), all);
}

#[test]
fn words_of_psql_and_duckdb_are_known() {
    assert_eq!(sql("\\echo it's done\n.echo off\n"), "it's done\n");
    assert_eq!(
        sql("\\x\nSELECT 1 AS n;\n\\x off\nSELECT 2 AS n;\n").lines().next(),
        Some("    n = 1")
    );
    assert_eq!(sql("\\l"), "database_name\natoll\n");
    assert!(sql("CREATE SCHEMA s;\n\\dn").contains("atoll,s\n"));
    let row = "SELECT 1 AS a, 'x;y' AS b;\n";
    assert_eq!(
        sql(&format!(".separator ;\n{row}.mode list\n{row}")),
        "a;b\n1;\"x;y\"\na;b\n1;x;y\n"
    );
    assert_eq!(sql(&format!(".separator ;\n.separator\n{row}")), "a,b\n1,x;y\n");
    let shown = sql(".separator \\t\n.show");
    assert!(
        shown.contains(" separator: \"\\t\"\n") && shown.contains("      mode: csv\n"),
        "{shown}"
    );
    let home = tempfile::tempdir().unwrap();
    std::fs::create_dir(home.path().join("data")).unwrap();
    let script = "CREATE TABLE t AS SELECT 1 AS a, 'b' AS b;\n.cd data\n\\copy t to out.csv csv header\n\
                  \\copy t (a, b) FROM out.csv WITH CSV HEADER\n\\copy t from stdin\n7\t\\N\n\\.\nSELECT * FROM t;\n.cd no";
    let ran = atoll_in(home.path(), &["sql", "-csv"], script);
    assert_eq!(ran.out, "a,b\n1,b\n1,b\n7,\n");
    assert!(ran.failed(1).contains("cannot change to 'no'"));
    assert!(home.path().join("data/out.csv").exists());
}

#[test]
fn shell_commands_run_and_one_result_goes_to_a_file() {
    let home = tempfile::tempdir().unwrap();
    let script = ".once n.csv\nSELECT 1 AS n;\n.shell cat n.csv\n.print done\nSELECT 2 AS n;\n\
                  .system exit 3\n";
    let ran = atoll_in(home.path(), &["sql", "-csv"], script);
    assert_eq!(ran.out, "n\n1\ndone\nn\n2\n");
    assert!(ran.failed(1).contains("stdin:6: 'exit 3' failed with exit status: 3"));
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
