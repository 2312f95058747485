use std::time::Duration;

use tokio_postgres::Client;
use tokio_postgres::error::SqlState;

use crate::support::{TestServer, block_on};

/// Whether a lock is free for a client, which does not keep it.
async fn is_free(client: &Client, number: i64) -> bool {
    let sql = format!("SELECT pg_try_advisory_lock({number})");
    let locked: bool = client.query_one(&sql, &[]).await.expect("tried").get(0);
    if locked {
        let sql = format!("SELECT pg_advisory_unlock({number})");
        assert!(client.query_one(&sql, &[]).await.expect("unlocked").get::<_, bool>(0));
    }
    locked
}

#[test]
fn advisory_locks_exclude_other_sessions() {
    let server = TestServer::start();
    block_on(async {
        let (holder, other) = (server.connect().await, server.connect().await);
        holder.batch_execute("SELECT pg_advisory_lock(1)").await.expect("locked");
        assert!(!is_free(&other, 1).await);
        other.batch_execute("SET lock_timeout = '10ms'").await.expect("set");
        let error = other.batch_execute("SELECT pg_advisory_lock(1)").await.expect_err("locked");
        assert_eq!(error.code(), Some(&SqlState::LOCK_NOT_AVAILABLE));
        other
            .batch_execute("SET lock_timeout = 0; SET statement_timeout = '300ms'")
            .await
            .expect("set");
        let error = other.batch_execute("SELECT pg_advisory_lock(1)").await.expect_err("locked");
        assert_eq!(error.code(), Some(&SqlState::QUERY_CANCELED));
        other.batch_execute("SET statement_timeout = 0").await.expect("set");
        let waits = other.batch_execute("SELECT pg_advisory_lock(1)");
        let gives = async {
            tokio::time::sleep(Duration::from_millis(20)).await;
            holder.batch_execute("SELECT pg_advisory_unlock(1)").await
        };
        let (waited, given) = tokio::join!(waits, gives);
        waited.and(given).expect("it is handed over");
        assert!(!is_free(&holder, 1).await);
        other.batch_execute("DISCARD ALL").await.expect("discarded");
        assert!(is_free(&holder, 1).await);
    });
}

#[test]
fn locks_end_with_their_session_or_transaction() {
    let server = TestServer::start();
    block_on(async {
        let (holder, other) = (server.connect().await, server.connect().await);
        for end in ["COMMIT", "ROLLBACK"] {
            holder.batch_execute("BEGIN; SELECT pg_advisory_xact_lock(1)").await.expect("locked");
            assert!(!is_free(&other, 1).await);
            holder.batch_execute(end).await.expect("ended");
            assert!(is_free(&other, 1).await, "{end}");
        }
        holder.batch_execute("SELECT pg_advisory_xact_lock(1)").await.expect("locked");
        assert!(is_free(&other, 1).await);
        holder.batch_execute("SELECT pg_advisory_lock(2)").await.expect("locked");
        assert!(!is_free(&other, 2).await);
        drop(holder);
        other.batch_execute("SELECT pg_advisory_lock(2)").await.expect("it becomes free");
    });
}
