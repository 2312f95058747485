//! Finds the relations that a part of a statement reads by a plain name, how often, and in which of the places where a
//! recursive query must not read itself. A name that a WITH inside the part defines is that query's.

use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;

use datafusion::execution::SessionState;
use datafusion::sql::sqlparser::ast::{
    Expr, JoinOperator, ObjectName, Query, Select, SetExpr, SetOperator, SetQuantifier,
    TableFactor, TableWithJoins, Visit, Visitor,
};

use crate::dialect::{folded, is_aggregate};
use crate::syntax::{walk, walk_own_expressions};

/// A place where a recursive query must not read itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Place {
    /// In a query inside an expression.
    Subquery,
    /// On a side of an outer join whose columns may be filled with NULL.
    OuterJoin,
    Intersect,
    Except,
    /// In a WITH query that is read more than once: DataFusion would plan it each time.
    Repeated,
    /// In FROM of a query that computes aggregates.
    Aggregates,
}

/// The relations that are read.
#[derive(Debug, Default)]
pub(super) struct References {
    times: HashMap<String, usize>,
    misplaced: Vec<(String, Place)>,
}

impl References {
    /// The references of a part of a statement.
    pub(super) fn find_in(part: &impl Visit, state: &SessionState) -> Self {
        let mut finder = Finder::new(Some(state), Vec::new());
        let _ = walk(part, &mut finder);
        finder.found
    }

    /// The references of a term of a set operation.
    pub(super) fn of_term(term: &SetExpr, state: &SessionState) -> Self {
        let mut finder = Finder::new(Some(state), Vec::new());
        finder.set_operations(term);
        let _ = walk(term, &mut finder);
        finder.found
    }

    /// The number of places that read a name.
    pub(super) fn times(&self, name: &str) -> usize {
        self.times.get(name).copied().unwrap_or(0)
    }

    /// A forbidden place that reads a recursive query of this name.
    pub(super) fn misplaced(&self, name: &str) -> Option<Place> {
        self.misplaced.iter().filter(|(read, _)| read == name).map(|(_, place)| *place).min()
    }
}

/// A query around the visited node.
#[derive(Clone)]
struct Around {
    /// The names that its WITH defines.
    defines: Vec<String>,
    is_recursive: bool,
    /// The number of queries directly inside it that were entered: those of its WITH come first.
    entered: usize,
    /// Whether the last one of them is still visited.
    is_open: bool,
    /// Expressions that are open where it begins.
    expressions: usize,
    is_in_expression: bool,
}

impl Around {
    /// Whether a name that is read inside it is that of its own WITH.
    fn defines(&self, name: &str) -> bool {
        // Inside the WITH a query sees those before it, and under RECURSIVE all of them.
        let is_in_with = self.is_open && self.entered <= self.defines.len();
        let seen = if is_in_with && !self.is_recursive {
            &self.defines[..self.entered - 1]
        } else {
            &self.defines[..]
        };
        seen.iter().any(|defined| defined == name)
    }
}

struct Finder<'a> {
    /// `None` if only the names matter.
    state: Option<&'a SessionState>,
    around: Vec<Around>,
    /// Expressions around the visited node, inside the innermost query.
    expressions: usize,
    found: References,
}

impl<'a> Finder<'a> {
    fn new(state: Option<&'a SessionState>, around: Vec<Around>) -> Self {
        Self { state, around, expressions: 0, found: References::default() }
    }

    /// Records a name if no WITH inside the part defines it.
    fn take(&mut self, name: &ObjectName) {
        let [part] = name.0.as_slice() else { return };
        let Some(name) = part.as_ident().map(folded) else { return };
        if self.around.iter().any(|query| query.defines(&name)) {
            return;
        }
        let is_inside = self.around.last().is_some_and(|query| query.is_in_expression);
        if is_inside || self.expressions > 0 {
            self.found.misplaced.push((name.clone(), Place::Subquery));
        }
        *self.found.times.entry(name).or_default() += 1;
    }

    /// Records the names that are read in a part as misplaced.
    fn misplace(&mut self, part: &impl Visit, place: Place) {
        let names = self.names_in(part).into_keys();
        self.found.misplaced.extend(names.map(|name| (name, place)));
    }

    /// Looks for the names that WITH queries read which are themselves read more than once.
    fn repeated(&mut self, query: &Query) {
        let Some(with) = &query.with else { return };
        let mut read_by: HashMap<String, HashSet<String>> = HashMap::new();
        let mut times: HashMap<String, usize> = HashMap::new();
        for cte in &with.cte_tables {
            let mut names = HashSet::new();
            for (name, count) in self.names_in(cte) {
                names.extend(read_by.get(&name).into_iter().flatten().cloned());
                *times.entry(name.clone()).or_default() += count;
                names.insert(name);
            }
            read_by.insert(folded(&cte.alias.name), names);
        }
        for (name, count) in self.names_in(&query.body) {
            *times.entry(name).or_default() += count;
        }
        for (cte, names) in read_by {
            if times.get(&cte).is_some_and(|times| *times > 1) {
                let repeated = names.into_iter().map(|name| (name, Place::Repeated));
                self.found.misplaced.extend(repeated);
            }
        }
    }

    /// The names that a part reads, and how often.
    fn names_in(&self, part: &impl Visit) -> HashMap<String, usize> {
        let mut inside = Finder::new(None, self.around.clone());
        let _ = walk(part, &mut inside);
        inside.found.times
    }

    /// Looks for INTERSECT ALL and EXCEPT, which do not only add rows where a side has more.
    fn set_operations(&mut self, body: &SetExpr) {
        let SetExpr::SetOperation { op, set_quantifier, left, right } = body else { return };
        let is_all = *set_quantifier == SetQuantifier::All;
        let place = match op {
            SetOperator::Union => None,
            SetOperator::Intersect => is_all.then_some(Place::Intersect),
            SetOperator::Except | SetOperator::Minus => Some(Place::Except),
        };
        if let Some(place) = place {
            self.misplace(right.as_ref(), place);
            if is_all {
                self.misplace(left.as_ref(), place);
            }
        }
        self.set_operations(left);
        self.set_operations(right);
    }

    /// Looks for outer joins with a side that may be filled with NULL.
    fn outer_joins(&mut self, from: &TableWithJoins) {
        for (at, join) in from.joins.iter().enumerate() {
            let (fills_left, fills_right) = match &join.join_operator {
                JoinOperator::Left(_) | JoinOperator::LeftOuter(_) | JoinOperator::OuterApply => {
                    (false, true)
                }
                JoinOperator::Right(_) | JoinOperator::RightOuter(_) => (true, false),
                JoinOperator::FullOuter(_) => (true, true),
                _ => (false, false),
            };
            if fills_left {
                self.misplace(&from.relation, Place::OuterJoin);
                for before in &from.joins[..at] {
                    self.misplace(&before.relation, Place::OuterJoin);
                }
            }
            if fills_right {
                self.misplace(&join.relation, Place::OuterJoin);
            }
        }
        let joined = from.joins.iter().map(|join| &join.relation);
        for factor in std::iter::once(&from.relation).chain(joined) {
            if let TableFactor::NestedJoin { table_with_joins, .. } = factor {
                self.outer_joins(table_with_joins);
            }
        }
    }

    /// Records the names directly in a FROM, without those of its subqueries.
    fn direct(&mut self, from: &TableWithJoins) {
        let joined = from.joins.iter().map(|join| &join.relation);
        for factor in std::iter::once(&from.relation).chain(joined) {
            match factor {
                TableFactor::Table { args: None, .. } => self.misplace(factor, Place::Aggregates),
                TableFactor::NestedJoin { table_with_joins, .. } => self.direct(table_with_joins),
                _ => {}
            }
        }
    }
}

impl Visitor for Finder<'_> {
    type Break = ();

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        if self.state.is_some() {
            self.repeated(query);
        }
        let is_inside = self.around.last().is_some_and(|outer| outer.is_in_expression);
        if let Some(outer) = self.around.last_mut() {
            outer.entered += 1;
            outer.is_open = true;
        }
        let with = query.with.as_ref();
        let ctes = with.iter().flat_map(|with| &with.cte_tables);
        self.around.push(Around {
            defines: ctes.map(|cte| folded(&cte.alias.name)).collect(),
            is_recursive: with.is_some_and(|with| with.recursive),
            entered: 0,
            is_open: false,
            expressions: std::mem::take(&mut self.expressions),
            is_in_expression: is_inside,
        });
        if let Some(own) = self.around.last_mut() {
            own.is_in_expression |= own.expressions > 0;
        }
        if self.state.is_some() {
            self.set_operations(&query.body);
        }
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
        self.expressions = self.around.pop().map_or(0, |query| query.expressions);
        if let Some(outer) = self.around.last_mut() {
            outer.is_open = false;
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<()> {
        let Some(state) = self.state else { return ControlFlow::Continue(()) };
        for from in &select.from {
            self.outer_joins(from);
        }
        let aggregate = walk_own_expressions(select, &mut |expr| match expr {
            Expr::Function(function) if is_aggregate(function, state) => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        });
        if aggregate.is_break() {
            for from in &select.from {
                self.direct(from);
            }
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<()> {
        if let TableFactor::Table { name, args: None, .. } = factor {
            self.take(name);
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, _: &Expr) -> ControlFlow<()> {
        self.expressions += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, _: &Expr) -> ControlFlow<()> {
        self.expressions -= 1;
        ControlFlow::Continue(())
    }
}
