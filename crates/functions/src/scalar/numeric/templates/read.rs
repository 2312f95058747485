//! Text to numbers, as leniently as in PostgreSQL (`NUM_numpart_from_char`).

use super::{Has, NumberTemplate, Pattern, Piece};

/// Parses a number and returns plain digits: `-12.5`.
///
/// # Errors
/// For templates that only support output, and if there is no digit.
pub(super) fn read(template: &NumberTemplate, text: &str) -> Result<String, String> {
    for (pattern, name) in [(Has::EXPONENT, "EEEE"), (Has::ROMAN, "RN")] {
        if template.has.any(pattern) {
            return Err(format!("\"{name}\" not supported for input"));
        }
    }
    let rest: Vec<char> = text.chars().collect();
    let mut reader = Reader {
        template,
        rest: &rest,
        sign: None,
        digits: String::new(),
        before: 0,
        behind: 0,
        has_point: false,
    };
    for piece in &template.pieces {
        if reader.rest.is_empty() {
            break;
        }
        reader.piece(*piece);
    }
    reader.finish(text)
}

/// State of reading a text.
struct Reader<'a> {
    template: &'a NumberTemplate,
    rest: &'a [char],
    sign: Option<char>,
    /// Digits and the point.
    digits: String,
    before: usize,
    behind: usize,
    has_point: bool,
}

impl Reader<'_> {
    fn has(&self, pattern: Has) -> bool {
        self.template.has.any(pattern)
    }

    fn next(&self) -> Option<char> {
        self.rest.first().copied()
    }

    fn skip(&mut self) {
        self.rest = self.rest.get(1..).unwrap_or_default();
    }

    /// Skips this many insignificant characters.
    fn skip_other(&mut self, count: usize) {
        for _ in 0..count {
            if self.next().is_some_and(|next| !"0123456789.,+-".contains(next)) {
                self.skip();
            }
        }
    }

    fn piece(&mut self, piece: Piece) {
        match piece {
            Piece::Literal(_) => self.skip(),
            Piece::Pattern(pattern) => match pattern {
                Pattern::Nine | Pattern::Zero => self.digit(true),
                Pattern::Point => self.digit(false),
                Pattern::Comma | Pattern::Group => {
                    if !self.has(Has::FILL) && self.next() == Some(',') {
                        self.skip();
                    }
                }
                Pattern::Currency => self.skip_other(1),
                Pattern::Ordinal { .. } => {
                    if !self.has(Has::POINT) && self.sign != Some('-') {
                        self.skip_other(2);
                    }
                }
                Pattern::Minus => self.sign_of("-"),
                Pattern::Plus => self.sign_of("+"),
                Pattern::SignHere => self.sign_of("-+"),
                Pattern::Sign
                | Pattern::Blank
                | Pattern::Exponent
                | Pattern::Fill
                | Pattern::Brackets
                | Pattern::Roman { .. }
                | Pattern::Shift
                | Pattern::Nothing => {}
            },
        }
    }

    fn sign_of(&mut self, signs: &str) {
        match self.next().filter(|next| signs.contains(*next)) {
            Some(sign) => {
                self.sign = Some(sign);
                self.skip();
            }
            None => self.skip_other(1),
        }
    }

    /// Reads a digit or the point.
    fn digit(&mut self, is_digit: bool) {
        if self.next() == Some(' ') {
            self.skip();
        }
        if is_digit && self.sign.is_none() && self.before + self.behind == 0 {
            self.sign_before();
        }
        let Some(next) = self.next() else { return };
        let mut is_read = false;
        if next.is_ascii_digit() {
            if self.has_point && self.behind == self.template.behind {
                // PostgreSQL skips an excess point.
                self.skip();
                return;
            }
            self.digits.push(next);
            *(if self.has_point { &mut self.behind } else { &mut self.before }) += 1;
            is_read = true;
        } else if self.has(Has::POINT) && !self.has_point && next == '.' {
            self.digits.push('.');
            self.has_point = true;
            is_read = true;
        }
        if self.sign.is_none() && self.before + self.behind > 0 {
            self.sign_behind(is_read);
        }
        self.skip();
    }

    fn sign_before(&mut self) {
        let sign = match self.next() {
            Some(sign @ ('-' | '+')) => sign,
            Some('<') if self.has(Has::BRACKETS) => '-',
            _ => return,
        };
        self.sign = Some(sign);
        self.skip();
    }

    /// Reads a sign after the last digit, which is still the next character.
    fn sign_behind(&mut self, is_read: bool) {
        if self.has(Has::SIGN) {
            let sign = self.rest.get(1).copied().filter(|next| matches!(next, '-' | '+'));
            if is_read && sign.is_some() {
                self.sign = sign;
                self.skip();
            }
        } else if !is_read && (self.has(Has::PLUS) || self.has(Has::MINUS)) {
            self.sign = self.next().filter(|next| matches!(next, '-' | '+'));
        }
    }

    fn finish(self, text: &str) -> Result<String, String> {
        let digits = self.digits.strip_suffix('.').unwrap_or(&self.digits);
        if !digits.contains(|digit: char| digit.is_ascii_digit()) {
            return Err(format!("'{text}' has no digits where the template has them"));
        }
        let whole = digits.split('.').next().unwrap_or_default().trim_start_matches('0');
        let places = self.template.before + self.template.shift;
        if whole.len() > places {
            return Err(format!(
                "'{text}' has {} digits before the point, the template has {places}",
                whole.len()
            ));
        }
        let sign = if self.sign == Some('-') { "-" } else { "" };
        let zero = if digits.starts_with('.') { "0" } else { "" };
        Ok(format!("{sign}{zero}{digits}"))
    }
}
