//! `bench memory`: flags, the shape of the JSON, and what one node cannot run; with tiny arrays.

use crate::support::tools;

const TINY: [&str; 6] = ["--accesses", "2000", "--runs", "2", "--slices", "5"];

fn bench(arguments: &[&str]) -> crate::support::Ran {
    tools(&[&["bench", "memory"], arguments, &TINY[..]].concat())
}

#[test]
fn one_json_document_holds_conditions_arms_and_rows() {
    let run = bench(&["--size", "64KiB,128KiB", "--operation", "read,write", "--json"]).json();
    assert_eq!((&run["benchmark"], &run["manifest"]["runs"]), (&"memory".into(), &2.into()));
    let samples = run["measurements"][0]["samples"].as_array().unwrap();
    assert_eq!(samples.len(), 2);
    let run = &run["details"];
    let arms = run["arms"].as_array().unwrap();
    assert_eq!(arms.len(), 4);
    for (index, arm) in arms.iter().enumerate() {
        assert!(arm["failure"].is_null(), "{arm}");
        assert!(arm["ns"]["median"].as_f64().unwrap() > 0.0);
        assert_eq!(arm["arm"]["region"], index);
        assert_eq!(arm["accesses"], 2000);
        assert_eq!(arm["series"].as_array().unwrap().len(), 5);
    }
    assert_eq!(run["rows"].as_array().unwrap().len(), 4);
}

#[test]
fn groups_can_be_processes_of_their_own() {
    let flags = ["--groups", "2", "--threads", "2", "--size", "64KiB", "--processes", "--json"];
    let run = bench(&flags).json();
    let arm = &run["details"]["arms"][0];
    assert!(arm["failure"].is_null(), "{arm}");
    assert_eq!(arm["arm"]["processes"], true);
    assert!(arm["ns"]["median"].as_f64().unwrap() > 0.0);
    // Two arrays of 16 base pages, or of a huge page each.
    assert!(arm["achieved"]["pages_seen"].as_u64().unwrap() >= 32, "{arm}");
}

#[test]
fn a_part_without_its_run_is_an_error_of_our_own() {
    let message = tools(&["bench", "part", "9999"]).failed(125);
    assert!(message.contains("invalid part of a run"), "{message}");
}

#[test]
fn meaningless_flags_are_rejected() {
    for (flags, words) in [
        (&["--experiment", "5"][..], "1, 2, 3, 4 or all"),
        (&["--experiment", "1", "--threads", "2"], "cannot be used with"),
        (&["--kind", "dependent", "--size", "64KiB", "--operation", "write"], "are reads"),
        (&["--scale", "0"], "between 1 and 4096"),
        (&["--placement", "everywhere"], "expected one of default, aligned"),
        (&["--placement", "replicate"], "'replicate'"),
        (&["--reproduce", "unknown"], "kiefer"),
    ] {
        let message = bench(flags).failed(2);
        assert!(message.contains(words), "{flags:?}: {message}");
    }
    let message = tools(&["bench", "memory", "--accesses", "1,2"]).failed(2);
    assert!(message.contains("one number of accesses, or four"), "{message}");
}

#[test]
fn a_run_can_be_written_to_a_file() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("run.txt");
    let out = bench(&["--size", "64KiB", "--kind", "dependent", "-o", file.to_str().unwrap()]);
    assert_eq!(out.done(), "");
    let text = std::fs::read_to_string(file).unwrap();
    assert!(text.contains("dependent accesses") && text.contains("64 KiB"), "{text}");
}

#[test]
fn the_suffix_of_a_file_selects_its_form_and_an_unknown_one_is_rejected_first() {
    let home = tempfile::tempdir().unwrap();
    let path = |name: &str| home.path().join(name).to_str().unwrap().to_owned();
    let write = |name: &str| {
        assert_eq!(bench(&["--size", "64KiB", "-o", &path(name)]).done(), "");
        std::fs::read_to_string(path(name)).unwrap()
    };
    assert!(write("run.svg").ends_with("</svg>\n"));
    assert!(write("run.json").starts_with('{'));
    let on_stdout = bench(&["--size", "64KiB", "--of", "svg"]).done();
    assert!(on_stdout.contains("Memory access on") && on_stdout.ends_with("</svg>\n"));
    for flags in [&["--size", "1TiB"][..], &["--json", "--of", "svg"]] {
        let message = bench(&[flags, &["-o", &path("run.pdf")]].concat()).failed(2);
        assert!(message.contains("run.pdf") || message.contains("--json"), "{message}");
    }
    let message = tools(&["bench", "memory", "--reproduce", "kiefer", "-o", "run.pdf"]).failed(2);
    assert!(message.contains("run.pdf"), "{message}");
}
