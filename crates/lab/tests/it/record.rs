//! Records that are written are read; everything else is refused with words.

use atoll_lab::record::{RunRecord, RunRecordError};
use atoll_lab::{flows, view};
use atoll_model::{Assumption, Assumptions};
use atoll_simulation::Counting;
use atoll_testkit::machines;
use atoll_topology::Knowledge;
use proptest::prelude::*;
use proptest::sample::Index;
use serde_json::{Value, json};

use crate::sample::{Sample, busy};

fn two_nodes() -> RunRecord {
    busy(&Knowledge::from_machine(machines::two_nodes()))
}

#[test]
fn a_record_that_is_written_is_read_again() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("run.json");
    for machine in machines::all() {
        let record = busy(&Knowledge::from_machine(machine));
        std::fs::write(&file, record.json()).unwrap();
        let read = RunRecord::read(&file).unwrap();
        assert_eq!(view::text(&read), view::text(&record));
        assert_eq!(read.report, record.report);
        assert_eq!(read.known().unwrap(), record.known().unwrap());
    }
}

#[test]
fn invalid_records_are_refused_with_advice() {
    let missing = RunRecord::read("/nowhere/run.json".as_ref()).unwrap_err();
    assert!(matches!(missing, RunRecordError::Read { .. }));
    assert!(missing.to_string().contains("/nowhere/run.json: No such file"), "{missing}");
    for text in ["", "{}", "[]", "null", "\u{0}", "{\"version\":1}", "{\"version\":-1}", "1e999"] {
        let error = RunRecord::parse(text, "run.json").unwrap_err();
        assert!(matches!(error, RunRecordError::Malformed { .. }), "{text}: {error}");
        assert!(error.to_string().contains("atoll lab run --report"), "{error}");
    }
    let nested = "[".repeat(100_000);
    assert!(RunRecord::parse(&nested, "run.json").is_err());
}

#[test]
fn a_record_of_another_version_is_refused_by_its_version() {
    let other = json!({"version": 7, "anything": []}).to_string();
    let error = RunRecord::parse(&other, "run.json").unwrap_err();
    assert!(matches!(error, RunRecordError::Version { found: 7, .. }), "{error}");
}

#[test]
fn lists_of_other_sizes_than_the_set_up_says_are_refused_by_name() {
    let whole: Value = serde_json::from_str(&two_nodes().json()).unwrap();
    for (place, name) in [
        ("/report/total/loads", "loads"),
        ("/report/total/stores/1", "stores"),
        ("/report/total/caches/0/sources/clean", "sources.clean"),
        ("/report/regions/1/traffic/links", "links"),
        ("/report/total/tags/0/pages", "pages of a tag"),
        ("/report/series/slices/0/controllers", "controllers of a slice"),
        ("/report/regions/0/series/slices/0/links", "links of a slice"),
        ("/estimate/controllers", "controllers of an estimate"),
        ("/regions", "other regions"),
    ] {
        let mut cut = whole.clone();
        cut.pointer_mut(place).and_then(Value::as_array_mut).unwrap().pop().unwrap();
        let error = RunRecord::parse(&cut.to_string(), "run.json").unwrap_err().to_string();
        assert!(error.contains(name), "{place}: {error}");
    }
    let mut other = whole.clone();
    other["machine"] =
        json!(atoll_formats::toml::write(&Knowledge::from_machine(machines::one_node())));
    let error = RunRecord::parse(&other.to_string(), "run.json").unwrap_err().to_string();
    assert!(error.contains("other nodes"), "{error}");
}

/// Every place in a document.
fn places(value: &Value, at: &str, found: &mut Vec<String>) {
    let mut inner = |key: String, value: &Value| {
        let place = format!("{at}/{key}");
        found.push(place.clone());
        places(value, &place, found);
    };
    match value {
        Value::Array(list) => {
            (0..).zip(list).for_each(|(i, it): (u32, _)| inner(i.to_string(), it))
        }
        Value::Object(map) => map.iter().for_each(|(key, it)| inner(key.clone(), it)),
        _ => {}
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn a_record_changed_anywhere_is_refused_or_shown(
        at in any::<Index>(),
        value in prop_oneof![
            Just(json!(u64::MAX)), Just(json!(0)), Just(json!(-1)), Just(json!(1e308)),
            Just(json!([])), Just(json!("x")), Just(Value::Null),
        ],
    ) {
        use std::sync::LazyLock;
        static WHOLE: LazyLock<(Value, Vec<String>)> = LazyLock::new(|| {
            let whole = serde_json::from_str(&two_nodes().json()).unwrap();
            let mut found = Vec::new();
            places(&whole, "", &mut found);
            (whole, found)
        });
        let (whole, places) = &*WHOLE;
        let mut changed = whole.clone();
        *changed.pointer_mut(&places[at.index(places.len())]).unwrap() = value;
        if let Ok(record) = RunRecord::parse(&changed.to_string(), "run.json") {
            view::text(&record);
            view::svg(&record);
            view::RunComparison::from_records(&record, &record).text(["a", "b"]);
            record.assuming(&Assumptions::default()).ok();
        }
    }
}

#[test]
fn a_region_alone_has_its_counts_its_slices_and_its_time() {
    let record = two_nodes();
    let region = record.of_region(4).unwrap();
    assert_eq!(region.report.total, record.report.regions[1].traffic);
    assert!(!region.report.series.slices.is_empty());
    assert!(region.report.series.slices.iter().all(|slice| slice.region == Some(4)));
    assert!(region.estimate.independent.lower.0 < record.estimate.independent.lower.0);
    assert_eq!(region.estimate.figures, record.estimate.figures);
    assert!(RunRecord::parse(&region.json(), "run.json").is_ok());
    assert_eq!(record.of_region(2), None);
}

#[test]
fn other_assumptions_change_the_time_and_no_count() {
    let record = two_nodes();
    let in_flight = Assumption::new(1.0, "test");
    let other = record.assuming(&Assumptions { in_flight, ..Assumptions::default() }).unwrap();
    assert_eq!(other.report, record.report);
    assert_eq!(other.estimate.independent, other.estimate.dependent);
    let again = record.assuming(&Assumptions::default()).unwrap();
    assert_eq!(again.estimate.independent.narrowest, record.estimate.independent.narrowest);
    let bad = Assumption::new(f64::NAN, "test");
    let error = record.assuming(&Assumptions { in_flight: bad, ..Assumptions::default() });
    assert!(matches!(error, Err(RunRecordError::Assumption(_))));
}

#[test]
fn cpus_that_did_alike_are_busy_side_by_side() {
    let mut sample =
        Sample::new(&Knowledge::from_machine(machines::two_nodes()), Counting::User).calibrate();
    sample.accesses(0, 1, 1000, 60);
    let record = sample.record();
    let setup = &record.report.setup;
    let alone = flows(setup, &record.report.total);
    assert_eq!((alone.nodes[0].busy_cpus, alone.nodes[1].busy_cpus), (1.0, 1.0));
    assert_eq!((alone.nodes[0].accesses, alone.nodes[0].instructions), (60, 360));
    let mut shared = record.report.total.clone();
    let here = (0..setup.cpus.len()).filter(|cpu| setup.cpus[*cpu].node == 0);
    here.zip([40, 20, 20]).for_each(|(cpu, count)| shared.cpus[cpu] = count);
    assert_eq!(flows(setup, &shared).nodes[0].busy_cpus, 2.0);
}
