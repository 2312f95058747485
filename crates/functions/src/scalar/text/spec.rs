//! Format specifiers: the part of a format between `%` or `{` and its end.

/// A value to format.
pub(in crate::scalar) enum Value<'a> {
    Whole(i128),
    Float(f64),
    Flag(bool),
    Text(std::borrow::Cow<'a, str>),
}

/// Maximum width or precision of one value.
const WIDTH_MAX: usize = 1 << 20;
const PRECISION_MAX: usize = 1000;

/// A format specifier.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::scalar) struct Spec {
    pub(in crate::scalar) fill: char,
    /// `<`, `>`, `^`; None for the value's default.
    pub(in crate::scalar) align: Option<char>,
    /// The character before non-negative numbers.
    pub(in crate::scalar) plus: Option<char>,
    /// Adds `0x` or a similar prefix to numbers.
    pub(in crate::scalar) prefix: bool,
    /// Fills up to the width with zeros between the sign and the digits.
    pub(in crate::scalar) zeros: bool,
    pub(in crate::scalar) width: usize,
    /// The separator of digit groups.
    pub(in crate::scalar) thousands: Option<char>,
    pub(in crate::scalar) precision: Option<usize>,
    /// The conversion letter.
    pub(in crate::scalar) kind: Option<char>,
}

impl Spec {
    pub(in crate::scalar) const PLAIN: Self = Self {
        fill: ' ',
        align: None,
        plus: None,
        prefix: false,
        zeros: false,
        width: 0,
        thousands: None,
        precision: None,
        kind: None,
    };

    /// Parses the text after `%`; returns the rest of the format.
    pub(in crate::scalar) fn of_printf(mut text: &str) -> Result<(Self, &str), String> {
        let mut spec = Self { align: Some('>'), ..Self::PLAIN };
        while let Some(flag) = text.chars().next() {
            match flag {
                '-' => spec.align = Some('<'),
                '+' | ' ' => spec.plus = Some(flag),
                '0' => spec.zeros = true,
                '#' => spec.prefix = true,
                ',' | '\'' | '_' => spec.thousands = Some(flag),
                _ => break,
            }
            text = &text[1..];
        }
        spec.width = digits(&mut text)?.unwrap_or(0);
        spec.precision = precision(&mut text)?;
        let text = text.trim_start_matches(['l', 'h', 'z', 'j']);
        let Some(kind) = text.chars().next() else {
            return Err("a format ends within a specifier".to_owned());
        };
        if !"diouxXeEfFgGsc".contains(kind) {
            return Err(format!("unknown specifier %{kind}"));
        }
        spec.kind = Some(if matches!(kind, 'i' | 'u') { 'd' } else { kind });
        Ok((spec.checked()?, &text[kind.len_utf8()..]))
    }

    /// Parses the text after the colon in `{:…}`.
    pub(in crate::scalar) fn of_braces(mut text: &str) -> Result<Self, String> {
        let mut spec = Self::PLAIN;
        let mut chars = text.chars();
        match (chars.next(), chars.next()) {
            (Some(fill), Some(align @ ('<' | '>' | '^'))) => {
                (spec.fill, spec.align) = (fill, Some(align));
                text = chars.as_str();
            }
            (Some(align @ ('<' | '>' | '^')), _) => {
                spec.align = Some(align);
                text = &text[1..];
            }
            _ => {}
        }
        while let Some(flag) = text.chars().next() {
            match flag {
                '+' | ' ' => spec.plus = Some(flag),
                '-' => {}
                '#' => spec.prefix = true,
                '0' => spec.zeros = true,
                _ => break,
            }
            text = &text[1..];
        }
        spec.width = digits(&mut text)?.unwrap_or(0);
        if let Some(thousands @ (',' | '_' | '\'')) = text.chars().next() {
            spec.thousands = Some(thousands);
            text = &text[1..];
        }
        spec.precision = precision(&mut text)?;
        let mut rest = text.chars();
        spec.kind = rest.next();
        let is_known = spec.kind.is_none_or(|kind| "dbBoxXeEfFgGsc".contains(kind));
        if !is_known || rest.next().is_some() {
            return Err(format!("unknown specifier '{text}'"));
        }
        spec.checked()
    }

    fn checked(self) -> Result<Self, String> {
        let precision = self.precision.unwrap_or(0);
        if self.width > WIDTH_MAX || (precision > PRECISION_MAX && self.kind != Some('s')) {
            return Err(format!(
                "a width is at most {WIDTH_MAX}, a precision {PRECISION_MAX} digits"
            ));
        }
        Ok(self)
    }

    /// Writes a value.
    pub(in crate::scalar) fn write(
        &self,
        value: &Value<'_>,
        out: &mut String,
    ) -> Result<(), String> {
        match (value, self.kind) {
            (Value::Whole(value), None | Some('d' | 'b' | 'B' | 'o' | 'x' | 'X')) => {
                self.whole(*value, out)
            }
            (Value::Whole(code), Some('c')) => {
                let code = u32::try_from(*code).ok().and_then(char::from_u32);
                let code = code.ok_or("not the number of a character")?;
                self.padded("", &code.to_string(), self.align.unwrap_or('<'), out);
            }
            (Value::Whole(value), Some('s')) => self.text(&value.to_string(), '>', out),
            (Value::Whole(value), _) => self.float(*value as f64, out),
            (Value::Float(_), Some('d' | 'b' | 'B' | 'o' | 'x' | 'X' | 'c')) => {
                return Err("expected an integer, found a float".to_owned());
            }
            (Value::Float(value), _) => self.float(*value, out),
            (Value::Flag(value), None | Some('s')) => {
                self.text(if *value { "true" } else { "false" }, '<', out);
            }
            (Value::Flag(value), _) => self.whole(i128::from(*value), out),
            (Value::Text(text), None | Some('s' | 'c')) => self.text(text, '<', out),
            (Value::Text(_), Some(kind)) => {
                return Err(format!("expected a number for '{kind}', found text"));
            }
        }
        Ok(())
    }

    fn text(&self, text: &str, align: char, out: &mut String) {
        let cut = self.precision.and_then(|most| text.char_indices().nth(most));
        let text = cut.map_or(text, |(end, _)| &text[..end]);
        self.padded("", text, self.align.unwrap_or(align), out);
    }

    fn whole(&self, value: i128, out: &mut String) {
        let size = value.unsigned_abs();
        let (prefix, digits) = match self.kind {
            Some('b' | 'B') => ("0b", format!("{size:b}")),
            Some('o') => ("0", format!("{size:o}")),
            Some('x') => ("0x", format!("{size:x}")),
            Some('X') => ("0X", format!("{size:X}")),
            _ => ("", size.to_string()),
        };
        let mut sign = self.sign(value < 0);
        if self.prefix {
            sign.push_str(prefix);
        }
        let digits = match self.thousands {
            Some(between) => grouped(&digits, between),
            None => digits,
        };
        self.number(&sign, &digits, out);
    }

    fn float(&self, value: f64, out: &mut String) {
        let sign = self.sign(value.is_sign_negative() && !value.is_nan());
        let size = value.abs();
        if !size.is_finite() {
            let text = if size.is_nan() { "nan" } else { "inf" };
            return self.padded(&sign, text, self.align.unwrap_or('>'), out);
        }
        let digits = match self.kind {
            Some('f' | 'F') => format!("{size:.*}", self.precision.unwrap_or(6)),
            Some(kind @ ('e' | 'E')) => scientific(size, self.precision.unwrap_or(6), kind),
            Some(kind @ ('g' | 'G')) => general(size, self.precision.unwrap_or(6), kind),
            _ => match self.precision {
                Some(precision) => general(size, precision, 'g'),
                None => shortest(size),
            },
        };
        let digits = match (self.thousands, digits.split_once('.')) {
            (Some(between), Some((whole, rest))) => format!("{}.{rest}", grouped(whole, between)),
            (Some(between), None) => grouped(&digits, between),
            (None, _) => digits,
        };
        self.number(&sign, &digits, out);
    }

    fn sign(&self, is_negative: bool) -> String {
        match (is_negative, self.plus) {
            (true, _) => "-".to_owned(),
            (false, Some(plus)) => plus.to_string(),
            (false, None) => String::new(),
        }
    }

    fn number(&self, sign: &str, digits: &str, out: &mut String) {
        if self.zeros && self.align != Some('<') {
            let zeros = self.width.saturating_sub(sign.len() + digits.len());
            out.push_str(sign);
            out.extend(std::iter::repeat_n('0', zeros));
            return out.push_str(digits);
        }
        self.padded(sign, digits, self.align.unwrap_or('>'), out);
    }

    fn padded(&self, sign: &str, text: &str, align: char, out: &mut String) {
        let missing = self.width.saturating_sub(sign.len() + text.chars().count());
        let before = match align {
            '<' => 0,
            '^' => missing / 2,
            _ => missing,
        };
        out.extend(std::iter::repeat_n(self.fill, before));
        out.push_str(sign);
        out.push_str(text);
        out.extend(std::iter::repeat_n(self.fill, missing - before));
    }
}

fn digits(text: &mut &str) -> Result<Option<usize>, String> {
    let end = text.bytes().take_while(u8::is_ascii_digit).count();
    let (digits, rest) = text.split_at(end);
    *text = rest;
    match digits {
        "" => Ok(None),
        digits => digits.parse().map(Some).map_err(|_| format!("the width {digits} is too large")),
    }
}

fn precision(text: &mut &str) -> Result<Option<usize>, String> {
    let Some(rest) = text.strip_prefix('.') else { return Ok(None) };
    *text = rest;
    Ok(Some(digits(text)?.unwrap_or(0)))
}

fn grouped(digits: &str, between: char) -> String {
    let mut out = String::with_capacity(digits.len() * 4 / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(between);
        }
        out.push(digit);
    }
    out
}

/// `1.5e+00`
fn scientific(value: f64, precision: usize, kind: char) -> String {
    let text = format!("{value:.precision$e}");
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let (sign, exponent) = match exponent.strip_prefix('-') {
        Some(exponent) => ('-', exponent),
        None => ('+', exponent),
    };
    format!("{mantissa}{kind}{sign}{exponent:0>2}")
}

/// Like C's `%g`: the shorter of both forms, without trailing zeros.
fn general(value: f64, precision: usize, kind: char) -> String {
    let precision = precision.max(1);
    let letter = if kind == 'G' { 'E' } else { 'e' };
    let text = scientific(value, precision - 1, letter);
    let exponent: i32 =
        text.split_once(letter).and_then(|(_, exponent)| exponent.parse().ok()).unwrap_or(0);
    let shortened = |text: &str| match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text.to_owned(),
    };
    if exponent < -4 || exponent >= precision as i32 {
        let (mantissa, exponent) = text.split_once(letter).unwrap_or((&text, "+00"));
        return format!("{}{letter}{exponent}", shortened(mantissa));
    }
    let decimals = (precision as i32 - 1 - exponent).max(0) as usize;
    shortened(&format!("{value:.decimals$}"))
}

/// The fewest digits that identify this float.
fn shortest(value: f64) -> String {
    let text = format!("{value:?}");
    match text.split_once('e') {
        Some((mantissa, exponent)) => {
            let mantissa = mantissa.trim_end_matches(".0");
            match exponent.strip_prefix('-') {
                Some(exponent) => format!("{mantissa}e-{exponent:0>2}"),
                None => format!("{mantissa}e+{exponent:0>2}"),
            }
        }
        None => text,
    }
}
