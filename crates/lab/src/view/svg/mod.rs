//! A record as a picture: accesses by node, traffic by link, and both over time.
//!
//! | File | Draws |
//! |---|---|
//! | `pair` | two records side by side, on one scale |
//! | `links` | nodes on a ring, links as wide as their bytes |
//! | `series` | hit rate, bytes of controllers and links over counted accesses |

mod links;
mod pair;
mod series;

pub use pair::svg_pair;

use atoll_svg::canvas::{CanvasSize, Panel, Type};
use atoll_svg::heat::{Heat, heat};
use atoll_svg::palette::{self, Ramp};

use super::counts::{accesses, controller_bytes, hit_rate, link_bytes, local_share, total};
use super::nothing::why_nothing;
use super::words::{count, counted, line, percent, time};
use crate::record::RunRecord;

const MARGIN: f64 = 26.0;
const GAP: f64 = 34.0;
const HEADER: f64 = 96.0;
/// The narrowest picture: its title has to fit.
const WIDTH_MIN: f64 = 620.0;
/// How far a long title widens it.
const WIDTH_MAX: f64 = 930.0;
const TITLE: Type = Type::plain(19.0, palette::INK).bold();
const PLAIN: Type = Type::plain(12.5, palette::FAINT);

/// A run as an SVG picture: heat maps of accesses and missed lines, the links, and series over counted
/// accesses. Valid XML without scripts, references or embedded fonts, on white. Where nothing was
/// counted it says why.
pub fn svg(record: &RunRecord) -> String {
    let title = line(&record.run.command.join(" "));
    let lines = lines(record);
    let something = why_nothing(record).is_none();
    let upper = if something { side_by_side(&upper(record)) } else { Panel::default() };
    let widest = lines.iter().map(|line| PLAIN.width(line)).fold(TITLE.width(&title), f64::max);
    let inner = upper.size.w.max(widest).clamp(WIDTH_MIN, upper.size.w.max(WIDTH_MAX));
    let series = if something { series::series(record, inner) } else { Panel::default() };
    let h = 2.0 * MARGIN + HEADER + upper.size.h + GAP + series.size.h;
    let mut picture = Panel::new(CanvasSize { w: inner + 2.0 * MARGIN, h });
    picture.text((MARGIN, MARGIN + 14.0), inner, TITLE, &title);
    for (line, i) in lines.iter().zip(0u32..) {
        let y = MARGIN + 35.0 + 17.0 * f64::from(i);
        picture.text((MARGIN, y), inner, PLAIN, line);
    }
    picture.put(MARGIN, MARGIN + HEADER, &upper);
    picture.put(MARGIN, MARGIN + HEADER + upper.size.h + GAP, &series);
    picture.into_file(&title)
}

/// The totals in words.
fn lines(record: &RunRecord) -> Vec<String> {
    let traffic = &record.report.total;
    let nodes = counted(record.report.setup.nodes.len(), "node");
    let machine = format!("on {} in the lab, {nodes}", line(&record.run.machine));
    if let Some(why) = why_nothing(record) {
        return vec![machine, why];
    }
    let accesses = accesses(traffic);
    let bounds = &record.estimate.independent;
    let narrowest = bounds.narrowest.map_or(String::new(), |it| format!("; narrowest: {it}"));
    vec![
        format!(
            "{machine}: {} accesses, {} of them local",
            count(total(&accesses)),
            percent(local_share(&accesses)),
        ),
        format!(
            "{} lines missed the last-level caches, {} of them of local pages; hit rate {}",
            count(total(&traffic.lines)),
            percent(local_share(&traffic.lines)),
            percent(hit_rate(traffic)),
        ),
        format!("estimated time {} to {}{narrowest}", time(bounds.lower), time(bounds.upper)),
    ]
}

/// The values of the widest stroke and the darkest shade.
struct Scale {
    /// Over one direction of a link.
    link_bytes: u64,
    /// Through one memory controller.
    controller_bytes: u64,
    /// Lines that missed, from the cpus of one node to the memory of one node.
    lines: u64,
}

impl Scale {
    /// One scale for all the records.
    fn for_records(records: &[&RunRecord]) -> Self {
        let most = |of: fn(&RunRecord) -> Vec<u64>| {
            records.iter().flat_map(|record| of(record)).max().unwrap_or(0)
        };
        Self {
            link_bytes: most(|record| link_bytes(&record.report.total)),
            controller_bytes: most(|record| controller_bytes(&record.report.total)),
            lines: most(|record| record.report.total.lines.concat()),
        }
    }
}

/// The heat maps and the links.
fn upper(record: &RunRecord) -> Vec<Panel> {
    let accesses = accesses(&record.report.total);
    let most = accesses.iter().flatten().max().copied().unwrap_or(0);
    let scale = Scale::for_records(&[record]);
    let maps =
        [map(record, "Accesses", &accesses, (palette::COOL, most)), lines_missed(record, &scale)];
    maps.into_iter().chain(links::links(record, &scale)).collect()
}

/// Lines that missed the last-level caches.
fn lines_missed(record: &RunRecord, scale: &Scale) -> Panel {
    map(record, "Lines missed", &record.report.total.lines, (palette::WARM, scale.lines))
}

/// Counts by node of the cpu and home; `most` is the darkest.
fn map(record: &RunRecord, title: &str, rows: &[Vec<u64>], (ramp, most): (Ramp, u64)) -> Panel {
    let heads: Vec<u32> = record.report.setup.nodes.iter().map(|node| node.id.0).collect();
    let value = |count: &u64| Some(*count as f64);
    let cells: Vec<Vec<Option<f64>>> =
        rows.iter().map(|row| row.iter().map(value).collect()).collect();
    heat(&Heat {
        title: title.to_owned(),
        credit: "node of the cpu (row) to home (column)".to_owned(),
        heads: &heads,
        cells: &cells,
        ramp,
        range: Some((0.0, most as f64)),
        figure: |value| count(value as u64),
    })
}

/// Panels side by side.
fn side_by_side(panels: &[Panel]) -> Panel {
    let w = panels.iter().map(|panel| panel.size.w + GAP).sum::<f64>() - GAP;
    let h = panels.iter().map(|panel| panel.size.h).fold(0.0, f64::max);
    let mut all = Panel::new(CanvasSize { w: w.max(0.0), h });
    let mut x = 0.0;
    for panel in panels {
        all.put(x, 0.0, panel);
        x += panel.size.w + GAP;
    }
    all
}
