//! `bench shuffle`: flags, the shape of the JSON, and simulations next to published figures.

use serde_json::Value;

use crate::support::{Ran, tools};

const TINY: [&str; 4] = ["--bytes", "256KiB", "--runs", "2"];

fn bench(arguments: &[&str]) -> Ran {
    tools(&[&["bench", "shuffle"], arguments].concat())
}

fn simulated(machine: &str, arguments: &[&str]) -> Value {
    let flags = ["--simulate", "--machine", machine, "--json"];
    let document = bench(&[&flags, arguments].concat()).json();
    document["details"].clone()
}

fn rows(document: &Value, list: &str) -> Vec<Value> {
    document[list].as_array().expect("a list").clone()
}

#[test]
fn every_variant_of_every_number_of_threads_has_a_row() {
    let document = bench(&[&["--threads", "1,3", "--json"], &TINY[..]].concat()).json();
    let rows = rows(&document["details"], "rows");
    assert_eq!(rows.len(), 2 * 3 * 3 * 2);
    for row in &rows {
        let bandwidth = &row["bandwidth"];
        assert_eq!(bandwidth["runs"], 2);
        let figure = |name: &str| bandwidth[name].as_f64().expect("a number");
        assert!(0.0 < figure("least") && figure("least") <= figure("median"), "{row}");
        assert!(figure("median") <= figure("most"), "{row}");
        let reference = if row["moved"] == "pushed" { "copy" } else { "read" };
        assert_eq!(row["reference"], reference);
        assert!(row["share"].as_f64().is_some_and(|share| share > 0.0), "{row}");
        assert_eq!(row["regions"].as_array().map(Vec::len), Some(0), "this is not the lab");
        if row["moved"] != "threads" || row["coordination"] == "tight" {
            assert_eq!(row["convoys"], 0.0, "{row}");
        }
    }
    let measured = document["measurements"].as_array().expect("a list");
    assert_eq!(measured.len(), rows.len());
    assert_eq!(measured[0]["samples"].as_array().map(Vec::len), Some(2));
    assert_eq!((&measured[0]["unit"], &measured[0]["better"]), (&"GB/s".into(), &"more".into()));
    let bytes = &document["details"]["bytes"];
    assert_eq!((bytes, &document["manifest"]["runs"]), (&262_144.into(), &2.into()));
}

#[test]
fn flags_choose_the_variants_and_the_table_has_a_line_for_each() {
    let flags = ["--order", "ring,naive,ring", "--moved", "pulled", "--coordination", "tight"];
    let out = bench(&[&flags[..], &["--threads", "2"], &TINY[..]].concat()).done();
    let lines = out.lines().filter(|line| line.contains("  pulled  ")).collect::<Vec<_>>();
    assert_eq!(lines.len(), 2, "{out}");
    assert!(lines[0].contains("naive") && lines[1].contains("ring"), "{out}");
    assert!(lines.iter().all(|line| line.contains("% read")), "{out}");
}

#[test]
fn a_picture_has_a_curve_for_each_variant() {
    let flags = ["--moved", "pulled", "--coordination", "tight", "--threads", "1,2", "--of", "svg"];
    let out = bench(&[&flags[..], &TINY[..]].concat()).done();
    assert!(out.starts_with("<?xml") || out.starts_with("<svg"), "{out}");
    assert_eq!(out.matches("<polyline").count() + out.matches("<path").count(), 3, "{out}");
}

#[test]
fn section_2_predicts_figures_6_and_10_of_the_four_socket_machine() {
    let document = simulated("nehalem-ex-4", &["--threads", "32"]);
    let published: Vec<f64> = rows(&document, "bars")
        .iter()
        .filter_map(|bar| {
            let deviation = bar["deviation_percent"].as_f64()?;
            assert!(deviation.abs() <= 10.0, "{bar}");
            bar["published"].as_f64()
        })
        .collect();
    assert_eq!(published, [22.0, 70.0, 94.0]);
    let crossover = &document["crossover"];
    let ratio = crossover["ratio"].as_f64().expect("a crossover");
    assert!((0.5..=2.0).contains(&ratio), "{crossover}");
    for row in rows(&document, "aggregation") {
        let figure = |name: &str| row[name].as_f64().expect("a number");
        if figure("groups") <= 262_144.0 {
            assert!(figure("migration") > figure("ring"), "{row}");
        }
        assert!(figure("naive") <= figure("ring") * 1.001, "{row}");
    }
}

#[test]
fn eight_sockets_do_no_better_than_four_as_the_paper_found() {
    let bar = |machine, moved| {
        let flags = ["--order", "ring", "--moved", moved, "--coordination", "tight"];
        let document = simulated(machine, &flags);
        assert!(rows(&document, "scaling").len() > 4);
        rows(&document, "bars")[0]["gbps"].as_f64().expect("a number")
    };
    for moved in ["pulled", "threads"] {
        assert!(bar("intel-8", moved) < bar("nehalem-ex-4", moved), "{moved}");
    }
}

#[test]
fn machines_without_published_figures_are_predicted_too_and_the_text_says_what_is_assumed() {
    for machine in ["epyc-2-nps1", "sapphire-rapids-2-snc4", "cxl-2", "symas-8"] {
        let flags = ["--simulate", "--machine", machine, "--order", "naive,ring", "--threads", "8"];
        let out = bench(&flags).done();
        assert!(out.contains("coherence: assumed"), "{out}");
        assert!(!out.contains("NaN") && !out.contains("inf"), "{out}");
    }
}

#[test]
fn meaningless_flags_are_rejected() {
    for (flags, words) in [
        (&["--simulate"][..], "--machine"),
        (&["--machine", "nehalem-ex-4"], "--simulate"),
        (&["--order", "backwards"], "naive"),
        (&["--moved", "nothing"], "pulled"),
        (&["--threads", "0"], "--threads"),
        (&["--runs", "0"], "--runs"),
        (&["--bytes", "lots"], "lots"),
        (&["--simulate", "--machine", "nehalem-ex-4", "--threads", "1000"], "256"),
        (&["-o", "picture.png"], ".svg"),
    ] {
        let message = bench(flags).failed(2);
        assert!(message.contains(words), "{flags:?}: {message}");
    }
    let message = bench(&["--simulate", "--machine", "no-such-machine"]).failed(125);
    assert!(message.contains("no-such-machine"), "{message}");
}
