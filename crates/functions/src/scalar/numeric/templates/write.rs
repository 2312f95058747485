//! Numbers to texts, step by step as PostgreSQL does it (`NUM_processor`, `NUM_numpart_to_char`).

use super::digits::{Digits, Number};
use super::{Has, NumberTemplate, Pattern, Piece, SignPlace};

/// Writes a number by a template.
pub(super) fn write(template: &NumberTemplate, number: Number<'_>, out: &mut String) {
    if template.has.any(Has::EXPONENT) {
        out.push_str(&number.scientific(template));
        return;
    }
    let start = out.len();
    if template.has.any(Has::ROMAN) {
        let numeral = roman(number.whole());
        template.pieces.iter().for_each(|piece| write_roman(template, &numeral, *piece, out));
    } else {
        Writer::new(template, number.digits(template)).write(out);
    }
    // A float may have fewer digits than the template, and numerals have no sign: PostgreSQL stops there.
    if let Some(end) = out[start..].find('\0') {
        out.truncate(start + end);
    }
}

/// State of writing a number.
struct Writer<'a> {
    template: &'a NumberTemplate,
    digits: Digits,
    has_brackets: bool,
    sign: Option<SignPlace>,
    /// Whether the sign is written, or not needed.
    is_signed: bool,
    /// The last character to write with `FM`: the last nonzero fraction digit, or the point.
    last_relevant: Option<usize>,
    /// The position at which the number ends.
    end: usize,
    /// The next position for a digit or the point.
    place: usize,
    /// The next byte of the digits.
    at: usize,
    /// Whether the last character written was a digit.
    is_within: bool,
}

impl<'a> Writer<'a> {
    fn new(template: &'a NumberTemplate, digits: Digits) -> Self {
        let has = |pattern| template.has.any(pattern);
        let is_positive = !digits.is_negative;
        let has_brackets = has(Has::BRACKETS) && !(is_positive && has(Has::FILL));
        let mut sign = template.sign;
        let is_signed = match has(Has::PLUS) || has(Has::MINUS) {
            true => has(Has::MINUS),
            false => is_positive && has(Has::FILL) && !has(Has::SIGN),
        };
        // Like PostgreSQL, counts the positions after V.
        let is_last = !(has(Has::PLUS) || has(Has::MINUS)) && digits.before == template.before_sign;
        if sign == Some(SignPlace::Before) && is_last {
            sign = Some(SignPlace::Behind);
        }
        // The sign needs a position unless the number leaves one free; the last position is one before the end.
        let end = digits.behind
            + digits.before
            + usize::from(!is_signed || digits.blanks > 0)
            + usize::from(has(Has::POINT));
        let last_relevant = last_relevant(template, &digits);
        let (place, at, is_within) = (0, 0, false);
        Self {
            template,
            digits,
            has_brackets,
            sign,
            is_signed,
            last_relevant,
            end,
            place,
            at,
            is_within,
        }
    }

    fn has(&self, pattern: Has) -> bool {
        self.template.has.any(pattern)
    }

    fn byte(&self, at: usize) -> Option<u8> {
        self.digits.text.as_bytes().get(at).copied()
    }

    fn sign_char(&self) -> char {
        if self.digits.is_negative { '-' } else { '+' }
    }

    fn write(mut self, out: &mut String) {
        let template = self.template;
        for piece in &template.pieces {
            match piece {
                Piece::Literal(letter) => out.push(*letter),
                Piece::Pattern(Pattern::Nine | Pattern::Point) => self.digit(false, out),
                Piece::Pattern(Pattern::Zero) => self.digit(true, out),
                Piece::Pattern(Pattern::Comma | Pattern::Group) => match self.is_within {
                    true => out.push(','),
                    false => self.blank(out),
                },
                Piece::Pattern(Pattern::Currency) => out.push(' '),
                Piece::Pattern(Pattern::Minus) => self.sign_of('-', out),
                Piece::Pattern(Pattern::Plus) => self.sign_of('+', out),
                Piece::Pattern(Pattern::SignHere) => out.push(self.sign_char()),
                Piece::Pattern(Pattern::Ordinal { small }) => self.ordinal(*small, out),
                Piece::Pattern(_) => {}
            }
        }
    }

    fn blank(&self, out: &mut String) {
        if !self.has(Has::FILL) {
            out.push(' ');
        }
    }

    fn sign_of(&self, sign: char, out: &mut String) {
        match self.sign_char() == sign {
            true => out.push(sign),
            false => self.blank(out),
        }
    }

    fn ordinal(&self, small: bool, out: &mut String) {
        let is_without = self.digits.is_negative || self.has(Has::POINT);
        if is_without || self.digits.text.starts_with('#') {
            return;
        }
        let ordinal = ordinal_of(&self.digits.text);
        match small {
            true => out.push_str(&ordinal.to_lowercase()),
            false => out.push_str(ordinal),
        }
    }

    /// Writes a digit or the point.
    fn digit(&mut self, is_zero: bool, out: &mut String) {
        self.is_within = false;
        self.sign_before(out);
        let is_blank = self.place < self.digits.blanks;
        let is_after_zero = self.has(Has::ZERO) && self.template.zero_start <= self.place;
        match (is_blank, is_after_zero) {
            (true, false) => self.blank(out),
            (true, true) => {
                out.push('0');
                self.is_within = true;
            }
            (false, _) => self.number(is_zero, out),
        }
        self.sign_behind(out);
        self.place += 1;
    }

    /// Whether a zero precedes the point without a `0` in the template.
    fn is_zero_before_point(&self) -> bool {
        !self.has(Has::ZERO)
            && self.at == 0
            && self.byte(0) == Some(b'0')
            && self.digits.behind != 0
    }

    fn is_cut_at_point(&self) -> bool {
        self.last_relevant.is_some_and(|last| self.byte(last) == Some(b'.'))
    }

    fn sign_before(&mut self, out: &mut String) {
        let is_begun = self.place >= self.digits.blanks
            || (self.has(Has::ZERO) && self.template.zero_start == self.place);
        let may_be = !self.is_zero_before_point() || self.is_cut_at_point();
        if self.is_signed || !is_begun || !may_be {
            return;
        }
        if self.has(Has::SIGN) {
            if self.sign == Some(SignPlace::Before) {
                out.push(self.sign_char());
                self.is_signed = true;
            }
            return;
        }
        self.is_signed = true;
        if self.has_brackets {
            out.push(if self.digits.is_negative { '<' } else { ' ' });
        } else if self.digits.is_negative {
            out.push('-');
        } else {
            self.blank(out);
        }
    }

    fn number(&mut self, is_zero: bool, out: &mut String) {
        let byte = self.byte(self.at);
        if byte == Some(b'.') {
            if !self.is_cut_at_point() || self.has(Has::FILL) {
                out.push('.');
            }
        } else if self.last_relevant.is_some_and(|last| self.at > last) && !is_zero {
            // Omitted.
        } else if self.is_zero_before_point() {
            if !self.has(Has::FILL) {
                out.push(' ');
            } else if self.is_cut_at_point() {
                out.push('0');
            }
        } else {
            out.push(byte.map_or('\0', char::from));
            self.is_within = true;
        }
        if byte.is_some() {
            self.at += 1;
        }
    }

    fn sign_behind(&self, out: &mut String) {
        let is_end = self.place + 2 == self.end && self.last_relevant != Some(self.at);
        if !is_end {
            return;
        }
        if self.is_signed && self.has_brackets {
            out.push(if self.digits.is_negative { '>' } else { ' ' });
        } else if self.has(Has::SIGN) && self.sign == Some(SignPlace::Behind) {
            out.push(self.sign_char());
        }
    }
}

/// Returns where the relevant digits end, if FM cuts trailing fraction zeros.
fn last_relevant(template: &NumberTemplate, digits: &Digits) -> Option<usize> {
    if !template.has.any(Has::FILL) || !template.has.any(Has::POINT) {
        return None;
    }
    let text = &digits.text;
    let point = text.find('.')?;
    let behind = text[point..].trim_end_matches('0').len();
    let last = point + behind - 1;
    match template.zero_end > digits.blanks {
        true => Some(last.max((text.len() - 1).min(template.zero_end - digits.blanks))),
        false => Some(last),
    }
}

/// Returns the ordinal suffix of a number: `ST`.
fn ordinal_of(digits: &str) -> &'static str {
    let mut last = digits.chars().rev();
    match (last.next(), last.next()) {
        (_, Some('1')) => "TH",
        (Some('1'), _) => "ST",
        (Some('2'), _) => "ND",
        (Some('3'), _) => "RD",
        _ => "TH",
    }
}

/// Formats a number in Roman numerals; outside of their range, as many `#` as the longest has letters.
fn roman(number: Option<i64>) -> String {
    const NUMERALS: [(i64, &str); 13] = [
        (1000, "M"),
        (900, "CM"),
        (500, "D"),
        (400, "CD"),
        (100, "C"),
        (90, "XC"),
        (50, "L"),
        (40, "XL"),
        (10, "X"),
        (9, "IX"),
        (5, "V"),
        (4, "IV"),
        (1, "I"),
    ];
    let Some(mut rest) = number.filter(|number| (1..=3999).contains(number)) else {
        return "#".repeat(15);
    };
    let mut text = String::new();
    for (value, numeral) in NUMERALS {
        while rest >= value {
            text.push_str(numeral);
            rest -= value;
        }
    }
    text
}

fn write_roman(template: &NumberTemplate, numeral: &str, piece: Piece, out: &mut String) {
    let is_bare = template.has.any(Has::FILL);
    match piece {
        Piece::Literal(letter) => out.push(letter),
        Piece::Pattern(Pattern::Roman { small }) => {
            let numeral = if small { numeral.to_lowercase() } else { numeral.to_owned() };
            match is_bare {
                true => out.push_str(&numeral),
                false => out.push_str(&format!("{numeral:>15}")),
            }
        }
        Piece::Pattern(Pattern::Comma | Pattern::Group | Pattern::Minus | Pattern::Plus) => {
            if !is_bare {
                out.push(' ');
            }
        }
        Piece::Pattern(Pattern::Currency) => out.push(' '),
        Piece::Pattern(Pattern::SignHere) => out.push('\0'),
        Piece::Pattern(_) => {}
    }
}
