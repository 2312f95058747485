//! A smaller case that fails alike: fewer rows, fewer parts of the query, fewer columns.

use crate::data::{TestTable, types_of};
use crate::query::RandomQuery;

/// Tables and a query over them.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    pub(crate) tables: Vec<TestTable>,
    pub(crate) query: RandomQuery,
}

impl Case {
    /// The statements that make its tables.
    pub(crate) fn setup(&self) -> Vec<String> {
        let types = types_of(&self.tables).into_iter();
        types.chain(self.tables.iter().flat_map(TestTable::setup)).collect()
    }
}

/// The smallest case found that still fails, in so many trials.
pub(crate) fn shrink(case: Case, trials_max: usize, mut fails: impl FnMut(&Case) -> bool) -> Case {
    let mut trials = 0;
    let mut fails = |case: &Case| {
        trials += 1;
        trials <= trials_max && fails(case)
    };
    let mut best = case;
    loop {
        let before = best.size();
        drop_tables(&mut best, &mut fails);
        smaller_queries(&mut best, &mut fails);
        fewer_changes(&mut best, &mut fails);
        fewer_rows(&mut best, &mut fails);
        drop_columns(&mut best, &mut fails);
        if best.size() >= before {
            return best;
        }
    }
}

impl Case {
    fn size(&self) -> usize {
        let setup: usize = self.setup().iter().map(String::len).sum();
        setup + self.query.to_string().len()
    }

    /// The case changed, if it still fails then.
    fn try_with(
        &mut self,
        fails: &mut impl FnMut(&Self) -> bool,
        change: impl FnOnce(&mut Self),
    ) -> bool {
        let mut changed = self.clone();
        change(&mut changed);
        let better = fails(&changed);
        if better {
            *self = changed;
        }
        better
    }
}

fn drop_tables(case: &mut Case, fails: &mut impl FnMut(&Case) -> bool) {
    let text = case.query.to_string();
    let named = |name: &str| text.contains(&format!(" {name} "));
    let is_used = |table: &TestTable| named(&table.name) || named(&table.view());
    case.try_with(fails, |case| case.tables.retain(is_used));
}

fn smaller_queries(case: &mut Case, fails: &mut impl FnMut(&Case) -> bool) {
    while let Some(smaller) = {
        let candidates = case.query.smaller().into_iter();
        let tables = case.tables.clone();
        candidates.map(|query| Case { tables: tables.clone(), query }).find(|case| fails(case))
    } {
        *case = smaller;
    }
}

fn fewer_changes(case: &mut Case, fails: &mut impl FnMut(&Case) -> bool) {
    for at in 0..case.tables.len() {
        for change in (0..case.tables[at].changes.len()).rev() {
            case.try_with(fails, |case| drop(case.tables[at].changes.remove(change)));
        }
    }
}

/// Halves, quarters, … of each table's rows go as long as the case fails without them.
fn fewer_rows(case: &mut Case, fails: &mut impl FnMut(&Case) -> bool) {
    for at in 0..case.tables.len() {
        if case.tables[at].copies > 1 {
            case.try_with(fails, |case| case.tables[at].copies = 1);
        }
        let mut part = case.tables[at].rows.len();
        while part > 0 {
            let mut start = 0;
            while start < case.tables[at].rows.len() {
                let end = (start + part).min(case.tables[at].rows.len());
                if !case.try_with(fails, |case| drop(case.tables[at].rows.drain(start..end))) {
                    start = end;
                }
            }
            part /= 2;
        }
    }
}

fn drop_columns(case: &mut Case, fails: &mut impl FnMut(&Case) -> bool) {
    for at in 0..case.tables.len() {
        for column in (1..case.tables[at].columns.len()).rev() {
            case.try_with(fails, |case| case.tables[at].drop_column(column));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Column, ColumnType};
    use crate::query::{Joined, Select, Source};

    #[test]
    fn a_case_shrinks_to_what_makes_it_fail() {
        let table = |name: &str| {
            let column = |name: &str| Column { name: name.into(), data_type: ColumnType::Int };
            let rows = (0..50).map(|id: i32| vec![Some(id.to_string()), Some("7".into())]);
            let (columns, rows) = (vec![column("id"), column("c1")], rows.collect());
            let changes = vec!["DELETE FROM u WHERE c1 = 7".into()];
            TestTable { name: name.into(), columns, rows, copies: 1, changes }
        };
        let from =
            Joined { kind: "", source: Source::Table("t".into()), alias: "a".into(), on: vec![] };
        let select = Select {
            items: vec!["a.id".into(), "1".into()],
            from: vec![from],
            filters: vec!["p".into(), "q".into()],
            ..Select::default()
        };
        let query = RandomQuery::Select(Box::new(select));
        let case = Case { tables: vec![table("t"), table("u")], query };
        let small = shrink(case, 400, |case| {
            let has =
                |id: &str| case.tables[0].rows.iter().any(|row| row[0].as_deref() == Some(id));
            case.query.to_string().contains("q") && has("13") && has("40")
        });
        assert_eq!(small.query.to_string(), "SELECT 1 AS o0 FROM t a WHERE q");
        assert_eq!(
            small.setup(),
            [
                "CREATE TABLE t (id INT)",
                "INSERT INTO t VALUES (CAST('13' AS INT)), (CAST('40' AS INT))",
                "CREATE VIEW t_view AS SELECT id, id AS id_again FROM t"
            ]
        );
    }
}
