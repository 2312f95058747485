//! Queries in parts, so that they can be made smaller part by part.

use std::fmt;

use atoll_bench::answers::RowOrder;

/// A query.
#[derive(Clone, Debug)]
pub(crate) enum RandomQuery {
    /// A SELECT.
    Select(Box<Select>),
    /// Two of them in a set operation; its name has ALL where it counts copies.
    Set { operation: &'static str, left: Box<Select>, right: Box<Select> },
    /// A whole query, of which no part can be left out.
    Written(String),
}

/// The parts of a SELECT.
#[derive(Clone, Debug, Default)]
pub(crate) struct Select {
    pub(crate) distinct: bool,
    /// Expressions; the n-th is named `o` with its number.
    pub(crate) items: Vec<String>,
    pub(crate) from: Vec<Joined>,
    /// Conjuncts of WHERE.
    pub(crate) filters: Vec<String>,
    /// `GROUP BY` and what follows, as `ROLLUP` and keys.
    pub(crate) grouping: &'static str,
    pub(crate) keys: Vec<String>,
    pub(crate) having: Vec<String>,
    pub(crate) order: Vec<String>,
    /// Whether no two rows tie in the order.
    pub(crate) ordered: bool,
    pub(crate) limit: Option<(usize, usize)>,
}

/// A table or derived table, and how it is joined to those before it.
#[derive(Clone, Debug)]
pub(crate) struct Joined {
    /// `JOIN`, `LEFT JOIN`, …; nothing for the first.
    pub(crate) kind: &'static str,
    pub(crate) source: Source,
    pub(crate) alias: String,
    /// Conjuncts of ON; a cross join has none.
    pub(crate) on: Vec<String>,
}

/// What rows come from.
#[derive(Clone, Debug)]
pub(crate) enum Source {
    Table(String),
    Derived(Box<Select>),
}

impl RandomQuery {
    /// Whether the order of its rows means something.
    pub(crate) fn row_order(&self) -> RowOrder {
        match self {
            Self::Select(select) if select.ordered && !select.order.is_empty() => RowOrder::Given,
            _ => RowOrder::Any,
        }
    }

    /// The same query with one part fewer, in all ways.
    pub(crate) fn smaller(&self) -> Vec<Self> {
        match self {
            Self::Written(_) => Vec::new(),
            Self::Select(select) => {
                select.smaller().into_iter().map(|select| Self::Select(Box::new(select))).collect()
            }
            Self::Set { operation, left, right } => {
                let set = |left: &Select, right: &Select| Self::Set {
                    operation,
                    left: Box::new(left.clone()),
                    right: Box::new(right.clone()),
                };
                let mut all = vec![Self::Select(left.clone()), Self::Select(right.clone())];
                all.extend(left.smaller().iter().map(|left| set(left, right)));
                all.extend(right.smaller().iter().map(|right| set(left, right)));
                let narrow = |at: usize| {
                    let without = |side: &Select| {
                        let mut side = side.clone();
                        side.items.remove(at);
                        side
                    };
                    set(&without(left), &without(right))
                };
                if left.items.len() > 1 {
                    all.extend((0..left.items.len()).map(narrow));
                }
                all
            }
        }
    }
}

/// All vectors with one element removed.
fn without_one<T: Clone>(parts: &[T], least: usize) -> Vec<Vec<T>> {
    let removed = |at: usize| {
        let mut parts = parts.to_vec();
        parts.remove(at);
        parts
    };
    if parts.len() <= least { Vec::new() } else { (0..parts.len()).map(removed).collect() }
}

impl Select {
    fn smaller(&self) -> Vec<Self> {
        let mut all = Vec::new();
        let mut push = |change: &dyn Fn(&mut Self)| {
            let mut select = self.clone();
            change(&mut select);
            all.push(select);
        };
        for from in without_one(&self.from, 1) {
            push(&|select| select.from = from.clone());
        }
        for filters in without_one(&self.filters, 0) {
            push(&|select| select.filters = filters.clone());
        }
        for having in without_one(&self.having, 0) {
            push(&|select| select.having = having.clone());
        }
        for keys in without_one(&self.keys, 0) {
            push(&|select| select.keys = keys.clone());
        }
        for items in without_one(&self.items, 1) {
            push(&|select| select.items = items.clone());
        }
        if self.limit.is_some() {
            push(&|select| select.limit = None);
        }
        if !self.order.is_empty() && self.limit.is_none() {
            push(&|select| select.order.clear());
        }
        if self.distinct {
            push(&|select| select.distinct = false);
        }
        for (at, joined) in self.from.iter().enumerate() {
            for on in without_one(&joined.on, 1) {
                push(&|select| select.from[at].on = on.clone());
            }
            if let Source::Derived(derived) = &joined.source {
                for smaller in derived.smaller() {
                    push(&|select| {
                        select.from[at].source = Source::Derived(Box::new(smaller.clone()));
                    });
                }
            }
        }
        all
    }
}

impl fmt::Display for RandomQuery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Select(select) => select.fmt(f),
            Self::Written(sql) => f.write_str(sql),
            Self::Set { operation, left, right } => write!(f, "{left} {operation} {right}"),
        }
    }
}

impl fmt::Display for Select {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let items: Vec<String> =
            self.items.iter().enumerate().map(|(at, item)| format!("{item} AS o{at}")).collect();
        let distinct = if self.distinct { "DISTINCT " } else { "" };
        write!(f, "SELECT {distinct}{}", items.join(", "))?;
        for (at, joined) in self.from.iter().enumerate() {
            let kind = if at == 0 { "FROM" } else { joined.kind };
            write!(f, " {kind} {} {}", joined.source, joined.alias)?;
            if at > 0 && !joined.on.is_empty() {
                write!(f, " ON {}", joined.on.join(" AND "))?;
            }
        }
        clause(f, "WHERE", &self.filters, " AND ")?;
        match self.grouping {
            "" => clause(f, "GROUP BY", &self.keys, ", ")?,
            _ if self.keys.is_empty() => {}
            "GROUPING SETS" => write!(f, " GROUP BY GROUPING SETS {}", sets(&self.keys))?,
            grouping => write!(f, " GROUP BY {grouping} ({})", self.keys.join(", "))?,
        }
        clause(f, "HAVING", &self.having, " AND ")?;
        clause(f, "ORDER BY", &self.order, ", ")?;
        match self.limit {
            Some((limit, offset)) => write!(f, " LIMIT {limit} OFFSET {offset}"),
            None => Ok(()),
        }
    }
}

/// `((a, b), (a), ())`
fn sets(keys: &[String]) -> String {
    let sets: Vec<String> =
        (0..=keys.len()).rev().map(|len| format!("({})", keys[..len].join(", "))).collect();
    format!("({})", sets.join(", "))
}

fn clause(f: &mut fmt::Formatter<'_>, name: &str, parts: &[String], between: &str) -> fmt::Result {
    if parts.is_empty() { Ok(()) } else { write!(f, " {name} {}", parts.join(between)) }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Table(name) => f.write_str(name),
            Self::Derived(select) => write!(f, "({select})"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(kind: &'static str, name: &str, on: &[&str]) -> Joined {
        let on = on.iter().map(|on| (*on).to_owned()).collect();
        Joined { kind, source: Source::Table(name.into()), alias: format!("a_{name}"), on }
    }

    #[test]
    fn parts_are_written_in_the_order_of_sql() {
        let select = Select {
            distinct: true,
            items: vec!["1".into(), "count(*)".into()],
            from: vec![table("", "t", &[]), table("LEFT JOIN", "u", &["x", "y"])],
            filters: vec!["p".into(), "q".into()],
            grouping: "GROUPING SETS",
            keys: vec!["k".into(), "l".into()],
            having: vec!["h".into()],
            order: vec!["1".into()],
            ordered: false,
            limit: Some((3, 1)),
        };
        assert_eq!(
            select.to_string(),
            "SELECT DISTINCT 1 AS o0, count(*) AS o1 FROM t a_t LEFT JOIN u a_u ON x AND y \
             WHERE p AND q GROUP BY GROUPING SETS ((k, l), (k), ()) HAVING h ORDER BY 1 \
             LIMIT 3 OFFSET 1"
        );
    }

    #[test]
    fn every_smaller_query_has_one_part_fewer() {
        let select = Select {
            items: vec!["a".into(), "b".into()],
            from: vec![table("", "t", &[]), table("JOIN", "u", &["x", "y"])],
            filters: vec!["p".into()],
            ..Select::default()
        };
        let whole = RandomQuery::Select(Box::new(select));
        let length = whole.to_string().len();
        let smaller = whole.smaller();
        assert_eq!(smaller.len(), 7);
        assert!(smaller.iter().all(|query| query.to_string().len() < length));
    }
}
