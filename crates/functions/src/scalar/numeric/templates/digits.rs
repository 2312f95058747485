//! The digits of a number that a template requests.

use super::{Has, NumberTemplate};

/// A number to write.
#[derive(Clone, Copy, Debug)]
pub(super) enum Number<'a> {
    /// An integer or a decimal as plain digits: `-12.50`.
    Exact(&'a str),
    /// A float, and its number of significant digits.
    Float(f64, usize),
}

/// The parts of the output.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Digits {
    pub(super) is_negative: bool,
    /// Without a sign: `12.50`, or `#` for each digit if the template has too few.
    pub(super) text: String,
    /// Digits of the template before the point that the number does not fill.
    pub(super) blanks: usize,
    /// Digits of the template before and after the point, as far as the number has them.
    pub(super) before: usize,
    pub(super) behind: usize,
}

/// Returns the significant digits of a float.
pub(super) const DOUBLE_DIGITS: usize = 15;
pub(super) const SINGLE_DIGITS: usize = 6;

impl Number<'_> {
    pub(super) fn digits(self, template: &NumberTemplate) -> Digits {
        let before = template.before + template.shift;
        let (text, behind) = match self {
            Self::Exact(text) => (rounded(text, template.shift, template.behind), template.behind),
            Self::Float(value, sure) => float(value, sure, template),
        };
        let (is_negative, text) = match text.strip_prefix('-') {
            Some(text) => (true, text.to_owned()),
            None => (false, text),
        };
        let filled = text.find('.').unwrap_or(text.len());
        let blanks = before.saturating_sub(filled);
        let text = match filled > before {
            true => format!("{}.{}", "#".repeat(before), "#".repeat(behind)),
            false => text,
        };
        Digits { is_negative, text, blanks, before, behind }
    }

    /// In the form of `EEEE`: ` 1.23e+04`.
    pub(super) fn scientific(self, template: &NumberTemplate) -> String {
        let places = template.behind;
        let text = match self {
            Self::Exact(text) => exact_scientific(text, places),
            Self::Float(value, _) if value.is_finite() => c_exponent(&format!("{value:.places$e}")),
            Self::Float(..) => {
                let (before, behind) = (template.before, template.behind);
                return format!(" {}.{}", "#".repeat(before), "#".repeat(behind + 4));
            }
        };
        if text.starts_with('-') { text } else { format!(" {text}") }
    }

    /// As an integer, for Roman numerals.
    pub(super) fn whole(self) -> Option<i64> {
        match self {
            Self::Exact(text) => rounded(text, 0, 0).parse().ok(),
            Self::Float(value, _) => format!("{value:.0}").parse().ok(),
        }
    }
}

/// Formats a float with all of its significant fraction digits; also returns their number.
fn float(value: f64, sure: usize, template: &NumberTemplate) -> (String, usize) {
    let shift = i32::try_from(template.shift).unwrap_or(i32::MAX);
    let value = if template.has.any(Has::SHIFT) { value * 10f64.powi(shift) } else { value };
    let before = c_fixed(value.abs(), 0).len();
    let behind = if before >= sure { 0 } else { template.behind.min(sure - before) };
    (c_fixed(value, behind), behind)
}

/// Formats a float like C, with these words if it is not finite.
fn c_fixed(value: f64, behind: usize) -> String {
    if value.is_nan() {
        "NaN".to_owned()
    } else if value.is_infinite() {
        if value > 0.0 { "Infinity" } else { "-Infinity" }.to_owned()
    } else {
        format!("{value:.behind$}")
    }
}

/// Multiplies by a power of ten and rounds to this many fraction digits, half away from zero.
pub(super) fn rounded(text: &str, shift: usize, behind: usize) -> String {
    let (sign, text) = text.strip_prefix('-').map_or(("", text), |text| ("-", text));
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let mut digits: Vec<u8> = whole.bytes().chain(fraction.bytes()).collect();
    let point = whole.len() + shift;
    let end = point + behind;
    let is_up = digits.get(end).is_some_and(|digit| *digit >= b'5');
    digits.resize(end, b'0');
    if is_up && count_up(&mut digits) {
        digits.insert(0, b'1');
    }
    let point = digits.len() - behind;
    let digits: String = digits.into_iter().map(char::from).collect();
    let whole = match digits[..point].trim_start_matches('0') {
        "" => "0",
        whole => whole,
    };
    let is_zero = digits.bytes().all(|digit| digit == b'0');
    let sign = if is_zero { "" } else { sign };
    match behind {
        0 => format!("{sign}{whole}"),
        _ => format!("{sign}{whole}.{}", &digits[point..]),
    }
}

/// Adds one to the last digit; returns whether a leading one must be added.
fn count_up(digits: &mut [u8]) -> bool {
    for digit in digits.iter_mut().rev() {
        if *digit < b'9' {
            *digit += 1;
            return false;
        }
        *digit = b'0';
    }
    true
}

fn exact_scientific(text: &str, places: usize) -> String {
    let (sign, text) = text.strip_prefix('-').map_or(("", text), |text| ("-", text));
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let digits = format!("{whole}{fraction}");
    let Some(first) = digits.find(|digit| digit != '0') else {
        return c_exponent(&format!("{:.places$e}", 0.0));
    };
    let exponent = whole.len() as i64 - first as i64 - 1;
    let scaled = format!("{}.{}", &digits[first..=first], &digits[first + 1..]);
    let mantissa = rounded(&scaled, 0, places);
    match mantissa.strip_prefix("10") {
        // Rounding reached the next power of ten.
        Some(rest) => c_exponent(&format!("{sign}1{rest}e{}", exponent + 1)),
        None => c_exponent(&format!("{sign}{mantissa}e{exponent}")),
    }
}

/// Formats an exponent like C, with a sign and two digits.
fn c_exponent(text: &str) -> String {
    let (mantissa, exponent) = text.split_once('e').unwrap_or((text, "0"));
    let (sign, exponent) = exponent.strip_prefix('-').map_or(('+', exponent), |it| ('-', it));
    format!("{mantissa}e{sign}{exponent:0>2}")
}
