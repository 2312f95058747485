//! `table`: drawn with ASCII characters only.

use super::DrawLayout;
use super::grid::{Grid, GridLines, Rule};

const RULE: Rule = Rule { left: "+-", line: "-", cross: "-+-", right: "-+" };

const LINES: GridLines =
    GridLines { top: RULE, middle: RULE, bottom: RULE, bar: "|", more: ".", cut: '~' };

pub(super) fn rows(layout: DrawLayout) -> Grid {
    Grid::new(&LINES, layout)
}

#[cfg(test)]
mod tests {
    use super::super::Mode;
    use super::super::testing::{numbers, plan, written};

    #[test]
    fn a_table_is_drawn_in_ascii() {
        assert_eq!(
            written(Mode::Table, &numbers(2, 2)),
            "+---+\n| n |\n+---+\n| 0 |\n| 1 |\n+---+\n"
        );
    }

    #[test]
    fn a_plan_is_printed_without_a_grid() {
        assert_eq!(written(Mode::Table, &plan()), "physical_plan\nSort\n  Scan: a | b\n");
    }
}
