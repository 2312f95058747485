//! Page sizes: `/proc/self/auxv` and `/sys/kernel/mm/transparent_hugepage`.

use super::files::KernelFiles;
use crate::builder::PAGE_SIZE;
use crate::{Bytes, Source};

const AUXV: &str = "/proc/self/auxv";
const TRANSPARENT: &str = "/sys/kernel/mm/transparent_hugepage";
/// Key of the page size in the auxiliary vector (`AT_PAGESZ` in `include/uapi/linux/auxvec.h`).
const AT_PAGESZ: u64 = 6;

/// The page size from the auxiliary vector, which is pairs of 64-bit words. A tree without one is assumed to have
/// 4 KiB pages.
pub(super) fn base(files: &KernelFiles<'_>) -> (Bytes, Source) {
    match auxv(files) {
        Some(size) => (size, Source::Discovered),
        None => (PAGE_SIZE, Source::Assumed),
    }
}

fn auxv(files: &KernelFiles<'_>) -> Option<Bytes> {
    let bytes = files.bytes(AUXV)?;
    let (words, _) = bytes.as_chunks::<8>();
    let (pairs, _) = words.as_chunks::<2>();
    let pair = pairs.iter().find(|[key, _]| u64::from_ne_bytes(*key) == AT_PAGESZ);
    match pair.map(|[_, value]| u64::from_ne_bytes(*value)) {
        Some(size) if size.is_power_of_two() => return Some(Bytes(size)),
        Some(size) => files.malformed(AUXV, "a power of two", &size.to_string()),
        None => files.malformed(AUXV, "an AT_PAGESZ entry", "none"),
    }
    None
}

/// Size of a transparent huge page; None if huge pages are unknown or disabled (`[never]`).
pub(super) fn huge(files: &KernelFiles<'_>) -> Option<Bytes> {
    let enabled = files.text(&format!("{TRANSPARENT}/enabled"));
    if enabled.is_none_or(|modes| modes.contains("[never]")) {
        return None;
    }
    let name = format!("{TRANSPARENT}/hpage_pmd_size");
    let size: u64 = files.count(&name, "a power of two")?;
    if !size.is_power_of_two() {
        files.malformed(&name, "a power of two", &size.to_string());
        return None;
    }
    Some(Bytes(size))
}
