//! The pseudo-terminal is that of `script`, which every Debian has.

use std::io::Write;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use crate::support::{ENDLESS, read_until};

/// A shell on a terminal of 80 columns.
struct Terminal {
    child: Child,
    keys: ChildStdin,
    screen: ChildStdout,
}

impl Terminal {
    fn open(home: &Path, arguments: &str) -> Self {
        let shell =
            format!("stty cols 80 rows 24; exec '{}' sql {arguments}", env!("CARGO_BIN_EXE_atoll"));
        let mut child = Command::new("script")
            .args(["-q", "-e", "-c", &shell, "/dev/null"])
            .env("HOME", home)
            .env("TERM", "xterm")
            .env("SHELL", "/bin/sh")
            .env_remove("NO_COLOR")
            .current_dir(home)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("script(1) of bsdutils");
        let keys = child.stdin.take().unwrap();
        let screen = child.stdout.take().unwrap();
        Self { child, keys, screen }
    }

    /// Waits until a text is on the screen.
    #[track_caller]
    fn shows(&mut self, text: &str) -> String {
        read_until(&mut self.screen, text)
    }

    /// Waits until the line editor reads keys, which it announces by enabling bracketed paste. The prompt itself is
    /// redrawn with every key.
    #[track_caller]
    fn prompts(&mut self) {
        self.shows("\x1b[?2004h");
    }

    fn types(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
        self.keys.flush().unwrap();
    }

    #[track_caller]
    fn leaves(mut self) {
        self.prompts();
        self.types("\x04");
        let status = self.child.wait().unwrap();
        assert_eq!(status.code(), Some(0));
    }
}

#[test]
fn rows_of_a_copy_are_typed_after_it() {
    let home = tempfile::tempdir().unwrap();
    let mut terminal = Terminal::open(home.path(), "");
    terminal.prompts();
    terminal.types("CREATE TABLE t (a INT); COPY t FROM STDIN;\r7000\r\\.\r");
    terminal.shows("COPY 1");
    terminal.prompts();
    terminal.types("SELECT a * 6 AS s FROM t;\r");
    terminal.shows("│ 42000 │");
    terminal.leaves();
}

#[test]
fn a_person_types_a_statement_over_several_lines_and_reads_a_box() {
    let home = tempfile::tempdir().unwrap();
    let mut terminal = Terminal::open(home.path(), "");
    terminal.prompts();
    terminal.types("SELECT 40 + 2\r AS answer, NULL AS nothing;\r");
    terminal.shows("│     42 │");
    terminal.shows("\x1b[2mNULL\x1b[0m");
    terminal.shows("1 row · ");
    terminal.leaves();
    let history = std::fs::read_to_string(home.path().join(".atoll_history")).unwrap();
    assert!(history.contains("answer"), "{history}");
}

#[test]
fn a_statement_that_goes_on_has_a_prompt_of_its_own() {
    let home = tempfile::tempdir().unwrap();
    let mut terminal = Terminal::open(home.path(), "--mode csv");
    terminal.prompts();
    terminal.types("SELECT 1000\r");
    terminal.shows("atoll-> ");
    terminal.types("+ 234 AS answer;\r");
    terminal.shows("answer\r\n1234\r\n");
    terminal.prompts();
    // Ctrl-C drops the lines before as well.
    terminal.types("SELECT 'never\r");
    terminal.shows("atoll-> ");
    terminal.types("\x03");
    terminal.prompts();
    terminal.types("SELECT 6 * 7000 AS k;\r");
    terminal.shows("k\r\n42000\r\n");
    terminal.leaves();
    let history = std::fs::read_to_string(home.path().join(".atoll_history")).unwrap();
    assert!(history.contains("SELECT 1000\\n+ 234 AS answer;"), "{history}");
}

#[test]
fn lines_that_are_typed_ahead_or_pasted_are_all_carried_out() {
    let home = tempfile::tempdir().unwrap();
    let mut terminal = Terminal::open(home.path(), "--mode csv");
    terminal.prompts();
    terminal.types("SELECT 1000 AS a;\rSELECT\r2000 AS\rb;\rSELECT 'x;\ry' AS c;\r");
    for shown in ["a\r\n1000\r\n", "b\r\n2000\r\n", "c\r\n\"x;\r\ny\"\r\n"] {
        terminal.shows(shown);
    }
    terminal.prompts();
    // Pasted as a terminal does it.
    terminal.types("\x1b[200~SELECT 5000 AS d;\nSELECT\n6000 AS e\x1b[201~\r");
    terminal.shows("d\r\n5000\r\n");
    terminal.shows("atoll-> ");
    terminal.types(";\r");
    terminal.shows("e\r\n6000\r\n");
    terminal.leaves();
}

#[test]
fn an_error_leaves_the_shell_and_its_tables_whole() {
    let home = tempfile::tempdir().unwrap();
    let mut terminal = Terminal::open(home.path(), "");
    terminal.prompts();
    terminal.types("CREATE TABLE t AS SELECT 5 AS five;\r");
    terminal.shows("SELECT 1");
    terminal.prompts();
    terminal.types("SELECT sixx FROM t;\r");
    terminal.shows("error:");
    terminal.prompts();
    terminal.types("SELECT five * 1000 AS k FROM t;\r");
    terminal.shows("│ 5000 │");
    terminal.leaves();
}

#[test]
fn ctrl_c_cancels_the_query_and_not_the_shell() {
    let home = tempfile::tempdir().unwrap();
    let mut terminal = Terminal::open(home.path(), "--tpch 0.01 --no-progress");
    terminal.prompts();
    terminal.types(".echo on\r");
    terminal.prompts();
    terminal.types(&format!("{ENDLESS}\r"));
    // Typed statements end in a semicolon; echoed ones do not.
    terminal.shows("lineitem b, lineitem c\r\n");
    terminal.types("\x03");
    terminal.shows("cancelled");
    terminal.prompts();
    terminal.types("SELECT 6 * 7000 AS k;\r");
    terminal.shows("│ 42000 │");
    terminal.leaves();
}

#[test]
fn ctrl_c_at_the_prompt_clears_the_line() {
    let home = tempfile::tempdir().unwrap();
    let mut terminal = Terminal::open(home.path(), "");
    terminal.prompts();
    terminal.types("SELECT 'never\x03");
    terminal.prompts();
    terminal.types("SELECT 6 * 7000 AS k;\r");
    terminal.shows("│ 42000 │");
    terminal.leaves();
}

#[test]
fn long_queries_show_a_bar() {
    let home = tempfile::tempdir().unwrap();
    let mut terminal = Terminal::open(home.path(), "--tpch 0.01");
    terminal.prompts();
    terminal.types(&format!("{ENDLESS}\r"));
    terminal.shows("of rows read");
    terminal.types("\x03");
    terminal.shows("cancelled");
    terminal.leaves();
}

#[test]
fn long_results_are_shown_by_their_ends_with_the_count() {
    let home = tempfile::tempdir().unwrap();
    let mut terminal = Terminal::open(home.path(), "--tpch 0.001");
    terminal.prompts();
    terminal.types("SELECT c_custkey FROM customer ORDER BY 1;\r");
    terminal.shows("│         1 │");
    terminal.shows("│        20 │");
    terminal.shows("│         · │");
    terminal.shows("│       150 │");
    terminal.shows("150 rows (40 shown; .maxrows 0 shows all)");
    terminal.leaves();
}

#[test]
fn names_are_completed() {
    let home = tempfile::tempdir().unwrap();
    let mut terminal = Terminal::open(home.path(), "--tpch 0.001");
    terminal.prompts();
    terminal.types("SELECT max(c_custk\t) + 50000 AS k FROM custom\t;\r");
    terminal.shows("│ 50150 │");
    terminal.leaves();
}

#[test]
fn the_start_file_sets_the_shell_up() {
    let home = tempfile::tempdir().unwrap();
    std::fs::write(home.path().join(".atollrc"), ".mode csv\nCREATE TABLE t AS SELECT 5 AS f;\n")
        .unwrap();
    let mut terminal = Terminal::open(home.path(), "");
    terminal.prompts();
    terminal.types("SELECT f * 1000 AS k FROM t;\r");
    terminal.shows("k\r\n5000\r\n");
    terminal.leaves();
}
