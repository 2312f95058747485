use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Lines};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::time::Duration;

use atoll_sys::{kill_process, signal};
use serde_json::Value;

use crate::support::{atoll_in, command};

/// The example, from the root of the repository.
const EXAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/atoll.toml");

/// Runs `atoll serve --show-config --json` with additional arguments.
fn shown(home: &Path, arguments: &[&str]) -> Value {
    let line = [&["serve", "--show-config", "--json"], arguments].concat();
    atoll_in(home, &line, "").json()
}

/// A setting, and its source.
fn setting(shown: &Value, name: &str) -> (Value, String) {
    let setting = &shown["settings"][name];
    (setting["value"].clone(), setting["source"].as_str().expect("a source").to_owned())
}

#[test]
fn the_example_has_all_settings_with_their_defaults() {
    let home = tempfile::tempdir().unwrap();
    let (without, example) = (shown(home.path(), &[]), shown(home.path(), &["--config", EXAMPLE]));
    let values = |shown: &Value| -> BTreeMap<String, Value> {
        let settings = shown["settings"].as_object().expect("settings");
        settings.iter().map(|(name, setting)| (name.clone(), setting["value"].clone())).collect()
    };
    assert_eq!(values(&without), values(&example));
    assert_eq!(example["file"], EXAMPLE);
    let text = fs::read_to_string(EXAMPLE).unwrap();
    for (name, value) in values(&without) {
        let is_there = text.contains(&format!("\n{name} = "));
        let is_shown = text.contains(&format!("\n# {name} = "));
        assert!(if value.is_null() { is_shown } else { is_there }, "{name}");
    }
    // Every commented setting must be valid.
    let all = text.lines().map(|line| match line.strip_prefix("# ") {
        Some(rest) if rest.contains(" = ") || rest.starts_with("[[") => format!("{rest}\n"),
        _ => format!("{line}\n"),
    });
    fs::write(home.path().join("all.toml"), all.collect::<String>()).unwrap();
    let all = shown(home.path(), &["--config", "all.toml"]);
    assert_eq!(all["login_rules"], 3);
    assert_eq!(setting(&all, "slow_query_ms"), (500.into(), "file".to_owned()));
}

#[test]
fn flags_override_variables_and_variables_override_the_file() {
    let home = tempfile::tempdir().unwrap();
    let text = "listen = ['127.0.0.1:1', '127.0.0.1:2']\nthreads = 1\nlog_level = 'debug'\ntls_key = 'k'\n";
    fs::write(home.path().join("a.toml"), text).unwrap();
    let mut command = command(home.path());
    command.args(["serve", "--show-config", "--json", "--threads", "3", "--tls-cert", "c"]);
    command.env("ATOLL_CONFIG", "a.toml").env("ATOLL_LOG_LEVEL", "error");
    let output = command.output().unwrap();
    let shown: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(setting(&shown, "threads"), (3.into(), "flag".to_owned()));
    assert_eq!(setting(&shown, "log_level"), ("error".into(), "environment".to_owned()));
    let listen = serde_json::json!(["127.0.0.1:1", "127.0.0.1:2"]);
    assert_eq!(setting(&shown, "listen"), (listen, "file".to_owned()));
    assert_eq!(setting(&shown, "tls_cert").1, "flag");
    assert_eq!(setting(&shown, "tls_key").1, "file");
    assert_eq!(setting(&shown, "data"), (Value::Null, "default".to_owned()));
    let text = atoll_in(home.path(), &["serve", "--show-config", "--config", "a.toml"], "").done();
    assert!(text.contains("listen = [\"127.0.0.1:1\",\"127.0.0.1:2\"]"), "{text}");
    assert!(text.contains("# data is not set"), "{text}");
    fs::write(home.path().join("b.toml"), text).unwrap();
    let again = self::shown(home.path(), &["--config", "b.toml"]);
    assert_eq!(setting(&again, "threads"), (1.into(), "file".to_owned()));
}

#[test]
fn the_file_of_a_data_directory_is_found() {
    let home = tempfile::tempdir().unwrap();
    let data = home.path().join("shop");
    fs::create_dir(&data).unwrap();
    fs::write(data.join("atoll.toml"), "max_connections = 7\n").unwrap();
    let found = shown(home.path(), &["--data", "shop"]);
    assert_eq!(found["file"], "shop/atoll.toml");
    assert_eq!(setting(&found, "max_connections"), (7.into(), "file".to_owned()));
    fs::write(home.path().join("other.toml"), "max_connections = 8\n").unwrap();
    let other = shown(home.path(), &["--data", "shop", "--config", "other.toml"]);
    assert_eq!(setting(&other, "max_connections").0, 8);
}

#[test]
fn a_file_that_is_wrong_stops_the_start() {
    let home = tempfile::tempdir().unwrap();
    for (text, told) in [
        ("\nlisen = '127.0.0.1:1'\n", "a.toml:2: unknown key 'lisen'"),
        ("threads = 'many'\n", "a.toml:1: threads is \"many\"; expected a whole number"),
        ("[[login]]\nfrom = ['10.0.0.1/8']\nmethod = 'scram'\n", "a.toml:2: from is"),
        ("[[login]]\nmethod = 'trust'\n", "a.toml:1: a rule with method = \"trust\""),
        ("tls_cert = 'x'\n", "--tls-cert needs --tls-key"),
        ("tls = 'required'\n", "--tls required needs --tls-cert"),
    ] {
        fs::write(home.path().join("a.toml"), text).unwrap();
        let listen = ["--listen", "127.0.0.1:0", "--threads", "1"];
        let line = [&["serve", "--config", "a.toml"], &listen[..]].concat();
        let error = atoll_in(home.path(), &line, "").failed(2);
        assert!(error.contains(told), "{text}: {error}");
    }
    let error = atoll_in(home.path(), &["serve", "--config", "none.toml"], "").failed(2);
    assert!(error.contains("none.toml"), "{error}");
}

/// A server, and its messages.
struct Served {
    child: Child,
    said: Lines<BufReader<ChildStderr>>,
}

impl Served {
    fn start(home: &Path, arguments: &[&str]) -> Self {
        Self::spawn(command(home), arguments)
    }

    fn spawn(mut command: Command, arguments: &[&str]) -> Self {
        command.args(["serve", "--threads", "1", "--listen", "127.0.0.1:0"]).args(arguments);
        let mut child = command.stdout(Stdio::piped()).spawn().expect("the server starts");
        let said = BufReader::new(child.stderr.take().expect("stderr is piped")).lines();
        let mut served = Self { child, said };
        served.until("listening on ");
        served
    }

    /// Waits for a line that contains a text.
    #[track_caller]
    fn until(&mut self, text: &str) -> String {
        let mut all = Vec::new();
        for line in self.said.by_ref().map_while(Result::ok) {
            if line.contains(text) {
                return line;
            }
            all.push(line);
        }
        panic!("the server ended before it said {text:?}: {all:?}")
    }

    /// The port in the name of its socket in this directory.
    fn port(&mut self, socket: &Path) -> u16 {
        let line = self.until(".s.PGSQL.");
        let name = format!("{}/.s.PGSQL.", socket.display());
        let (_, port) = line.split_once(&name).expect("its name");
        port.trim().parse().expect("a number")
    }

    fn send(&self, signal: i32) {
        kill_process(self.child.id() as i32, signal).expect("the server runs");
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn sighup_reloads_rules_and_bad_ones_change_nothing() {
    let home = tempfile::tempdir().unwrap();
    let data = home.path().join("shop");
    fs::create_dir(&data).unwrap();
    let file = data.join("atoll.toml");
    fs::write(&file, "log_format = 'json'\naudit_log = 'audit.json'\n").unwrap();
    let mut served = Served::start(home.path(), &["--data", "shop"]);
    fs::rename(home.path().join("audit.json"), home.path().join("audit.1")).unwrap();
    fs::write(&file, "[[login]]\nmethod = 'scram'\n").unwrap();
    served.send(signal::HUP);
    let line = served.until("reloaded");
    let line: Value = serde_json::from_str(&line).expect("a JSON line");
    assert_eq!(line["level"], "info");
    assert!(
        line["message"].as_str().is_some_and(|it| it.contains("reloaded 1 login rules")),
        "{line}"
    );
    assert!(home.path().join("audit.json").exists(), "the log is reopened");
    fs::write(&file, "[[login]]\nmethod = 'scam'\n").unwrap();
    served.send(signal::HUP);
    let line = served.until("reload failed");
    assert!(line.contains("shop/atoll.toml:2") && line.contains("\"warning\""), "{line}");
    served.send(signal::INT);
    served.until("stopping");
}

#[test]
fn a_server_is_copied_while_it_runs() {
    let home = tempfile::tempdir().unwrap();
    let socket = home.path().to_str().expect("UTF-8");
    let serve = ["--data", "shop", "--socket", socket];
    let mut served = Served::start(home.path(), &serve);
    let port = served.port(home.path());
    let server = format!("host={socket} port={port}");
    let made =
        "CREATE TABLE t AS SELECT value AS a, value % 7 AS b FROM generate_series(1, 100000);
                CREATE ROLE ann LOGIN PASSWORD 'a'; UPDATE t SET b = 9 WHERE a = 5";
    client(&server, async |client| client.batch_execute(made).await.expect("made"));
    let backup = |to: &str, server: &str| {
        atoll_in(home.path(), &["backup", "--server", server, "--to", to], "")
    };
    let said = backup("copy", &server).done();
    assert!(said.contains("copy and checked"), "{said}");
    // The server continues, and its later changes are not in the copy.
    client(&server, async |client| client.batch_execute("DELETE FROM t").await.expect("done"));
    let taken = backup("copy", &server).failed(1);
    assert!(taken.contains("copy"), "{taken}");
    let unknown = backup("other", &format!("postgres://ann:b@127.0.0.1:{port}")).failed(1);
    assert!(unknown.contains("28P01") && !unknown.contains(":b@"), "{unknown}");
    let denied = backup("other", &format!("postgres://ann:a@127.0.0.1:{port}")).failed(1);
    assert!(denied.contains("42501"), "{denied}");
    backup("other", "host=/nowhere").failed(125);
    backup("other", "nonsense").failed(2);
    let from_nowhere = atoll_in(home.path(), &["backup", "--to", "other"], "").failed(2);
    assert!(
        from_nowhere.contains("--data DIR") && from_nowhere.contains("--server URL"),
        "{from_nowhere}"
    );
    assert!(!home.path().join("other").exists());
    served.send(signal::TERM);
    served.until("checkpoint complete");
    let query = "SELECT count(*), sum(a * b) FROM t";
    let rows = |data: &str| {
        atoll_in(home.path(), &["sql", "--data", data, "--csv", "-c", query], "").done()
    };
    let sum: i64 = (1..=100_000_i64).map(|a| if a == 5 { 45 } else { a * (a % 7) }).sum();
    assert_eq!(rows("copy").lines().last(), Some(format!("100000,{sum}").as_str()));
    assert_eq!(rows("shop").lines().last(), Some("0,"));
}

/// Does something with a client of a server.
fn client(server: &str, does: impl AsyncFnOnce(&tokio_postgres::Client)) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a thread").block_on(async {
        let server = format!("{server} dbname=atoll");
        let (client, connection) =
            tokio_postgres::connect(&server, tokio_postgres::NoTls).await.expect("it answers");
        tokio::spawn(connection);
        does(&client).await;
    });
}

#[test]
fn a_supervisor_is_notified_of_readiness_and_stop() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("notify");
    let name = format!("atoll-notify-{}", std::process::id());
    let nameless = SocketAddr::from_abstract_name(&name).expect("an address");
    for (socket, supervisor) in [
        (file.to_str().expect("UTF-8").to_owned(), UnixDatagram::bind(&file)),
        (format!("@{name}"), UnixDatagram::bind_addr(&nameless)),
    ] {
        let supervisor = supervisor.expect("a socket");
        supervisor.set_read_timeout(Some(Duration::from_secs(60))).expect("a socket");
        let told = || {
            let mut text = [0; 100];
            let length =
                supervisor.recv(&mut text).unwrap_or_else(|error| panic!("{socket}: {error}"));
            String::from_utf8_lossy(&text[..length]).into_owned()
        };
        let mut command = command(home.path());
        command.env("NOTIFY_SOCKET", &socket);
        let mut served =
            Served::spawn(command, &["--socket", home.path().to_str().expect("UTF-8")]);
        assert_eq!(told(), "READY=1", "{socket}");
        // Clients can connect now.
        let server = format!("host={} port={}", home.path().display(), served.port(home.path()));
        client(&server, async |client| {
            client.batch_execute("SELECT 1").await.expect("a row");
        });
        served.send(signal::TERM);
        assert_eq!(told(), "STOPPING=1", "{socket}");
        assert!(served.child.wait().expect("it ends").success());
    }
    // A missing socket does not keep the server from serving.
    let mut command = command(home.path());
    command.env("NOTIFY_SOCKET", home.path().join("nowhere"));
    Served::spawn(command, &[]);
}
