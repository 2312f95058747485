//! Many clients of a server read, write, cancel, vanish and send garbage while it is killed and restarted: acknowledged
//! changes are there, others may be, every refusal has an SQLSTATE, and a server that is not killed has stable memory.
//!
//! `ATOLL_SOAK_SECONDS`, `_CLIENTS`, `_KILLS` and `_SEED` set the amount (`cargo xtask soak`).

mod book;
mod client;
mod hostile;

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use atoll_sys::{kill_process, signal};
use atoll_testkit::lasting_address;

use crate::support::command;
use book::Book;
use client::{SoakClient, connect};

/// Accounts between which money moves.
const ACCOUNTS: i64 = 64;

/// Memory that a server may gain in the second half of a long run without kills, bytes.
const GROWTH: u64 = 64 << 20;

/// Runs that are long enough for their memory to be judged.
const LONG: Duration = Duration::from_secs(240);

/// Extent of a soak.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SoakPlan {
    time: Duration,
    clients: u64,
    kills: u64,
    seed: u64,
}

impl SoakPlan {
    fn from_env(kills: u64) -> Self {
        let number = |name: &str, otherwise| {
            let set = std::env::var(format!("ATOLL_SOAK_{name}")).ok();
            set.map_or(otherwise, |text| text.parse().expect("a number"))
        };
        Self {
            time: Duration::from_secs(number("SECONDS", 4)),
            clients: number("CLIENTS", 24),
            kills: number("KILLS", kills),
            seed: number("SEED", 1),
        }
    }
}

/// `atoll serve` over a directory.
struct Served {
    child: Child,
    address: SocketAddr,
}

impl Served {
    fn start(home: &Path, address: SocketAddr) -> Self {
        let mut command = command(home);
        command.args(["serve", "--insecure-no-password", "--data", "data", "--listen"]);
        command.arg(address.to_string()).stdout(Stdio::null());
        let mut child = command.spawn().expect("the server starts");
        let mut said = BufReader::new(child.stderr.take().expect("stderr is piped"));
        let mut all = String::new();
        while !all.contains("listening on ") {
            let read = said.read_line(&mut all).expect("its words");
            assert!(read > 0, "the server is not ready: {all}");
        }
        std::thread::spawn(move || {
            for line in said.lines().map_while(Result::ok) {
                eprintln!("server: {line}");
            }
        });
        Self { child, address }
    }

    fn end(&mut self, signal: i32) {
        kill_process(self.child.id() as i32, signal).expect("the server runs until it is ended");
        self.child.wait().expect("it ends");
    }

    fn resident(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()));
        let status = status.expect("the server runs");
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kilobytes =
            line.and_then(|it| it.trim().trim_end_matches("kB").trim().parse::<u64>().ok());
        kilobytes.expect("kilobytes") << 10
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn acknowledged_changes_survive_kills_under_load() {
    soak(SoakPlan::from_env(2));
}

#[test]
fn an_uninterrupted_server_loses_no_client() {
    soak(SoakPlan { kills: 0, ..SoakPlan::from_env(0) });
}

fn soak(plan: SoakPlan) {
    let home = tempfile::tempdir().expect("a directory");
    let mut server = Served::start(home.path(), lasting_address());
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = runtime.expect("threads");
    let address = server.address;
    runtime.block_on(set_up(address, plan.clients));

    let book = Arc::new(Book::new(plan.clients));
    let end = Instant::now() + plan.time;
    let clients: Vec<_> = (0..plan.clients)
        .map(|number| {
            let client =
                SoakClient::new(number, plan.seed, plan.kills > 0, address, Arc::clone(&book));
            runtime.spawn(client.run(end))
        })
        .collect();
    let half = runtime.block_on(disturb(&mut server, home.path(), &plan));
    runtime.block_on(async {
        for client in clients {
            client.await.expect("a client found nothing wrong");
        }
    });
    eprintln!("soak: {}", book.told());
    if let Some(half) = half.filter(|_| plan.time >= LONG) {
        let now = server.resident();
        assert!(now <= half + GROWTH, "memory grew from {half} to {now} bytes");
    }
    server.end(signal::TERM);
    let mut server = Served::start(home.path(), address);
    runtime.block_on(async {
        let client = connect(address, Duration::from_secs(60)).await.expect("the server answers");
        book.compare(&client).await;
    });
    server.end(signal::TERM);
}

/// Kills the server and starts it again; without kills, its memory after half of the time.
async fn disturb(server: &mut Served, home: &Path, plan: &SoakPlan) -> Option<u64> {
    if plan.kills == 0 {
        tokio::time::sleep(plan.time / 2).await;
        return Some(server.resident());
    }
    let pause = plan.time / (plan.kills as u32 + 1);
    for _ in 0..plan.kills {
        tokio::time::sleep(pause).await;
        server.end(signal::KILL);
        *server = Served::start(home, server.address);
    }
    None
}

async fn set_up(address: SocketAddr, clients: u64) {
    let client = connect(address, Duration::from_secs(60)).await.expect("the server answers");
    let sql = format!(
        "CREATE TABLE ledger (client BIGINT, number BIGINT, note TEXT, PRIMARY KEY (client, number));
         CREATE TABLE counter (client BIGINT PRIMARY KEY, n BIGINT NOT NULL);
         CREATE TABLE account (id BIGINT PRIMARY KEY, balance BIGINT NOT NULL);
         CREATE UNIQUE INDEX ON ledger (note, client);
         CREATE INDEX ON counter (n);
         CREATE INDEX ON account (balance, id);
         INSERT INTO counter SELECT i, 0 FROM generate_series(0, {}) AS n(i);
         INSERT INTO account SELECT i, 0 FROM generate_series(0, {}) AS n(i)",
        clients.saturating_sub(1),
        ACCOUNTS - 1
    );
    client.batch_execute(&sql).await.expect("the tables are made");
}
