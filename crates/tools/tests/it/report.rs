//! `lab report` and `lab compare` of records in files.

use std::path::Path;

use atoll_lab::record::{RunDescription, RunRecord};
use atoll_lab::{Guest, GuestShape};
use atoll_model::Assumptions;
use atoll_simulation::{Counting, Region, RunSeries, Simulation};

use crate::support::tools_in;

/// Writes the record of a run in which node 0 made this many loads from each node, in region 2.
fn write(directory: &Path, file: &str, loads: u64) {
    let guest =
        Guest::try_from_knowledge(&atoll_formats::open("intel-2").unwrap(), &GuestShape::default())
            .unwrap();
    let setup = guest.setup(Counting::User, "/tmp/report".into());
    let mut report = Simulation::new(setup).unwrap().report();
    report.calibration.failure = None;
    report.total.loads[0] = vec![loads, loads];
    report.total.lines[0] = vec![loads, loads];
    report.total.caches[0].sources.memory = vec![loads, loads];
    report.total.cpus[0] = 2 * loads;
    let traffic = report.total.clone();
    let series = RunSeries::default();
    report.regions.push(Region { number: 2, opened: 1, traffic, series });
    let run = RunDescription { command: vec!["./program".to_owned()], ..RunDescription::default() };
    let record = RunRecord::new(run, guest.knowledge(), report, &Assumptions::default()).unwrap();
    std::fs::write(directory.join(file), record.json()).unwrap();
}

#[test]
fn a_record_is_shown_as_text_and_json_and_drawn() {
    let home = tempfile::tempdir().unwrap();
    write(home.path(), "a.json", 500);
    let tools = |arguments: &[&str]| tools_in(home.path(), arguments);
    let text = tools(&["lab", "report", "a.json"]).done();
    assert!(text.starts_with("./program\n") && text.contains("50.0 % of them local"), "{text}");
    assert!(text.contains("independent, 10 in flight"), "{text}");
    let json = tools(&["lab", "report", "a.json", "--of", "json"]).json();
    assert_eq!(json["report"]["total"]["loads"][0][1], 500);
    assert_eq!(tools(&["lab", "report", "a.json", "-o", "a.svg"]).done(), "");
    let svg = std::fs::read_to_string(home.path().join("a.svg")).unwrap();
    assert!(svg.contains("<svg ") && svg.contains("./program"), "{svg}");
}

#[test]
fn a_record_is_estimated_again_under_other_assumptions_and_for_one_region() {
    let home = tempfile::tempdir().unwrap();
    write(home.path(), "a.json", 500);
    let tools = |arguments: &[&str]| tools_in(home.path(), arguments);
    let text = tools(&["lab", "report", "a.json", "--in-flight", "4", "--region", "2"]).done();
    assert!(text.contains("independent, 4 in flight"), "{text}");
    assert!(text.contains("(assumed: --in-flight)") && !text.contains("Regions"), "{text}");
    let json = |more: &[&str]| {
        tools(&[&["lab", "report", "a.json", "--of", "json"], more].concat()).json()
    };
    let wait = |json: &serde_json::Value| json["estimate"]["nodes"][0]["wait"].as_f64().unwrap();
    assert_eq!(wait(&json(&["--busy-cpus", "4"])) * 4.0, wait(&json(&[])));
}

#[test]
fn unsupported_views_are_refused_with_advice() {
    let home = tempfile::tempdir().unwrap();
    write(home.path(), "a.json", 500);
    std::fs::write(home.path().join("b.json"), "{}").unwrap();
    let refused = |code, arguments: &[&str]| {
        tools_in(home.path(), &[&["lab", "report"], arguments].concat()).failed(code)
    };
    assert!(refused(2, &["a.json", "--region", "3"]).contains("it has 2"));
    assert!(refused(2, &["a.json", "--in-flight", "0"]).contains("give a number from 1"));
    assert!(refused(2, &["a.json", "-o", "a.png"]).contains("use .txt, .json or .svg"));
    assert!(refused(125, &["b.json"]).contains("b.json is not a record of a run"));
    assert!(refused(125, &["none.json"]).contains("cannot read none.json"));
}

#[test]
fn two_records_are_set_side_by_side() {
    let home = tempfile::tempdir().unwrap();
    write(home.path(), "a.json", 500);
    write(home.path(), "b.json", 1000);
    let compare = |more: &[&str]| {
        tools_in(home.path(), &[&["lab", "compare", "a.json", "b.json"], more].concat())
    };
    let text = compare(&[]).done();
    assert!(text.starts_with("A: a.json\nB: b.json\n\nWhole run\n"), "{text}");
    let json = compare(&["--json"]).json();
    let lines = json["lines"].as_array().unwrap();
    let loads = |region: serde_json::Value| {
        let of = |line: &&serde_json::Value| line["name"] == "loads" && line["region"] == region;
        lines.iter().find(of).unwrap()["ratio"].clone()
    };
    assert_eq!(loads(serde_json::Value::Null), 2.0);
    assert_eq!(loads(serde_json::json!(2)), 2.0);
    compare(&["-o", "both.svg"]).done();
    assert!(std::fs::read_to_string(home.path().join("both.svg")).unwrap().starts_with("<?xml"));
    assert!(compare(&["-o", "both.png"]).failed(2).contains(".svg"));
}
