//! Two records side by side, on one scale: strokes, shades and colours mean the same in both.

use atoll_svg::canvas::{CanvasSize, Panel};
use atoll_topology::Bytes;

use super::super::counts::{link_bytes, local_share, sum, total};
use super::super::nothing::why_nothing;
use super::super::words::{count, counted, line, percent, time};
use super::{GAP, MARGIN, PLAIN, Scale, TITLE, lines_missed, links, side_by_side};
use crate::record::RunRecord;

/// Room for the name of a run and the lines below it.
const HEADER: f64 = 104.0;
/// Narrowest column.
const WIDTH_MIN: f64 = 360.0;

/// Two runs, each with its name, as an SVG picture: links and memory controllers, and lines missed.
pub fn svg_pair(runs: [(&str, &RunRecord); 2]) -> String {
    let scale = Scale::for_records(&runs.map(|(_, record)| record));
    let columns = runs.map(|(name, record)| column(name, record, &scale));
    let body = side_by_side(&columns);
    let CanvasSize { w, h } = body.size;
    let mut picture = Panel::new(CanvasSize { w: w + 2.0 * MARGIN, h: h + 2.0 * MARGIN });
    picture.put(MARGIN, MARGIN, &body);
    let [(a, _), (b, _)] = runs;
    picture.into_file(&format!("{a} and {b}"))
}

fn column(name: &str, record: &RunRecord, scale: &Scale) -> Panel {
    let lines = lines(record);
    let panels: Vec<Panel> = match why_nothing(record) {
        Some(_) => Vec::new(),
        None => {
            let matrix = lines_missed(record, scale);
            links::ring(record, scale, matrix.size.w).into_iter().chain([matrix]).collect()
        }
    };
    let widths = panels.iter().map(|panel| panel.size.w);
    let w = widths.chain(lines.iter().map(|line| PLAIN.width(line))).fold(WIDTH_MIN, f64::max);
    let h = HEADER + panels.iter().map(|panel| panel.size.h + GAP / 2.0).sum::<f64>();
    let mut all = Panel::new(CanvasSize { w, h });
    all.text((0.0, 14.0), w, TITLE, &line(name));
    for (line, i) in lines.iter().zip(0u32..) {
        all.text((0.0, 36.0 + 17.0 * f64::from(i)), w, PLAIN, line);
    }
    let mut y = HEADER;
    for panel in &panels {
        all.put(0.0, y, panel);
        y += panel.size.h + GAP / 2.0;
    }
    all
}

/// The totals in words.
fn lines(record: &RunRecord) -> Vec<String> {
    let traffic = &record.report.total;
    let nodes = counted(record.report.setup.nodes.len(), "node");
    let machine = format!("{}, {nodes}, in the lab", line(&record.run.machine));
    if let Some(why) = why_nothing(record) {
        return vec![machine, why];
    }
    let bounds = &record.estimate.independent;
    vec![
        machine,
        format!(
            "{} of {} missed lines are of local memory",
            percent(local_share(&traffic.lines)),
            count(total(&traffic.lines)),
        ),
        format!("{} over all links", Bytes(sum(&link_bytes(traffic)))),
        format!("estimated time {} to {}", time(bounds.lower), time(bounds.upper)),
    ]
}
