//! The tokens of a path.

use super::super::value::JsonFailure;

/// A token.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token {
    Symbol(&'static str),
    Number(String),
    /// A quoted text.
    Text(String),
    /// `$name`
    Variable(String),
    /// A key without quotes, or a word of the language.
    Word(String),
    End,
}

/// Symbols, longer ones first.
const SYMBOLS: [&str; 28] = [
    "&&", "||", "==", "<>", "!=", "<=", ">=", "**", "$", "@", ".", "[", "]", "(", ")", "{", "}",
    "?", ",", "*", "+", "-", "/", "%", "<", ">", "!", "=",
];

/// Characters that end a word.
const SPECIAL: &str = "?%$.[]{}()|&!=<>@#,*:-+/\"";

/// The tokens of a text, each with the position of its start and of its end.
pub(super) fn tokens(text: &str) -> Result<Vec<(Token, usize, usize)>, JsonFailure> {
    let mut reader = TokenReader { text, at: 0 };
    let mut all = Vec::new();
    loop {
        reader.blanks()?;
        let start = reader.at;
        let token = reader.token()?;
        let is_end = token == Token::End;
        all.push((token, start, reader.at));
        if is_end {
            return Ok(all);
        }
    }
}

/// An error of syntax that names the text where it is.
pub(super) fn syntax_error(found: &str) -> JsonFailure {
    (
        "42601",
        match found {
            "" => "syntax error at end of jsonpath input".to_owned(),
            found => format!("syntax error at or near \"{found}\" of jsonpath input"),
        },
    )
}

struct TokenReader<'a> {
    text: &'a str,
    at: usize,
}

impl TokenReader<'_> {
    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn next(&mut self) -> Option<char> {
        let one = self.peek()?;
        self.at += one.len_utf8();
        Some(one)
    }

    fn blanks(&mut self) -> Result<(), JsonFailure> {
        loop {
            let rest = self.rest();
            if let Some(comment) = rest.strip_prefix("/*") {
                let Some(end) = comment.find("*/") else {
                    return Err((
                        "42601",
                        "unexpected end of comment at end of jsonpath input".to_owned(),
                    ));
                };
                self.at += end + 4;
                continue;
            }
            match self.peek() {
                Some(' ' | '\t' | '\n' | '\r' | '\u{c}') => self.at += 1,
                _ => return Ok(()),
            }
        }
    }

    fn token(&mut self) -> Result<Token, JsonFailure> {
        let Some(first) = self.peek() else { return Ok(Token::End) };
        let second = self.rest().chars().nth(1);
        match first {
            '"' => {
                self.at += 1;
                self.quoted().map(Token::Text)
            }
            '$' if second == Some('"') => {
                self.at += 2;
                self.quoted().map(Token::Variable)
            }
            '$' if second.is_some_and(is_of_word) => {
                self.at += 1;
                self.word().map(Token::Variable)
            }
            '0'..='9' => self.number(),
            '.' if second.is_some_and(|second| second.is_ascii_digit()) => self.number(),
            _ => {
                if let Some(symbol) =
                    SYMBOLS.iter().find(|symbol| self.rest().starts_with(**symbol))
                {
                    self.at += symbol.len();
                    return Ok(Token::Symbol(symbol));
                }
                match is_of_word(first) {
                    true => self.word().map(Token::Word),
                    false => Err(syntax_error(first.encode_utf8(&mut [0; 4]))),
                }
            }
        }
    }

    fn digits(&mut self) -> usize {
        let start = self.at;
        while self.peek().is_some_and(|one| one.is_ascii_digit()) {
            self.at += 1;
        }
        self.at - start
    }

    fn number(&mut self) -> Result<Token, JsonFailure> {
        let start = self.at;
        let whole = self.digits();
        let has_zeros = whole > 1 && self.text[start..].starts_with('0');
        if self.peek() == Some('.') {
            self.at += 1;
            self.digits();
        }
        if matches!(self.peek(), Some('e' | 'E')) {
            let before = self.at;
            self.at += 1;
            if matches!(self.peek(), Some('+' | '-')) {
                self.at += 1;
            }
            if self.digits() == 0 {
                self.at = before;
            }
        }
        if has_zeros || self.peek().is_some_and(is_of_word) {
            let end = self.at + self.peek().map_or(0, char::len_utf8);
            let found = &self.text[start..end];
            let message = format!(
                "trailing junk after numeric literal at or near \"{found}\" of jsonpath input"
            );
            return Err(("42601", message));
        }
        Ok(Token::Number(self.text[start..self.at].to_owned()))
    }

    fn word(&mut self) -> Result<String, JsonFailure> {
        let mut word = String::new();
        while let Some(one) = self.peek().filter(|one| is_of_word(*one)) {
            self.at += one.len_utf8();
            word.push(if one == '\\' { self.escaped()? } else { one });
        }
        Ok(word)
    }

    fn quoted(&mut self) -> Result<String, JsonFailure> {
        let mut text = String::new();
        loop {
            match self.next() {
                Some('"') => return Ok(text),
                Some('\\') => text.push(self.escaped()?),
                Some(one) => text.push(one),
                None => {
                    let message = "unexpected end of quoted string at end of jsonpath input";
                    return Err(("42601", message.to_owned()));
                }
            }
        }
    }

    fn escaped(&mut self) -> Result<char, JsonFailure> {
        Ok(match self.next() {
            Some('b') => '\u{8}',
            Some('f') => '\u{c}',
            Some('n') => '\n',
            Some('r') => '\r',
            Some('t') => '\t',
            Some('v') => '\u{b}',
            Some('x') => {
                let code = self.hexadecimal(2)?;
                char::from_u32(code).filter(|one| *one != '\0').ok_or_else(no_character)?
            }
            Some('u') => self.unicode()?,
            Some(one) => one,
            None => {
                return Err((
                    "42601",
                    "unexpected end after backslash of jsonpath input".to_owned(),
                ));
            }
        })
    }

    /// A character after `\u`, which a second escape may continue.
    fn unicode(&mut self) -> Result<char, JsonFailure> {
        let code = match self.rest().strip_prefix('{').and_then(|rest| rest.split_once('}')) {
            Some((digits, _)) if (1..=6).contains(&digits.len()) => {
                let code = u32::from_str_radix(digits, 16).map_err(|_| no_character())?;
                self.at += digits.len() + 2;
                code
            }
            _ => self.hexadecimal(4)?,
        };
        let code = match code {
            0xd800..=0xdbff if self.rest().starts_with("\\u") => {
                self.at += 2;
                match self.hexadecimal(4)? {
                    low @ 0xdc00..=0xdfff => 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00),
                    _ => return Err(no_character()),
                }
            }
            code => code,
        };
        if code == 0 {
            let message =
                "unsupported Unicode escape sequence: \\u0000 cannot be converted to text";
            return Err(("22P05", message.to_owned()));
        }
        char::from_u32(code).ok_or_else(no_character)
    }

    fn hexadecimal(&mut self, count: usize) -> Result<u32, JsonFailure> {
        let digits = self.rest().get(..count);
        let digits = digits.filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()));
        let code = digits.and_then(|digits| u32::from_str_radix(digits, 16).ok());
        self.at += if code.is_some() { count } else { 0 };
        code.ok_or_else(no_character)
    }
}

fn no_character() -> JsonFailure {
    ("42601", "invalid escape sequence of jsonpath input".to_owned())
}

fn is_of_word(one: char) -> bool {
    !one.is_ascii_whitespace() && !SPECIAL.contains(one)
}
