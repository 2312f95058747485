//! The net as a picture: places as circles on the left, transitions as bars on the right with their rules and guards,
//! and an arc for each token. An arc is solid if the transition takes the token and dashed if it puts it.

use atoll_svg::canvas::{Area, CanvasSize, Panel, Type};
use atoll_svg::palette::{CACHE, CELL, FAINT, INK, MEMORY};

use super::{Net, PipelineStep};

const ROW: f64 = 46.0;
const TOP: f64 = 56.0;
const PLACE_X: f64 = 190.0;
const RADIUS: f64 = 15.0;
const BAR_X: f64 = 560.0;
const WIDTH: f64 = 1180.0;
const TAKES: &str = "#0072b2";
const PUTS: &str = "#d55e00";

/// The picture as an SVG file.
pub fn picture(net: &Net) -> String {
    let rows = net.places.len().max(net.transitions.len()) as f64;
    let mut panel = Panel::new(CanvasSize { w: WIDTH, h: TOP + rows * ROW + 20.0 });
    let title = Type::plain(15.0, INK).bold();
    panel.text((20.0, 28.0), WIDTH, title, "Predicate/Transition net of the elastic cores");
    // Spreads places over the height of the transitions.
    let spread = rows / net.places.len().max(1) as f64;
    let place_y = |place: usize| TOP + (place as f64 + 0.5) * ROW * spread;
    let bar_y = |bar: usize| TOP + (bar as f64 + 0.5) * ROW;
    for (i, transition) in net.transitions.iter().enumerate() {
        for arc in &transition.inputs {
            let from = (PLACE_X + RADIUS, place_y(arc.place));
            panel.line(from, (BAR_X, bar_y(i) - 4.0), TAKES, (0.8, ""));
        }
        for arc in &transition.outputs {
            let to = (PLACE_X + RADIUS, place_y(arc.place));
            panel.line((BAR_X, bar_y(i) + 4.0), to, PUTS, (0.8, "5 3"));
        }
    }
    for (i, place) in net.places.iter().enumerate() {
        let y = place_y(i);
        panel.circle((PLACE_X, y), RADIUS, CELL, INK);
        panel.text((20.0, y - 2.0), 150.0, Type::plain(13.0, INK).bold(), place.name);
        let fields = format!("<{}>", place.fields.join(", "));
        panel.text((20.0, y + 14.0), 150.0, Type::plain(11.0, FAINT), &fields);
    }
    for (i, transition) in net.transitions.iter().enumerate() {
        let y = bar_y(i);
        let bar = Area { x: BAR_X, y: y - 13.0, w: 9.0, h: 26.0 };
        panel.rect(bar, colour(transition.step), Some(INK), 0.0);
        let (x, width) = (BAR_X + 20.0, WIDTH - BAR_X - 30.0);
        let words = format!("{}: {}", transition.name, transition.rule);
        panel.text((x, y - 2.0), width, Type::plain(12.0, INK).bold(), &words);
        panel.text((x, y + 13.0), width, Type::plain(10.5, FAINT), &transition.guard.to_string());
    }
    panel.into_file("Predicate/Transition net of the elastic cores")
}

fn colour(step: PipelineStep) -> &'static str {
    match step {
        PipelineStep::Monitor | PipelineStep::Evaluate => MEMORY,
        PipelineStep::Act => PUTS,
        PipelineStep::Keep => CELL,
        PipelineStep::Share => CACHE,
    }
}
