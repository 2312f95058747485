use crate::support::atoll;

#[test]
fn tables_beyond_the_memory_limit_are_refused_and_the_limit_is_told() {
    let make = "CREATE TABLE t AS SELECT * FROM lineitem UNION ALL SELECT * FROM lineitem";
    let error = atoll(&["sql", "--tpch", "0.1", "--memory-limit", "1MiB", "-c", make]).failed(1);
    assert!(error.to_lowercase().contains("memory"), "{error}");
}

#[test]
fn a_query_that_fits_the_memory_limit_runs_under_it() {
    let line = ["sql", "--tpch", "0.01", "--memory-limit", "512MiB", "--mode", "csv", "-c"];
    let count = "SELECT count(*) AS n FROM (SELECT * FROM lineitem ORDER BY l_comment)";
    let rows = atoll(&[&line[..], &[count]].concat()).done();
    assert!(rows.starts_with("n\n6"), "{rows}");
}

#[test]
fn threads_are_as_many_as_told() {
    let count = "SELECT count(*) AS n FROM atoll.workers";
    for threads in ["1", "3"] {
        let ran = atoll(&["sql", "--threads", threads, "--mode", "csv", "-c", count]);
        assert_eq!(ran.done(), format!("n\n{threads}\n"));
    }
    let error = atoll(&["sql", "--threads", "0", "-c", "SELECT 1"]).failed(125);
    assert!(error.contains("threads"), "{error}");
}

#[test]
fn placement_is_as_told() {
    let asked = "SELECT DISTINCT placement FROM atoll.tables";
    let line =
        ["sql", "--tpch", "0.001", "--placement", "interleave", "--mode", "csv", "-c", asked];
    assert_eq!(atoll(&line).done(), "placement\ninterleave\n");
}
