use crate::support::atoll;

#[test]
fn topo_prints_a_tree_for_people() {
    let text = atoll(&["topo"]).done();
    assert!(text.starts_with("Machine "), "{text}");
    assert!(text.contains("node 0") && text.contains("Distances"), "{text}");
}

#[test]
fn topo_prints_one_json_document_for_programs() {
    let machine: serde_json::Value =
        serde_json::from_str(&atoll(&["topo", "--json"]).done()).unwrap();
    assert!(!machine["nodes"].as_array().unwrap().is_empty());
    assert!(!machine["cpus"].as_array().unwrap().is_empty());
    assert_eq!(machine["sources"]["structure"], "discovered");
}

#[test]
fn topo_describes_a_synthetic_machine() {
    let text = atoll(&["topo", "--json", "--synthetic", "node:4 core:2 pu:1"]).done();
    let machine: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(machine["nodes"].as_array().unwrap().len(), 4);
    assert_eq!(machine["cpus"].as_array().unwrap().len(), 8);
}

#[test]
fn an_invalid_description_is_reported_with_an_example() {
    let error = atoll(&["topo", "--synthetic", "node:x"]).failed(125);
    assert!(error.starts_with("error: ") && error.contains("an example is"), "{error}");
}
