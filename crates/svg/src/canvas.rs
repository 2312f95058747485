//! Shapes and texts of an SVG picture. All text is escaped here and nowhere else.

use std::fmt::Write;

/// Typefaces in the order of preference, with what every system has at the end.
const FONTS: &str = "Inter, 'Helvetica Neue', Arial, 'DejaVu Sans', sans-serif";
/// Width of an average character by the size of the type, in the widest of the typefaces.
const CHARACTER: f64 = 0.58;
const CHARACTER_BOLD: f64 = 0.66;
/// What sums of coordinates may be off by, px.
const ROUNDING: f64 = 0.01;

/// Width and height, px.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CanvasSize {
    /// Width.
    pub w: f64,
    /// Height.
    pub h: f64,
}

/// A rectangle, px.
#[derive(Clone, Copy, Debug)]
pub struct Area {
    /// Left edge.
    pub x: f64,
    /// Upper edge.
    pub y: f64,
    /// Width.
    pub w: f64,
    /// Height.
    pub h: f64,
}

/// How a text looks and where its point lies.
#[derive(Clone, Copy, Debug)]
pub struct Type {
    /// Size, px.
    pub size: f64,
    /// Whether it is bold.
    pub bold: bool,
    /// Colour.
    pub colour: &'static str,
    /// Whether the point is its middle; else its left end.
    pub centred: bool,
}

impl Type {
    /// Neither bold nor centred.
    pub const fn plain(size: f64, colour: &'static str) -> Self {
        Self { size, bold: false, colour, centred: false }
    }

    /// The same in bold.
    pub const fn bold(self) -> Self {
        Self { bold: true, ..self }
    }

    /// The same with its middle at the point.
    pub const fn centred(self) -> Self {
        Self { centred: true, ..self }
    }

    /// Width of a text, px, estimated: an SVG file cannot know the typeface it will be shown in.
    pub fn width(self, text: &str) -> f64 {
        let each = if self.bold { CHARACTER_BOLD } else { CHARACTER };
        text.chars().count() as f64 * each * self.size
    }

    /// The text, cut where it would be wider.
    fn fitted(self, text: &str, width: f64) -> String {
        // A box as wide as its text is found less wide by what its edges lost to rounding.
        if self.width(text) <= width + ROUNDING {
            return text.to_owned();
        }
        let each = self.width("x");
        let characters = (width / each).floor().max(1.0) as usize;
        let mut cut: String = text.chars().take(characters.saturating_sub(1)).collect();
        cut.push('…');
        cut
    }
}

/// A part of the picture with its size; it draws from its own origin.
#[derive(Default)]
pub struct Panel {
    /// Its size.
    pub size: CanvasSize,
    body: String,
}

impl Panel {
    /// An empty part.
    pub fn new(size: CanvasSize) -> Self {
        Self { size, body: String::new() }
    }

    /// A rectangle with rounded corners.
    pub fn rect(&mut self, area: Area, fill: &str, stroke: Option<&str>, radius: f64) {
        let Area { x, y, w, h } = area;
        let _ = write!(self.body, r#"<rect x="{x:.1}" y="{y:.1}" width="{w:.1}" height="{h:.1}""#);
        if radius > 0.0 {
            let _ = write!(self.body, r#" rx="{radius:.1}""#);
        }
        let _ = write!(self.body, r#" fill="{fill}""#);
        if let Some(stroke) = stroke {
            let _ = write!(self.body, r#" stroke="{stroke}""#);
        }
        self.body.push_str("/>\n");
    }

    /// A line of text at its baseline, cut to the width.
    pub fn text(&mut self, (x, y): (f64, f64), width: f64, how: Type, text: &str) {
        let Type { size, bold, colour, centred } = how;
        let _ =
            write!(self.body, r#"<text x="{x:.1}" y="{y:.1}" font-size="{size}" fill="{colour}""#);
        if bold {
            self.body.push_str(r#" font-weight="bold""#);
        }
        if centred {
            self.body.push_str(r#" text-anchor="middle""#);
        }
        self.body.push('>');
        push_escaped(&mut self.body, &how.fitted(text, width));
        self.body.push_str("</text>\n");
    }

    /// A stroke; `look` is its width and dash pattern.
    pub fn line(&mut self, from: (f64, f64), to: (f64, f64), colour: &str, look: (f64, &str)) {
        let ((x1, y1), (x2, y2), (width, dashes)) = (from, to, look);
        let _ = write!(
            self.body,
            r#"<line x1="{x1:.1}" y1="{y1:.1}" x2="{x2:.1}" y2="{y2:.1}" stroke="{colour}" stroke-width="{width:.1}""#
        );
        if !dashes.is_empty() {
            let _ = write!(self.body, r#" stroke-dasharray="{dashes}""#);
        }
        self.body.push_str("/>\n");
    }

    /// A stroke through points; `look` is its width and dash pattern.
    pub fn polyline(
        &mut self,
        points: impl IntoIterator<Item = (f64, f64)>,
        colour: &str,
        look: (f64, &str),
    ) {
        let (width, dashes) = look;
        let _ = write!(
            self.body,
            r#"<polyline fill="none" stroke="{colour}" stroke-width="{width:.1}" stroke-linejoin="round""#
        );
        if !dashes.is_empty() {
            let _ = write!(self.body, r#" stroke-dasharray="{dashes}""#);
        }
        self.body.push_str(r#" points=""#);
        for (x, y) in points {
            let _ = write!(self.body, "{x:.1},{y:.1} ");
        }
        self.body.push_str("\"/>\n");
    }

    /// A circle.
    pub fn circle(&mut self, (x, y): (f64, f64), radius: f64, fill: &str, stroke: &str) {
        let _ = writeln!(
            self.body,
            r#"<circle cx="{x:.1}" cy="{y:.1}" r="{radius:.1}" fill="{fill}" stroke="{stroke}" stroke-width="1.5"/>"#
        );
    }

    /// Rectangles of one look as one shape: thousands of them take little room.
    pub fn rects(
        &mut self,
        areas: impl IntoIterator<Item = Area>,
        fill: &str,
        stroke: Option<&str>,
    ) {
        let _ = write!(self.body, r#"<path fill="{fill}""#);
        if let Some(stroke) = stroke {
            let _ = write!(self.body, r#" stroke="{stroke}" stroke-width="0.7""#);
        }
        self.body.push_str(r#" d=""#);
        for Area { x, y, w, h } in areas {
            let (x, y) = ((x * 10.0).round() / 10.0, (y * 10.0).round() / 10.0);
            let _ = write!(self.body, "M{x} {y}h{w}v{h}h-{w}z");
        }
        self.body.push_str("\"/>\n");
    }

    /// Puts another panel into this one.
    pub fn put(&mut self, x: f64, y: f64, panel: &Self) {
        let _ = writeln!(self.body, r#"<g transform="translate({x:.1} {y:.1})">"#);
        self.body.push_str(&panel.body);
        self.body.push_str("</g>\n");
    }

    /// The whole picture as a file.
    pub fn into_file(self, title: &str) -> String {
        let CanvasSize { w, h } = self.size;
        let (w, h) = (w.ceil(), h.ceil());
        let mut file = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
        let _ = write!(
            file,
            r#"<svg xmlns="http://www.w3.org/2000/svg" width="{w}" height="{h}" viewBox="0 0 {w} {h}" font-family="{FONTS}">"#
        );
        file.push_str("\n<title>");
        push_escaped(&mut file, title);
        file.push_str("</title>\n<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n");
        file.push_str(&self.body);
        file.push_str("</svg>\n");
        file
    }
}

/// Adds a text in which nothing is markup and nothing is forbidden in XML 1.0 (section 2.2).
fn push_escaped(out: &mut String, text: &str) {
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&apos;"),
            '\u{fffe}' | '\u{ffff}' => out.push('\u{fffd}'),
            c if c.is_control() => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
}
