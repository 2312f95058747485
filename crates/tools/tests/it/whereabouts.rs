//! `where`, on the process of these tests and on programs that they start.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;

fn whereabouts(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_atoll-tools"));
    command.arg("where").args(arguments);
    command
}

fn output(arguments: &[&str]) -> Output {
    whereabouts(arguments).output().unwrap()
}

fn own_pid() -> String {
    std::process::id().to_string()
}

/// Ends with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn the_document_says_where_this_process_lives() {
    let output = output(&[&own_pid(), "--json", "--over", "0.01"]);
    assert!(output.status.success(), "{output:?}");
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    let process = &document["processes"][0];
    assert_eq!(process["pid"], std::process::id());
    assert!(process["threads"].as_array().unwrap().iter().all(|thread| thread["tid"].is_u64()));
    let sum = |key| -> u64 {
        let nodes = document["nodes"].as_array().unwrap();
        nodes.iter().map(|node| node[key].as_u64().unwrap()).sum()
    };
    assert_eq!(sum("threads"), process["threads"].as_array().unwrap().len() as u64);
    assert_eq!(sum("memory_bytes"), process["memory"]["resident_bytes"]);
    for key in ["balancing", "warnings", "missing", "memory", "over_seconds", "at"] {
        assert!(!document[key].is_null(), "{key}");
    }
}

#[test]
fn the_first_lines_for_people_are_the_nodes() {
    let output = output(&[&own_pid(), "--over", "0.01"]);
    let text = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[0].contains(&format!("(process {})", own_pid())), "{text}");
    assert!(lines[3].starts_with("node  cpus"), "{text}");
}

#[test]
fn a_missing_process_has_its_own_exit_code() {
    let said = ["process 4194999 does not exist", "no process is named 'no such name'"];
    for (target, said) in ["4194999", "no such name"].into_iter().zip(said) {
        let output = output(&[target]);
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        assert!(String::from_utf8_lossy(&output.stderr).contains(said), "{output:?}");
    }
    let output = output(&["1", "--watch", "0"]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("seconds from 0.1 to 86400"));
}

#[test]
fn a_stream_has_a_line_for_each_look_and_no_threads() {
    let output = output(&[&own_pid(), "--watch", "0.1", "--count", "3", "--jsonl"]);
    let text = String::from_utf8(output.stdout).unwrap();
    let documents: Vec<Value> =
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(documents.len(), 3);
    assert!(documents.iter().all(|it| it["processes"][0].get("threads").is_none()));
}

#[test]
fn watching_ends_with_the_process_and_with_a_signal() {
    let mut target = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
    let mut command = whereabouts(&[&target.id().to_string(), "--watch", "0.1", "--jsonl"]);
    let mut child = Running(command.stdout(Stdio::piped()).spawn().unwrap());
    let mut lines = BufReader::new(child.0.stdout.take().unwrap()).lines();
    lines.next().unwrap().unwrap();
    drop(target.stdin.take());
    target.wait().unwrap();
    assert_eq!(child.0.wait().unwrap().code(), Some(1));

    let mut command = whereabouts(&[&own_pid(), "--watch", "60", "--over", "0.01"]);
    let mut child = Running(command.stdout(Stdio::piped()).spawn().unwrap());
    let mut lines = BufReader::new(child.0.stdout.take().unwrap()).lines();
    lines.next().unwrap().unwrap();
    let pid = child.0.id().to_string();
    assert!(Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
    assert_eq!(child.0.wait().unwrap().code(), Some(130));
}

/// Sends a request to a server and returns all of the answer.
fn ask(address: &str, request: &[u8]) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    // The server may close before it has read everything.
    let _ = stream.write_all(request);
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).into_owned()
}

#[test]
fn metrics_are_served_and_no_client_holds_the_server() {
    let mut command = whereabouts(&[&own_pid(), "--metrics", "0"]);
    let mut server = Running(command.stderr(Stdio::piped()).spawn().unwrap());
    let mut line = String::new();
    BufReader::new(server.0.stderr.take().unwrap()).read_line(&mut line).unwrap();
    let address = line.trim().strip_prefix("metrics on http://").unwrap();
    let address = address.strip_suffix("/metrics").unwrap();
    assert!(address.starts_with("127.0.0.1:"), "{line}");

    // Many that say nothing and stay, one that sends without end, one that is gone at once.
    let silent: Vec<TcpStream> = (0..20).map(|_| TcpStream::connect(address).unwrap()).collect();
    let _ = ask(address, &vec![b'x'; 1 << 20]);
    TcpStream::connect(address).unwrap().shutdown(Shutdown::Both).unwrap();

    let page = ask(address, b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
    assert!(page.starts_with("HTTP/1.1 200 OK\r\n"), "{page}");
    let sample = format!("atoll_process_threads{{pid=\"{}\",name=", own_pid());
    for wanted in [
        sample.as_str(),
        "# TYPE atoll_process_memory_bytes gauge",
        "\natoll_processes_memory_bytes{node=",
        "\natoll_process_memory_proportional_bytes{pid=",
        "\natoll_process_memory_bytes{pid=",
        "\natoll_where_cpu_seconds_total ",
    ] {
        assert!(page.contains(wanted), "{wanted} in {page}");
    }
    for (request, status) in [
        ("GET / HTTP/1.1\r\n\r\n", "404"),
        ("POST /metrics HTTP/1.1\r\n\r\n", "405"),
        ("nonsense\r\n\r\n", "400"),
    ] {
        assert!(ask(address, request.as_bytes()).starts_with(&format!("HTTP/1.1 {status} ")));
    }
    drop(silent);
}
