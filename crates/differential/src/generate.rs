//! Random queries over random tables: joins, sub-queries, groupings, windows, set operations, orders.

use rand::Rng;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;

use crate::data::{Class, ColumnType, TestTable};
use crate::engines::Against;
use crate::expression::{RowValues, Scope, ScopedColumn, shown};
use crate::query::{Joined, RandomQuery, Select, Source};
use crate::special;

const JOINS: [&str; 6] = ["JOIN", "JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "CROSS JOIN"];
const SETS: [&str; 6] =
    ["UNION", "UNION ALL", "INTERSECT", "INTERSECT ALL", "EXCEPT", "EXCEPT ALL"];
/// Rows of a large table are not returned one by one.
const LIMIT_MAX: usize = 40;

/// A random query over the tables, for an engine to answer as well as Atoll.
pub(crate) fn query(tables: &[TestTable], against: Against, random: &mut StdRng) -> RandomQuery {
    let rows = match against {
        Against::Duckdb => RowValues::Structs,
        Against::Postgresql => RowValues::Standard,
    };
    let mut generator = Generator { tables, random, rows, aliases: 0, large: false };
    match generator.random.random_range(0..14) {
        0 | 1 => generator.set_operation(),
        2..=4 => generator.grouped(),
        5 | 6 => generator.windowed(),
        7..=9 => match special::query(tables, generator.random) {
            Some(query) => query,
            None => generator.plain(),
        },
        _ => generator.plain(),
    }
}

struct Generator<'a> {
    tables: &'a [TestTable],
    random: &'a mut StdRng,
    rows: RowValues,
    aliases: usize,
    /// Whether a large table is among the sources.
    large: bool,
}

/// Sources with the columns that they bring, and the columns that identify their rows.
struct Sources {
    from: Vec<Joined>,
    scope: Scope,
    ids: Vec<String>,
}

impl Generator<'_> {
    fn chance(&mut self, probability: f64) -> bool {
        self.random.random_bool(probability)
    }

    fn alias(&mut self) -> String {
        self.aliases += 1;
        format!("a{}", self.aliases)
    }

    /// A table that is not large where another large one is in already.
    fn table(&mut self) -> &TestTable {
        let large = self.large;
        let tables: Vec<&TestTable> =
            self.tables.iter().filter(|t| !(large && t.is_large())).collect();
        let table = tables.choose(self.random).copied().unwrap_or(&self.tables[0]);
        self.large |= table.is_large();
        table
    }

    /// One source, its columns and its id.
    fn source(&mut self) -> (Source, String, Vec<ScopedColumn>, Option<String>) {
        if self.chance(0.15) {
            let (select, columns) = self.derived();
            let alias = self.alias();
            let columns = (0..).zip(columns).map(|(at, column)| ScopedColumn {
                sql: format!("{alias}.o{at}"),
                data_type: column.data_type,
            });
            let columns = columns.collect();
            return (Source::Derived(Box::new(select)), alias, columns, None);
        }
        let table = self.table();
        let (name, columns) = (table.name.clone(), table.columns.clone());
        let alias = self.alias();
        let columns = columns.iter().map(|column| ScopedColumn {
            sql: format!("{alias}.{}", column.name),
            data_type: column.data_type,
        });
        let id = format!("{alias}.id");
        let columns = columns.collect();
        (Source::Table(name), alias, columns, Some(id))
    }

    /// A derived table: grouped, or a choice of rows.
    fn derived(&mut self) -> (Select, Vec<ScopedColumn>) {
        let large = self.large;
        let (source, alias, columns, _) = {
            let table = self.table();
            let (name, columns) = (table.name.clone(), table.columns.clone());
            let alias = self.alias();
            let scoped = columns.iter().map(|column| ScopedColumn {
                sql: format!("{alias}.{}", column.name),
                data_type: column.data_type,
            });
            let scoped: Vec<_> = scoped.collect();
            (Source::Table(name), alias, scoped, ())
        };
        let scope = Scope(columns, self.rows);
        let from = vec![Joined { kind: "", source, alias, on: Vec::new() }];
        if self.chance(0.5) {
            let key = scope.any(self.random).clone();
            let aggregate = scope.aggregate(self.random);
            let items = vec![key.sql.clone(), aggregate.sql.clone()];
            self.large = large;
            let keys = vec![key.sql.clone()];
            return (Select { items, from, keys, ..Select::default() }, vec![key, aggregate]);
        }
        let columns: Vec<ScopedColumn> = (0..2).map(|_| scope.value(self.random)).collect();
        let items = columns.iter().map(|column| column.sql.clone()).collect();
        let filters = vec![scope.condition(1, self.random)];
        let distinct = self.chance(0.4);
        (Select { distinct, items, from, filters, ..Select::default() }, columns)
    }

    fn sources(&mut self, joins: usize) -> Sources {
        let (source, alias, columns, id) = self.source();
        let mut ids: Vec<String> = id.into_iter().collect();
        let mut from = vec![Joined { kind: "", source, alias, on: Vec::new() }];
        let mut scope = Scope(columns, self.rows);
        for number in 0..joins {
            // Two joins by columns of few values would take hours over many rows.
            if number > 0 && self.large {
                break;
            }
            let (source, alias, columns, id) = self.source();
            let mut kind = *JOINS.choose(self.random).unwrap_or(&"JOIN");
            let right = Scope(columns, self.rows);
            let on = self.join_conditions(&scope, &right);
            if on.is_empty() {
                kind = "CROSS JOIN";
            }
            scope.0.extend(right.0);
            let on = if kind == "CROSS JOIN" { Vec::new() } else { on };
            if kind == "CROSS JOIN" && self.large {
                break;
            }
            from.push(Joined { kind, source, alias, on });
            ids.extend(id);
        }
        // Columns of an abandoned join are not in scope.
        let aliases: Vec<String> = from.iter().map(|joined| format!("{}.", joined.alias)).collect();
        scope.0.retain(|column| aliases.iter().any(|alias| column.sql.starts_with(alias.as_str())));
        Sources { from, scope, ids }
    }

    /// Equal columns of both sides, and now and then a condition on both.
    fn join_conditions(&mut self, left: &Scope, right: &Scope) -> Vec<String> {
        let mut on = Vec::new();
        for _ in 0..self.random.random_range(1..3) {
            let column = right.any(self.random).clone();
            let Some(other) = left.find_by_class(column.data_type.class(), self.random) else {
                continue;
            };
            let sign = match self.random.random_range(0..12) {
                0 => "IS NOT DISTINCT FROM",
                1 if !self.large && column.data_type.class() != Class::List => "<",
                _ => "=",
            };
            on.push(format!("{} {sign} {}", other.sql, column.sql));
        }
        if !on.is_empty() && self.chance(0.25) {
            let both = Scope(left.0.iter().chain(&right.0).cloned().collect(), self.rows);
            on.push(both.condition(1, self.random));
        }
        on
    }

    fn joins(&mut self) -> usize {
        *[0, 0, 1, 1, 2].choose(self.random).unwrap_or(&0)
    }

    fn filters(&mut self, scope: &Scope) -> Vec<String> {
        let mut filters = Vec::new();
        for _ in 0..self.random.random_range(0..3) {
            filters.push(match self.random.random_range(0..5) {
                0 => self.subquery_condition(scope),
                _ => scope.condition(2, self.random),
            });
        }
        filters
    }

    /// EXISTS, IN and comparisons with sub-queries, under OR as well.
    fn subquery_condition(&mut self, outer: &Scope) -> String {
        let table = self.table();
        let (name, columns) = (table.name.clone(), table.columns.clone());
        let alias = self.alias();
        let inner = Scope(
            columns
                .iter()
                .map(|column| ScopedColumn {
                    sql: format!("{alias}.{}", column.name),
                    data_type: column.data_type,
                })
                .collect(),
            self.rows,
        );
        let filter = inner.condition(1, self.random);
        let column = outer.any(self.random).clone();
        let class = column.data_type.class();
        let Some(other) = inner.find_by_class(class, self.random).map(|other| other.sql.clone())
        else {
            return format!("EXISTS (SELECT 1 FROM {name} {alias} WHERE {filter})");
        };
        let sql = &column.sql;
        let not = if self.chance(0.5) { "NOT " } else { "" };
        let condition = match self.random.random_range(0..4) {
            0 => format!("{sql} {not}IN (SELECT {other} FROM {name} {alias} WHERE {filter})"),
            1 => format!(
                "{not}EXISTS (SELECT 1 FROM {name} {alias} WHERE {other} = {sql} AND {filter})"
            ),
            2 if class != Class::List && class != Class::Bool => {
                format!("{sql} >= (SELECT min({other}) FROM {name} {alias} WHERE {filter})")
            }
            _ => format!("{sql} {not}IN (SELECT {other} FROM {name} {alias})"),
        };
        match self.random.random_range(0..4) {
            0 => format!("({condition} OR {})", outer.condition(0, self.random)),
            _ => condition,
        }
    }

    fn plain(&mut self) -> RandomQuery {
        let joins = self.joins();
        let Sources { from, scope, ids } = self.sources(joins);
        let filters = self.filters(&scope);
        let count = self.random.random_range(1..5);
        let mut items: Vec<String> = (0..count).map(|_| shown(&scope.value(self.random))).collect();
        let whole = ids.len() == from.len();
        let mut select = Select { filters, ..Select::default() };
        if self.large || (whole && self.chance(0.4)) {
            // Ordered by something, and by all ids, so that no two rows tie.
            let keys = (0..2).map(|_| scope.any(self.random)).collect::<Vec<_>>();
            let keys = keys.into_iter().filter(|key| key.data_type.class() != Class::List);
            let keys: Vec<String> = keys.map(|key| key.sql.clone()).collect();
            select.order = keys.iter().chain(&ids).map(|key| self.order(key)).collect();
            select.ordered = whole;
            let (limit, offset) = (1..=LIMIT_MAX, 0..6);
            let limit = (self.random.random_range(limit), self.random.random_range(offset));
            select.limit = whole.then_some(limit);
            if !whole {
                items = vec!["count(*)".to_owned()];
                select.order.clear();
            }
        } else {
            select.distinct = self.chance(0.2);
        }
        RandomQuery::Select(Box::new(Select { items, from, ..select }))
    }

    fn order(&mut self, key: &str) -> String {
        let direction = if self.chance(0.5) { "ASC" } else { "DESC" };
        let nulls = if self.chance(0.5) { "FIRST" } else { "LAST" };
        format!("{key} {direction} NULLS {nulls}")
    }

    fn grouped(&mut self) -> RandomQuery {
        let joins = self.joins();
        let Sources { from, scope, .. } = self.sources(joins);
        let filters = self.filters(&scope);
        let mut keys: Vec<ScopedColumn> = Vec::new();
        for _ in 0..self.random.random_range(0..4) {
            let key = scope.any(self.random);
            if keys.iter().all(|other| other.sql != key.sql) {
                keys.push(key.clone());
            }
        }
        let grouping = match self.random.random_range(0..10) {
            0 => "ROLLUP",
            1 => "CUBE",
            2 => "GROUPING SETS",
            _ => "",
        };
        let count = self.random.random_range(1..5);
        let aggregates: Vec<ScopedColumn> =
            (0..count).map(|_| scope.aggregate(self.random)).collect();
        let mut having = Vec::new();
        if self.chance(0.25) {
            having.push(Scope(aggregates.clone(), self.rows).condition(1, self.random));
        }
        let mut select = Select { from, filters, grouping, having, ..Select::default() };
        select.items = keys.iter().chain(&aggregates).map(shown).collect();
        let keys: Vec<String> = keys.into_iter().map(|key| key.sql).collect();
        if self.large {
            select.order = keys.iter().map(|key| self.order(key)).collect();
            select.ordered = grouping.is_empty();
            select.limit = (grouping.is_empty() && !keys.is_empty()).then_some((LIMIT_MAX, 0));
        }
        select.keys = keys;
        RandomQuery::Select(Box::new(select))
    }

    /// Window functions over rows that an id orders without ties.
    fn windowed(&mut self) -> RandomQuery {
        let table = self.table();
        let (name, columns) = (table.name.clone(), table.columns.clone());
        let alias = self.alias();
        let scoped = columns.iter().map(|column| ScopedColumn {
            sql: format!("{alias}.{}", column.name),
            data_type: column.data_type,
        });
        let scope = Scope(scoped.collect(), self.rows);
        let from = vec![Joined {
            kind: "",
            source: Source::Table(name),
            alias: alias.clone(),
            on: vec![],
        }];
        let mut items = vec![format!("{alias}.id")];
        for _ in 0..self.random.random_range(1..4) {
            items.push(self.window(&scope, &alias));
        }
        let mut select = Select { items, from, ..Select::default() };
        if self.large {
            select.order = vec![format!("{alias}.id ASC")];
            select.ordered = true;
            select.limit = Some((LIMIT_MAX, 1000));
        } else {
            select.filters = self.filters(&scope);
        }
        RandomQuery::Select(Box::new(select))
    }

    fn window(&mut self, scope: &Scope, alias: &str) -> String {
        if self.chance(0.4) {
            return self.window_over_values(scope);
        }
        let of = scope.any(self.random).clone();
        let column = &of.sql;
        let (partition, key) = (self.partition(scope), scope.any(self.random).clone());
        let order = match key.data_type.class() {
            Class::List => format!("{alias}.id"),
            _ => format!("{}, {alias}.id", self.order(&key.sql)),
        };
        let frame = *[
            "",
            " ROWS BETWEEN 2 PRECEDING AND CURRENT ROW",
            " ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING",
            " ROWS BETWEEN 1 FOLLOWING AND 3 FOLLOWING",
            " ROWS BETWEEN 3 PRECEDING AND 1 PRECEDING",
            " ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING",
        ]
        .choose(self.random)
        .unwrap_or(&"");
        let value = |call: String| ScopedColumn { sql: call, data_type: of.data_type };
        let count =
            |call: &str| ScopedColumn { sql: call.to_owned(), data_type: ColumnType::BigInt };
        let (call, frame) = match self.random.random_range(0..9) {
            0 => (count("row_number()"), ""),
            1 => (count("rank()"), ""),
            2 => (count("dense_rank()"), ""),
            3 => (value(format!("lag({column}, 1)")), ""),
            4 => (value(format!("lead({column}, 2)")), ""),
            5 => (count(&format!("count({column})")), frame),
            6 => (value(format!("first_value({column})")), frame),
            7 => (value(format!("last_value({column})")), frame),
            _ => (self.window_aggregate(scope), frame),
        };
        // Ranks are over the key alone, so that there are ties.
        let order = match call.sql.contains("rank()") && key.data_type.class() != Class::List {
            true => self.order(&key.sql),
            false => order,
        };
        let sql = format!("{} OVER ({partition}ORDER BY {order}{frame})", call.sql);
        shown(&ScopedColumn { sql, ..call })
    }

    fn partition(&mut self, scope: &Scope) -> String {
        let partition = scope.any(self.random).clone();
        match self.chance(0.7) {
            true => format!("PARTITION BY {} ", partition.sql),
            false => String::new(),
        }
    }

    /// An aggregate whose result does not depend on the order of its rows.
    fn window_aggregate(&mut self, scope: &Scope) -> ScopedColumn {
        let of = scope.any(self.random).clone();
        let count = |sql: String| ScopedColumn { sql, data_type: ColumnType::BigInt };
        match (of.data_type.class(), self.random.random_range(0..4)) {
            (Class::Int, 0) => count(format!("sum(CAST({} AS BIGINT))", of.sql)),
            (Class::Int, 1) => count(format!("bit_xor(CAST({} AS BIGINT))", of.sql)),
            (Class::List | Class::Bool, _) | (_, 0) => count(format!("count({})", of.sql)),
            (_, 1 | 2) => ScopedColumn { sql: format!("min({})", of.sql), ..of },
            _ => ScopedColumn { sql: format!("max({})", of.sql), ..of },
        }
    }

    /// Frames that values of the key bound, or groups of rows that are equal in it; some rows left out.
    fn window_over_values(&mut self, scope: &Scope) -> String {
        let of_class = |class| scope.find_by_class(class, self.random).cloned();
        let keys: Vec<ScopedColumn> =
            [Class::Int, Class::Date, Class::Timestamp].into_iter().filter_map(of_class).collect();
        let call = self.window_aggregate(scope);
        let partition = self.partition(scope);
        let Some(key) = keys.choose(self.random).cloned() else {
            return shown(&ScopedColumn {
                sql: format!("{} OVER ({})", call.sql, partition.trim()),
                ..call
            });
        };
        let [near, far] = [self.random.random_range(0..3), self.random.random_range(0..6)];
        let groups = self.chance(0.4);
        let offset = |number: i32| match key.data_type.class() {
            Class::Int => number.to_string(),
            _ if groups => number.to_string(),
            _ => format!("INTERVAL '{number} days'"),
        };
        let (near, far, unit) =
            (offset(near), offset(near + far), if groups { "GROUPS" } else { "RANGE" });
        // Frames of infinite rows that begin after them, or end before them, differ by design.
        let is_finite = groups || key.data_type.class() == Class::Int;
        let bounds = match self.random.random_range(0..if is_finite { 5 } else { 3 }) {
            0 => format!("{far} PRECEDING AND CURRENT ROW"),
            1 => format!("CURRENT ROW AND {far} FOLLOWING"),
            2 => format!("{near} PRECEDING AND UNBOUNDED FOLLOWING"),
            3 => format!("{far} PRECEDING AND {near} PRECEDING"),
            _ => format!("{near} FOLLOWING AND {far} FOLLOWING"),
        };
        let excluded = ["", "", " EXCLUDE CURRENT ROW", " EXCLUDE GROUP", " EXCLUDE TIES"];
        let excluded = excluded.choose(self.random).unwrap_or(&"");
        let order = self.order(&key.sql);
        let sql = format!(
            "{} OVER ({partition}ORDER BY {order} {unit} BETWEEN {bounds}{excluded})",
            call.sql
        );
        shown(&ScopedColumn { sql, ..call })
    }

    /// Two selects whose columns have the same types.
    fn set_operation(&mut self) -> RandomQuery {
        let operation = *SETS.choose(self.random).unwrap_or(&"UNION");
        let left = self.sources(0);
        let right = self.sources(0);
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for _ in 0..self.random.random_range(1..4) {
            let column = left.scope.any(self.random).clone();
            let same = |other: &&ScopedColumn| other.data_type.sql() == column.data_type.sql();
            let matching: Vec<_> = right.scope.0.iter().filter(same).collect();
            if let Some(other) = matching.choose(self.random) {
                ours.push(shown(&column));
                theirs.push(shown(other));
            }
        }
        if ours.is_empty() {
            let id = |scope: &Scope| format!("count({})", scope.0[0].sql);
            (ours, theirs) = (vec![id(&left.scope)], vec![id(&right.scope)]);
        }
        let filters = [self.set_filter(&left.scope), self.set_filter(&right.scope)];
        let [left_filters, right_filters] = filters;
        let select =
            |items, from, filters| Box::new(Select { items, from, filters, ..Select::default() });
        RandomQuery::Set {
            operation,
            left: select(ours, left.from, left_filters),
            right: select(theirs, right.from, right_filters),
        }
    }

    /// Few rows of a large table, some of the others.
    fn set_filter(&mut self, scope: &Scope) -> Vec<String> {
        let mut filters = Vec::new();
        if self.chance(0.5) {
            filters.push(scope.condition(1, self.random));
        }
        if let Some(id) = scope.0.iter().find(|column| column.sql.ends_with(".id")) {
            filters.push(format!("{} < 500", id.sql));
        }
        filters
    }
}
