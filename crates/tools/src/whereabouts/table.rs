//! Text tables: columns as wide as their widest cell.

/// How a column stands.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Alignment {
    Left,
    Right,
}

/// The rows as lines, the first being the header. Empty columns stay.
pub(super) fn lines(sides: &[Alignment], rows: &[Vec<String>]) -> String {
    let width = |column: usize| {
        rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max()
    };
    let widths: Vec<usize> = (0..sides.len()).map(|column| width(column).unwrap_or(0)).collect();
    let mut text = String::new();
    for row in rows {
        let mut line = String::new();
        for ((cell, side), width) in row.iter().zip(sides).zip(&widths) {
            let padding = " ".repeat(width - cell.chars().count());
            match side {
                Alignment::Left => line.extend([cell, padding.as_str(), "  "]),
                Alignment::Right => line.extend([padding.as_str(), cell, "  "]),
            }
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// A name that another program chose: no line ends, no control characters that a terminal obeys.
pub(super) fn plain(name: &str) -> String {
    let escaped = name.chars().flat_map(|c| {
        let keep = !c.is_control();
        let (kept, escaped) = (keep.then_some(c), (!keep).then(|| c.escape_default()));
        kept.into_iter().chain(escaped.into_iter().flatten())
    });
    escaped.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let cell = |text: &str| text.to_owned();
        let rows = [vec![cell("node"), cell("x")], vec![cell("0"), cell("long")]];
        assert_eq!(lines(&[Alignment::Right, Alignment::Left], &rows), "node  x\n   0  long\n");
    }

    #[test]
    fn a_name_cannot_command_the_terminal() {
        assert_eq!(plain("a\n\u{1b}[2Jb é"), "a\\n\\u{1b}[2Jb é");
    }
}
