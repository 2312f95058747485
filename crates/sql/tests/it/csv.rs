//! CSV files from other programs.

use std::fmt::Write;

use crate::common::{live, rows, run};

fn file(text: &str) -> (tempfile::TempDir, String) {
    let directory = tempfile::tempdir().expect("a directory can be made");
    let path = directory.path().join("t.csv");
    std::fs::write(&path, text).expect("the file can be written");
    let path = path.display().to_string();
    (directory, path)
}

#[test]
fn a_column_whose_values_begin_with_zeros_is_text() {
    let (_directory, path) = file("zip,n,f\n00123,0,0.5\n99999,-7,00.5\n,10,1.5\n");
    let session = live();
    let sql = format!("SELECT zip, n + 1, f FROM '{path}' ORDER BY n");
    let expected = [["99999", "-6", "00.5"], ["00123", "1", "0.5"], ["NULL", "11", "1.5"]];
    assert_eq!(rows(&session, &sql), expected);
    let create = "CREATE EXTERNAL TABLE t STORED AS CSV LOCATION";
    rows(&session, &format!("{create} '{path}' OPTIONS ('format.has_header' 'true')"));
    assert_eq!(rows(&session, "SELECT max(zip) FROM t"), [["99999"]]);
    assert_eq!(rows(&session, "SELECT zip FROM t WHERE n = 0"), [["00123"]]);
}

#[test]
fn types_are_those_of_the_first_20480_rows() {
    let mut text = "a\n".to_owned();
    (0..20_479).for_each(|i| writeln!(text, "{i}").expect("a string grows"));
    text.push_str("007\n");
    let (_directory, path) = file(&text);
    let sql = format!("SELECT max(a), count(*) FROM '{path}'");
    assert_eq!(rows(&live(), &sql), [["9999", "20480"]]);
}

#[test]
fn an_error_names_the_file_line_and_column_of_an_invalid_value() {
    let mut text = "n,name\n".to_owned();
    (2..=30_000).for_each(|line| writeln!(text, "{line},some name").expect("a string grows"));
    text.push_str("n/a,some name\n1,x\n");
    let (_directory, path) = file(&text);
    let session = live();
    let error = |path: &str| {
        run(&session, &format!("SELECT sum(n) FROM '{path}'")).expect_err("no number").to_string()
    };
    let told = error(&path);
    assert!(
        told.contains("t.csv, line 30001, column \"n\": 'n/a' cannot be read as BIGINT"),
        "{told}"
    );
    assert!(told.contains("CREATE EXTERNAL TABLE") && !told.contains("Parser error"), "{told}");
    // Read in parts.
    rows(&session, "SET datafusion.optimizer.repartition_file_min_size = 1000");
    let told = error(&path);
    assert!(told.contains("line 30001,"), "{told}");
    let (_directory, path) = file("a,b\n1,2\n3,4\n5\n");
    let told = run(&session, &format!("SELECT a FROM '{path}'")).expect_err("a value is missing");
    assert!(told.to_string().contains("t.csv, line 4: expected 2 values, found 1"), "{told}");
}

#[test]
fn files_of_one_table_have_their_columns_in_one_order() {
    let (directory, _) = file("x,y\n1,2\n");
    let session = live();
    let all = format!("SELECT sum(x), sum(y) FROM '{}/'", directory.path().display());
    std::fs::write(directory.path().join("u.csv"), "x,y\n10,20\n").expect("the file is written");
    assert_eq!(rows(&session, &all), [["11", "22"]]);
    std::fs::write(directory.path().join("u.csv"), "y,x\n10,20\n").expect("the file is written");
    let told = run(&session, &all).expect_err("the columns are mixed up").to_string();
    assert!(told.contains("u.csv has the columns y, x, and the table has x, y"), "{told}");
}

#[test]
fn two_columns_of_one_name_are_refused() {
    let (_directory, path) = file("a,b,a\n1,2,3\n");
    let told = run(&live(), &format!("SELECT * FROM '{path}'")).expect_err("a is there twice");
    assert!(told.to_string().contains("two columns named \"a\""), "{told}");
}

#[test]
fn values_with_line_breaks_are_whole_however_the_file_is_read() {
    let mut text = "k,note\n".to_owned();
    (0..2000).for_each(|k| writeln!(text, "{k},\"one\n{k},two\"").expect("a string grows"));
    let (_directory, path) = file(&text);
    let session = live();
    rows(&session, "SET datafusion.optimizer.repartition_file_min_size = 1000");
    let read = rows(&session, &format!("SELECT count(*), sum(k), min(note) FROM '{path}'"));
    assert_eq!(read, [["2000", "1999000", "one\n0,two"]]);
}
