//! The share of memory on huge pages, from the kernel's `smaps`.

use atoll_sys::Root;

/// Sizes from `smaps` for the mappings that overlap some ranges.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Sizes {
    /// Length of the mappings, kB.
    size: u64,
    /// Of these on transparent huge pages, kB.
    huge: u64,
}

/// The share (0 to 1) of transparent huge pages in the mappings that contain these ranges of addresses (start, end) of
/// this process; `None` if the kernel does not report it.
#[doc(alias = "AnonHugePages")]
pub(crate) fn huge_share(ranges: &[(usize, usize)]) -> Option<f64> {
    share_in(&Root::live().read_text("/proc/self/smaps").ok()?, ranges)
}

fn share_in(smaps: &str, ranges: &[(usize, usize)]) -> Option<f64> {
    let mut sizes = Sizes::default();
    let mut inside = false;
    for line in smaps.lines() {
        if let Some((start, end)) = header(line) {
            inside = ranges.iter().any(|range| range.0 < end && start < range.1);
        } else if inside {
            sizes.size += kilobytes(line, "Size:").unwrap_or(0);
            sizes.huge += kilobytes(line, "AnonHugePages:").unwrap_or(0);
        }
    }
    (sizes.size > 0).then(|| (sizes.huge as f64 / sizes.size as f64).min(1.0))
}

/// `7f12a000-7f12c000 rw-p 00000000 00:00 0`.
fn header(line: &str) -> Option<(usize, usize)> {
    let (start, end) = line.split(' ').next()?.split_once('-')?;
    let number = |text| usize::from_str_radix(text, 16).ok();
    Some((number(start)?, number(end)?))
}

fn kilobytes(line: &str, field: &str) -> Option<u64> {
    let number = line.strip_prefix(field)?.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?;
    // Far above any address space: larger values are not sizes.
    (number < 1 << 50).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMAPS: &str = "\
1000-3000 rw-p 00000000 00:00 0
Size:                  8 kB
AnonHugePages:         0 kB
200000-600000 rw-p 00000000 00:00 0                      [anon: x]
Size:               4096 kB
AnonHugePages:      2048 kB
800000-a00000 rw-p 00000000 00:00 0
Size:               2048 kB
AnonHugePages:      2048 kB
";

    #[test]
    fn the_share_is_that_of_the_mappings_which_hold_the_ranges() {
        let share = |ranges: &[(usize, usize)]| share_in(SMAPS, ranges);
        assert_eq!(share(&[(0x200000, 0x600000)]), Some(0.5));
        assert_eq!(share(&[(0x400000, 0x900000)]), Some(4096.0 / 6144.0));
        assert_eq!(share(&[(0x1000, 0x1001)]), Some(0.0));
        assert_eq!(share(&[(0x3000, 0x200000)]), None);
        assert_eq!(share(&[]), None);
    }

    #[test]
    fn text_that_is_no_smaps_tells_nothing() {
        for text in
            ["", "-", "x-y\nSize: 1 kB", "0-1\nSize: -1 kB", "0-1\nSize: 99999999999999999 kB"]
        {
            assert_eq!(share_in(text, &[(0, 10)]), None, "{text}");
        }
    }
}
