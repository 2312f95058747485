//! Pools: dedicated cores for a class of statements.

use std::sync::atomic::{AtomicBool, Ordering};

use atoll_placement::Strategy;
use atoll_sql::Session;
use atoll_sql::datafusion::common::ScalarValue;
use atoll_sql::datafusion::physical_plan::ExecutionPlanProperties;
use atoll_testkit::machines;
use futures::future::join_all;

use crate::common::{fake, rows, run, texts};

fn four_nodes() -> Session {
    fake(machines::four_nodes(), Strategy::Aligned)
}

/// Name, cpus and nodes of each pool.
fn pools(session: &Session) -> Vec<String> {
    let found = rows(session, "SELECT pool, cpus, nodes, workers FROM atoll.pools");
    found.into_iter().map(|row| row.join(" ")).collect()
}

/// Sessions of a pool.
fn users(session: &Session, pool: &str) -> String {
    rows(session, &format!("SELECT users FROM atoll.pools WHERE pool = '{pool}'"))[0][0].clone()
}

fn error(session: &Session, sql: &str) -> String {
    run(session, sql).expect_err(sql).message
}

/// Partitions of a scan by the session's next statement.
fn partitions(session: &Session) -> usize {
    let plan = session.runtime().block_on(session.plan("SELECT a FROM t WHERE a % 7 = 3"));
    plan.expect("a plan").0.output_partitioning().partition_count()
}

#[test]
fn a_pool_takes_its_cores_from_statements_without_one_and_gives_them_back() {
    let session = four_nodes();
    let reports = session.database().session().expect("a session");
    let all = pools(&session);
    let [alone] = &all[..] else { panic!("{all:?}") };
    assert!(alone.starts_with("NULL "), "{alone}");
    rows(&session, "CREATE TABLE t AS SELECT i AS a FROM generate_series(1, 300000) AS s(i)");
    let workers = session.runtime().worker_count();
    rows(&session, "CREATE POOL reports ON NODE 1");
    let node = &machines::four_nodes().nodes[1];
    let now = pools(&session);
    let own = node.cpus.len();
    assert_eq!(now[1], format!("reports {} 1 {own}", node.cpus));
    assert!(
        now[0].contains(" 0,2-3 ") && now[0].ends_with(&format!(" {}", workers - own)),
        "{now:?}"
    );
    assert_eq!((partitions(&session), partitions(&reports)), (workers - own, workers - own));
    rows(&reports, "SET atoll.pool = reports");
    assert_eq!((partitions(&session), partitions(&reports)), (workers - own, own));
    assert_eq!(users(&session, "reports"), "1");
    let sum = "SELECT a % 10, count(*), sum(a) FROM t GROUP BY a % 10 ORDER BY 1";
    assert_eq!(rows(&session, sum), rows(&reports, sum));
    rows(&reports, "CREATE TABLE u AS SELECT a FROM t WHERE a <= 1000");
    rows(&reports, "UPDATE u SET a = a + 1 WHERE a > 500");
    assert_eq!(rows(&session, "SELECT sum(a) FROM u"), [["501000"]]);
    rows(&reports, "RESET atoll.pool");
    rows(&session, "DROP POOL reports");
    assert_eq!(pools(&session), all);
    assert_eq!((partitions(&session), partitions(&reports)), (workers, workers));
}

#[test]
fn invalid_changes_are_refused_with_the_reason() {
    let session = four_nodes();
    let other = session.database().session().expect("a session");
    assert!(
        error(&session, "SET atoll.pool = x")
            .contains("pool 'x' does not exist; there are no pools")
    );
    assert!(
        error(&session, "CREATE POOL a ON NODE 9")
            .contains("node 9 has no cpus; nodes with cpus: 0, 1")
    );
    assert!(
        error(&session, "CREATE POOL a ON CORES 0-999").contains("does not exist; the machine has")
    );
    assert!(error(&session, "CREATE POOL a").contains("expected CREATE POOL name ON NODE 1"));
    let cores = machines::four_nodes().cores.len();
    let all = error(&session, &format!("CREATE POOL a ON CORES 0-{}", cores - 1));
    assert!(all.contains("would leave no core"), "{all}");
    rows(&session, "CREATE POOL a ON CORES 0");
    assert!(error(&session, "CREATE POOL a ON NODE 1").contains("pool 'a' exists already"));
    let overlap = error(&session, "CREATE POOL b ON NODE 0");
    assert!(overlap.contains("pool 'a' has them"), "{overlap}");
    assert!(error(&session, "SET atoll.pool = b").contains("pool 'b' does not exist; pools: a"));
    assert!(error(&session, "DROP POOL b").contains("pool 'b' does not exist"));
    rows(&other, "SET atoll.pool = 'a'");
    assert!(error(&session, "DROP POOL a").contains("pool 'a' is in use by 1 sessions"));
    assert_eq!(rows(&other, "SELECT 1"), [["1"]]);
    assert!(error(&other, "SET atoll.pool = nowhere").contains("does not exist"));
    assert_eq!(users(&session, "a"), "1");
    drop(other);
    rows(&session, "DROP POOL a");
}

#[test]
fn shared_scans_hand_their_chunks_over_while_pools_come_and_go() {
    let session = four_nodes();
    rows(
        &session,
        "CREATE TABLE t AS SELECT i AS id, i * 7919 % 1000 AS a FROM generate_series(0, 19999) AS s(i)",
    );
    let is_over = AtomicBool::new(false);
    session.runtime().block_on(async {
        let clients = (0..24_i64).map(|client| {
            let own = session.database().session().expect("a session");
            let is_over = &is_over;
            async move {
                if client % 6 == 5 {
                    own.run("SET atoll.shared_scan = on").await.expect("set");
                }
                let sql = "SELECT id FROM t WHERE a = $1 AND id < $2";
                let read = own.prepare(sql).await.expect(sql);
                let (mut value, mut asked) = (client, 0);
                while !is_over.load(Ordering::Relaxed) {
                    value = (value * 31 + 7) % 1000;
                    let values = [ScalarValue::from(value), ScalarValue::from(50_000_i64)];
                    let found = read.execute(&values).await.expect("it runs").collect().await;
                    let found: Vec<_> = found.expect("it ends").iter().flat_map(texts).collect();
                    assert_eq!(found.len(), 20, "rows with a = {value}");
                    asked += 1;
                    tokio::task::yield_now().await;
                }
                asked
            }
        });
        let pools = async {
            let own = session.database().session().expect("a session");
            let reports = session.database().session().expect("a session");
            let done = async |session: &Session, sql: &str| {
                session.run(sql).await.expect(sql).collect().await.expect(sql)
            };
            for round in 0..6 {
                for node in 1..4 {
                    done(&own, &format!("CREATE POOL p{node} ON NODE {node}")).await;
                }
                let node = round % 3 + 1;
                done(&reports, &format!("SET atoll.pool = p{node}")).await;
                let read = "SELECT count(*) FROM t WHERE a = $1";
                let read = reports.prepare(read).await.expect(read);
                let found = read.execute(&[5_i64.into()]).await.expect("it runs").collect().await;
                assert_eq!(texts(&found.expect("it ends")[0]), [["20"]]);
                done(&reports, "RESET atoll.pool").await;
                for node in 1..4 {
                    drop_pool(&own, &format!("DROP POOL p{node}")).await;
                }
            }
            is_over.store(true, Ordering::Relaxed);
        };
        let (asked, ()) = tokio::join!(join_all(clients), pools);
        assert!(asked.iter().all(|asked: &u32| *asked > 0), "{asked:?}");
    });
    assert_eq!(pools(&session).len(), 1);
}

/// The cores of statements without a pool in `atoll.pools`.
fn cores(session: &Session) -> String {
    let sql = "SELECT cpus, nodes, cores, cores_setting FROM atoll.pools WHERE pool IS NULL";
    rows(session, sql)[0].join(" ")
}

#[test]
fn cores_are_set_for_all_sessions_and_shown() {
    let session = four_nodes();
    let other = session.database().session().expect("a session");
    let all = cores(&session);
    let count = machines::four_nodes().cores.len();
    assert!(all.ends_with(&format!(" 0-3 {count} all")), "{all}");
    for (set, shown) in [("1", "1"), ("'3'", "3"), ("'ELASTIC'", "elastic"), ("'all'", "all")] {
        rows(&session, &format!("SET atoll.cores = {set}"));
        for session in [&session, &other] {
            assert_eq!(rows(session, "SHOW atoll.cores")[0][1], shown);
            assert!(cores(session).ends_with(&format!(" {shown}")));
        }
    }
    assert_eq!(cores(&session), all);
    rows(&session, "SET atoll.cores = 2");
    let two = cores(&other);
    assert!(two.ends_with(" 0 2 2"), "dense: on one node: {two}");
    let wide = error(&session, &format!("SET atoll.cores = {}", count + 1));
    assert!(wide.contains(&format!("statements without a pool have {count} cores")), "{wide}");
    for wrong in ["0", "'-1'", "'many'", "''"] {
        let error = error(&session, &format!("SET atoll.cores = {wrong}"));
        assert!(error.contains("expected all, elastic or a number of cores"), "{wrong}: {error}");
    }
    assert_eq!(cores(&session), two);
    rows(&session, "CREATE POOL reports ON NODE 0");
    assert!(cores(&session).ends_with(" 1 2 2"), "{}", cores(&session));
    rows(&session, "DROP POOL reports");
    rows(&session, "RESET atoll.cores");
    assert_eq!(cores(&other), all);
}

#[test]
fn statements_and_shared_scans_go_on_while_cores_come_and_go() {
    let session = four_nodes();
    rows(
        &session,
        "CREATE TABLE t AS SELECT i AS id, i * 7919 % 1000 AS a FROM generate_series(0, 199999) AS s(i)",
    );
    let grouped = "SELECT a % 100 AS k, count(*), sum(id) FROM t GROUP BY k ORDER BY k";
    let joined = "SELECT count(*) FROM t x JOIN t y ON x.id = y.id AND x.a = y.a WHERE x.a < 500";
    let expected = [rows(&session, grouped), rows(&session, joined)];
    let is_over = AtomicBool::new(false);
    session.runtime().block_on(async {
        let analysts = [grouped, joined].into_iter().zip(&expected).map(|(sql, expected)| {
            let (own, is_over) = (session.database().session().expect("a session"), &is_over);
            async move {
                let mut asked = 0_u32;
                while !is_over.load(Ordering::Relaxed) {
                    let found = own.run(sql).await.expect(sql).collect().await.expect(sql);
                    assert_eq!(&found.iter().flat_map(texts).collect::<Vec<_>>(), expected);
                    asked += 1;
                }
                asked
            }
        });
        let clients = (0..8_i64).map(|client| {
            let (own, is_over) = (session.database().session().expect("a session"), &is_over);
            async move {
                let sql = "SELECT count(*) FROM t WHERE a = $1 AND id < $2";
                let read = own.prepare(sql).await.expect(sql);
                let mut asked = 0_u32;
                while !is_over.load(Ordering::Relaxed) {
                    let value = (client * 31 + i64::from(asked) * 7) % 1000;
                    let values = [ScalarValue::from(value), ScalarValue::from(500_000_i64)];
                    let found = read.execute(&values).await.expect("it runs").collect().await;
                    assert_eq!(texts(&found.expect("it ends")[0]), [["200"]], "a = {value}");
                    asked += 1;
                    tokio::task::yield_now().await;
                }
                asked
            }
        });
        let cores = async {
            let own = session.database().session().expect("a session");
            for turn in 0..40 {
                let cores = ["1", "7", "'elastic'", "2", "'all'", "3"][turn % 6];
                let sql = format!("SET atoll.cores = {cores}");
                own.run(&sql).await.expect(&sql).collect().await.expect(&sql);
                let one = "SELECT max(id) FROM t";
                let found = own.run(one).await.expect(one).collect().await.expect(one);
                assert_eq!(texts(&found[0]), [["199999"]]);
            }
            is_over.store(true, Ordering::Relaxed);
        };
        let (analysts, clients, ()) = tokio::join!(join_all(analysts), join_all(clients), cores);
        assert!(analysts.iter().chain(&clients).all(|asked: &u32| *asked > 0), "{analysts:?}");
    });
    rows(&session, "SET atoll.cores = 'all'");
    assert!(cores(&session).ends_with(" all"));
}

/// Drops a pool as soon as the last cycle on it has ended.
async fn drop_pool(session: &Session, sql: &str) {
    while let Err(error) = session.run(sql).await {
        assert!(error.message.contains("is in use"), "{}", error.message);
        tokio::task::yield_now().await;
    }
}
