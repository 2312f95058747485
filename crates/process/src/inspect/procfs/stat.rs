//! `/proc/PID/stat` and `/proc/PID/task/TID/stat`: one line, the name in parentheses, then numbers.

use atoll_sys::Root;
use atoll_topology::CpuId;

use super::read::{self, Unread};

const EXPECTED: &str = "'PID (NAME) STATE …' with the 39 fields of proc(5)";

/// The fields used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::inspect) struct Stat {
    /// `comm`: any bytes but 0, parentheses and line ends among them.
    pub(in crate::inspect) name: String,
    /// One letter: R running, S sleeping, D waiting for a device, Z zombie, T stopped, …
    pub(in crate::inspect) state: char,
    pub(in crate::inspect) parent: u32,
    /// Time on cpus in the kernel's ticks.
    pub(in crate::inspect) ticks: u64,
    /// Number of threads: other threads may continue after the first has ended (state Z).
    pub(in crate::inspect) threads: u64,
    /// When it started, in ticks since the machine did: distinguishes a reused number from the old one.
    pub(in crate::inspect) start: u64,
    /// The cpu it last ran on.
    pub(in crate::inspect) cpu: CpuId,
}

impl Stat {
    /// Whether it has ended and its parent has not waited for it.
    pub(in crate::inspect) fn has_ended(&self) -> bool {
        matches!(self.state, 'Z' | 'X') && self.threads <= 1
    }
}

/// Reads it.
pub(in crate::inspect) fn read(root: &Root, name: &str) -> Result<Stat, Unread> {
    let text = read::text(root, name)?;
    if text.is_empty() {
        return Err(Unread::Absent);
    }
    match parse(&text) {
        Some(stat) => Ok(stat),
        None => Err(read::malformed(&root.path(name)?, 1, EXPECTED, &text).into()),
    }
}

fn parse(text: &str) -> Option<Stat> {
    // The name ends at the last parenthesis: no later field contains one.
    let (_, rest) = text.split_once('(')?;
    let (name, rest) = rest.rsplit_once(')')?;
    // proc(5) counts from 1, and the state is its field 3.
    let fields: Vec<&str> = rest.split_ascii_whitespace().take(37).collect();
    let number = |field: usize| fields.get(field - 3)?.parse::<u64>().ok();
    Some(Stat {
        name: name.to_owned(),
        state: fields.first()?.chars().next()?,
        parent: number(4)?.try_into().ok()?,
        ticks: number(14)?.saturating_add(number(15)?),
        threads: number(20)?,
        start: number(22)?,
        cpu: CpuId(number(39)?.try_into().ok()?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fields 4 to 39, zero except those that are read.
    fn line(name: &str) -> String {
        let mut fields = vec!["0"; 36];
        for (field, value) in [(4, "1"), (14, "30"), (15, "12"), (22, "991"), (39, "5")] {
            fields[field - 4] = value;
        }
        format!("7 ({name}) S {} 0\n", fields.join(" "))
    }

    #[test]
    fn a_name_may_hold_parentheses_spaces_and_line_ends() {
        for name in ["postgres", "a) R 1 (b", "tmux: server", "x\ny", "", "((", "))"] {
            let stat = parse(&line(name)).unwrap();
            assert_eq!((stat.name.as_str(), stat.state), (name, 'S'));
            assert_eq!((stat.parent, stat.ticks, stat.start, stat.cpu), (1, 42, 991, CpuId(5)));
        }
    }

    #[test]
    fn a_line_cut_anywhere_is_refused_and_never_a_panic() {
        let line = line("cut");
        let end = line.trim_end().len() - "5 0".len();
        for length in 0..end {
            assert_eq!(parse(&line[..length]), None, "{}", &line[..length]);
        }
    }
}
