use crate::support::{Ran, atoll};

/// The demo succeeds, or reports that the kernel prevented verifying the placement: containers may do so, which is not
/// the demo's fault.
#[track_caller]
fn text(ran: Ran) -> String {
    match ran.code {
        Some(0) => {}
        Some(3) => assert!(ran.err.contains("placement failed"), "{ran:?}"),
        _ => panic!("{ran:?}"),
    }
    ran.out
}

#[test]
fn the_demo_proves_itself_in_one_document() {
    let line = ["demo", "--scale-factor", "0.01", "--threads", "2", "--json"];
    let facts: serde_json::Value = serde_json::from_str(&text(atoll(&line))).unwrap();
    let queries = facts["queries"].as_array().unwrap();
    assert_eq!(queries.len(), 22);
    assert!(queries.iter().all(|query| query["error"].is_null()), "{queries:?}");
    // Known for every scale factor: Q1 has four groups, Q6 one sum.
    assert_eq!((&queries[0]["rows"], &queries[5]["rows"]), (&4.into(), &1.into()));
    assert_eq!(facts["load"]["tables"].as_array().unwrap().len(), 8);
    assert!(facts["load"]["rows"].as_u64().unwrap() > 80_000);
    assert_eq!(facts["placement"]["workers"].as_array().unwrap().len(), 2);
    assert!(facts["plan"]["text"].as_str().unwrap().contains("Join"));
    let memory = &facts["memory"];
    assert!(memory["process"]["peak_bytes"].as_u64() >= memory["tables_bytes"].as_u64());
    assert!(facts["machine"]["nodes"].is_array());
}

#[test]
fn the_demo_tells_people_every_part() {
    let line = ["demo", "--scale-factor", "0.01", "--placement", "interleave"];
    let text = text(atoll(&line));
    for part in [
        "The machine",
        "Tables loaded",
        "lineitem",
        "Placement achieved",
        "worker 0 of node",
        "The 22 queries",
        "  Q22 ",
        "EXPLAIN ANALYZE of Q12",
        "Memory",
        "Total time:",
        "placement interleave",
    ] {
        assert!(text.contains(part), "{part} is missing in {text}");
    }
    assert!(!text.contains("FAILED"), "{text}");
}

#[test]
fn a_scale_factor_that_makes_no_sense_is_refused() {
    for factor in ["0", "-1", "NaN"] {
        let error = atoll(&["demo", "--scale-factor", factor]).failed(2);
        assert!(error.contains("expected a number above 0"), "{error}");
    }
}
