//! Tags the pages of tables for the lab's counter.

use std::sync::OnceLock;

/// What this process tells the lab's counter.
#[derive(Clone, Copy)]
struct LabProcess {
    /// The tag of its tables, and the region of its queries (1 to 15).
    number: u8,
    /// Whether each of its queries opens the region.
    marks_queries: bool,
}

impl LabProcess {
    /// The lab sets `ATOLL_LAB` to 1 in its guests. Processes with different numbers are distinguished in one run.
    /// After `3,tables` another process opens regions, and this one only tags its tables. `None` outside of the lab.
    fn this() -> Option<Self> {
        static THIS: OnceLock<Option<LabProcess>> = OnceLock::new();
        *THIS.get_or_init(|| Self::parse(&std::env::var("ATOLL_LAB").ok()?))
    }

    fn parse(text: &str) -> Option<Self> {
        let (number, marks_queries) = match text.strip_suffix(",tables") {
            Some(number) => (number, false),
            None => (text, true),
        };
        let number = number.parse().ok()?;
        let is_tag = (1..atoll_marker::TAGS).contains(&number);
        is_tag.then_some(Self { number, marks_queries })
    }
}

/// The region of this process's queries in the lab. `None` where they open none.
pub fn lab_region() -> Option<u8> {
    LabProcess::this().filter(|it| it.marks_queries).map(|it| it.number)
}

/// Tags the memory of a newly written chunk; reads one byte of each of its pages.
pub(super) fn holds_a_table(memory: &[u8]) {
    if let Some(LabProcess { number, .. }) = LabProcess::this() {
        atoll_marker::tag(number, memory);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_has_a_number_and_may_leave_regions_to_another() {
        let parse = |text| LabProcess::parse(text).map(|it| (it.number, it.marks_queries));
        assert_eq!(parse("1"), Some((1, true)));
        assert_eq!(parse("15,tables"), Some((15, false)));
        for wrong in ["", "0", "16", "x", ",tables", "3,", "3,table"] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }
}
