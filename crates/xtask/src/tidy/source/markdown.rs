//! Markdown as far as tidy asks: tables, and links outside of code.

/// Cells of the rows of the first table after the line that holds `marker`, with the row's line
/// (from 1); header and rule are left out. None without marker or table.
pub(crate) fn table_after<'a>(text: &'a str, marker: &str) -> Option<Vec<(usize, Vec<&'a str>)>> {
    let lines = text.lines().enumerate().skip_while(|(_, line)| !line.contains(marker)).skip(1);
    let rows = lines
        .skip_while(|(_, line)| line.trim().is_empty())
        .take_while(|(_, line)| line.trim_start().starts_with('|'))
        .skip(2);
    let cells = |line: &'a str| line.trim().trim_matches('|').split('|').map(str::trim).collect();
    let table: Vec<_> = rows.map(|(number, line)| (number + 1, cells(line))).collect();
    (!table.is_empty()).then_some(table)
}

/// Targets of links and images (`[text](target)`, `[name]: target`) with their line, from 1.
pub(crate) fn links(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut fenced = false;
    for (number, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        } else if !fenced {
            let prose = without_code(line);
            found.extend(inline_targets(&prose).map(|target| (number + 1, target.to_owned())));
            found.extend(reference_target(&prose).map(|target| (number + 1, target.to_owned())));
        }
    }
    found
}

/// The line without its `code` spans: every second piece between backticks.
fn without_code(line: &str) -> String {
    line.split('`').step_by(2).collect::<Vec<_>>().join("code")
}

fn inline_targets(line: &str) -> impl Iterator<Item = &str> {
    line.split("](").skip(1).filter_map(|rest| {
        let target = rest.split([')', ' ']).next()?;
        Some(target.trim_matches(['<', '>']))
    })
}

fn reference_target(line: &str) -> Option<&str> {
    let (_, target) = line.strip_prefix('[')?.split_once("]: ")?;
    target.split_whitespace().next()
}

#[cfg(test)]
mod tests {
    use super::{links, table_after};

    #[test]
    fn links_are_found_outside_of_code_only() {
        let text =
            "[a](x.md) and ![b](p.png \"t\") `[c](no.md)`\n```\n[d](no.md)\n```\n[e]: y.md\n";
        let expected = [(1, "x.md"), (1, "p.png"), (5, "y.md")];
        assert_eq!(links(text), expected.map(|(line, target)| (line, target.to_owned())));
    }

    #[test]
    fn the_table_after_the_marker_is_read_without_its_head() {
        let text =
            "| no |\n|---|\n| x |\n\n<!-- here -->\n\n| A | B |\n|---|---|\n| 0 | `s` |\ntext";
        assert_eq!(table_after(text, "<!-- here -->"), Some(vec![(9, vec!["0", "`s`"])]));
        assert_eq!(table_after(text, "<!-- there -->"), None);
    }
}
