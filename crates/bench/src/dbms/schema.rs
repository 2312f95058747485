//! The tables in each system's words, with the keys and indexes that row stores need.

use std::path::Path;

use super::dialect::Dialect;
use super::systems::mysql::MysqlTables;

/// The type of a column.
#[derive(Clone, Copy, Debug)]
enum ColumnType {
    Integer,
    Big,
    Money,
    Date,
    Time,
    /// With its greatest length.
    Text(u16),
}

/// A table.
pub(super) struct DbmsTable {
    pub(super) name: &'static str,
    columns: &'static [(&'static str, ColumnType)],
    /// The primary key; empty if it has none.
    key: &'static str,
    /// Columns by which other tables are joined, each with an index of its own.
    indexes: &'static [&'static str],
}

use ColumnType::{Big, Date, Integer, Money, Text, Time};

/// TPC-H's tables, and one of two integers, made of the keys of order lines.
pub(super) const TABLES: [DbmsTable; 9] = [
    DbmsTable {
        name: "region",
        columns: &[("r_regionkey", Integer), ("r_name", Text(25)), ("r_comment", Text(152))],
        key: "r_regionkey",
        indexes: &[],
    },
    DbmsTable {
        name: "nation",
        columns: &[
            ("n_nationkey", Integer),
            ("n_name", Text(25)),
            ("n_regionkey", Integer),
            ("n_comment", Text(152)),
        ],
        key: "n_nationkey",
        indexes: &["n_regionkey"],
    },
    DbmsTable {
        name: "supplier",
        columns: &[
            ("s_suppkey", Integer),
            ("s_name", Text(25)),
            ("s_address", Text(40)),
            ("s_nationkey", Integer),
            ("s_phone", Text(15)),
            ("s_acctbal", Money),
            ("s_comment", Text(101)),
        ],
        key: "s_suppkey",
        indexes: &["s_nationkey"],
    },
    DbmsTable {
        name: "customer",
        columns: &[
            ("c_custkey", Integer),
            ("c_name", Text(25)),
            ("c_address", Text(40)),
            ("c_nationkey", Integer),
            ("c_phone", Text(15)),
            ("c_acctbal", Money),
            ("c_mktsegment", Text(10)),
            ("c_comment", Text(117)),
        ],
        key: "c_custkey",
        indexes: &["c_nationkey"],
    },
    DbmsTable {
        name: "part",
        columns: &[
            ("p_partkey", Integer),
            ("p_name", Text(55)),
            ("p_mfgr", Text(25)),
            ("p_brand", Text(10)),
            ("p_type", Text(25)),
            ("p_size", Integer),
            ("p_container", Text(10)),
            ("p_retailprice", Money),
            ("p_comment", Text(23)),
        ],
        key: "p_partkey",
        indexes: &[],
    },
    DbmsTable {
        name: "partsupp",
        columns: &[
            ("ps_partkey", Integer),
            ("ps_suppkey", Integer),
            ("ps_availqty", Integer),
            ("ps_supplycost", Money),
            ("ps_comment", Text(199)),
        ],
        key: "ps_partkey, ps_suppkey",
        indexes: &["ps_suppkey"],
    },
    DbmsTable {
        name: "orders",
        columns: &[
            ("o_orderkey", Big),
            ("o_custkey", Integer),
            ("o_orderstatus", Text(1)),
            ("o_totalprice", Money),
            ("o_orderdate", Date),
            ("o_orderpriority", Text(15)),
            ("o_clerk", Text(15)),
            ("o_shippriority", Integer),
            ("o_comment", Text(79)),
        ],
        key: "o_orderkey",
        indexes: &["o_custkey"],
    },
    DbmsTable {
        name: "lineitem",
        columns: &[
            ("l_orderkey", Big),
            ("l_partkey", Integer),
            ("l_suppkey", Integer),
            ("l_linenumber", Integer),
            ("l_quantity", Money),
            ("l_extendedprice", Money),
            ("l_discount", Money),
            ("l_tax", Money),
            ("l_returnflag", Text(1)),
            ("l_linestatus", Text(1)),
            ("l_shipdate", Date),
            ("l_commitdate", Date),
            ("l_receiptdate", Date),
            ("l_shipinstruct", Text(25)),
            ("l_shipmode", Text(10)),
            ("l_comment", Text(44)),
        ],
        key: "l_orderkey, l_linenumber",
        indexes: &["l_partkey", "l_suppkey"],
    },
    DbmsTable {
        name: "narrow",
        columns: &[("n_key", Big), ("n_value", Integer)],
        key: "",
        indexes: &[],
    },
];

/// pgbench's tables, which are written; its history is empty at first, and has no filler here.
pub(super) const PGBENCH_TABLES: [DbmsTable; 4] = [
    DbmsTable {
        name: "pgbench_branches",
        columns: &[("bid", Integer), ("bbalance", Integer), ("filler", Text(88))],
        key: "bid",
        indexes: &[],
    },
    DbmsTable {
        name: "pgbench_tellers",
        columns: &[("tid", Integer), ("bid", Integer), ("tbalance", Integer), ("filler", Text(84))],
        key: "tid",
        indexes: &[],
    },
    DbmsTable {
        name: "pgbench_accounts",
        columns: &[("aid", Integer), ("bid", Integer), ("abalance", Integer), ("filler", Text(84))],
        key: "aid",
        indexes: &[],
    },
    DbmsTable {
        name: "pgbench_history",
        columns: &[
            ("tid", Integer),
            ("bid", Integer),
            ("aid", Integer),
            ("delta", Integer),
            ("mtime", Time),
        ],
        key: "",
        indexes: &[],
    },
];

impl DbmsTable {
    /// Whether clients write to it.
    pub(super) fn is_written(&self) -> bool {
        PGBENCH_TABLES.iter().any(|it| it.name == self.name)
    }

    /// The statement that makes the key of a table that is written, by which its rows are found.
    pub(super) fn written_key(&self) -> Option<String> {
        let has_key = self.is_written() && !self.key.is_empty();
        has_key.then(|| format!("ALTER TABLE {} ADD PRIMARY KEY ({})", self.name, self.key))
    }

    /// The statement that makes it.
    pub(super) fn create(&self, dialect: Dialect) -> String {
        let column = |(name, kind): &(&str, ColumnType)| format!("{name} {}", kind.name(dialect));
        let columns = self.columns.iter().map(column).collect::<Vec<_>>().join(", ");
        let name = self.name;
        match dialect {
            Dialect::Clickhouse => format!("CREATE TABLE {name} ({columns}) ENGINE = Memory"),
            _ => format!("CREATE TABLE {name} ({columns})"),
        }
    }

    /// The statement that makes it in MySQL, with its keys: tables in memory are not altered later.
    pub(super) fn create_mysql(&self, tables: MysqlTables) -> String {
        let mut parts: Vec<String> = self
            .columns
            .iter()
            .map(|(name, kind)| format!("{name} {}", kind.name(Dialect::Mysql)))
            .collect();
        let method = tables.index_method();
        if !self.key.is_empty() {
            parts.push(format!("PRIMARY KEY {method} ({})", self.key));
        }
        parts.extend(self.indexes.iter().map(|column| format!("KEY {method} ({column})")));
        let (parts, engine) = (parts.join(", "), tables.engine());
        format!(
            "CREATE TABLE {} ({parts}) ENGINE = {engine} CHARACTER SET latin1 COLLATE latin1_bin",
            self.name
        )
    }

    /// The statements that make its keys and indexes.
    pub(super) fn indexes(&self) -> Vec<String> {
        let name = self.name;
        let mut all = Vec::new();
        if !self.key.is_empty() {
            all.push(format!("CREATE UNIQUE INDEX {name}_key ON {name} ({})", self.key));
        }
        let index = |column: &&str| format!("CREATE INDEX {name}_{column} ON {name} ({column})");
        all.extend(self.indexes.iter().map(index));
        all
    }

    /// Number of columns.
    pub(super) fn width(&self) -> usize {
        self.columns.len()
    }
}

impl ColumnType {
    fn name(self, dialect: Dialect) -> String {
        let is_clickhouse = dialect == Dialect::Clickhouse;
        let name = match self {
            Integer if is_clickhouse => "Int32",
            Big if is_clickhouse => "Int64",
            Text(_) if is_clickhouse => "String",
            // SQLite keeps decimals as binary floating point anyway.
            Money if dialect == Dialect::Sqlite => "real",
            Date | Time if dialect == Dialect::Sqlite => "text",
            Time if dialect == Dialect::Mysql => "datetime",
            Time if is_clickhouse => "DateTime",
            Integer => "integer",
            Big => "bigint",
            Money => "decimal(15, 2)",
            Date => "date",
            Time => "timestamp",
            Text(length) => return format!("varchar({length})"),
        };
        format!("{name} NOT NULL")
    }
}

/// A path as a literal of SQL.
pub(super) fn literal(path: &Path) -> String {
    format!("'{}'", path.to_string_lossy().replace('\'', "''"))
}
