//! The live view: a row for each cpu, a column for each moment, a colour for each thread, as
//! in figures 1 and 3 of Dominico 2018; below them the load and the pages of each node.

use std::collections::{BTreeMap, VecDeque};

use atoll_elastic::trace::TraceRow;
use atoll_topology::{CpuId, Machine, NodeId};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};

/// Moments that are kept: as many as the widest screen has columns.
const MOMENTS_MAX: usize = 512;
/// Columns before the first moment.
const LEFT: u16 = 14;
/// Rows above the first cpu.
const TOP: u16 = 2;
/// A thread on its cpu, a cpu that is given, and one that is not.
const THREAD: &str = "█";
const GIVEN: &str = "·";
const OTHER: &str = " ";
/// Levels of the load.
const LEVELS: [&str; 9] = [" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"];
const COLOURS: [Color; 12] = [
    Color::LightBlue,
    Color::LightRed,
    Color::LightGreen,
    Color::LightMagenta,
    Color::Yellow,
    Color::Cyan,
    Color::Red,
    Color::Green,
    Color::Blue,
    Color::Magenta,
    Color::LightYellow,
    Color::LightCyan,
];

/// The view.
pub(super) struct CoreView {
    cpus: Vec<(CpuId, Option<NodeId>)>,
    moments: VecDeque<TraceRow>,
    colours: BTreeMap<u32, Color>,
    pages: Vec<(NodeId, u64)>,
}

impl CoreView {
    /// A view of these cpus, node by node.
    pub(super) fn new(machine: &Machine) -> Self {
        let mut cpus: Vec<_> = machine.cpus.iter().map(|cpu| (cpu.id, Some(cpu.node))).collect();
        cpus.sort_by_key(|(cpu, node)| (*node, *cpu));
        Self { cpus, moments: VecDeque::new(), colours: BTreeMap::new(), pages: Vec::new() }
    }

    /// A view of the cpus in a trace.
    pub(super) fn of_trace(rows: &[TraceRow]) -> Self {
        let mut cpus: Vec<CpuId> = rows
            .iter()
            .flat_map(|row| {
                let threads = row.threads.iter().map(|(cpu, _)| CpuId(*cpu));
                row.cpus.iter().chain(threads).collect::<Vec<_>>()
            })
            .collect();
        cpus.sort_unstable();
        cpus.dedup();
        Self {
            cpus: cpus.into_iter().map(|cpu| (cpu, None)).collect(),
            moments: VecDeque::new(),
            colours: BTreeMap::new(),
            pages: Vec::new(),
        }
    }

    /// Adds a moment; the oldest one goes.
    pub(super) fn push(&mut self, row: TraceRow) {
        for (_, thread) in &row.threads {
            let next = COLOURS[self.colours.len() % COLOURS.len()];
            self.colours.entry(*thread).or_insert(next);
        }
        if self.moments.len() == MOMENTS_MAX {
            self.moments.pop_front();
        }
        self.moments.push_back(row);
    }

    /// The latest counts of pages.
    pub(super) fn set_pages(&mut self, pages: Vec<(NodeId, u64)>) {
        self.pages = pages;
    }

    /// Draws it.
    pub(super) fn draw(&self, buffer: &mut Buffer, area: Rect) {
        if area.width <= LEFT || area.height <= TOP + 2 {
            buffer.set_stringn(area.x, area.y, "too small", usize::from(area.width), Style::new());
            return;
        }
        let columns = usize::from(area.width - LEFT);
        let rows = usize::from(area.height - TOP - 2);
        self.draw_head(buffer, area);
        let skipped = self.moments.len().saturating_sub(columns);
        for (i, (cpu, node)) in self.cpus.iter().take(rows).enumerate() {
            let y = area.y + TOP + i as u16;
            let name = match node {
                Some(node) => format!("node {node:<2} cpu {cpu}"),
                None => format!("cpu {cpu}"),
            };
            buffer.set_stringn(area.x, y, name, usize::from(LEFT) - 1, Style::new());
            for (column, moment) in self.moments.iter().skip(skipped).enumerate() {
                let (mark, style) = self.mark(moment, *cpu);
                buffer.set_string(area.x + LEFT + column as u16, y, mark, style);
            }
        }
        let y = area.y + TOP + self.cpus.len().min(rows) as u16;
        buffer.set_string(area.x, y, "load", Style::new());
        for (column, moment) in self.moments.iter().skip(skipped).enumerate() {
            let level = (moment.load_percent.clamp(0.0, 100.0) / 100.0 * 8.0).round() as usize;
            let colour = if moment.load_percent >= 70.0 { Color::Red } else { Color::Green };
            let x = area.x + LEFT + column as u16;
            buffer.set_string(x, y, LEVELS[level.min(8)], Style::new().fg(colour));
        }
        self.draw_pages(buffer, area, y + 1);
    }

    fn draw_head(&self, buffer: &mut Buffer, area: Rect) {
        let Some(now) = self.moments.back() else { return };
        let performance = now.performance.map_or(String::new(), |it| format!(", {it:.1} a second"));
        let head = format!(
            "{}  {:.1} s  {} cores on cpus {}  load {:.0} %{performance}",
            now.target, now.at_seconds, now.cores, now.cpus, now.load_percent
        );
        let bold = Style::new().add_modifier(Modifier::BOLD);
        buffer.set_stringn(area.x, area.y, head, usize::from(area.width), bold);
        let rules = now.rules.join(" → ");
        let width = usize::from(area.width);
        buffer.set_stringn(area.x, area.y + 1, rules, width, Style::new().fg(Color::DarkGray));
    }

    fn draw_pages(&self, buffer: &mut Buffer, area: Rect, y: u16) {
        if y >= area.bottom() {
            return;
        }
        let pages = self.pages.iter().map(|(node, pages)| format!("node {node}: {pages}"));
        let words = pages.collect::<Vec<_>>().join("   ");
        if !words.is_empty() {
            let line = format!("pages         {words}");
            buffer.set_stringn(area.x, y, line, usize::from(area.width), Style::new());
        }
    }

    fn mark(&self, moment: &TraceRow, cpu: CpuId) -> (&'static str, Style) {
        match moment.threads.iter().find(|(on, _)| *on == cpu.0) {
            Some((_, thread)) => {
                let colour = self.colours.get(thread).copied().unwrap_or_default();
                (THREAD, Style::new().fg(colour))
            }
            None if moment.cpus.contains(cpu) => (GIVEN, Style::new().fg(Color::DarkGray)),
            None => (OTHER, Style::new()),
        }
    }
}

#[cfg(test)]
mod tests {
    use atoll_topology::CpuSet;

    use super::*;

    fn row(at_seconds: f64, threads: &[(u32, u32)]) -> TraceRow {
        TraceRow {
            at_seconds,
            target: "server".to_owned(),
            load_percent: 100.0,
            demand_cpus: 1.0,
            performance: None,
            rules: vec!["check".to_owned(), "overloaded".to_owned()],
            gave: Vec::new(),
            released: Vec::new(),
            cores: 2,
            cpus: CpuSet::parse("0-1").unwrap(),
            threads: threads.to_vec(),
        }
    }

    fn lines(view: &CoreView, width: u16, height: u16) -> Vec<String> {
        let area = Rect::new(0, 0, width, height);
        let mut buffer = Buffer::empty(area);
        view.draw(&mut buffer, area);
        let cell = |x, y| buffer[(x, y)].symbol().to_owned();
        (0..height).map(|y| (0..width).map(|x| cell(x, y)).collect()).collect()
    }

    #[test]
    fn a_thread_is_seen_on_its_cpu_and_a_cpu_that_is_given_shows() {
        let rows = [row(0.0, &[(0, 7)]), row(0.1, &[(1, 7)])];
        let mut view = CoreView::of_trace(&rows);
        for row in rows {
            view.push(row);
        }
        view.set_pages(vec![(NodeId(0), 42)]);
        let lines = lines(&view, 60, 7);
        assert!(lines[0].starts_with("server  0.1 s  2 cores on cpus 0-1  load 100 %"));
        assert_eq!(lines[2].trim_end(), "cpu 0         █·");
        assert_eq!(lines[3].trim_end(), "cpu 1         ·█");
        assert_eq!(lines[4].trim_end(), "load          ██");
        assert_eq!(lines[5].trim_end(), "pages         node 0: 42");
    }

    #[test]
    fn any_screen_is_drawn_and_only_the_newest_moments_fit() {
        let mut view = CoreView::of_trace(&[row(0.0, &[(0, 7)])]);
        for i in 0..600 {
            view.push(row(f64::from(i), &[(i % 2, 7)]));
        }
        for (width, height) in [(1, 1), (14, 3), (15, 5), (20, 4), (300, 50)] {
            lines(&view, width, height);
        }
        assert!(lines(&view, 40, 8)[0].contains("599.0 s"));
    }
}
