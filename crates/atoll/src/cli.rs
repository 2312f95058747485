//! The command line.

use std::ffi::OsString;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;

use atoll_placement::Strategy;
use atoll_sql::tpch::SCALE_MAX;
use atoll_tools::{bytes, exit};
use atoll_topology::Bytes;
use clap::{Args, Parser, Subcommand};

use crate::output::Mode;

/// A NUMA-aware in-memory database: data has a home node, and queries run where the data is.
#[derive(Debug, Parser)]
#[command(name = "atoll", version, max_term_width = 100, after_help = exit::HELP)]
pub(crate) struct Cli {
    /// What to do
    #[command(subcommand)]
    pub(crate) command: AtollCommand,
}

/// The subcommands.
#[derive(Debug, Subcommand)]
pub(crate) enum AtollCommand {
    /// The commands that need no SQL engine
    #[command(flatten)]
    Tools(atoll_tools::Command),
    /// Copy a database: a closed data directory, or that of a server while clients write
    #[command(after_help = "\
Examples:
  atoll backup --data shop --to /backup/shop-monday                    a closed database
  atoll backup --server 'host=/run/atoll' --to /backup/shop-monday     a running server, over its Unix socket
  PGPASSWORD=… atoll backup --server postgres://boss@127.0.0.1:5432 --to /backup/shop-monday

The server writes the copy on its own machine, and the role must have the right to use files there.
The copy is a data directory: atoll serve --data /backup/shop-monday opens it. It is written to DIR.partial
and renamed after all its checksums have been verified.")]
    Backup(BackupArgs),
    /// Benchmark Atoll against other engines, and measure what memory access costs on this machine
    #[command(disable_help_flag = true, after_help = "atoll bench --help lists the benchmarks.")]
    Bench(BenchArgs),
    /// SQL over files and in-memory tables: a shell, or scripts with -c, -f and stdin
    #[command(after_help = "\
Examples:
  atoll sql                                              a shell
  atoll sql sales.parquet                                a shell; the file is the view 'sales'
  atoll sql -c \"SELECT count(*) FROM 'sales.parquet'\"    one statement
  atoll sql --data shop                                  a shell over the database in directory 'shop'
  atoll sql --json -c 'SELECT * FROM atoll.nodes'        for programs
  atoll sql --tpch 1 -f queries.sql                      a script over TPC-H at scale factor 1
  generate | atoll sql --mode csv | head                 statements from a pipe

-csv, -json, -line, -markdown and so on mean --mode csv …, as in duckdb and sqlite3.
-c and -f run in the order given. The first error ends a script with its line and exit code 1; after
'.bail off' it continues, and the exit code is still 1.
Results go to stdout; messages, times and errors go to stderr. '.help' in the shell lists its
commands, which work in scripts too. An interactive shell runs ~/.atollrc at its start.")]
    Sql(SqlArgs),
    /// Serve a database to clients of PostgreSQL and of Arrow Flight SQL: psql, drivers, tools
    #[command(after_help = "\
Examples:
  atoll serve --data shop --socket /tmp                  on 127.0.0.1:5432 and a Unix socket
  psql -h /tmp -d atoll                                  as the user who started it, a superuser
  CREATE ROLE ann LOGIN PASSWORD '…';                    in psql; then
  psql -h 127.0.0.1 -U ann -d atoll                      asks ann for the password
  atoll serve --data shop --listen 0.0.0.0:5432 --tls-cert c.pem --tls-key k.pem --tls required
  atoll serve --config /etc/atoll/atoll.toml             settings from a file; --show-config shows them
  atoll serve --data shop --flight 127.0.0.1:32010       ADBC's URI is grpc://127.0.0.1:32010

Flags override variables, variables override the file, and the file overrides the defaults. The keys of the
file are the names of the flags (tls_cert = \"c.pem\"), and [[login]] tables say who may log in from where.
SIGHUP reloads certificate, key and [[login]], and reopens the log files.
SIGTERM and Ctrl-C stop it: idle sessions end, running statements get 30 seconds, and a checkpoint is
written.")]
    Serve(Box<ServeArgs>),
    /// Demonstrate the engine: the machine, TPC-H, its 22 queries, and the placement of data and threads
    #[command(after_help = "\
Examples:
  atoll demo
  atoll demo --scale-factor 0.1
  atoll demo --placement interleave --json > demo.json

It fails if a query fails (1), or if the kernel does not confirm the placement of tables and threads (3).")]
    Demo(DemoArgs),
}

/// Options of every command that runs SQL.
#[derive(Args, Clone, Debug)]
pub(crate) struct EngineArgs {
    /// Total worker threads [default: one for each cpu this process may use]
    #[arg(long, value_name = "N", env = "ATOLL_THREADS")]
    pub(crate) threads: Option<usize>,
    /// Placement of table chunks: default, aligned, ahead(k), farthest, interleave, spread, subset(k), local,
    /// preferred(n), weighted-interleave or replicate
    #[arg(long, value_name = "NAME", env = "ATOLL_PLACEMENT", default_value = "aligned")]
    pub(crate) placement: Strategy,
    /// Fail if the kernel refuses a placement, instead of continuing without it
    #[arg(long)]
    pub(crate) strict: bool,
    /// Memory limit for tables and queries together, such as 8GiB [default: 80 % of available memory, or of the control
    /// group's limit if that is less]
    #[arg(long, value_name = "SIZE", env = "ATOLL_MEMORY_LIMIT", value_parser = bytes::parse)]
    pub(crate) memory_limit: Option<Bytes>,
    /// Directory for spill files [default: the system's temporary directory]
    #[arg(long, value_name = "DIRECTORY", env = "ATOLL_SPILL_DIR")]
    pub(crate) spill_dir: Option<PathBuf>,
    /// Hide progress bars
    #[arg(long)]
    pub(crate) no_progress: bool,
}

/// Upper bound of --max-connections.
const CONNECTIONS_MAX: u64 = u32::MAX as u64;

/// An address and port to listen on, as numbers or by the name of this machine.
fn address(text: &str) -> Result<SocketAddr, String> {
    let named = || text.to_socket_addrs().ok()?.next();
    let expected =
        || "expected an address and port such as 127.0.0.1:5432 or [::1]:5432".to_owned();
    text.parse().ok().or_else(named).ok_or_else(expected)
}

/// A scale factor of TPC-H.
fn scale_factor(text: &str) -> Result<f64, String> {
    let scale = text.parse::<f64>().ok().filter(|scale| *scale > 0.0 && *scale <= SCALE_MAX);
    scale.ok_or_else(|| format!("expected a number above 0 and up to {SCALE_MAX}"))
}

/// Arguments of `atoll bench`.
#[derive(Args, Debug)]
pub(crate) struct BenchArgs {
    /// The benchmark and its flags
    #[arg(value_name = "BENCHMARK", trailing_var_arg = true, allow_hyphen_values = true)]
    pub(crate) words: Vec<OsString>,
}

/// Arguments of `atoll backup`.
#[derive(Args, Debug)]
pub(crate) struct BackupArgs {
    /// The data directory of a closed database
    #[arg(short = 'd', long, value_name = "DIR", env = "ATOLL_DATA")]
    pub(crate) data: Option<PathBuf>,
    /// Copy the database of this running server instead: a URL, or keywords such as host=/tmp
    #[arg(long, value_name = "URL")]
    pub(crate) server: Option<String>,
    /// The directory to create
    #[arg(long, value_name = "DIR")]
    pub(crate) to: PathBuf,
}

/// Arguments of `atoll sql`.
#[derive(Args, Debug)]
pub(crate) struct SqlArgs {
    /// Parquet, CSV, JSON or Arrow files; each becomes a view named by its stem
    #[arg(value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Directory of a persistent database, created if missing [default: in memory]
    #[arg(short = 'd', long = "data", value_name = "DIR", env = "ATOLL_DATA")]
    pub(crate) data: Option<PathBuf>,
    /// Open the readable part of a damaged directory, read-only, and report what is missing
    #[arg(long, requires = "data")]
    pub(crate) salvage: bool,
    /// Statements or a .command to run; may be repeated
    #[arg(short = 'c', long = "command", value_name = "SQL")]
    pub(crate) commands: Vec<String>,
    /// A script to run; may be repeated; '-' is stdin
    #[arg(short = 'f', long = "file", value_name = "FILE")]
    pub(crate) scripts: Vec<PathBuf>,
    /// Load TPC-H at this scale factor; 1 is about six million rows of lineitem
    #[arg(long, value_name = "SCALE", value_parser = scale_factor, allow_hyphen_values = true)]
    pub(crate) tpch: Option<f64>,
    /// Output format of results
    #[arg(long, visible_alias = "format", value_name = "MODE", value_enum, default_value = "box")]
    pub(crate) mode: Mode,
    /// Omit column names from results
    #[arg(long, alias = "noheader")]
    pub(crate) no_header: bool,
    /// Text shown for NULL [default: depends on the mode]
    #[arg(long, alias = "nullvalue", value_name = "TEXT")]
    pub(crate) null_value: Option<String>,
    /// Engine options
    #[command(flatten)]
    pub(crate) engine: EngineArgs,
}

/// Arguments of `atoll serve`.
#[derive(Args, Clone, Debug)]
pub(crate) struct ServeArgs {
    /// File with settings and login rules [default: atoll.toml in the --data directory, if it exists]
    #[arg(long, value_name = "FILE", env = "ATOLL_CONFIG")]
    pub(crate) config: Option<PathBuf>,
    /// Show all settings and where each comes from, and exit
    #[arg(long)]
    pub(crate) show_config: bool,
    /// With --show-config: as JSON
    #[arg(long, requires = "show_config")]
    pub(crate) json: bool,
    /// Directory of a persistent database, created if missing [default: in memory]
    #[arg(short = 'd', long = "data", value_name = "DIR", env = "ATOLL_DATA")]
    pub(crate) data: Option<PathBuf>,
    /// Address and port to listen on; may be repeated
    #[arg(long, value_name = "ADDRESS", env = "ATOLL_LISTEN", default_value = "127.0.0.1:5432", value_parser = address)]
    pub(crate) listen: Vec<SocketAddr>,
    /// Directory for a Unix socket, as in psql -h; local users log in as the roles of the same names
    #[arg(long, value_name = "DIR", env = "ATOLL_SOCKET")]
    pub(crate) socket: Option<PathBuf>,
    /// Address for Arrow Flight SQL clients (ADBC, JDBC, pyarrow): results as Arrow batches over gRPC
    #[arg(long, value_name = "ADDRESS", env = "ATOLL_FLIGHT", value_parser = address)]
    pub(crate) flight: Option<SocketAddr>,
    /// Address for the console (a web page, on loopback only) and for /metrics, /healthz and /readyz over HTTP
    #[arg(long, value_name = "ADDRESS", env = "ATOLL_HTTP", value_parser = address)]
    pub(crate) http: Option<SocketAddr>,
    /// Certificate for TLS, in PEM form
    #[arg(long, value_name = "FILE", env = "ATOLL_TLS_CERT")]
    pub(crate) tls_cert: Option<PathBuf>,
    /// Key of the certificate, in PEM form
    #[arg(long, value_name = "FILE", env = "ATOLL_TLS_KEY")]
    pub(crate) tls_key: Option<PathBuf>,
    /// Whether TCP connections must use TLS
    #[arg(long, value_name = "MODE", value_enum, default_value = "optional", env = "ATOLL_TLS")]
    pub(crate) tls: TlsMode,
    /// Listen on addresses that other machines can reach without TLS: passwords and rows are sent in plain text
    #[arg(long)]
    pub(crate) insecure_listen: bool,
    /// Let everyone in without a password, with all rights but reading files; loopback only
    #[arg(long)]
    pub(crate) insecure_no_password: bool,
    /// Maximum number of concurrent connections
    #[arg(
        long,
        value_name = "N",
        default_value = "10000",
        env = "ATOLL_MAX_CONNECTIONS",
        value_parser = clap::value_parser!(u64).range(1..=CONNECTIONS_MAX)
    )]
    pub(crate) max_connections: u64,
    /// Memory limit for all statements of a session, such as 2GiB; SET atoll.session_memory lowers it [default: as much
    /// as the memory limit leaves]
    #[arg(long, value_name = "SIZE", env = "ATOLL_SESSION_MEMORY", value_parser = bytes::parse)]
    pub(crate) session_memory: Option<Bytes>,
    /// Send statement traces to this OpenTelemetry collector, such as http://127.0.0.1:4318 [default: nowhere]
    #[arg(long, value_name = "URL", env = "ATOLL_OTLP")]
    pub(crate) otlp: Option<String>,
    /// Check the certificate of an https:// collector against those in this file, in PEM form [default: those that the
    /// operating system trusts]
    #[arg(long, value_name = "FILE", env = "ATOLL_OTLP_CA")]
    pub(crate) otlp_ca: Option<PathBuf>,
    /// Messages and logs
    #[command(flatten)]
    pub(crate) logs: LogArgs,
    /// Engine options
    #[command(flatten)]
    pub(crate) engine: EngineArgs,
}

/// What `atoll serve` logs.
#[derive(Args, Clone, Debug)]
pub(crate) struct LogArgs {
    /// Format of the messages on stderr
    #[arg(long, value_name = "FORM", value_enum, default_value = "text", env = "ATOLL_LOG_FORMAT")]
    pub(crate) log_format: LogForm,
    /// Lowest level of the messages that are logged
    #[arg(long, value_name = "LEVEL", value_enum, default_value = "info", env = "ATOLL_LOG_LEVEL")]
    pub(crate) log_level: MessageLevel,
    /// Log statements that take at least this many milliseconds, 0 for all [default: none]
    #[arg(long, value_name = "N", env = "ATOLL_SLOW_QUERY_MS")]
    pub(crate) slow_query_ms: Option<u64>,
    /// File for slow statements, as JSON lines; '-' is stdout
    #[arg(long, value_name = "FILE", default_value = "-", env = "ATOLL_SLOW_QUERY_LOG")]
    pub(crate) slow_query_log: PathBuf,
    /// Log logins, DDL, grants, roles, backups and KILL to this file, as JSON lines; '-' is stdout
    #[arg(long, value_name = "FILE", env = "ATOLL_AUDIT_LOG")]
    pub(crate) audit_log: Option<PathBuf>,
}

/// Format of messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum LogForm {
    /// Lines of text.
    Text,
    /// A JSON object on each line.
    Json,
}

/// Level of messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum MessageLevel {
    /// Failures.
    Error,
    /// Anomalies.
    Warning,
    /// What the server does, and refused logins.
    Info,
    /// Connections, and failed statements.
    Debug,
}

/// Whether connections over TCP use TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum TlsMode {
    /// If the server has a certificate and the client asks for TLS.
    Optional,
    /// Always; connections without TLS are refused.
    Required,
}

/// Arguments of `atoll demo`.
#[derive(Args, Debug)]
pub(crate) struct DemoArgs {
    /// Scale factor of TPC-H; 1 is about six million rows of lineitem
    #[arg(
        long,
        value_name = "SCALE",
        default_value = "1",
        value_parser = scale_factor,
        allow_hyphen_values = true
    )]
    pub(crate) scale_factor: f64,
    /// Print the same facts as one JSON document
    #[arg(long)]
    pub(crate) json: bool,
    /// Engine options
    #[command(flatten)]
    pub(crate) engine: EngineArgs,
}

/// Something to run, as `-c` and `-f` give it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Script {
    /// Statements on the command line.
    Text(String),
    /// A file, `-` for stdin.
    File(PathBuf),
}

impl SqlArgs {
    /// The arguments of `-c` and `-f` in command-line order; `matches` are those of the subcommand.
    pub(crate) fn scripts_in_order(&self, matches: &clap::ArgMatches) -> Vec<Script> {
        let places = |id| matches.indices_of(id).into_iter().flatten();
        let texts = self.commands.iter().cloned().map(Script::Text);
        let files = self.scripts.iter().cloned().map(Script::File);
        let mut scripts: Vec<(usize, Script)> =
            places("commands").zip(texts).chain(places("scripts").zip(files)).collect();
        scripts.sort_by_key(|(place, _)| *place);
        scripts.into_iter().map(|(_, script)| script).collect()
    }
}

/// Flags of `atoll sql` that are followed by a value.
const WITH_VALUE: [&str; 4] = ["-c", "--command", "-f", "--file"];

/// Replaces `-csv`, as duckdb and sqlite3 spell it, with `--mode csv`.
pub(crate) fn with_mode_flags(arguments: Vec<OsString>) -> Vec<OsString> {
    if arguments.get(1).is_none_or(|command| command != "sql") {
        return arguments;
    }
    let mut before = OsString::new();
    let renamed = arguments.into_iter().map(|argument| {
        let is_value = WITH_VALUE.iter().any(|flag| before == *flag);
        before.clone_from(&argument);
        match argument.to_str().and_then(mode_flag).filter(|_| !is_value) {
            Some(flag) => flag.into(),
            None => argument,
        }
    });
    renamed.collect()
}

fn mode_flag(argument: &str) -> Option<String> {
    let name = argument.strip_prefix('-')?;
    let name = name.strip_prefix('-').unwrap_or(name);
    match name {
        "header" | "headers" => None,
        "noheader" if !argument.starts_with("--") => Some("--no-header".to_owned()),
        name => Some(format!("--mode={}", Mode::named(name)?.name())),
    }
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory, FromArgMatches};

    use super::*;

    #[test]
    fn command_line_is_well_formed() {
        Cli::command().debug_assert();
    }

    #[test]
    fn modes_are_flags_too() {
        let of = |line: &[&str]| {
            with_mode_flags(line.iter().map(OsString::from).collect())
                .join(std::ffi::OsStr::new(" "))
        };
        assert_eq!(of(&["atoll", "sql", "-csv", "-c", "-json"]), "atoll sql --mode=csv -c -json");
        assert_eq!(of(&["atoll", "sql", "--json", "-d", "x"]), "atoll sql --mode=json -d x");
        assert_eq!(of(&["atoll", "sql", "-noheader"]), "atoll sql --no-header");
        assert_eq!(of(&["atoll", "demo", "--json"]), "atoll demo --json");
    }

    #[test]
    fn scripts_run_in_the_order_given() {
        let line = ["atoll", "sql", "-f", "a.sql", "-c", "b", "-f", "c.sql", "--command", "d"];
        let matches = Cli::command().get_matches_from(line);
        let AtollCommand::Sql(sql) = Cli::from_arg_matches(&matches).unwrap().command else {
            panic!("sql was given");
        };
        let (_, matches) = matches.subcommand().unwrap();
        let file = |name: &str| Script::File(name.into());
        let text = |text: &str| Script::Text(text.into());
        let expected = [file("a.sql"), text("b"), file("c.sql"), text("d")];
        assert_eq!(sql.scripts_in_order(matches), expected);
    }
}
