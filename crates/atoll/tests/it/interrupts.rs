use std::io::{Read, Write};
use std::process::{Command, Stdio};

use crate::support::{ENDLESS, command, ended, read_until};

fn interrupt(process: u32) {
    let kill = format!("kill -INT {process}");
    assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success());
}

#[test]
fn ctrl_c_ends_a_script_in_the_middle_of_a_query() {
    let home = tempfile::tempdir().unwrap();
    let line = ["sql", "--tpch", "0.01", "-c", ".echo on", "-c", ENDLESS, "-c", "SELECT 'after'"];
    let mut child = command(home.path()).args(line).spawn().unwrap();
    let mut stderr = child.stderr.take().unwrap();
    read_until(&mut stderr, "lineitem c");
    interrupt(child.id());
    let ran = ended(child);
    assert_eq!((ran.code, ran.out.as_str()), (Some(130), ""));
}

#[test]
fn ctrl_c_ends_a_script_that_waits_for_its_next_line() {
    let home = tempfile::tempdir().unwrap();
    let mut child =
        command(home.path()).args(["sql", "--mode", "csv"]).stdin(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(b"SELECT 1 AS n;\n").unwrap();
    read_until(child.stdout.as_mut().unwrap(), "n\n1\n");
    interrupt(child.id());
    assert_eq!(ended(child).code, Some(130));
    drop(stdin);
}

#[test]
fn a_reader_that_goes_away_ends_it_quietly() {
    for mode in ["csv", "json", "ndjson", "line", "markdown"] {
        let home = tempfile::tempdir().unwrap();
        let query = "SELECT * FROM lineitem a CROSS JOIN nation";
        let mut child = command(home.path())
            .args(["sql", "--tpch", "0.01", "--mode", mode, "-c", query])
            .spawn()
            .unwrap();
        let mut first = [0; 10];
        child.stdout.take().unwrap().read_exact(&mut first).unwrap();
        let ran = ended(child);
        assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "{mode}");
    }
}
