//! What people see of a record.

use atoll_lab::record::RunRecord;
use atoll_lab::view::{self, MeasureUnit, RunComparison};
use atoll_marker::Marker;
use atoll_simulation::Counting;
use atoll_testkit::machines;
use atoll_topology::{Knowledge, Machine};

use crate::sample::{Sample, busy};

fn synthetic(text: &str) -> Knowledge {
    Knowledge::from_machine(Machine::synthetic(text).unwrap())
}

fn two_nodes() -> Knowledge {
    Knowledge::from_machine(machines::two_nodes())
}

/// The section of a text that begins with these words.
fn section<'a>(text: &'a str, title: &str) -> &'a str {
    let found = text.split("\n\n").find(|section| section.starts_with(title));
    found.unwrap_or_else(|| panic!("no section '{title}' in\n{text}"))
}

/// Machines of 1, 2, 4, 8 and 64 nodes, and odd ones.
fn shapes() -> Vec<Knowledge> {
    let mut shapes: Vec<Knowledge> =
        machines::all().into_iter().map(Knowledge::from_machine).collect();
    shapes.extend(["westmere-ex-4", "cxl-2"].map(|name| atoll_formats::open(name).unwrap()));
    shapes.extend(["node:8 core:1 pu:1", "node:64(memory=1GiB) core:1 pu:1"].map(synthetic));
    shapes
}

#[test]
fn a_record_of_any_machine_is_a_text_of_at_most_100_columns_and_a_picture_of_valid_xml() {
    for known in shapes() {
        let record = busy(&known);
        let text = view::text(&record);
        let name = &known.machine.name;
        for line in text.lines() {
            assert!(line.chars().count() <= 100 || line.contains(name), "{name}: {line}");
            assert_eq!(line, line.trim_end(), "{name}");
        }
        for word in ["NaN", "inf", "Some("] {
            assert!(!text.contains(word), "{name}: {word} in\n{text}");
        }
        for svg in [view::svg(&record), view::svg_pair([("a", &record), ("b", &record)])] {
            assert!(svg.len() < 1 << 20, "{name}: {} bytes", svg.len());
            is_xml(&svg);
        }
    }
}

#[test]
fn two_runs_are_drawn_on_one_scale() {
    let run = |accesses| {
        let mut sample =
            Sample::new(&atoll_formats::open("westmere-ex-4").unwrap(), Counting::User);
        sample = sample.calibrate();
        sample.accesses(0, 1, 1 << 16, accesses);
        sample.record()
    };
    let (few, many) = (run(100), run(10_000));
    let widest = |svg: &str| svg.matches(r#"stroke-width="12.0""#).count();
    assert_eq!((widest(&view::svg(&few)), widest(&view::svg(&many))), (1, 1));
    assert_eq!(widest(&view::svg_pair([("few", &few), ("many", &many)])), 1);
    assert_eq!(widest(&view::svg_pair([("many", &many), ("many", &many)])), 2);
}

fn is_xml(text: &str) {
    let mut reader = quick_xml::Reader::from_str(text);
    loop {
        match reader.read_event() {
            Ok(quick_xml::events::Event::Eof) => return,
            Ok(_) => {}
            Err(error) => panic!("{error}\n{text}"),
        }
    }
}

#[test]
fn the_matrix_has_the_accesses_of_each_node_to_each_home_and_their_share_of_the_row() {
    let mut sample = Sample::new(&two_nodes(), Counting::User).calibrate();
    sample.accesses(0, 1, 1000, 30);
    sample.accesses(0, 0, 1000, 10);
    sample.accesses(1, 1, 1000, 7);
    let text = view::text(&sample.record());
    let matrix = section(&text, "Accesses: from cpus");
    let rows: Vec<Vec<&str>> =
        matrix.lines().skip(2).map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(rows, [["0", "10", "25%", "30", "75%"].as_slice(), &["1", "0", "7", "100%"]]);
    assert!(text.contains("47 accesses ("), "{text}");
    assert!(text.contains("36.2 % of them local"), "17 of 47 in\n{text}");
}

#[test]
fn undefined_ratios_are_dashes_and_idle_nodes_are_named_in_one_line() {
    let mut sample = Sample::new(&synthetic("node:4 core:1 pu:1"), Counting::User).calibrate();
    sample.accesses(2, 2, 1, 5);
    let text = view::text(&sample.record());
    assert!(section(&text, "Accesses: from cpus").ends_with("nodes 0-1,3: nothing"), "{text}");
    assert!(text.contains("Links: nothing crossed one"), "{text}");
    sample.marker(Marker::Open(9));
    sample.marker(Marker::Close(9));
    let text = view::text(&sample.record());
    let regions = section(&text, "Regions");
    let row: Vec<&str> = regions.lines().nth(2).unwrap().split_whitespace().collect();
    assert_eq!(row, ["9", "1", "0", "-", "0", "-", "-", "0", "0"]);
}

#[test]
fn a_run_in_which_nothing_was_counted_says_why() {
    let sample = Sample::new(&two_nodes(), Counting::Region).calibrate();
    let record = sample.record();
    let says = |record: &RunRecord, why: &str| {
        let text = view::text(record);
        assert!(text.contains(why) && !text.contains("Figures"), "{text}");
        for svg in [view::svg(record), view::svg_pair([("a", record), ("b", record)])] {
            assert!(svg.contains(why), "{svg}");
            is_xml(&svg);
        }
    };
    says(&record, "the program opened no region");
    sample.marker(Marker::Open(1));
    says(&sample.record(), "no access that counts");
    let mut failed = busy(&two_nodes());
    failed.report.calibration.failure = Some("nodes 0 and 1 overlap".to_owned());
    says(&failed, "the calibration failed: nodes 0 and 1 overlap");
}

#[test]
fn letters_that_steer_a_terminal_are_not_shown() {
    let mut record = busy(&two_nodes());
    let evil = "\u{1b}[31mred\n\u{7}";
    record.run.command = vec![evil.to_owned()];
    record.run.notes = vec![evil.repeat(100)];
    record.run.machine = evil.to_owned();
    record.run.qemu_version = evil.to_owned();
    record.estimate.figures[0].origin = evil.to_owned();
    record.estimate.figures[0].name = evil.to_owned();
    let comparison = RunComparison::from_records(&record, &busy(&two_nodes()));
    for text in [view::text(&record), view::svg(&record), comparison.text([evil, "b"])] {
        assert!(text.contains("[31mred"), "{text}");
        assert!(!text.contains(['\u{1b}', '\u{7}']), "{text:?}");
    }
}

#[test]
fn a_run_compared_with_itself_has_ratios_of_one_and_nothing_to_remark() {
    let record = busy(&atoll_formats::open("westmere-ex-4").unwrap());
    let comparison = RunComparison::from_records(&record, &record);
    assert_eq!(comparison.remarks, [""; 0]);
    assert!(comparison.lines.len() > 60, "total and two regions");
    for line in &comparison.lines {
        assert_eq!(line.a, line.b, "{line:?}");
        assert!(line.ratio.is_none_or(|ratio| ratio == 1.0), "{line:?}");
        assert_eq!(line.ratio.is_none(), line.a.is_none_or(|a| a == 0.0), "{line:?}");
    }
}

#[test]
fn runs_on_different_machines_are_compared_with_a_remark() {
    let record = |name: &str, count| {
        let mut sample =
            Sample::new(&atoll_formats::open(name).unwrap(), Counting::User).calibrate();
        sample.marker(Marker::Open(count as u8));
        sample.accesses(0, 1, 100_000, count);
        sample.record()
    };
    let (a, mut b) = (record("westmere-ex-4", 40), record("intel-2", 60));
    b.run.balancing = Some(true);
    b.run.code = 3;
    let comparison = RunComparison::from_records(&a, &b);
    let said = comparison.remarks.join("; ");
    for what in ["different machines: westmere-ex-4 and intel-2", "balancing", "codes 0 and 3"] {
        assert!(said.contains(what), "{said}");
    }
    let line = |region, name: &str| {
        let of = |line: &&view::MeasureLine| line.region == region && line.name == name;
        comparison.lines.iter().find(of).unwrap_or_else(|| panic!("{name}"))
    };
    let all = line(None, "accesses");
    assert_eq!(
        (all.a, all.b, all.ratio, all.unit),
        (Some(40.), Some(60.), Some(1.5), MeasureUnit::Count)
    );
    assert_eq!(line(None, "local accesses").a, Some(0.0));
    assert_eq!(line(None, "link 5 from 2 to 3").b, None);
    assert_eq!((line(Some(40), "accesses").a, line(Some(40), "accesses").b), (Some(40.), None));
    assert_eq!((line(Some(60), "accesses").a, line(Some(60), "accesses").b), (None, Some(60.)));
    let text = comparison.text(["a.json", "b.json"]);
    assert!(text.starts_with("A: a.json\nB: b.json\n  different machines"), "{text}");
    assert!(text.contains("\nRegion 60\n"), "{text}");
}
