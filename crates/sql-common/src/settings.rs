//! Settings of a session: `SET atoll.… = …`.

use std::any::Any;
use std::fmt;
use std::num::NonZeroUsize;
use std::str::FromStr;

use atoll_placement::Strategy;
use atoll_store::database::Durability;
use atoll_topology::{Bytes, NodeId};
use datafusion::common::config::{ConfigEntry, ConfigExtension, ExtensionOptions};
use datafusion::common::{DataFusionError, Result, config_err};
use datafusion::logical_expr::{SetVariable, Statement};

/// The setting that limits how many statements run at the same time.
pub const SMALL_STATEMENTS: &str = "atoll.small_statements";
/// The setting that limits how many large statements run at the same time.
pub const LARGE_STATEMENTS: &str = "atoll.large_statements";

/// The setting that limits a session's memory.
pub const SESSION_MEMORY: &str = "atoll.session_memory";

/// The setting that selects the node that serves a session.
pub const HOME: &str = "atoll.home";

/// The schema in which unqualified names are looked up.
pub const SCHEMA: &str = "public";

/// How equi-joins are executed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum JoinMethod {
    /// By hash if the hash table is expected to fit into memory, otherwise by sorting and merging.
    #[default]
    Auto,
    /// Always by sorting and merging, which spills to disk when memory is short.
    Merge,
}

/// How GROUP BY is executed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AggregateMethod {
    /// By the primitives; the first rows decide the variant.
    #[default]
    Auto,
    /// One table per worker, merged at the end.
    Local,
    /// Partitioned; each worker reads its partitions from all others, along the ring.
    Ring,
    /// Partitioned; each worker's table migrates to the nodes that hold its partitions.
    Migrate,
    /// By DataFusion's operators, which spill to disk when memory is short.
    Off,
}

impl AggregateMethod {
    const ALL: [Self; 5] = [Self::Auto, Self::Local, Self::Ring, Self::Migrate, Self::Off];
}

impl fmt::Display for AggregateMethod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Auto => "auto",
            Self::Local => "local",
            Self::Ring => "ring",
            Self::Migrate => "migrate",
            Self::Off => "off",
        })
    }
}

/// How window functions are executed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WindowMethod {
    /// Over all rows of a partition at once, where Atoll has the functions.
    #[default]
    Auto,
    /// By DataFusion's operators.
    Off,
}

impl fmt::Display for WindowMethod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Auto => "auto",
            Self::Off => "off",
        })
    }
}

impl FromStr for WindowMethod {
    type Err = DataFusionError;

    fn from_str(text: &str) -> Result<Self> {
        match text.to_ascii_lowercase().as_str() {
            "auto" => Ok(Self::Auto),
            "off" => Ok(Self::Off),
            _ => config_err!("invalid value '{text}' for atoll.window; expected auto or off"),
        }
    }
}

/// How many of the cores outside of all pools run statements without a pool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CoresSetting {
    /// All.
    #[default]
    All,
    /// A fixed number.
    Count(NonZeroUsize),
    /// As many as the load needs while statements run.
    Elastic,
}

impl FromStr for CoresSetting {
    type Err = DataFusionError;

    fn from_str(text: &str) -> Result<Self> {
        match (text.to_ascii_lowercase().as_str(), text.parse()) {
            ("all", _) => Ok(Self::All),
            ("elastic", _) => Ok(Self::Elastic),
            (_, Ok(count)) => Ok(Self::Count(count)),
            _ => config_err!(
                "invalid value '{text}' for atoll.cores; expected all, elastic or a number of cores from 1"
            ),
        }
    }
}

impl fmt::Display for CoresSetting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All => f.write_str("all"),
            Self::Count(count) => count.fmt(f),
            Self::Elastic => f.write_str("elastic"),
        }
    }
}

/// Whether one scan of a table answers concurrent selections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SharedScan {
    /// Prepared ones, and others while a scan is running.
    #[default]
    Auto,
    /// All that fit.
    On,
    /// Each separately.
    Off,
}

/// How unnamed result columns are named.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ColumnNames {
    /// By their text: `count(*)`, `a + 1`.
    #[default]
    Text,
    /// As PostgreSQL calls them: `count`, `?column?`.
    PostgreSql,
}

impl FromStr for ColumnNames {
    type Err = DataFusionError;

    fn from_str(text: &str) -> Result<Self> {
        match text.to_ascii_lowercase().as_str() {
            "text" => Ok(Self::Text),
            "postgresql" => Ok(Self::PostgreSql),
            _ => config_err!(
                "invalid value '{text}' for atoll.column_names; expected text or postgresql"
            ),
        }
    }
}

impl fmt::Display for ColumnNames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Text => "text",
            Self::PostgreSql => "postgresql",
        })
    }
}

/// The settings under `atoll.`.
#[derive(Clone, Debug)]
pub struct AtollOptions {
    /// Where new tables put their chunks.
    pub placement: Strategy,
    /// How equal joins are carried out.
    pub join: JoinMethod,
    /// How GROUP BY is carried out.
    pub aggregate: AggregateMethod,
    /// How window functions are computed.
    pub window: WindowMethod,
    /// The durability that this session requests for its commits.
    pub durability: Durability,
    /// Whether selections share scans.
    pub shared_scan: SharedScan,
    /// How unnamed columns of results are called.
    pub column_names: ColumnNames,
    /// The pool that runs the session's statements; None for the common workers.
    pub pool: Option<String>,
    /// The node whose threads serve the session and drive its statements; None for any node.
    pub home: Option<NodeId>,
    /// The cores of statements without a pool.
    pub cores: CoresSetting,
    /// How many small statements of all sessions run at the same time; 0 for all.
    pub small_statements: usize,
    /// How many large ones.
    pub large_statements: usize,
    /// The memory that all statements of the session may use together; None for no limit.
    pub session_memory: Option<Bytes>,
}

impl Default for AtollOptions {
    fn default() -> Self {
        let (join, aggregate) = (JoinMethod::Auto, AggregateMethod::Auto);
        let (durability, shared_scan) = (Durability::Fsync, SharedScan::Auto);
        let placement = Strategy::Aligned;
        let cores = CoresSetting::All;
        Self {
            placement,
            join,
            aggregate,
            window: WindowMethod::Auto,
            durability,
            shared_scan,
            column_names: ColumnNames::Text,
            pool: None,
            home: None,
            cores,
            small_statements: 0,
            large_statements: 0,
            session_memory: None,
        }
    }
}

impl ConfigExtension for AtollOptions {
    const PREFIX: &'static str = "atoll";
}

impl ExtensionOptions for AtollOptions {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }

    fn cloned(&self) -> Box<dyn ExtensionOptions> {
        Box::new(self.clone())
    }

    fn set(&mut self, key: &str, value: &str) -> Result<()> {
        match key {
            "placement" => self.placement = parse_placement(value)?,
            "join" => {
                self.join = match value.to_ascii_lowercase().as_str() {
                    "auto" => JoinMethod::Auto,
                    "merge" => JoinMethod::Merge,
                    _ => {
                        return config_err!(
                            "invalid value '{value}' for atoll.join; expected \
                                             auto or merge"
                        );
                    }
                }
            }
            "aggregate" => {
                let wanted = value.to_ascii_lowercase();
                let named = AggregateMethod::ALL.into_iter().find(|it| it.to_string() == wanted);
                self.aggregate = match named {
                    Some(method) => method,
                    None => {
                        return config_err!(
                            "invalid value '{value}' for atoll.aggregate; expected auto, local, \
                             ring, migrate or off"
                        );
                    }
                };
            }
            "window" => self.window = value.parse()?,
            "durability" => self.durability = parse_durability(value)?,
            "shared_scan" => self.shared_scan = parse_shared_scan(value)?,
            "column_names" => self.column_names = value.parse()?,
            "cores" => self.cores = value.parse()?,
            "small_statements" => self.small_statements = parse_count(key, value)?,
            "large_statements" => self.large_statements = parse_count(key, value)?,
            "session_memory" => self.session_memory = parse_session_memory(value)?,
            "home" => self.home = parse_home(value)?,
            "pool" => self.pool = (!value.is_empty()).then(|| value.to_owned()),
            _ => {
                return config_err!(
                    "unknown setting atoll.{key}; expected atoll.aggregate, atoll.column_names, atoll.cores, \
                     atoll.durability, atoll.home, atoll.join, atoll.large_statements, atoll.placement, atoll.pool, atoll.session_memory, \
                     atoll.shared_scan, atoll.small_statements or atoll.window"
                );
            }
        }
        Ok(())
    }

    fn entries(&self) -> Vec<ConfigEntry> {
        let entry = |key: &str, value: String, description: &'static str| ConfigEntry {
            key: key.to_owned(),
            value: Some(value),
            description,
        };
        vec![
            entry(
                "atoll.pool",
                self.pool.clone().unwrap_or_default(),
                "The pool whose workers run the session's statements, as made by CREATE POOL; empty for the \
                 workers on all cores that no pool has",
            ),
            entry(
                HOME,
                self.home.map(|home| home.to_string()).unwrap_or_default(),
                "The node whose threads serve the session and drive its statements: a number, empty for any",
            ),
            entry(
                "atoll.cores",
                self.cores.to_string(),
                "The cores on which statements without a pool run, of those that no pool has: all, a number, or \
                 elastic (as many as the load needs); it holds for the whole database",
            ),
            entry(
                "atoll.placement",
                self.placement.to_string(),
                "Where new tables put their chunks: default, aligned, ahead(k), farthest, \
                 interleave, spread, subset(k), local, preferred(n), weighted-interleave, replicate",
            ),
            entry(
                "atoll.durability",
                durability_name(self.durability).to_owned(),
                "What a commit of the database survives: fsync (a power cut), async (all but the last 0.2 \
                 seconds), off (nothing since the last checkpoint)",
            ),
            entry(
                "atoll.join",
                match self.join {
                    JoinMethod::Auto => "auto".to_owned(),
                    JoinMethod::Merge => "merge".to_owned(),
                },
                "How equal joins are carried out: auto (by hash where it fits into memory) or merge",
            ),
            entry(
                "atoll.aggregate",
                self.aggregate.to_string(),
                "How GROUP BY is carried out: auto, local (a table for each worker), ring \
                 (partitioned, pieces read along the ring), migrate (partitioned, tables visit the \
                 pieces) or off (DataFusion's operators)",
            ),
            entry(
                "atoll.window",
                self.window.to_string(),
                "How window functions are computed: auto (over all rows of a partition at once) or off \
                 (DataFusion's operators)",
            ),
            entry(
                SMALL_STATEMENTS,
                self.small_statements.to_string(),
                "How many statements that read 1 to 256 MiB of tables run at the same time, 0 for all; it holds for \
                 the whole database",
            ),
            entry(
                LARGE_STATEMENTS,
                self.large_statements.to_string(),
                "How many statements that read more than that run at the same time, 0 for all; it holds for the \
                 whole database",
            ),
            entry(
                SESSION_MEMORY,
                self.session_memory.map_or_else(|| "0".to_owned(), |limit| limit.0.to_string()),
                "What the statements of the session may take of the memory together, such as 512MiB; 0 for as much \
                 as the memory limit leaves",
            ),
            entry(
                "atoll.shared_scan",
                match self.shared_scan {
                    SharedScan::Auto => "auto".to_owned(),
                    SharedScan::On => "on".to_owned(),
                    SharedScan::Off => "off".to_owned(),
                },
                "Whether selections that wait at the same time are answered by one pass over their table: \
                 auto (prepared ones, and others while a pass is under way), on (all that fit) or off",
            ),
            entry(
                "atoll.column_names",
                self.column_names.to_string(),
                "How columns of results without a name are called: text (as they are written: count(*)) or \
                 postgresql (as PostgreSQL calls them: count, ?column?)",
            ),
        ]
    }
}

/// Resets a setting under `atoll.` to the database's `defaults`. DataFusion resets only its own
/// settings.
pub fn reset(statement: Statement, defaults: &AtollOptions) -> Statement {
    let Statement::ResetVariable(reset) = statement else { return statement };
    let mut entries = defaults.entries().into_iter();
    match entries.find(|entry| entry.key == reset.variable) {
        Some(ConfigEntry { key, value, .. }) => {
            Statement::SetVariable(SetVariable { variable: key, value: value.unwrap_or_default() })
        }
        None => Statement::ResetVariable(reset),
    }
}

/// Parses a node; returns None if the value is empty.
pub fn parse_home(text: &str) -> Result<Option<NodeId>> {
    match (text.trim(), text.trim().parse()) {
        ("", _) => Ok(None),
        (_, Ok(number)) => Ok(Some(NodeId(number))),
        _ => config_err!(
            "invalid value '{text}' for {HOME}; expected the number of a node, or nothing"
        ),
    }
}

/// Parses a placement.
pub fn parse_placement(text: &str) -> Result<Strategy> {
    text.parse::<Strategy>().map_err(|error| DataFusionError::Configuration(error.to_string()))
}

fn parse_count(key: &str, text: &str) -> Result<usize> {
    match text.trim().parse() {
        Ok(count) => Ok(count),
        Err(_) => {
            config_err!("invalid value '{text}' for atoll.{key}; expected a number, 0 for all")
        }
    }
}

/// Parses a memory limit; returns None for 0.
pub fn parse_session_memory(text: &str) -> Result<Option<Bytes>> {
    if text.trim() == "0" {
        return Ok(None);
    }
    let limit = text.parse::<Bytes>();
    limit.map(Some).map_err(|error| DataFusionError::Configuration(error.to_string()))
}

fn parse_shared_scan(name: &str) -> Result<SharedScan> {
    match name.to_ascii_lowercase().as_str() {
        "auto" => Ok(SharedScan::Auto),
        "on" => Ok(SharedScan::On),
        "off" => Ok(SharedScan::Off),
        _ => config_err!("invalid value '{name}' for atoll.shared_scan; expected auto, on or off"),
    }
}

/// Parses a durability.
fn parse_durability(name: &str) -> Result<Durability> {
    match name.to_ascii_lowercase().as_str() {
        "fsync" => Ok(Durability::Fsync),
        "async" => Ok(Durability::Async),
        "off" => Ok(Durability::Off),
        _ => {
            config_err!("invalid value '{name}' for atoll.durability; expected fsync, async or off")
        }
    }
}

/// Formats a durability for `SET atoll.durability`.
pub fn durability_name(durability: Durability) -> &'static str {
    match durability {
        Durability::Fsync => "fsync",
        Durability::Async => "async",
        Durability::Off => "off",
    }
}
