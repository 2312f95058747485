//! `tune`: what is shown, what is kept, and that later commands use it; with few rows.

use crate::support::{tools, tools_in};

const TINY: [&str; 7] = ["tune", "--rows", "2000", "--runs", "1", "--threads", "2"];

#[test]
fn a_dry_run_shows_both_tunings_and_keeps_nothing() {
    let home = tempfile::tempdir().unwrap();
    let run = tools_in(home.path(), &[&TINY[..], &["--dry-run", "--json"]].concat()).json();
    for size in ["block_rows", "fan_out_bits_max", "buffer_rows", "prefetch_rows", "table_bytes"] {
        assert!(run["untuned"][size].as_u64().unwrap() > 0, "{size}");
        assert!(run["tuned"][size].as_u64().unwrap() > 0, "{size}");
    }
    assert_eq!(run["works"].as_array().unwrap().len(), 4);
    assert!(run["works"][0]["ratio"]["median"].as_f64().unwrap() > 0.0);
    assert!(run["kept"].is_null());
    assert!(!home.path().join(".local").exists());
}

#[test]
fn what_is_tuned_is_kept_with_the_machines_facts_and_used_by_later_commands() {
    let home = tempfile::tempdir().unwrap();
    let ran = tools_in(home.path(), &TINY);
    assert!(ran.err.contains("2000 rows are few"), "{}", ran.err);
    let text = ran.done();
    assert!(text.contains("Kept in") && text.contains("buffer_rows"), "{text}");
    let facts = tools_in(home.path(), &["topo", "facts", "--json"]).done();
    assert!(facts.contains("\"prefetch_rows\"") && facts.contains("atoll tune"), "{facts}");
    // Another value in the place of what was found.
    let machines = home.path().join(".local/share/atoll/machines");
    let mut files = std::fs::read_dir(machines).unwrap().map(|entry| entry.unwrap().path());
    let file = files.find(|path| path.extension().is_some_and(|it| it == "toml")).unwrap();
    let kept = std::fs::read_to_string(&file).unwrap();
    let (before, fact) = kept.split_once("\"prefetch_rows\"").unwrap();
    let (middle, value) = fact.split_once("value = ").unwrap();
    let (_, after) = value.split_once(' ').unwrap();
    let other = format!("{before}\"prefetch_rows\"{middle}value = 48 {after}");
    std::fs::write(&file, other).unwrap();
    let bench =
        ["bench", "partition", "--rows", "100", "--runs", "1", "--rivals", "none", "--json"];
    let run = tools_in(home.path(), &bench).json();
    let tuning = run["conditions"]["tuning"].as_str().unwrap();
    assert!(tuning.contains("prefetch_rows: 48"), "{tuning}");
}

#[test]
fn flags_that_have_no_meaning_are_told() {
    for (flags, words) in [
        (["--rows", "0"], "'--rows <N>': choose 1 to 2^32"),
        (["--runs", "0"], "1..=1000"),
        (["--threads", "0"], "1..=8192"),
        (["--rows", "many"], "write it as 2^20 or 1000000"),
    ] {
        let message = tools(&[&["tune"], &flags[..]].concat()).failed(2);
        assert!(message.contains(words), "{flags:?}: {message}");
    }
}
