//! Table 1: time of the contrast relative to the baseline, published and ours.

use atoll_svg::canvas::{Area, CanvasSize, Panel};
use atoll_svg::chart::{Axis, AxisScale, Chart, SMALL, known};
use atoll_svg::palette;

use super::WIDTH;
use super::chart::{DOT, OURS, TITLE, dots, figure, key, rings};
use crate::reproduce::ComparedRow;

const LINE: f64 = 21.0;
/// Room for the names of rows, and for their figures.
const LEFT: f64 = 330.0;
const RIGHT: f64 = 170.0;
const TOP: f64 = 46.0;
const BOTTOM: f64 = 36.0;

/// The ratios as dots on one scale; none without rows.
pub(super) fn table1(rows: &[ComparedRow]) -> Option<Panel> {
    if rows.is_empty() {
        return None;
    }
    let h = rows.len() as f64 * LINE;
    let mut panel = Panel::new(CanvasSize { w: WIDTH, h: TOP + h + BOTTOM });
    panel.text((0.0, 12.0), WIDTH, TITLE, "Table 1: time of the contrast by that of the baseline");
    key(&mut panel, (0.0, 31.0), "published; a thin bar: ours with less waiting for other threads");
    let chart = chart(rows, Area { x: LEFT, y: TOP, w: WIDTH - LEFT - RIGHT, h });
    chart.frame(&mut panel, "* the baseline of this row calibrates the model");
    for x in chart.x.scale.marks().filter_map(|mark| chart.place((mark, 0.0))) {
        panel.line((x.0, TOP), (x.0, TOP + h), palette::UNKNOWN, (1.0, ""));
    }
    for (row, i) in rows.iter().zip(0u32..) {
        let line = f64::from(i) + 0.5;
        draw(&mut panel, &chart, row, (TOP + line * LINE, rows.len() as f64 - line));
    }
    Some(panel)
}

/// Ratios across from 1, or the least that is less; rows from above.
fn chart(rows: &[ComparedRow], area: Area) -> Chart {
    let ratios = || rows.iter().flat_map(|row| [row.ratio_published, row.ratio, row.ratio_lower]);
    let least = ratios().filter_map(known).fold(1.0, f64::min);
    let least = (least * 10.0).floor() / 10.0;
    let x = Axis { scale: AxisScale::over(least, ratios()), figure };
    let y = Axis { scale: AxisScale::between(0.0, rows.len() as f64), figure: |_| String::new() };
    Chart { area, x, y }
}

/// A row at a height in the panel, which is that value of the chart.
fn draw(panel: &mut Panel, chart: &Chart, row: &ComparedRow, (y, height): (f64, f64)) {
    let mark = if row.is_calibrated { "*" } else { "" };
    let name = format!("{} {}{mark}", row.experiment, row.name);
    panel.text((0.0, y + 3.6), 118.0, SMALL, &name);
    panel.text((120.0, y + 3.6), LEFT - 132.0, SMALL, &row.settings.join(" → "));
    let place = |ratio| chart.place((ratio, height));
    if let (Some(from), Some(to)) = (place(row.ratio_published), place(row.ratio)) {
        panel.line(from, to, palette::CELL_EDGE, (1.0, "2 2"));
    }
    if let (Some(lower), Some(upper)) = (place(row.ratio_lower), place(row.ratio)) {
        panel.line(lower, upper, OURS.0, (1.4, ""));
        panel.line((lower.0, y - DOT), (lower.0, y + DOT), OURS.0, (1.4, ""));
    }
    dots(chart, panel, [(row.ratio, height)].into_iter());
    rings(chart, panel, [(row.ratio_published, height)].into_iter());
    let ratio = known(row.ratio).map_or("-".to_owned(), |ratio| format!("{ratio:.2}"));
    let text = format!("published {:.2}, ours {ratio}", row.ratio_published);
    panel.text((WIDTH - RIGHT + 12.0, y + 3.6), RIGHT - 12.0, SMALL, &text);
}
