//! Colours: those of Okabe and Ito (2008), which are safe for colour-blind readers, lightened for surfaces, and ramps
//! of one hue for heat maps, which also work in greyscale.

/// Text.
pub const INK: &str = "#1b2733";
/// Secondary text, and edges.
pub const FAINT: &str = "#5b6875";
/// Surface of a core.
pub const CELL: &str = "#ffffff";
/// Edge of a core.
pub const CELL_EDGE: &str = "#8a96a3";
/// Memory.
pub const MEMORY: &str = "#cfe8f7";
/// Memory in use.
pub const MEMORY_USED: &str = "#8cc8ec";
/// A cache.
pub const CACHE: &str = "#fbe3a8";
/// A cell without a value.
pub const UNKNOWN: &str = "#eceff2";

/// Strokes that differ in colour and dashes.
pub const STROKES: [(&str, &str); 5] = [
    ("#0072b2", ""),
    ("#d55e00", "7 4"),
    ("#009e73", "2 3"),
    ("#cc79a7", "10 3 2 3"),
    ("#5b6875", ""),
];

/// A ramp of one hue from light to dark.
#[derive(Clone, Copy, Debug)]
pub struct Ramp {
    light: (u8, u8, u8),
    dark: (u8, u8, u8),
}

/// For figures where less is better.
pub const WARM: Ramp = Ramp { light: (0xff, 0xf3, 0xe3), dark: (0xa8, 0x46, 0x00) };
/// For figures where more is better.
pub const COOL: Ramp = Ramp { light: (0xe8, 0xf3, 0xfb), dark: (0x00, 0x4c, 0x7d) };
/// For distances, which are only ratings.
pub const NEUTRAL: Ramp = Ramp { light: (0xef, 0xf1, 0xf4), dark: (0x3f, 0x4b, 0x5a) };

impl Ramp {
    /// The colour at a share from 0 (light) to 1 (dark).
    pub fn at(self, share: f64) -> String {
        let mix = |light: u8, dark: u8| {
            (f64::from(light) + (f64::from(dark) - f64::from(light)) * share).round() as u8
        };
        let (l, d) = (self.light, self.dark);
        format!("#{:02x}{:02x}{:02x}", mix(l.0, d.0), mix(l.1, d.1), mix(l.2, d.2))
    }

    /// The text colour that is legible on it.
    pub fn ink(share: f64) -> &'static str {
        if share > 0.5 { "#ffffff" } else { INK }
    }
}
