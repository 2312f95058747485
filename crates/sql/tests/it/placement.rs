//! The location of chunks and pipelines in the tables of the knowledge base and EXPLAIN.

use std::sync::Arc;

use atoll_placement::{Kernel, Strategy};
use atoll_sql::DatabaseOptions;
use atoll_testkit::kernel::SimulatedKernel;
use atoll_testkit::{Need, machines, skip};

use crate::common::{fake, live, rows, session};

const MAKE: &str =
    "CREATE TABLE t AS SELECT value AS k, value % 7 AS v FROM generate_series(1, 400000)";

fn number(text: &str) -> u64 {
    text.parse().expect("a number")
}

#[test]
fn pages_of_aligned_tables_are_where_they_are_wanted_on_every_machine() {
    for machine in machines::all() {
        let name = machine.name.clone();
        let session = fake(machine, Strategy::Aligned);
        rows(&session, MAKE);
        let strays = rows(
            &session,
            "SELECT count(*) FROM atoll.pages WHERE wanted_node IS DISTINCT FROM found_node",
        );
        assert_eq!(strays, [["0"]], "{name}");
        let pages = rows(&session, "SELECT sum(pages) FROM atoll.pages");
        assert!(number(&pages[0][0]) > 0, "{name}");
    }
}

#[test]
fn an_aligned_scan_reads_local_memory_and_one_ahead_reads_remote_memory() {
    for (placement, local) in [("aligned", true), ("ahead(1)", false)] {
        let session = fake(machines::four_nodes(), Strategy::Aligned);
        let with =
            MAKE.replace(" AS SELECT", &format!(" WITH (placement = '{placement}') AS SELECT"));
        rows(&session, &with);
        let plan = rows(&session, "EXPLAIN ANALYZE SELECT sum(v) FROM t WHERE k % 2 = 0");
        let text = &plan[0][1];
        let scan = text.lines().find(|line| line.contains("ScanExec")).expect("there is a scan");
        assert_eq!(scan.contains("bytes_remote=0"), local, "{placement}: {scan}");
        assert_eq!(scan.contains("bytes_local=0"), !local, "{placement}: {scan}");
    }
}

#[test]
fn interleaved_chunks_lie_on_all_nodes_and_a_setting_decides_for_new_tables() {
    let session = fake(machines::four_nodes(), Strategy::Aligned);
    rows(&session, "SET atoll.placement = 'interleave'");
    rows(&session, MAKE);
    let homes = rows(&session, "SELECT count(DISTINCT found_node) FROM atoll.pages");
    assert_eq!(homes, [["4"]]);
    let placement = rows(&session, "SELECT placement FROM atoll.tables");
    assert_eq!(placement, [["interleave"]]);
}

#[test]
fn a_replicated_table_has_a_copy_on_every_node_and_is_read_locally() {
    let session = fake(machines::four_nodes(), Strategy::Replicate);
    rows(&session, MAKE);
    let copies =
        rows(&session, "SELECT found_node, pages > 0 FROM atoll.pages ORDER BY found_node");
    assert_eq!(copies.len(), 4, "{copies:?}");
    let plan = rows(&session, "EXPLAIN ANALYZE SELECT sum(v) FROM t");
    let scan = plan[0][1].lines().find(|line| line.contains("ScanExec")).expect("a scan");
    assert!(scan.contains("bytes_remote=0"), "{scan}");
    assert_eq!(rows(&session, "SELECT count(*) FROM t"), [["400000"]]);
}

#[test]
fn explain_names_the_home_of_every_partition_and_exchanges_between_pools() {
    let session = fake(machines::two_nodes(), Strategy::Aligned);
    rows(&session, MAKE);
    let explain = || {
        let plan = rows(&session, "EXPLAIN SELECT v, count(*) FROM t GROUP BY v");
        plan.iter().map(|row| row.join(" ")).collect::<String>()
    };
    let text = explain();
    assert!(text.contains("homes=[0,"), "{text}");
    assert!(text.contains(",1]"), "{text}");
    assert!(text.contains("input=exchanged"), "{text}");
    assert!(!text.contains("ExchangeExec"), "{text}");
    rows(&session, "SET atoll.aggregate = 'off'");
    let text = explain();
    assert!(text.contains("ExchangeExec"), "{text}");
}

#[test]
fn one_pool_plans_no_exchange_of_atolls() {
    let session = live();
    if session.runtime().pools().len() > 1 {
        return skip(Need::OneNode, "this machine has several nodes with cpus");
    }
    rows(&session, MAKE);
    let plan = rows(&session, "EXPLAIN SELECT v, count(*) FROM t GROUP BY v");
    let text = plan.iter().map(|row| row.join(" ")).collect::<String>();
    assert!(!text.contains("ExchangeExec") && !text.contains("HomeExec"), "{text}");
}

#[test]
fn a_refused_mbind_is_not_an_error_and_pages_are_located() {
    let machine = Arc::new(machines::two_nodes());
    let kernel = SimulatedKernel::new(Arc::clone(&machine));
    kernel.refuse("mbind");
    let kernel: Arc<dyn Kernel> = Arc::new(kernel);
    let session = session(machine, kernel, DatabaseOptions::default());
    rows(&session, MAKE);
    assert!(!session.arena().fallbacks().is_empty());
    assert_eq!(rows(&session, "SELECT count(*), sum(v) > 0 FROM t"), [["400000", "true"]]);
}

#[test]
fn the_knowledge_base_can_be_joined() {
    let session = fake(machines::eight_uneven_nodes(), Strategy::Aligned);
    let joined = rows(
        &session,
        "SELECT n.node, count(c.cpu), max(n.cpu_count) FROM atoll.nodes n \
         LEFT JOIN atoll.cpus c ON c.node = n.node GROUP BY n.node ORDER BY n.node",
    );
    let nodes = session.machine().nodes.len();
    assert_eq!(joined.len(), nodes);
    assert!(joined.iter().all(|row| row[1] == row[2]), "{joined:?}");
    let distances = rows(&session, "SELECT count(*) FROM atoll.distances");
    assert_eq!(distances, [[(nodes * nodes).to_string()]]);
    let unbound = rows(&session, "SELECT count(*) FROM atoll.workers WHERE NOT bound");
    assert_eq!(unbound, [["0"]]);
}
