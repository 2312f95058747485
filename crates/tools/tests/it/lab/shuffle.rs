//! Shuffles on a fully connected machine of four nodes, counted: the ring loads all controllers and
//! links alike in each step, naive those of one node, and threads that migrate read what is near.

use serde_json::Value;

use super::guest::counted;

/// One cpu a node; last-level caches of 480 KiB next to pieces of 4 MiB, so that little is left of one
/// step for the next.
const FLAGS: [&str; 6] = ["--cpus", "1", "--cache-divisor", "64", "--balancing", "off"];
const COMMAND: [&str; 14] = [
    "bench",
    "shuffle",
    "--order",
    "naive,ring",
    "--moved",
    "pulled,threads",
    "--coordination",
    "tight",
    "--bytes",
    "64MiB",
    "--runs",
    "1",
    "--threads",
    "4",
];
/// Bytes of a piece: a sixteenth.
const PIECE: u64 = 4 << 20;

/// Counts of the steps of a shuffle.
fn steps<'a>(document: &Value, record: &'a Value, order: &str, moved: &str) -> Vec<&'a Value> {
    let rows = document["details"]["rows"].as_array().expect("rows");
    let row = rows.iter().find(|row| row["order"] == order && row["moved"] == moved);
    let regions = row.expect("a row for each shuffle")["regions"].as_array().expect("regions");
    assert_eq!(regions.len(), 4, "a region for each step");
    let counted = record["report"]["regions"].as_array().expect("regions");
    let of = |number: &Value| counted.iter().find(|region| region["number"] == *number);
    regions.iter().map(|number| &of(number).expect("a step that was counted")["traffic"]).collect()
}

/// Bytes of pieces that cpus of a node (row) loaded from pages of a node (column).
fn tagged_lines(traffic: &Value) -> Vec<Vec<u64>> {
    let tags = traffic["tags"].as_array().expect("tags");
    let pieces = tags.iter().find(|tag| tag["tag"] == 1).expect("the pieces are tagged");
    serde_json::from_value(pieces["lines"].clone()).expect("a matrix")
}

/// Bytes read from each controller.
fn read(traffic: &Value) -> Vec<u64> {
    let controllers = traffic["controllers"].as_array().expect("controllers");
    controllers.iter().map(|it| it["read"].as_u64().expect("bytes")).collect()
}

/// Bytes over both directions of each link.
fn links(traffic: &Value) -> Vec<u64> {
    let links = traffic["links"].as_array().expect("links");
    let both = |link: &Value| [link["forward"].as_u64(), link["backward"].as_u64()];
    links.iter().flat_map(both).map(|bytes| bytes.expect("bytes")).collect()
}

/// Whether it is about this many bytes; the threads do little else.
#[track_caller]
fn assert_about(found: u64, expected: u64, what: &str) {
    assert!(found.abs_diff(expected) <= PIECE / 5, "{what}: {found}, not about {expected}");
}

#[test]
fn the_ring_loads_all_nodes_alike_in_each_step_and_naive_one_and_migration_stays_near() {
    let counted = counted("westmere-ex-4", "region", &FLAGS, &COMMAND);
    let Some((document, record)) = counted else { return };
    for (step, traffic) in steps(&document, &record, "ring", "pulled").iter().enumerate() {
        for bytes in read(traffic) {
            assert_about(bytes, PIECE, &format!("ring, step {step}, a controller"));
        }
        // Every node reads from another one, each over a link of its own; in the first step, from
        // itself.
        let mut used: Vec<u64> = links(traffic).into_iter().filter(|it| *it > PIECE / 2).collect();
        used.iter_mut().for_each(|bytes| assert_about(*bytes, PIECE, "ring, a link"));
        assert_eq!(used.len(), if step == 0 { 0 } else { 4 }, "ring, step {step}");
    }
    for (step, traffic) in steps(&document, &record, "naive", "pulled").iter().enumerate() {
        for (node, bytes) in read(traffic).into_iter().enumerate() {
            let expected = if node == step { 4 * PIECE } else { 0 };
            assert_about(bytes, expected, &format!("naive, step {step}, controller {node}"));
        }
        let used = links(traffic).into_iter().filter(|bytes| *bytes > PIECE / 2).count();
        assert_eq!(used, 3, "naive, step {step}: three links of one node");
    }
    for traffic in steps(&document, &record, "ring", "threads") {
        for (cpu, row) in tagged_lines(traffic).iter().enumerate() {
            let remote: u64 = row.iter().sum::<u64>() - row[cpu];
            assert_about(64 * row[cpu], PIECE, "migration, lines of the thread's own node");
            assert_about(64 * remote, 0, "migration, lines of another node");
        }
    }
    let local = |order: &str, moved: &str| {
        let rows = document["details"]["rows"].as_array().expect("rows");
        let row = rows.iter().find(|row| row["order"] == order && row["moved"] == moved);
        row.and_then(|row| row["local"].as_f64()).expect("a share")
    };
    assert_eq!((local("ring", "pulled"), local("ring", "threads")), (0.25, 1.0));
}

#[test]
fn lines_of_tagged_pages_are_counted_if_only_regions_reach_the_counter() {
    let command = ["bench", "shuffle", "--order", "ring", "--moved", "pulled", "--runs", "1"];
    let size = ["--coordination", "tight", "--bytes", "16MiB", "--threads", "4"];
    let command = [&command[..], &size].concat();
    let Some((document, record)) = counted("westmere-ex-4", "within", &FLAGS, &command) else {
        return;
    };
    for (step, traffic) in steps(&document, &record, "ring", "pulled").iter().enumerate() {
        for (cpu, row) in tagged_lines(traffic).iter().enumerate() {
            let pieces: Vec<u64> = row.iter().map(|lines| 64 * lines * 4).collect();
            assert_about(pieces.iter().sum(), PIECE, &format!("step {step}, cpu {cpu}"));
            let near = if step == 0 { PIECE } else { 0 };
            assert_about(pieces[cpu], near, &format!("step {step}, own node {cpu}"));
        }
    }
}
