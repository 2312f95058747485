use std::process::Command;

use atoll_testkit::{program_in, run_with};

use crate::support::atoll;

#[test]
fn help_lists_commands_and_exit_codes() {
    let text = atoll(&["--help"]).done();
    for word in ["topo", "run", "where", "bench", "sql", "demo", "Exit codes", "125", "130"] {
        assert!(text.contains(word), "{word} is missing in {text}");
    }
}

#[test]
fn every_command_shows_examples() {
    for command in ["topo", "run", "where", "sql", "demo"] {
        let text = atoll(&[command, "--help"]).done();
        assert!(text.contains("Examples:") && text.contains(&format!("atoll {command}")), "{text}");
    }
}

#[test]
fn version_is_printed() {
    assert_eq!(atoll(&["--version"]).done(), format!("atoll {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn unknown_arguments_suggest_similar_ones() {
    let error = atoll(&["sql", "--tcph", "1"]).failed(2);
    assert!(error.contains("--tpch"), "{error}");
    let error = atoll(&["sql", "--placement", "alined"]).failed(2);
    assert!(error.contains("did you mean 'aligned'?"), "{error}");
    let error = atoll(&["sql", "--memory-limit", "lots"]).failed(2);
    assert!(error.contains("8GiB"), "{error}");
    let error = atoll(&["sql", "--json", "--mode", "csv"]).failed(2);
    assert!(error.contains("'--mode <MODE>' cannot be used multiple times"), "{error}");
    let error = atoll(&[]).failed(2);
    assert!(error.contains("Usage: atoll <COMMAND>"), "{error}");
}

#[test]
fn benchmarks_that_need_no_rival_run_without_the_program_of_the_others() {
    let text = atoll(&["bench", "memory", "--help"]).done();
    assert!(text.contains("Usage: atoll bench memory"), "{text}");
    let error = atoll(&["bench", "shuffle", "--bytse", "1"]).failed(2);
    assert!(error.contains("--bytes"), "{error}");
}

#[test]
fn other_benchmarks_say_what_is_missing_where_their_program_is() {
    let home = tempfile::tempdir().unwrap();
    let alone = home.path().join("atoll");
    // A file that this process writes may be open in a child that another test has just started: it is busy then.
    let copied = Command::new("cp").arg(env!("CARGO_BIN_EXE_atoll")).arg(&alone).status();
    assert!(copied.unwrap().success());
    let mut command = program_in(&alone, home.path());
    let error = run_with(command.args(["bench", "tpch"]), "").failed(127);
    assert!(error.contains("atoll-bench") && error.contains("make install"), "{error}");
}
