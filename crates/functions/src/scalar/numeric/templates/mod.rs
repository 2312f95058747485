//! PostgreSQL's number templates: `to_char(1234.5, '9,999.99')`, `to_number('1,234.50', '9,999.99')`.
//!
//! | file | contents |
//! |---|---|
//! | `digits` | the digits of a number that a template requests |
//! | `function` | `to_number`, and `to_char` for numbers |
//! | `read` | text to numbers (`formatting.c`, `NUM_numpart_from_char`) |
//! | `write` | numbers to text (`NUM_numpart_to_char`) |
//!
//! Signs and separators are those of PostgreSQL's locale C: `L` is a blank, `D` a point, `G` a comma.

mod digits;
mod function;
mod read;
#[cfg(test)]
mod tests;
mod write;

pub(in crate::scalar) use function::{ENTRIES, is_number, written};

/// The meaning of a pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pattern {
    Comma,
    Group,
    Point,
    Zero,
    Nine,
    Blank,
    Exponent,
    Fill,
    Currency,
    Minus,
    Plus,
    Brackets,
    Roman {
        small: bool,
    },
    SignHere,
    /// `S`: a sign next to the number.
    Sign,
    Ordinal {
        small: bool,
    },
    Shift,
    /// A pattern that PostgreSQL accepts and ignores.
    Nothing,
}

/// The patterns; of those with a common prefix, the longer first.
const PATTERNS: [(&str, Pattern); 20] = [
    (",", Pattern::Comma),
    (".", Pattern::Point),
    ("0", Pattern::Zero),
    ("9", Pattern::Nine),
    ("B", Pattern::Blank),
    ("C", Pattern::Nothing),
    ("D", Pattern::Point),
    ("EEEE", Pattern::Exponent),
    ("FM", Pattern::Fill),
    ("G", Pattern::Group),
    ("L", Pattern::Currency),
    ("MI", Pattern::Minus),
    ("PL", Pattern::Plus),
    ("PR", Pattern::Brackets),
    ("RN", Pattern::Roman { small: false }),
    ("SG", Pattern::SignHere),
    ("SP", Pattern::Nothing),
    ("S", Pattern::Sign),
    ("TH", Pattern::Ordinal { small: false }),
    ("V", Pattern::Shift),
];

impl Pattern {
    /// Returns the pattern at the beginning of a template, and its length.
    fn parse_prefix(template: &str) -> Option<(Self, usize)> {
        PATTERNS.iter().find_map(|(text, pattern)| {
            let is_large = template.starts_with(text);
            let is_small = template.starts_with(&text.to_lowercase());
            let pattern = match pattern {
                Self::Roman { .. } => Self::Roman { small: !is_large },
                Self::Ordinal { .. } => Self::Ordinal { small: !is_large },
                other => *other,
            };
            (is_large || is_small).then_some((pattern, text.len()))
        })
    }
}

/// A part of a template.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Piece {
    Pattern(Pattern),
    Literal(char),
}

/// The position of `S`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SignPlace {
    Before,
    Behind,
}

/// A parsed template.
#[derive(Clone, Debug, Default)]
struct NumberTemplate {
    pieces: Vec<Piece>,
    /// The flags of its patterns.
    has: Has,
    /// Digits before and after the point.
    before: usize,
    behind: usize,
    /// Digits after `V`.
    shift: usize,
    sign: Option<SignPlace>,
    /// Digits before `S`.
    before_sign: usize,
    /// The index of the first `0` before the point, and the number of digits up to the last `0`.
    zero_start: usize,
    zero_end: usize,
}

/// Pattern flags that apply to the whole template.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Has(u16);

impl Has {
    const POINT: Self = Self(1);
    const ZERO: Self = Self(1 << 1);
    const BLANK: Self = Self(1 << 2);
    const FILL: Self = Self(1 << 3);
    const SIGN: Self = Self(1 << 4);
    const BRACKETS: Self = Self(1 << 5);
    const MINUS: Self = Self(1 << 6);
    const PLUS: Self = Self(1 << 7);
    const ROMAN: Self = Self(1 << 8);
    const SHIFT: Self = Self(1 << 9);
    const EXPONENT: Self = Self(1 << 10);

    fn any(self, of: Self) -> bool {
        self.0 & of.0 != 0
    }

    fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl NumberTemplate {
    /// Parses a template.
    ///
    /// # Errors
    /// For conflicting patterns, in PostgreSQL's words.
    fn parse(text: &str) -> Result<Self, String> {
        let (mut template, mut rest) = (Self::default(), text);
        while !rest.is_empty() {
            match Pattern::parse_prefix(rest) {
                Some((pattern, len)) => {
                    template.add(pattern)?;
                    template.pieces.push(Piece::Pattern(pattern));
                    rest = &rest[len..];
                }
                None => rest = template.literal(rest),
            }
        }
        Ok(template)
    }

    /// Reads a character, or a text between double quotes; returns the rest.
    fn literal<'a>(&mut self, template: &'a str) -> &'a str {
        let mut chars = template.chars();
        let Some(first) = chars.next() else { return "" };
        if first == '"' {
            while let Some(letter) = chars.next() {
                match letter {
                    '"' => break,
                    '\\' => self.pieces.push(Piece::Literal(chars.next().unwrap_or('\\'))),
                    letter => self.pieces.push(Piece::Literal(letter)),
                }
            }
            return chars.as_str();
        }
        let is_escaped = first == '\\' && chars.as_str().starts_with('"');
        let letter = if is_escaped { chars.next().unwrap_or(first) } else { first };
        self.pieces.push(Piece::Literal(letter));
        chars.as_str()
    }

    fn add(&mut self, pattern: Pattern) -> Result<(), String> {
        if self.has.any(Has::EXPONENT) && pattern != Pattern::Exponent {
            return Err("\"EEEE\" must be the last pattern used".to_owned());
        }
        match pattern {
            Pattern::Nine | Pattern::Zero => self.digit(pattern)?,
            Pattern::Blank => {
                if self.before == 0 && self.behind == 0 && !self.has.any(Has::ZERO) {
                    self.note(Has::BLANK);
                }
            }
            Pattern::Point => {
                self.refuse(Has::POINT, "multiple decimal points")?;
                self.refuse(Has::SHIFT, "cannot use \"V\" and decimal point together")?;
                self.note(Has::POINT);
            }
            Pattern::Fill => self.note(Has::FILL),
            Pattern::Sign => self.sign()?,
            Pattern::Minus => {
                self.refuse(Has::SIGN, "cannot use \"S\" and \"MI\" together")?;
                self.note(Has::MINUS);
            }
            Pattern::Plus => {
                self.refuse(Has::SIGN, "cannot use \"S\" and \"PL\" together")?;
                self.note(Has::PLUS);
            }
            Pattern::SignHere => {
                self.refuse(Has::SIGN, "cannot use \"S\" and \"SG\" together")?;
                self.note(Has::MINUS.and(Has::PLUS));
            }
            Pattern::Brackets => {
                let others = Has::SIGN.and(Has::PLUS).and(Has::MINUS);
                let both = "cannot use \"PR\" and \"S\"/\"PL\"/\"MI\"/\"SG\" together";
                self.refuse(others, both)?;
                self.note(Has::BRACKETS);
            }
            Pattern::Roman { .. } => self.note(Has::ROMAN),
            Pattern::Shift => {
                self.refuse(Has::POINT, "cannot use \"V\" and decimal point together")?;
                self.note(Has::SHIFT);
            }
            Pattern::Exponent => self.exponent()?,
            Pattern::Comma
            | Pattern::Group
            | Pattern::Currency
            | Pattern::Ordinal { .. }
            | Pattern::Nothing => {}
        }
        Ok(())
    }

    fn note(&mut self, pattern: Has) {
        self.has = self.has.and(pattern);
    }

    fn refuse(&self, others: Has, why: &str) -> Result<(), String> {
        if self.has.any(others) { Err(why.to_owned()) } else { Ok(()) }
    }

    fn digit(&mut self, pattern: Pattern) -> Result<(), String> {
        let is_zero = pattern == Pattern::Zero;
        let digit = if is_zero { '0' } else { '9' };
        self.refuse(Has::BRACKETS, &format!("\"{digit}\" must be ahead of \"PR\""))?;
        let is_behind = self.has.any(Has::POINT);
        if !is_zero && self.has.any(Has::SHIFT) {
            self.shift += 1;
            return Ok(());
        }
        if is_zero && !is_behind && !self.has.any(Has::ZERO) {
            self.note(Has::ZERO);
            self.zero_start = self.before;
        }
        *(if is_behind { &mut self.behind } else { &mut self.before }) += 1;
        if is_zero {
            self.zero_end = self.before + self.behind;
        }
        Ok(())
    }

    fn sign(&mut self) -> Result<(), String> {
        self.refuse(Has::SIGN, "cannot use \"S\" twice")?;
        let others = Has::PLUS.and(Has::MINUS).and(Has::BRACKETS);
        self.refuse(others, "cannot use \"S\" and \"PL\"/\"MI\"/\"SG\"/\"PR\" together")?;
        self.note(Has::SIGN);
        self.sign = Some(match self.has.any(Has::POINT) {
            true => SignPlace::Behind,
            false => SignPlace::Before,
        });
        self.before_sign = self.before;
        Ok(())
    }

    fn exponent(&mut self) -> Result<(), String> {
        self.refuse(Has::EXPONENT, "cannot use \"EEEE\" twice")?;
        let goes_with = Has::POINT.and(Has::ZERO);
        self.refuse(
            Has(!goes_with.0),
            "\"EEEE\" is incompatible with other formats; it may only be used together with digit and decimal \
             point patterns",
        )?;
        self.note(Has::EXPONENT);
        Ok(())
    }
}
