//! Files whose contents do not match their names, or that cannot be read: errors name the file; there is never a panic.

use std::io::Write;
use std::path::Path;

use crate::common::{live, rows, run};

fn told(session: &atoll_sql::Session, sql: &str) -> String {
    run(session, sql).expect_err("it cannot be read").to_string()
}

fn write(path: &Path, content: impl AsRef<[u8]>) {
    std::fs::write(path, content).expect("the file can be written");
}

#[test]
fn a_line_without_an_end_is_refused_before_it_fills_the_memory() {
    let directory = tempfile::tempdir().expect("a directory can be made");
    let path = directory.path().join("line.csv");
    let mut file = std::fs::File::create(&path).expect("the file can be made");
    let part = vec![b'x'; 1 << 20];
    (0..100).for_each(|_| file.write_all(&part).expect("the file can be written"));
    let error = told(&live(), &format!("SELECT * FROM '{}'", path.display()));
    assert!(error.contains("line 1 is longer than 2000000 bytes"), "{error}");
    assert!(error.contains("max_line_size"), "{error}");
}

#[test]
fn cyclic_links_directories_and_pipes_are_refused() {
    let directory = tempfile::tempdir().expect("a directory can be made");
    let (session, at) = (live(), directory.path());
    std::os::unix::fs::symlink("b.csv", at.join("a.csv")).expect("a link can be made");
    std::os::unix::fs::symlink("a.csv", at.join("b.csv")).expect("a link can be made");
    let error = told(&session, &format!("SELECT * FROM '{}/a.csv'", at.display()));
    assert!(error.contains("a.csv' cannot be read: Too many levels"), "{error}");
    std::fs::create_dir(at.join("empty")).expect("a directory can be made");
    let error = told(&session, &format!("SELECT * FROM '{}/empty/'", at.display()));
    assert!(error.contains("empty/' has no files to read"), "{error}");
    std::os::unix::fs::symlink(at, at.join("empty/loop")).expect("a link can be made");
    let error = told(&session, &format!("SELECT * FROM '{}/empty/**/*.parquet'", at.display()));
    assert!(error.contains("no file matches"), "{error}");
}

#[test]
fn names_with_quotes_blanks_and_characters_of_patterns_are_names() {
    let directory = tempfile::tempdir().expect("a directory can be made");
    let session = live();
    for (number, name) in
        ["a b.csv", "it's.csv", "\"q\".csv", "star*.csv", "[x]?.csv", "100%.csv", "ü#.csv", "-"]
            .iter()
            .enumerate()
    {
        let path = directory.path().join(name);
        let path = path.display().to_string().replace('\'', "''");
        rows(&session, &format!("COPY (SELECT {number} AS n) TO '{path}' (FORMAT csv)"));
        let read = rows(&session, &format!("SELECT n FROM read_csv('{path}')"));
        assert_eq!(read, [[number.to_string()]], "{name}");
        let path = path.replace("star*", "star[*]").replace("[x]?", "[[]x[]][?]");
        let read = rows(&session, &format!("SELECT n FROM read_csv('{path}')"));
        assert_eq!(read, [[number.to_string()]], "{name}");
    }
}

#[test]
fn every_truncated_file_is_read_or_refused() {
    let directory = tempfile::tempdir().expect("a directory can be made");
    let session = live();
    let path = |name: &str| directory.path().join(name);
    let query =
        "SELECT v AS id, 'name ' || v AS name, [v, v + 1] AS l FROM generate_series(1, 40) t(v)";
    for ending in ["parquet", "csv.gz", "json", "json.gz", "csv.zst", "arrow"] {
        let whole = path(&format!("whole.{ending}"));
        let columns = if ending.starts_with("csv") { "id, name" } else { "*" };
        let copy = format!("COPY (SELECT {columns} FROM ({query})) TO '{}'", whole.display());
        rows(&session, &copy);
        let bytes = std::fs::read(&whole).expect("the file is there");
        let cut = path(&format!("cut.{ending}"));
        for part in [1, 6, 13, 19] {
            write(&cut, &bytes[..bytes.len() * part / 20]);
            let read = run(&session, &format!("SELECT count(*) FROM '{}'", cut.display()));
            if let Err(error) = read {
                let error = error.to_string();
                assert!(error.contains("cut."), "{ending}, {part} of 20: {error}");
                assert!(!error.contains("panicked"), "{ending}, {part} of 20: {error}");
            }
        }
    }
}

#[test]
fn bytes_of_any_kind_make_no_panic() {
    let directory = tempfile::tempdir().expect("a directory can be made");
    let session = live();
    let mut seed = 7_u64;
    for ending in ["csv", "json", "parquet", "tsv", "dat", "csv.gz", "arrow"] {
        for size in [1, 2, 5, 100, 5000] {
            let path = directory.path().join(format!("x.{ending}"));
            let byte = |_| {
                seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                // Mostly characters of these formats.
                let common = b"{}[]\",:;\n\r\t01a. \\PAR1";
                if seed >> 63 == 0 {
                    common[(seed >> 33) as usize % common.len()]
                } else {
                    (seed >> 40) as u8
                }
            };
            let bytes: Vec<u8> = (0..size).map(byte).collect();
            write(&path, &bytes);
            if let Err(error) = run(&session, &format!("SELECT * FROM '{}'", path.display())) {
                assert!(!error.to_string().contains("panicked"), "{bytes:?}: {error}");
            }
        }
    }
}

#[test]
fn files_are_read_in_their_order() {
    let directory = tempfile::tempdir().expect("a directory can be made");
    let session = live();
    let text = |first: usize| {
        let lines = (first..first + 30_000).map(|v| format!("{v},{}\n", v % 7));
        lines.collect::<String>()
    };
    for (number, name) in ["a.csv", "b.csv", "c.csv"].iter().enumerate() {
        write(&directory.path().join(name), text(number * 30_000));
    }
    // Read in parts.
    rows(&session, "SET datafusion.optimizer.repartition_file_min_size = 1000");
    let all = format!("'{}/*.csv'", directory.path().display());
    let expected: Vec<Vec<String>> = (0..90_000).map(|v| vec![v.to_string()]).collect();
    assert_eq!(rows(&session, &format!("SELECT column0 FROM {all}")), expected);
    let some = rows(&session, &format!("SELECT column0 FROM {all} WHERE column1 = 3"));
    let filtered = (0..90_000).filter(|v| v % 7 == 3);
    assert_eq!(some.len(), filtered.count());
    assert!(some.iter().map(|row| row[0].parse::<usize>().expect("a number")).is_sorted());
    let first = rows(&session, &format!("SELECT column0 FROM {all} LIMIT 3 OFFSET 29999"));
    assert_eq!(first, [["29999"], ["30000"], ["30001"]]);
    let copied = directory.path().join("all.txt");
    rows(&session, &format!("COPY (SELECT column0 FROM {all}) TO '{}'", copied.display()));
    let copied = std::fs::read_to_string(&copied).expect("the file is there");
    let numbers = copied.lines().skip(1).map(|line| line.parse::<usize>().expect("a number"));
    assert!(numbers.eq(0..90_000));
}

#[test]
fn a_copy_that_overwrites_leaves_nothing_of_before() {
    let directory = tempfile::tempdir().expect("a directory can be made");
    let session = live();
    let at = directory.path().join("parts").display().to_string();
    let copy = |rows: usize, k: usize, option: &str| {
        format!(
            "COPY (SELECT v, v % {k} AS k FROM generate_series(1, {rows}) t(v)) TO '{at}' (FORMAT \
             parquet, PARTITION_BY (k){option})"
        )
    };
    let count = || rows(&session, &format!("SELECT count(*), count(DISTINCT k) FROM '{at}/'"));
    rows(&session, &copy(9, 3, ""));
    assert_eq!(count(), [["9", "3"]]);
    rows(&session, &copy(4, 2, ", OVERWRITE"));
    assert_eq!(count(), [["4", "2"]]);
    rows(&session, &copy(4, 2, ", OVERWRITE_OR_IGNORE"));
    assert_eq!(count(), [["8", "2"]]);
    let failing = copy(9, 3, ", OVERWRITE true").replace("v % 3 AS k", "10 / (v - 9) AS k");
    run(&session, &failing).expect_err("it divides by 0");
    assert_eq!(count(), [["8", "2"]]);
}
