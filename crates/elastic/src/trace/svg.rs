//! A trace as figures 1 and 3 of Dominico 2018: a row for each cpu, time from left to right, a colour for each thread;
//! the grey background marks when the cpu was given. Below it is the load between its thresholds.

use std::collections::{BTreeMap, BTreeSet};

use atoll_svg::canvas::{Area, CanvasSize, Panel, Type};
use atoll_svg::palette::{FAINT, INK, STROKES, UNKNOWN};

use super::TraceRow;

const LEFT: f64 = 70.0;
const TOP: f64 = 50.0;
const WIDTH: f64 = 900.0;
const ROW: f64 = 18.0;
const LOAD: f64 = 120.0;
/// Colours of threads, repeated if there are more threads.
const COLOURS: [&str; 10] = [
    "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8c564b", "#5b6875",
    "#7f3c8d", "#a5aa00",
];

/// The picture as an SVG file.
pub fn picture(rows: &[TraceRow]) -> String {
    let cpus: BTreeSet<u32> = rows
        .iter()
        .flat_map(|row| {
            let given = row.cpus.iter().map(|cpu| cpu.0);
            given.chain(row.threads.iter().map(|(cpu, _)| *cpu)).collect::<Vec<_>>()
        })
        .collect();
    let y: BTreeMap<u32, f64> =
        cpus.iter().enumerate().map(|(i, cpu)| (*cpu, TOP + i as f64 * ROW)).collect();
    let height = TOP + cpus.len() as f64 * ROW + LOAD + 60.0;
    let mut panel = Panel::new(CanvasSize { w: LEFT + WIDTH + 20.0, h: height });
    let (Some(first), Some(last)) = (rows.first(), rows.last()) else {
        panel.text((20.0, 30.0), WIDTH, Type::plain(14.0, INK), "The trace has no rows");
        return panel.into_file("Trace with no rows");
    };
    let span = (last.at_seconds - first.at_seconds).max(0.001);
    let x = |at: f64| LEFT + (at - first.at_seconds) / span * (WIDTH - 6.0);
    let step = ((WIDTH - 6.0) / rows.len().max(1) as f64).clamp(1.5, 24.0);
    let threads: BTreeSet<u32> =
        rows.iter().flat_map(|row| row.threads.iter().map(|(_, tid)| *tid)).collect();
    let title =
        format!("{}: {} threads on {} cpus, {span:.1} s", targets(rows), threads.len(), cpus.len());
    panel.text((20.0, 28.0), WIDTH, Type::plain(15.0, INK).bold(), &title);
    for (cpu, y) in &y {
        panel.text((16.0, y + 12.0), LEFT - 18.0, Type::plain(10.0, FAINT), &format!("cpu {cpu}"));
    }
    let mark = |at: f64, cpu: u32, inset: f64| {
        let top = y.get(&cpu).copied().unwrap_or(TOP);
        Area { x: x(at), y: top + inset, w: step, h: ROW - 2.0 * inset }
    };
    let given =
        rows.iter().flat_map(|row| row.cpus.iter().map(|cpu| mark(row.at_seconds, cpu.0, 1.0)));
    panel.rects(given, UNKNOWN, None);
    for (i, thread) in threads.iter().enumerate() {
        let seen = rows.iter().flat_map(|row| {
            let of = row.threads.iter().filter(|(_, tid)| tid == thread);
            of.map(|(cpu, _)| mark(row.at_seconds, *cpu, 4.0))
        });
        panel.rects(seen, COLOURS[i % COLOURS.len()], None);
    }
    load(&mut panel, rows, TOP + cpus.len() as f64 * ROW + 20.0, x);
    panel.into_file(&title)
}

fn load(panel: &mut Panel, rows: &[TraceRow], top: f64, x: impl Fn(f64) -> f64) {
    panel.text((16.0, top + 10.0), LEFT - 18.0, Type::plain(10.0, FAINT), "load %");
    let y = |percent: f64| top + LOAD * (1.0 - percent.clamp(0.0, 100.0) / 100.0);
    for threshold in [10.0, 70.0] {
        let (from, to) = ((LEFT, y(threshold)), (LEFT + WIDTH, y(threshold)));
        panel.line(from, to, FAINT, (0.6, "4 4"));
    }
    let names: BTreeSet<&str> = rows.iter().map(|row| row.target.as_str()).collect();
    for (i, name) in names.into_iter().enumerate() {
        let of = rows.iter().filter(|row| row.target == name);
        let points = of.map(|row| (x(row.at_seconds), y(row.load_percent)));
        let (colour, dashes) = STROKES[i % STROKES.len()];
        panel.polyline(points, colour, (1.4, dashes));
    }
}

fn targets(rows: &[TraceRow]) -> String {
    let names: BTreeSet<&str> = rows.iter().map(|row| row.target.as_str()).collect();
    names.into_iter().collect::<Vec<_>>().join(", ")
}
