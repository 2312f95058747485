use bytes::Bytes;
use futures::{SinkExt, TryStreamExt};
use tokio_postgres::{Client, SimpleQueryMessage};

use crate::support::{TestServer, answers, block_on, message, startup};

const MOMENT: &str = "SELECT DATE '2024-07-04', TIMESTAMP '2024-07-04 10:11:12.5', \
                      TIMESTAMPTZ '2024-07-04 10:11:12+00', INTERVAL '1 day -2 hours', \
                      ARRAY[DATE '2024-07-04'], row(DATE '2024-07-04', INTERVAL '1 mon')";

/// The values of a statement's first row, between bars.
async fn row(client: &Client, sql: &str) -> String {
    let rows = client.simple_query(sql).await.unwrap_or_else(|error| panic!("{sql}: {error:?}"));
    let row = rows.iter().find_map(|message| match message {
        SimpleQueryMessage::Row(row) => Some(row),
        _ => None,
    });
    let row = row.unwrap_or_else(|| panic!("{sql}: no row"));
    let values = (0..row.len()).map(|at| row.get(at).unwrap_or("NULL"));
    values.collect::<Vec<_>>().join("|")
}

fn told(answer: &[u8], text: &str) -> bool {
    answer.windows(text.len()).any(|part| part == text.as_bytes())
}

fn query(sql: &str) -> Vec<u8> {
    message(b'Q', format!("{sql}\0").as_bytes())
}

/// The values are PostgreSQL's.
#[test]
fn values_are_written_in_the_styles_of_the_session() {
    let server = TestServer::start();
    block_on(async {
        let client = server.connect().await;
        client.batch_execute("SET timezone = 'Europe/Berlin'").await.expect("set");
        for (dates, intervals, wanted) in [
            (
                "ISO, DMY",
                "postgres",
                "2024-07-04|2024-07-04 10:11:12.5|2024-07-04 12:11:12+02|1 day -02:00:00|\
                 {2024-07-04}|(2024-07-04,\"1 mon\")",
            ),
            (
                "SQL, DMY",
                "sql_standard",
                "04/07/2024|04/07/2024 10:11:12.5|04/07/2024 12:11:12 CEST|+0-0 +1 -2:00:00|\
                 {04/07/2024}|(04/07/2024,0-1)",
            ),
            (
                "Postgres, MDY",
                "postgres_verbose",
                "07-04-2024|Thu Jul 04 10:11:12.5 2024|Thu Jul 04 12:11:12 2024 CEST|\
                 @ 1 day -2 hours|{07-04-2024}|(07-04-2024,\"@ 1 mon\")",
            ),
            (
                "German",
                "iso_8601",
                "04.07.2024|04.07.2024 10:11:12.5|04.07.2024 12:11:12 CEST|P1DT-2H|{04.07.2024}|\
                 (04.07.2024,P1M)",
            ),
        ] {
            let set = format!("SET DateStyle = '{dates}'; SET IntervalStyle = {intervals}");
            client.batch_execute(&set).await.expect("set");
            assert_eq!(row(&client, MOMENT).await, wanted, "{dates}");
        }
        // Also of a statement in the same text.
        let sql = "RESET DateStyle; BEGIN; SET LOCAL DateStyle = 'SQL'; SELECT DATE '2024-07-04'";
        assert_eq!(row(&client, sql).await, "07/04/2024");
        assert_eq!(row(&client, "COMMIT; SELECT DATE '2024-07-04'").await, "2024-07-04");
    });
}

#[test]
fn clients_are_told_of_the_styles() {
    let server = TestServer::start();
    let begun = startup(&server, &[("DateStyle", "german"), ("IntervalStyle", "ISO_8601")]);
    assert!(told(&begun, "DateStyle\0German, DMY\0"));
    assert!(told(&begun, "IntervalStyle\0iso_8601\0"));
    let begun = startup(&server, &[("options", "-c datestyle=sql,ymd -c intervalstyle=postgres")]);
    assert!(told(&begun, "DateStyle\0SQL, YMD\0"));
    let refused = startup(&server, &[("datestyle", "Julian")]);
    assert!(told(&refused, "22023"));
    let answer = answers(&server, &[query("SELECT 1"), query("SET DateStyle = dmy")]);
    assert!(told(&answer, "DateStyle\0ISO, DMY\0"));
    let answer = answers(
        &server,
        &[query("BEGIN"), query("SET IntervalStyle = sql_standard"), query("ROLLBACK")],
    );
    let statuses = ["sql_standard\0", "postgres\0"].map(|value| format!("IntervalStyle\0{value}"));
    let found = statuses
        .map(|status| answer.windows(status.len()).rposition(|part| part == status.as_bytes()));
    assert!(found[0].is_some() && found[0] < found[1], "{found:?}");
}

#[test]
fn parameters_in_text_are_read_in_the_order_of_the_session() {
    // The types are DATE and none.
    let parse = b"\0SELECT $1, extract(month FROM $1), $2::DATE\0\0\x02\0\0\x04\x3a\0\0\0\0";
    let value = |text: &str| [&(text.len() as u32).to_be_bytes(), text.as_bytes()].concat();
    let bind = [b"\0\0\0\0\0\x02".as_slice(), &value("01/02/2003"), &value("03/04/2005"), b"\0\0"]
        .concat();
    let run = || {
        let sync = message(b'S', b"");
        [message(b'P', parse), message(b'B', &bind), message(b'E', &[0; 5]), sync].concat()
    };
    let server = TestServer::start();
    let answer = answers(&server, &[run()]);
    assert!(told(&answer, "2003-01-02") && told(&answer, "2005-03-04"));
    let answer = answers(&server, &[query("SET DateStyle = 'German'"), run()]);
    assert!(told(&answer, "01.02.2003") && told(&answer, "03.04.2005"));
}

#[test]
fn prepared_statements_follow_the_styles() {
    let server = TestServer::start();
    block_on(async {
        let client = server.connect().await;
        let sql = "SELECT (DATE '2024-07-04' + $1::INT)::TEXT, $2::TEXT::DATE::TEXT";
        let prepared = client.prepare(sql).await.expect("prepared");
        for (style, wanted) in [
            ("ISO, MDY", ["2024-07-05", "2003-01-02"]),
            ("SQL, DMY", ["05/07/2024", "01/02/2003"]),
            ("ISO, DMY", ["2024-07-05", "2003-02-01"]),
        ] {
            client.batch_execute(&format!("SET DateStyle = '{style}'")).await.expect("set");
            let row = client.query_one(&prepared, &[&1, &"01/02/2003"]).await.expect("a row");
            assert_eq!([row.get::<_, &str>(0), row.get(1)], wanted, "{style}");
        }
    });
}

#[test]
fn copies_have_the_styles() {
    let server = TestServer::start();
    block_on(async {
        let client = server.connect().await;
        let sql = "CREATE TABLE t (d DATE, t TIMESTAMP, i INTERVAL, a DATE[]); \
                   SET DateStyle = 'SQL, DMY'; SET IntervalStyle = sql_standard";
        client.batch_execute(sql).await.expect("a table");
        let text = "04/07/2024\t13/07/2024 10:11:12\t-1 2:00:00\t{31/12/2003}\n";
        let sink = client.copy_in("COPY t FROM STDIN").await.expect("it begins");
        futures::pin_mut!(sink);
        sink.send(Bytes::from_static(text.as_bytes())).await.expect("sent");
        assert_eq!(sink.finish().await.expect("a row"), 1);
        let out = client.copy_out("COPY t TO STDOUT").await.expect("rows");
        let pieces: Vec<Bytes> = out.try_collect().await.expect("all of it");
        assert_eq!(pieces.concat(), text.as_bytes());
        client.batch_execute("RESET ALL").await.expect("reset");
        let wanted = "2024-07-04|2024-07-13 10:11:12|-1 days -02:00:00|{2003-12-31}";
        assert_eq!(row(&client, "SELECT * FROM t").await, wanted);
    });
}
