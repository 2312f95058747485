//! Bars in groups, over a scale that begins at zero.

use atoll_svg::canvas::{Area, CanvasSize, Panel, Type};
use atoll_svg::chart::{Axis, AxisScale, SMALL, to_the_left};
use atoll_svg::palette;

const MARGIN: f64 = 26.0;
const AREA: Area = Area { x: 70.0, y: 60.0, w: 860.0, h: 300.0 };
const LINE: f64 = 16.0;
/// Share of a group's width that its bars fill.
const FILLED: f64 = 0.8;
const HEADING: Type = Type::plain(17.0, palette::INK).bold();

/// Bars in groups.
pub(crate) struct BarChart {
    pub(crate) title: String,
    pub(crate) unit: &'static str,
    /// The bars of each group.
    pub(crate) bars: Vec<Bar>,
    /// Name and values of each group; None leaves a gap.
    pub(crate) groups: Vec<(String, Vec<Option<f64>>)>,
}

/// What a bar stands for, and how it looks.
pub(crate) struct Bar {
    name: String,
    colour: &'static str,
    is_hollow: bool,
}

impl Bar {
    /// The bar at this place of each group.
    pub(crate) fn new(name: String, at: usize, is_hollow: bool) -> Self {
        let (colour, _) = palette::STROKES[at % palette::STROKES.len()];
        Self { name, colour, is_hollow }
    }

    fn draw(&self, panel: &mut Panel, area: Area) {
        let fill = if self.is_hollow { palette::UNKNOWN } else { self.colour };
        panel.rect(area, fill, Some(self.colour), 0.0);
    }
}

impl BarChart {
    /// Draws it.
    pub(crate) fn panel(&self) -> Panel {
        let key = AREA.y + AREA.h + 40.0;
        let size = CanvasSize {
            w: AREA.x + AREA.w + MARGIN,
            h: key + self.bars.len() as f64 * LINE + MARGIN,
        };
        let mut panel = Panel::new(size);
        panel.text((MARGIN, 30.0), size.w - 2.0 * MARGIN, HEADING, &self.title);
        panel.text((AREA.x, AREA.y - 8.0), AREA.w, SMALL, self.unit);
        let values = self.groups.iter().flat_map(|(_, values)| values.iter().flatten().copied());
        let scale = Axis { scale: AxisScale::over(0.0, values), figure };
        for mark in scale.scale.marks() {
            let at = AREA.y + AREA.h * (1.0 - scale.scale.share(mark));
            panel.line((AREA.x, at), (AREA.x + AREA.w, at), palette::UNKNOWN, (1.0, ""));
            to_the_left(&mut panel, (AREA.x - 6.0, at + 3.6), &(scale.figure)(mark));
        }
        let width = AREA.w / self.groups.len().max(1) as f64;
        for (at, (name, values)) in self.groups.iter().enumerate() {
            let left = AREA.x + width * at as f64;
            let middle = (left + width / 2.0, AREA.y + AREA.h + 16.0);
            panel.text(middle, width, SMALL.centred(), name);
            let each = width * FILLED / values.len().max(1) as f64;
            for (place, (bar, value)) in self.bars.iter().zip(values).enumerate() {
                let Some(value) = value else { continue };
                let h = AREA.h * scale.scale.share(*value);
                let x = left + width * (1.0 - FILLED) / 2.0 + each * place as f64;
                bar.draw(&mut panel, Area { x, y: AREA.y + AREA.h - h, w: each, h });
            }
        }
        for (at, bar) in self.bars.iter().enumerate() {
            let y = key + at as f64 * LINE;
            bar.draw(&mut panel, Area { x: AREA.x, y: y - 9.0, w: 10.0, h: 10.0 });
            panel.text((AREA.x + 18.0, y), AREA.w, SMALL, &bar.name);
        }
        panel
    }
}

/// A figure without the digits that rounding left.
fn figure(value: f64) -> String {
    format!("{}", (value * 1e9).round() / 1e9)
}
