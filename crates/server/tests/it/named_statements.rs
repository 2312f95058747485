//! Statements that clients name by their protocol.

use tokio_postgres::SimpleQueryMessage;

use crate::support::{TestServer, block_on};

#[test]
fn statements_that_a_client_names_are_listed_and_executed() {
    let server = TestServer::start();
    block_on(async {
        let client = server.connect().await;
        let sum = client.prepare("SELECT $1::INT + $2").await.expect("prepared");
        let listed =
            "SELECT name, statement, parameter_types, from_sql FROM pg_prepared_statements";
        let rows = client.simple_query(listed).await.expect("rows");
        let row = rows.iter().find_map(|message| match message {
            SimpleQueryMessage::Row(row) => Some(row),
            _ => None,
        });
        let of = |at: usize| row.and_then(|row| row.get(at)).unwrap_or("");
        let name = of(0);
        assert_eq!([of(1), of(2), of(3)], ["SELECT $1::INT + $2", "{integer,integer}", "f"]);
        let executed = client.simple_query(&format!("EXECUTE {name}(2, 3)")).await.expect("5");
        let five = executed.iter().find_map(|message| match message {
            SimpleQueryMessage::Row(row) => row.get(0),
            _ => None,
        });
        assert_eq!(five, Some("5"));
        drop(sum);
        client.batch_execute("DEALLOCATE ALL").await.expect("deallocated");
        let left = client.simple_query(listed).await.expect("none");
        assert!(!left.iter().any(|message| matches!(message, SimpleQueryMessage::Row(_))));
    });
}
