//! Page sizes: `/proc/self/auxv` and `/sys/kernel/mm/transparent_hugepage`.

use atoll_sys::Root;

use super::read;
use crate::builder::PAGE_SIZE;
use crate::discover::DiscoverError;
use crate::{Bytes, Source};

const AUXV: &str = "/proc/self/auxv";
const TRANSPARENT: &str = "/sys/kernel/mm/transparent_hugepage";
/// Key of the page size in the auxiliary vector (`AT_PAGESZ` in `include/uapi/linux/auxvec.h`).
const AT_PAGESZ: u64 = 6;

/// The page size in the auxiliary vector, which is pairs of 64-bit words. A tree without one is
/// assumed to have 4 KiB pages.
pub(super) fn base(root: &Root) -> Result<(Bytes, Source), DiscoverError> {
    if !root.exists(AUXV) {
        return Ok((PAGE_SIZE, Source::Assumed));
    }
    let bytes = root.read_bytes(AUXV)?;
    let (words, _) = bytes.as_chunks::<8>();
    let (pairs, _) = words.as_chunks::<2>();
    let pair = pairs.iter().find(|[key, _]| u64::from_ne_bytes(*key) == AT_PAGESZ);
    match pair.map(|[_, value]| u64::from_ne_bytes(*value)) {
        Some(size) if size.is_power_of_two() => Ok((Bytes(size), Source::Discovered)),
        Some(size) => Err(read::malformed(root, AUXV, "a power of two", &size.to_string())),
        None => Err(read::malformed(root, AUXV, "an AT_PAGESZ entry", "none")),
    }
}

/// Size of a transparent huge page; none where huge pages are unknown or switched off for all (`[never]`).
pub(super) fn huge(root: &Root) -> Result<Option<Bytes>, DiscoverError> {
    let enabled = root.read_text_if_present(&format!("{TRANSPARENT}/enabled"))?;
    if enabled.is_none_or(|modes| modes.contains("[never]")) {
        return Ok(None);
    }
    let name = format!("{TRANSPARENT}/hpage_pmd_size");
    let Some(size) = read::number_if_present(root, &name)? else { return Ok(None) };
    match u64::try_from(size) {
        Ok(size) if size.is_power_of_two() => Ok(Some(Bytes(size))),
        _ => Err(read::malformed(root, &name, "a power of two", &size.to_string())),
    }
}
