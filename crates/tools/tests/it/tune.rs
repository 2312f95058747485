//! `tune`: its output, with few rows. `atoll` tests that later commands use the kept tuning.

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
fn meaningless_flags_are_rejected() {
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
