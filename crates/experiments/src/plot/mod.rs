//! Results and comparisons as SVG pictures: valid XML without scripts, references or embedded fonts,
//! on white.
//!
//! | File | Draws |
//! |---|---|
//! | `chart` | scales, frames, curves and dots |
//! | `arms` | times of arms with their spread, one strip for each row of a table |
//! | `series` | arms over the length of a run |
//! | `figure2` | figure 2 of the paper: hit rates over time and by migrations |
//! | `table1` | ratios of table 1, published and ours |

mod arms;
mod chart;
mod figure2;
mod series;
mod table1;

use atoll_svg::canvas::{CanvasSize, Panel, Type};
use atoll_svg::palette;

use crate::ExperimentResults;
use crate::reproduce::PublishedComparison;

const MARGIN: f64 = 26.0;
/// Width between the margins.
const WIDTH: f64 = 980.0;
/// Distance between panels.
const GAP: f64 = 22.0;
const LINE: f64 = 16.0;
const HEADING: Type = Type::plain(19.0, palette::INK).bold();
const PLAIN: Type = Type::plain(12.0, palette::FAINT);

/// A run: ns per access by arm with least and most, next to the series.
pub fn results(results: &ExperimentResults) -> String {
    let mut panels = arms::arms(results);
    let mut notes = results.notes.clone();
    if panels.is_empty() {
        notes.insert(0, "No arm was run.".to_owned());
    }
    let reason = results.arms.iter().find_map(|arm| arm.cache_missing.as_ref());
    notes.extend(reason.map(|reason| format!("No hit rates of the last-level caches: {reason}.")));
    panels.push(small_print(&notes));
    let title = format!("Memory access on {}", results.manifest.machine.name);
    page(&title, &results.manifest.text(), &panels)
}

/// A comparison with the paper: figure 2, then the ratios of table 1. The title says whose figures
/// these are, the lines below it under which conditions ours came about.
pub fn reproduction(title: &str, conditions: &str, comparison: &PublishedComparison) -> String {
    let panels: Vec<Panel> =
        figure2::figure2(comparison).into_iter().chain(table1::table1(&comparison.rows)).collect();
    match panels.is_empty() {
        true => page(title, conditions, &[small_print(&["Nothing was compared.".to_owned()])]),
        false => page(title, conditions, &panels),
    }
}

/// Heading, lines of text, and panels one below the other.
fn page(title: &str, text: &str, panels: &[Panel]) -> String {
    let head = small_print(&text.lines().map(str::to_owned).collect::<Vec<_>>());
    let top = MARGIN + 26.0 + head.size.h + GAP;
    let h = top + panels.iter().map(|panel| panel.size.h + GAP).sum::<f64>();
    let mut picture = Panel::new(CanvasSize { w: WIDTH + 2.0 * MARGIN, h });
    picture.text((MARGIN, MARGIN + 14.0), WIDTH, HEADING, title);
    picture.put(MARGIN, MARGIN + 24.0, &head);
    let mut y = top;
    for panel in panels {
        picture.put(MARGIN, y, panel);
        y += panel.size.h + GAP;
    }
    picture.into_file(title)
}

/// Lines of text, wrapped.
fn small_print(lines: &[String]) -> Panel {
    let lines: Vec<String> = lines.iter().flat_map(|line| wrapped(line)).collect();
    let mut panel = Panel::new(CanvasSize { w: WIDTH, h: lines.len() as f64 * LINE });
    for (line, i) in lines.iter().zip(1u32..) {
        panel.text((0.0, f64::from(i) * LINE - 4.0), WIDTH, PLAIN, line);
    }
    panel
}

/// The text in lines that fit the width.
fn wrapped(text: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if PLAIN.width(line) + PLAIN.width(word) + PLAIN.size <= WIDTH => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}
