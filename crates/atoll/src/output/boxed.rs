//! `box`: a grid with line-drawing characters.

use super::DrawLayout;
use super::grid::{Grid, GridLines, Rule};

const LINES: GridLines = GridLines {
    top: Rule { left: "┌─", line: "─", cross: "─┬─", right: "─┐" },
    middle: Rule { left: "├─", line: "─", cross: "─┼─", right: "─┤" },
    bottom: Rule { left: "└─", line: "─", cross: "─┴─", right: "─┘" },
    bar: "│",
    more: "·",
    cut: '…',
};

pub(super) fn rows(layout: DrawLayout) -> Grid {
    Grid::new(&LINES, layout)
}

#[cfg(test)]
mod tests {
    use super::super::testing::{awkward, empty, numbers, texts, written, written_in};
    use super::super::{DrawLayout, Mode};

    #[test]
    fn a_box_aligns_numbers_right_and_counts_wide_characters_twice() {
        assert_eq!(
            written(Mode::Box, &awkward()),
            "\
┌──────────────────┬─────────────┬──────┬─────────────────────────┐
│                n │ text        │    x │                   price │
├──────────────────┼─────────────┼──────┼─────────────────────────┤
│                1 │ a,\"b\"       │  1.5 │                   12.30 │
│                  │ c           │      │                         │
│             NULL │ zürich 東京 │  NaN │                   -0.05 │
│ 9007199254740993 │             │  inf │                    NULL │
│               -7 │ NULL        │ NULL │ 99999999999999999999.99 │
└──────────────────┴─────────────┴──────┴─────────────────────────┘
"
        );
    }

    #[test]
    fn an_empty_box_shows_its_columns() {
        let text = written(Mode::Box, &empty());
        assert_eq!(text.lines().count(), 4);
        assert!(text.contains("│ n │ text │ x │ price │"));
    }

    #[test]
    fn a_long_result_shows_its_first_and_last_rows() {
        let layout = DrawLayout { rows_max: Some(5), ..DrawLayout::default() };
        for batch in [1, 3, 1000] {
            let (text, notes) = written_in(Mode::Box, layout.clone(), &numbers(1000, batch));
            let cells: Vec<&str> =
                text.lines().skip(3).map(|line| line.trim_matches(['│', ' '])).collect();
            assert_eq!(&cells[..6], ["0", "1", "2", "·", "998", "999"]);
            assert_eq!(notes, ["5 shown; .maxrows 0 shows all"]);
        }
        let (text, notes) = written_in(Mode::Box, layout, &numbers(5, 2));
        assert!(!text.contains('·') && notes.is_empty());
    }

    #[test]
    fn wide_values_are_cut_to_the_terminal_and_a_note_says_so() {
        let layout = DrawLayout { width: Some(20), ..DrawLayout::default() };
        let (text, notes) = written_in(Mode::Box, layout, &texts(&["東京東京東京東京東京", "b"]));
        assert!(text.lines().all(|line| line.chars().count() <= 20));
        assert!(text.contains("│ 東京東京東京東… │") || text.contains("│ 東京東京東京東…  │"));
        assert_eq!(notes, ["values cut at …; .mode line shows them whole"]);
    }

    #[test]
    fn columns_beyond_the_terminal_are_left_out_and_a_note_says_so() {
        let layout = DrawLayout { width: Some(30), ..DrawLayout::default() };
        let (text, notes) = written_in(Mode::Box, layout, &awkward());
        assert!(text.lines().all(|line| line.chars().count() <= 30), "{text}");
        assert!(notes.contains(&"3 of 4 columns shown; .mode line shows all".to_owned()));
    }

    #[test]
    fn null_is_dimmed_with_colours() {
        let layout = DrawLayout { color: true, ..DrawLayout::default() };
        let (text, _) = written_in(Mode::Box, layout, &awkward());
        assert!(text.contains("│ \x1b[2mNULL\x1b[0m        │"), "{text}");
    }

    #[test]
    fn control_characters_do_not_reach_the_terminal() {
        let text = written(Mode::Box, &texts(&["a\x1b[31mb\tc\r\nd\u{9b}"]));
        assert!(text.contains("│ a\\x1b[31mb   c │"), "{text}");
        assert!(text.contains("│ d\\x9b"), "{text}");
    }
}
