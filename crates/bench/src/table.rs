//! Tables in Markdown whose columns are aligned in the source too.

use std::fmt::Write;

/// A table; the first column is text, the others are numbers.
pub(crate) fn table(head: &[String], rows: &[Vec<String>]) -> String {
    let width = |column: usize| {
        let cells = rows.iter().map(|row| &row[column]).chain([&head[column]]);
        cells.map(|cell| cell.chars().count()).max().unwrap_or_default()
    };
    let widths: Vec<usize> = (0..head.len()).map(width).collect();
    let mut text = String::new();
    let mut line = |cells: &[String]| {
        for (column, (cell, width)) in cells.iter().zip(&widths).enumerate() {
            // Writing to a string cannot fail.
            let _ = match column {
                0 => write!(text, "| {cell:<width$} |"),
                _ => write!(text, " {cell:>width$} |"),
            };
        }
        text.push('\n');
    };
    line(head);
    let rule = widths.iter().enumerate().map(|(column, width)| match column {
        0 => "-".repeat(*width),
        _ => format!("{}:", "-".repeat(width.saturating_sub(1))),
    });
    line(&rule.collect::<Vec<_>>());
    rows.iter().for_each(|row| line(row));
    text
}

#[cfg(test)]
mod tests {
    use super::table;

    #[test]
    fn columns_are_as_wide_as_what_is_in_them() {
        let row = |cells: [&str; 2]| cells.map(str::to_owned).to_vec();
        let text = table(&row(["who", "s"]), &[row(["a", "10.5"]), row(["ü", "2"])]);
        assert_eq!(text, "| who |    s |\n| --- | ---: |\n| a   | 10.5 |\n| ü   |    2 |\n");
    }
}
