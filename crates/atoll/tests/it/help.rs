use crate::support::atoll;

#[test]
fn help_tells_the_commands_and_the_exit_codes() {
    let text = atoll(&["--help"]).done();
    for word in ["topo", "run", "where", "bench", "sql", "demo", "Exit codes", "125", "130"] {
        assert!(text.contains(word), "{word} is missing in {text}");
    }
}

#[test]
fn every_command_shows_examples() {
    for command in ["topo", "run", "where", "bench", "sql", "demo"] {
        let text = atoll(&[command, "--help"]).done();
        assert!(text.contains("Examples:") && text.contains(&format!("atoll {command}")), "{text}");
    }
}

#[test]
fn version_is_told() {
    assert_eq!(atoll(&["--version"]).done(), format!("atoll {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn what_cannot_be_understood_is_told_with_what_is_near() {
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
