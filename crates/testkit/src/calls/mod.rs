//! Random calls of functions and operators over values of all types, as SQL.
//!
//! A call may be refused for its types or for a value; it never panics, and never fails with an error that no user's
//! mistake explains. [`setup`] creates the tables, [`random_call`] a statement over them: over no row, one and many,
//! with constants and columns, as a value, in a filter, grouped, ordered, as an aggregate and over window frames.

mod values;

use rand::Rng;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;

use values::{Family, HostileType, TYPES, told_by};

/// A function that can be called.
#[derive(Clone, Debug)]
pub struct CalledFunction {
    /// Its name.
    pub name: String,
    /// `scalar`, `aggregate` or `window`, as in `atoll.functions`.
    pub kind: String,
    /// The documented arguments, as between its parentheses.
    pub arguments: String,
}

/// The statement that lists the functions: name, kind, arguments.
pub const FUNCTIONS: &str =
    "SELECT name, kind, arguments FROM atoll.functions WHERE kind <> 'table' ORDER BY 1, 2";

/// Functions that wait or change what others see.
const LEFT_OUT: [&str; 7] = [
    "pg_sleep",
    "nextval",
    "setval",
    "pg_terminate_backend",
    "pg_cancel_backend",
    "getenv",
    "lastval",
];

/// Operators between two values.
const BINARY: [&str; 42] = [
    "+",
    "-",
    "*",
    "/",
    "//",
    "%",
    "^",
    "**",
    "||",
    "=",
    "<>",
    "<",
    "<=",
    ">",
    ">=",
    "AND",
    "OR",
    "IS DISTINCT FROM",
    "IS NOT DISTINCT FROM",
    "LIKE",
    "NOT LIKE",
    "ILIKE",
    "SIMILAR TO",
    "~",
    "!~",
    "~*",
    "&",
    "|",
    "<<",
    ">>",
    "#",
    "->",
    "->>",
    "#>",
    "#>>",
    "@>",
    "<@",
    "&&",
    "^@",
    "?",
    "?|",
    "#-",
];

/// The text before and after a value.
const AROUND: [(&str, &str); 26] = [
    ("- ", ""),
    ("NOT ", ""),
    ("~ ", ""),
    ("@ ", ""),
    ("", " IS NULL"),
    ("", " IS TRUE"),
    ("", " IS NOT FALSE"),
    ("", "[1]"),
    ("", "[-1]"),
    ("", "['a']"),
    ("", "[2:]"),
    ("", "[:-1]"),
    ("", "[-9223372036854775807:9223372036854775807]"),
    ("EXTRACT(year FROM ", ")"),
    ("EXTRACT(epoch FROM ", ")"),
    ("EXTRACT(week FROM ", ")"),
    ("date_trunc('quarter', ", ")"),
    ("", " AT TIME ZONE 'Europe/Zurich'"),
    ("", " AT TIME ZONE INTERVAL '1 hour'"),
    ("CASE WHEN true THEN ", " END"),
    ("", " COLLATE \"C\""),
    ("unnest(", ")"),
    ("row(", ", 1)"),
    ("[", "]"),
    ("{'x': ", "}"),
    ("array_agg(", ")"),
];

/// Window frames, including empty ones.
const FRAMES: [&str; 8] = [
    "",
    "ORDER BY id",
    "PARTITION BY id % 2 ORDER BY id DESC",
    "ORDER BY id ROWS BETWEEN 1 PRECEDING AND CURRENT ROW",
    "ORDER BY id ROWS BETWEEN 2 FOLLOWING AND 3 FOLLOWING",
    "ORDER BY id RANGE BETWEEN 1 PRECEDING AND 1 FOLLOWING",
    "ORDER BY id GROUPS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING",
    "ORDER BY id ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING EXCLUDE CURRENT ROW",
];

/// Rows of the table `many`.
const ROWS: usize = 24;

/// The statements that create the tables `many`, `one` and `none`, with a column of each type.
pub fn setup() -> Vec<String> {
    let columns = TYPES.iter().enumerate().map(|(at, of)| format!("c{at} {}", of.name));
    let columns: Vec<String> = std::iter::once("id INTEGER".to_owned()).chain(columns).collect();
    let columns = columns.join(", ");
    let row = |row: usize| {
        let values = TYPES.iter().map(|of| of.value(row % of.count()));
        let values: Vec<String> = std::iter::once(row.to_string()).chain(values).collect();
        values.join(", ")
    };
    let mut statements: Vec<String> =
        ["many", "one", "none"].map(|name| format!("CREATE TABLE {name} ({columns})")).into();
    statements.extend((0..ROWS).map(|at| format!("INSERT INTO many VALUES ({})", row(at))));
    statements.push(format!("INSERT INTO one VALUES ({})", row(0)));
    statements
}

/// Whether no user's mistake explains an error.
pub fn is_fault(state: &str, message: &str) -> bool {
    const WORDS: [&str; 3] = ["panicked", "Internal error", "bug in DataFusion"];
    state == "XX000" || WORDS.iter().any(|words| message.contains(words))
}

/// A statement with a call.
pub fn random_call(functions: &[CalledFunction], random: &mut StdRng) -> String {
    let mut calls = Calls { random };
    match calls.random.random_range(0..10) {
        0 => {
            let (left, right) = (calls.value(None), calls.value(None));
            let operator = BINARY.choose(calls.random).unwrap_or(&"=");
            calls.selected(&format!("({left} {operator} {right})"))
        }
        1 => {
            let (before, behind) = AROUND.choose(calls.random).unwrap_or(&("", ""));
            let value = calls.value(None);
            calls.selected(&format!("{before}({value}){behind}"))
        }
        2 => calls.cast(),
        3 => calls.of_rows(),
        _ => calls.called(functions),
    }
}

struct Calls<'a> {
    random: &'a mut StdRng,
}

impl Calls<'_> {
    fn chance(&mut self, probability: f64) -> bool {
        self.random.random_bool(probability)
    }

    fn one_of(&mut self, texts: &[&'static str]) -> &'static str {
        texts.choose(self.random).copied().unwrap_or("")
    }

    /// A type of a family, or any.
    fn any_type(&mut self, family: Option<Family>) -> (usize, &'static HostileType) {
        let is_wanted = |of: &HostileType| family.is_none_or(|family| of.family == family);
        let types: Vec<(usize, &HostileType)> =
            TYPES.iter().enumerate().filter(|(_, of)| is_wanted(of)).collect();
        types.choose(self.random).copied().unwrap_or((0, &TYPES[0]))
    }

    /// A column or a constant.
    fn value(&mut self, family: Option<Family>) -> String {
        let (column, of) = self.any_type(family);
        match self.random.random_range(0..20) {
            0 => "NULL".to_owned(),
            1..=10 => format!("c{column}"),
            _ => of.value(self.random.random_range(0..of.count())),
        }
    }

    /// A table with no row, one or many.
    fn table(&mut self) -> &'static str {
        self.one_of(&["many", "many", "one", "none"])
    }

    /// A statement that computes an expression over rows.
    fn selected(&mut self, expr: &str) -> String {
        let table = self.table();
        match self.random.random_range(0..8) {
            0 => format!("SELECT count(*) FROM {table} WHERE {expr} IS NOT NULL"),
            1 => format!("SELECT {expr}, count(*) FROM {table} GROUP BY 1"),
            2 => format!("SELECT {expr} FROM {table} ORDER BY 1 DESC"),
            3 => format!("SELECT DISTINCT {expr} FROM {table}"),
            4 => format!("SELECT min({expr}), array_agg({expr}) FROM {table} GROUP BY id % 3"),
            _ => format!("SELECT {expr} FROM {table}"),
        }
    }

    fn cast(&mut self) -> String {
        let value = self.value(None);
        let (_, to) = self.any_type(None);
        let cast = self.one_of(&["CAST", "CAST", "TRY_CAST"]);
        self.selected(&format!("{cast}({value} AS {})", to.name))
    }

    /// Combinations of values: rows, lists of alternatives, ranges, set operations, joins.
    fn of_rows(&mut self) -> String {
        let [a, b, c, d] = [(); 4].map(|()| self.value(None));
        let (table, other) = (self.table(), self.table());
        let sign = self.one_of(&["=", "<", ">=", "IS DISTINCT FROM"]);
        let set = self.one_of(&["UNION", "UNION ALL", "INTERSECT", "EXCEPT ALL"]);
        match self.random.random_range(0..8) {
            0 => self.selected(&format!("(({a}, {b}) {sign} ({c}, {d}))")),
            1 => self.selected(&format!("({a} IN ({b}, {c}))")),
            2 => self.selected(&format!("({a} BETWEEN {b} AND {c})")),
            3 => self.selected(&format!("({a} = ANY({b}))")),
            4 => self.selected(&format!("CASE {a} WHEN {b} THEN {c} ELSE {d} END")),
            5 => format!("SELECT {a}, {b} FROM {table} {set} SELECT {c}, {d} FROM {other}"),
            6 => {
                let (column, _) = self.any_type(None);
                format!(
                    "SELECT count(*) FROM {table} a JOIN {other} b ON a.c{column} {sign} b.c{column}"
                )
            }
            _ => format!("SELECT {a} FROM {table} WHERE ({b}) IN (SELECT {c} FROM {other})"),
        }
    }

    fn called(&mut self, functions: &[CalledFunction]) -> String {
        let is_called = |of: &&CalledFunction| !LEFT_OUT.contains(&of.name.as_str());
        let all: Vec<&CalledFunction> = functions.iter().filter(is_called).collect();
        let Some(function) = all.choose(self.random).copied() else { return "SELECT 1".to_owned() };
        let call = format!("{}({})", function.name, self.arguments(&function.arguments));
        match function.kind.as_str() {
            "aggregate" => self.aggregated(function, &call),
            "window" => {
                let (frame, table) = (self.one_of(&FRAMES), self.table());
                format!("SELECT {call} OVER ({frame}) FROM {table}")
            }
            _ => self.selected(&call),
        }
    }

    /// The documented arguments, mostly of the types that their names indicate; now and then others.
    fn arguments(&mut self, documented: &str) -> String {
        let names: Vec<&str> =
            documented.split(',').map(str::trim).filter(|name| !name.is_empty()).collect();
        let count = match self.random.random_range(0..8) {
            0 => self.random.random_range(0..5),
            1 => names.iter().filter(|name| !name.contains('[')).count(),
            _ => names.len(),
        };
        let arguments = (0..count).map(|at| {
            let name = names.get(at).or(names.last()).copied().unwrap_or("");
            if (name.contains("lambda") || name.contains("->")) && self.chance(0.9) {
                return self
                    .one_of(&[
                        "x -> x",
                        "x -> x IS NULL",
                        "(x, i) -> i",
                        "(x, y) -> x",
                        "x -> NULL",
                    ])
                    .to_owned();
            }
            let family = told_by(name).filter(|_| self.chance(0.75));
            self.value(family)
        });
        arguments.collect::<Vec<_>>().join(", ")
    }

    fn aggregated(&mut self, function: &CalledFunction, call: &str) -> String {
        let table = self.table();
        let within = call.strip_suffix(')').unwrap_or(call);
        let value = self.value(None);
        match self.random.random_range(0..8) {
            0 => format!("SELECT {} FROM {table}", call.replacen('(', "(DISTINCT ", 1)),
            1 => format!("SELECT {within} ORDER BY id DESC) FROM {table}"),
            2 => format!("SELECT {call} FILTER (WHERE id % 2 = 0) FROM {table} GROUP BY id % 3"),
            3 if function.arguments.contains("share") || function.name.contains("percentile") => {
                format!(
                    "SELECT {}(0.5) WITHIN GROUP (ORDER BY {value}) FROM {table}",
                    function.name
                )
            }
            3 | 4 => format!("SELECT {call} FROM {table} GROUP BY ROLLUP(id % 2)"),
            5 | 6 => {
                let frame = self.one_of(&FRAMES);
                format!("SELECT {call} OVER ({frame}) FROM {table}")
            }
            _ => format!("SELECT {call} FROM {table}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use rand::SeedableRng;

    #[test]
    fn a_seed_makes_the_same_calls_each_time() {
        let function = |name: &str, kind: &str, arguments: &str| CalledFunction {
            name: name.to_owned(),
            kind: kind.to_owned(),
            arguments: arguments.to_owned(),
        };
        let functions = [
            function("lower", "scalar", "text"),
            function("sum", "aggregate", "number"),
            function("rank", "window", ""),
            function("pg_sleep", "scalar", "seconds"),
        ];
        let made = || {
            let mut random = StdRng::seed_from_u64(7);
            (0..500).map(|_| random_call(&functions, &mut random)).collect::<Vec<_>>()
        };
        assert_eq!(made(), made());
        let all = made().join("\n");
        for part in
            ["lower(", "sum(", "rank() OVER (", "CAST(", "FROM none", "ROLLUP", "IS DISTINCT FROM"]
        {
            assert!(all.contains(part), "{part}");
        }
        assert!(!all.contains("pg_sleep"));
    }

    #[test]
    fn every_type_has_a_column_and_every_value_a_row() {
        let statements = setup();
        assert!(TYPES.iter().all(|of| of.count() <= ROWS));
        assert!(statements[0].contains("MAP(INTEGER[], INTEGER)"));
        assert_eq!(statements.len(), 3 + ROWS + 1);
    }
}
