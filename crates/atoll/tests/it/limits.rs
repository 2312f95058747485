use crate::support::{atoll, atoll_with};

#[test]
fn tables_beyond_the_memory_limit_are_refused_with_the_limit() {
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
fn the_number_of_threads_is_as_requested() {
    let count = "SELECT count(*) AS n FROM atoll.workers";
    for threads in ["1", "3"] {
        let ran = atoll(&["sql", "--threads", threads, "--mode", "csv", "-c", count]);
        assert_eq!(ran.done(), format!("n\n{threads}\n"));
    }
    let error = atoll(&["sql", "--threads", "0", "-c", "SELECT 1"]).failed(125);
    assert!(error.contains("threads"), "{error}");
}

#[test]
fn placement_is_as_requested() {
    let asked = "SELECT DISTINCT placement FROM atoll.tables";
    let line =
        ["sql", "--tpch", "0.001", "--placement", "interleave", "--mode", "csv", "-c", asked];
    assert_eq!(atoll(&line).done(), "placement\ninterleave\n");
}

#[test]
fn what_an_aggregate_holds_counts_whatever_it_reserves() {
    let hold = "SELECT array_length(array_agg(repeat(to_hex(value * 7919), 20))) AS n \
                FROM generate_series(1, 1200000)";
    let line = ["sql", "--memory-limit", "64MiB", "--mode", "csv", "-c", hold];
    let error = atoll(&line).failed(1);
    assert!(error.contains("memory limit") && error.contains("64.0 MiB"), "{error}");
}

#[test]
fn a_result_that_is_kept_to_be_drawn_counts() {
    let rows = "SELECT value, repeat(to_hex(value * 7919), 20) FROM generate_series(1, 1200000)";
    let line = ["sql", "--memory-limit", "64MiB", "-c", ".maxrows 0", "-c", rows];
    let error = atoll(&line).failed(1);
    assert!(error.contains("memory limit"), "{error}");
}

#[test]
fn statements_after_one_that_ran_out_of_memory_have_all_of_it() {
    let script = "CREATE TABLE t AS SELECT repeat(to_hex(value), 30) AS s FROM generate_series(1, 300000);\n\
                  SELECT count(*) AS n FROM (SELECT DISTINCT s FROM t);\n\
                  DROP TABLE t;\n";
    let line = ["sql", "--memory-limit", "96MiB", "--mode", "csv"];
    let ran = atoll_with(&line, &script.repeat(3));
    assert_eq!(ran.done(), "n\n300000\n".repeat(3));
}
