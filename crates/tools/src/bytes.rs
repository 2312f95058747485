//! Amounts of memory as people type them.

use anyhow::{Context, bail};
use atoll_topology::Bytes;

/// Reads `8GiB`, `512 MB`, `1.5g` or a number of bytes. `K`, `M`, `G` and `T`, with or without `iB`,
/// are powers of 1024; `KB`, `MB`, `GB` and `TB` powers of 1000.
pub fn parse(text: &str) -> anyhow::Result<Bytes> {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let expected = || {
        format!(
            "invalid amount of memory '{text}'; expected a size such as 8GiB or 512MB, or \
                    bytes"
        )
    };
    let number: f64 = number.parse().with_context(expected)?;
    let bytes = number * factor(unit.trim()).with_context(expected)?;
    if !(1.0..u64::MAX as f64).contains(&bytes) {
        bail!("amount of memory '{text}' is too large");
    }
    Ok(Bytes(bytes as u64))
}

fn factor(unit: &str) -> Option<f64> {
    let unit = unit.to_ascii_lowercase();
    let letter = unit.chars().next().unwrap_or('b');
    let power = "bkmgt".find(letter)? as i32;
    match unit.strip_prefix(letter).unwrap_or_default() {
        "" | "ib" if letter != 'b' || unit.len() <= 1 => Some(1024f64.powi(power)),
        "b" if letter != 'b' => Some(1000f64.powi(power)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_read_in_binary_and_decimal_units() {
        for (text, bytes) in [
            ("4096", 4096),
            ("10b", 10),
            ("8GiB", 8 << 30),
            ("8 gib", 8 << 30),
            ("1.5g", 3 << 29),
            ("512MB", 512_000_000),
            ("2K", 2048),
        ] {
            assert_eq!(parse(text).unwrap(), Bytes(bytes), "{text}");
        }
    }

    #[test]
    fn other_texts_are_no_amounts() {
        for text in ["", "GiB", "-1", "8 apples", "1.2.3G", "0", "99999999999T", "8bb", "8bib", "é"]
        {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
