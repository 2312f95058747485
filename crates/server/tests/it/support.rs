//! A server in the test's process, on any free port.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use atoll_placement::LiveKernel;
use atoll_runtime::{Runtime, RuntimeOptions};
use atoll_server::{Reloader, Server, ServerOptions};
use atoll_sql::{Database, DatabaseOptions};
use atoll_testkit::kernel::SimulatedKernel;
use atoll_testkit::machines;
use atoll_topology::Machine;
use tokio::sync::oneshot;
use tokio_postgres::{Client, Config, NoTls};

/// A query that never ends on its own.
pub(crate) const ENDLESS: &str =
    "SELECT sum((a.x * b.x) % 7) FROM range(1000000) a(x), range(1000000) b(x)";

/// The startup message of the user `ann`.
pub(crate) const STARTUP: &[u8] = b"\0\0\0\x21\0\x03\0\0user\0ann\0database\0atoll\0\0";

/// A message of this kind.
pub(crate) fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    let mut message = vec![kind];
    message.extend_from_slice(&(body.len() as u32 + 4).to_be_bytes());
    message.extend_from_slice(body);
    message
}

/// Sends the startup message, these messages and Terminate; returns the whole response.
pub(crate) fn answers(server: &TestServer, messages: &[Vec<u8>]) -> Vec<u8> {
    let mut stream = TcpStream::connect(server.address).expect("it listens");
    stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a socket");
    let sent = [STARTUP, &messages.concat(), &message(b'X', b"")].concat();
    stream.write_all(&sent).expect("sent");
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).expect("an answer, and its end");
    answer
}

/// A server that runs until it is dropped.
pub(crate) struct TestServer {
    pub(crate) database: Database,
    pub(crate) address: SocketAddr,
    pub(crate) http: SocketAddr,
    pub(crate) reloader: Reloader,
    pub(crate) flight: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    served: Option<std::thread::JoinHandle<()>>,
}

impl TestServer {
    /// A server with an empty database and without passwords.
    pub(crate) fn start() -> Self {
        Self::with_options(ServerOptions { trusts_all: true, ..ServerOptions::default() })
    }

    /// A server with an empty database that requires passwords.
    pub(crate) fn with_passwords() -> Self {
        Self::with_options(ServerOptions::default())
    }

    /// A server with an empty database and these options.
    pub(crate) fn with_options(options: ServerOptions) -> Self {
        Self::over(options, None)
    }

    /// A server with the database in a directory, or with one in memory.
    pub(crate) fn over(options: ServerOptions, directory: Option<PathBuf>) -> Self {
        let machine = Arc::new(Machine::discover().expect("the machine can be read"));
        let kernel = Arc::new(LiveKernel::new());
        let runtime = Runtime::start(machine, kernel, RuntimeOptions::default());
        Self::on(runtime.expect("the pools start"), options, directory)
    }

    /// A server with an empty database on a simulated machine of two nodes.
    pub(crate) fn on_two_nodes(options: ServerOptions) -> Self {
        let machine = Arc::new(machines::two_nodes());
        let kernel = Arc::new(SimulatedKernel::new(Arc::clone(&machine)));
        let runtime = Runtime::start(machine, kernel, RuntimeOptions::default());
        Self::on(runtime.expect("the pools start"), options, None)
    }

    fn on(runtime: Runtime, options: ServerOptions, directory: Option<PathBuf>) -> Self {
        let files = !options.trusts_all;
        let of_database = DatabaseOptions { files, directory, ..DatabaseOptions::default() };
        let database = Database::start(runtime, of_database);
        let database = database.expect("the database starts");
        let (stop, stopped) = oneshot::channel::<()>();
        let (bound, address) = std::sync::mpsc::channel();
        let served = {
            let database = database.clone();
            std::thread::spawn(move || {
                let runtime = tokio::runtime::Builder::new_multi_thread();
                let runtime = { runtime }
                    .worker_threads(2)
                    .thread_stack_size(8 << 20)
                    .enable_all()
                    .build()
                    .expect("threads");
                runtime.block_on(async {
                    let any: SocketAddr = "127.0.0.1:0".parse().expect("an address");
                    let (listen, http) = (vec![any], options.http.or(Some(any)));
                    let flight = options.flight.or(Some(any));
                    let options = ServerOptions { listen, http, flight, ..options };
                    let server = Server::bind(database, options).await.expect("a free port");
                    let http = server.http_address().expect("it listens");
                    let flight = server.flight_address().expect("it listens");
                    let addresses = (server.addresses()[0], http, flight);
                    bound.send((addresses, server.reloader())).expect("the test waits");
                    server.run(async { drop(stopped.await) }).await;
                });
            })
        };
        let ((address, http, flight), reloader) = address.recv().expect("it listens");
        let (stop, served) = (Some(stop), Some(served));
        Self { database, address, http, flight, reloader, stop, served }
    }

    /// Stops the server, and waits until it has stopped.
    pub(crate) fn stop(&mut self) {
        drop(self.stop.take());
        if let Some(served) = self.served.take() {
            served.join().expect("the server ends without a panic");
        }
    }

    /// A client.
    pub(crate) async fn connect(&self) -> Client {
        let (host, port) = (self.address.ip().to_string(), self.address.port());
        let mut config = Config::new();
        config.host(&host).port(port).user("ann").dbname("atoll");
        let (client, connection) = config.connect(NoTls).await.expect("the server answers");
        tokio::spawn(connection);
        client
    }
}

/// The server's response to a startup message of the user `ann` with these parameters, until it waits for more or ends
/// the connection.
pub(crate) fn startup(server: &TestServer, parameters: &[(&str, &str)]) -> Vec<u8> {
    let mut stream = begin(server, parameters);
    let mut answer = Vec::new();
    let mut piece = [0; 4096];
    // ReadyForQuery ends the startup.
    while !answer.ends_with(b"Z\0\0\0\x05I") {
        match stream.read(&mut piece).expect("an answer") {
            0 => break,
            count => answer.extend_from_slice(&piece[..count]),
        }
    }
    answer
}

/// A connection that has sent a startup message, as the user `ann` with these parameters.
pub(crate) fn begin(server: &TestServer, parameters: &[(&str, &str)]) -> TcpStream {
    let mut body = b"\0\x03\0\0user\0ann\0database\0atoll\0".to_vec();
    for text in parameters.iter().flat_map(|(name, value)| [name, value]) {
        body.extend_from_slice(text.as_bytes());
        body.push(0);
    }
    body.push(0);
    let mut stream = TcpStream::connect(server.address).expect("it listens");
    stream.write_all(&(body.len() as u32 + 4).to_be_bytes()).expect("sent");
    stream.write_all(&body).expect("sent");
    stream
}

impl Drop for TestServer {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Runs an async test.
pub(crate) fn block_on<T>(test: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a thread").block_on(test)
}
