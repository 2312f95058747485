//! NUMERIC in binary form: base-10,000 digits.

const POSITIVE: u16 = 0;
const NEGATIVE: u16 = 0x4000;

/// Base-10,000 digits before the point, at most; no type holds a larger number.
const GROUPS_MAX: i32 = 20;

/// Writes a decimal: number of digits, weight of the first one, sign, display scale, digits.
pub(super) fn write_numeric(is_negative: bool, digits: &str, scale: i8, out: &mut Vec<u8>) {
    let places = usize::try_from(scale).unwrap_or(0);
    let mut text = digits.trim_start_matches('0').to_owned();
    if !text.is_empty() && scale < 0 {
        text.extend(std::iter::repeat_n('0', scale.unsigned_abs().into()));
    }
    // Digits before and after the point, padded to whole groups of four.
    let padded_places = places.div_ceil(4) * 4;
    text.extend(std::iter::repeat_n('0', padded_places - places));
    let front = text.len().next_multiple_of(4) - text.len();
    let text = "0".repeat(front) + &text;
    let groups: Vec<u16> = text
        .as_bytes()
        .chunks(4)
        .map(|group| group.iter().fold(0, |sum, digit| sum * 10 + u16::from(digit - b'0')))
        .collect();
    let weight = groups.len() as i64 - (padded_places / 4) as i64 - 1;
    let first = groups.iter().position(|group| *group != 0);
    let (groups, weight) = match (first, groups.iter().rposition(|group| *group != 0)) {
        (Some(first), Some(last)) => (&groups[first..=last], weight - first as i64),
        _ => (&groups[..0], 0),
    };
    let sign = if is_negative && !groups.is_empty() { NEGATIVE } else { POSITIVE };
    for field in [groups.len() as u16, weight as i16 as u16, sign, places as u16] {
        out.extend_from_slice(&field.to_be_bytes());
    }
    groups.iter().for_each(|group| out.extend_from_slice(&group.to_be_bytes()));
}

/// The text of a decimal in binary form; None if it is invalid or special, such as `NaN`.
pub(super) fn numeric_text(bytes: &[u8]) -> Option<String> {
    let mut fields = bytes.chunks_exact(2).map(|field| u16::from_be_bytes([field[0], field[1]]));
    let count = usize::from(fields.next()?);
    let (weight, sign, places) = (fields.next()? as i16, fields.next()?, fields.next()?);
    let groups: Vec<u16> = fields.collect();
    if groups.len() != count || bytes.len() != 8 + 2 * count || groups.iter().any(|it| *it > 9999) {
        return None;
    }
    // Leading zeros are dropped: a few bytes may claim a hundred thousand of them.
    let (groups, weight) = match groups.iter().position(|group| *group != 0) {
        Some(first) => (&groups[first..], i32::from(weight) - first as i32),
        None => (&groups[..0], -1),
    };
    let group =
        |at: i32| usize::try_from(at).ok().and_then(|at| groups.get(at)).copied().unwrap_or(0);
    let mut text = match sign {
        POSITIVE => String::new(),
        NEGATIVE => "-".to_owned(),
        _ => return None,
    };
    if weight < 0 {
        text.push('0');
    }
    for at in 0..=weight.min(GROUPS_MAX) {
        text += &format!("{:04}", group(at));
    }
    if places > 0 {
        text.push('.');
        let start = text.len();
        let mut at = weight + 1;
        // Missing groups come before the first one.
        while text.len() - start < places.into() {
            text += &format!("{:04}", group(at));
            at += 1;
        }
        text.truncate(start + usize::from(places));
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round(text: &str) -> String {
        let (is_negative, digits) = match text.strip_prefix('-') {
            Some(digits) => (true, digits),
            None => (false, text),
        };
        let scale = digits.split_once('.').map_or(0, |(_, places)| places.len());
        let digits = digits.replace('.', "");
        let mut out = Vec::new();
        write_numeric(is_negative, digits.trim_start_matches('0'), scale as i8, &mut out);
        numeric_text(&out).expect("it is a number")
    }

    #[test]
    fn decimals_round_trip() {
        for text in ["1", "-1", "1234.5678", "0.00012345", "100000000", "-12345678901234567890.5"] {
            let back = round(text);
            let plain = back.trim_start_matches('-').trim_start_matches('0');
            let plain = if plain.starts_with('.') { format!("0{plain}") } else { plain.to_owned() };
            let sign = if text.starts_with('-') { "-" } else { "" };
            assert_eq!(format!("{sign}{plain}"), text, "{back}");
        }
        assert_eq!(round("0.00"), "0.00");
    }

    #[test]
    fn leading_zeros_are_dropped() {
        assert_eq!(numeric_text(b"\0\0\x7f\xff\0\0\0\x02").as_deref(), Some("0.00"));
        let zeros = b"\0\x03\0\x02\0\0\0\0\0\0\0\0\0\x07";
        assert_eq!(numeric_text(zeros).as_deref(), Some("0007"));
        let huge = numeric_text(b"\0\x01\x7f\xff\0\0\0\0\0\x01").expect("a number");
        assert!((77..100).contains(&huge.len()), "{huge}");
    }

    #[test]
    fn damaged_numbers_return_none() {
        assert_eq!(numeric_text(b""), None);
        assert_eq!(numeric_text(b"\0\x01\0\0\0\0\0\0"), None);
        assert_eq!(numeric_text(b"\0\0\0\0\xc0\0\0\0"), None);
        assert_eq!(numeric_text(b"\0\x01\0\0\0\0\0\0\x27\x10"), None);
    }
}
