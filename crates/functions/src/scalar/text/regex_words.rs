//! PostgreSQL's regular expressions in the syntax of the crate `regex`.
//!
//! | written | meaning | becomes |
//! |---|---|---|
//! | `.` | any character, including newline; not with the options n, m and p | `.` with the flag s |
//! | `[^a]` | likewise | `[^\na]` if it must not match a newline |
//! | `\m`, `\M` | start and end of a word | `\b{start}`, `\b{end}` |
//! | `\y`, `\Y` | at a word boundary, not at one | `\b`, `\B` |
//! | `\Z` | end of the text | `\z` |
//! | `[a&&b]`, `[a~~b]`, `[a--b]`, `[[a]` | these characters | escaped, because they are set operations in `regex` |
//! | `(?n)` at the beginning | embedded options | the flags of `regex` |
//! | `***=` at the beginning | the rest is plain text | the escaped text |

use std::borrow::Cow;
use std::iter::Peekable;
use std::str::Chars;

/// The option letters, except `b`: basic expressions are not supported.
const EMBEDDED: &str = "ceimnpqstwx";

/// The options of an expression; none are set by default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::scalar) struct RegexOptions {
    /// Whether case is ignored; None if the pattern leaves it to the operator.
    any_case: Option<bool>,
    /// Whether `.` and `[^a]` exclude newlines.
    stops_at_lines: bool,
    /// Whether `^` and `$` also match at line ends.
    anchors_at_lines: bool,
    /// Whether blanks are ignored and `#` begins a comment.
    expanded: bool,
    /// Whether the expression is plain text.
    plain: bool,
}

impl RegexOptions {
    /// Accepts the options of PostgreSQL and DuckDB; returns the first unknown one as the error.
    pub(in crate::scalar) fn read(options: &str) -> Result<Self, char> {
        let mut all = Self::default();
        for option in options.chars() {
            if !all.set(option) {
                return Err(option);
            }
        }
        Ok(all)
    }

    /// Sets an option; returns false for an unknown one.
    fn set(&mut self, option: char) -> bool {
        let lines = |all: &mut Self, stops, anchors| {
            (all.stops_at_lines, all.anchors_at_lines) = (stops, anchors);
        };
        match option {
            'i' => self.any_case = Some(true),
            'c' => self.any_case = Some(false),
            'm' | 'n' => lines(self, true, true),
            'p' => lines(self, true, false),
            'w' => lines(self, false, true),
            's' => lines(self, false, false),
            'x' => self.expanded = true,
            't' => self.expanded = false,
            'l' | 'q' => self.plain = true,
            // The default, and options of the function rather than the expression.
            'e' | 'g' | ' ' => {}
            _ => return false,
        }
        true
    }

    /// Returns `regex` flags in parentheses; None if there are none. The last flag has no effect; it
    /// marks an expression as translated.
    fn flags(self, has_dot: bool) -> String {
        let set = [
            (has_dot && !self.stops_at_lines, 's'),
            (self.anchors_at_lines, 'm'),
            (self.expanded && !self.plain, 'x'),
            (self.any_case == Some(true), 'i'),
        ];
        let mut flags: String = set.into_iter().filter(|(is, _)| *is).map(|(_, of)| of).collect();
        if flags.is_empty() && self == Self::default() {
            return flags;
        }
        flags.push_str(if self.any_case == Some(false) { "-iU" } else { "-U" });
        format!("(?{flags})")
    }
}

/// Translates an expression to the syntax of `regex`; see the module.
pub fn regex_of(pattern: &str) -> Cow<'_, str> {
    let is_plain = !pattern.contains(['\\', '[', '.']) && !pattern.starts_with(['*', '(']);
    let flags = pattern.strip_prefix("(?").and_then(|rest| rest.split_once(')'));
    let is_known = flags.is_some_and(|(flags, _)| flags.ends_with("-U") || flags.ends_with("-iU"));
    if is_plain || is_known {
        return Cow::Borrowed(pattern);
    }
    Cow::Owned(regex_with(pattern, RegexOptions::default(), false))
}

/// Translates an expression with options; if `whole`, it must match the whole text.
pub(in crate::scalar) fn regex_with(
    pattern: &str,
    mut options: RegexOptions,
    whole: bool,
) -> String {
    let pattern = match options.plain {
        true => pattern,
        false => without_options(pattern, &mut options),
    };
    let (mut body, mut has_dot) = (String::with_capacity(pattern.len() + 8), false);
    match options.plain {
        true => body.push_str(&regex::escape(pattern)),
        false => has_dot = write_words(pattern, options, &mut body),
    }
    let flags = options.flags(has_dot);
    // A comment ends with its line.
    let end = if options.expanded { "\n" } else { "" };
    match whole {
        true => format!("{flags}\\A(?:{body}{end})\\z"),
        false => format!("{flags}{body}"),
    }
}

/// Reads the options at the beginning of an expression, and returns the rest.
fn without_options<'a>(pattern: &'a str, options: &mut RegexOptions) -> &'a str {
    if let Some(text) = pattern.strip_prefix("***=") {
        options.plain = true;
        return text;
    }
    let pattern = pattern.strip_prefix("***:").unwrap_or(pattern);
    let embedded = pattern.strip_prefix("(?").and_then(|rest| rest.split_once(')'));
    let Some((letters, rest)) = embedded else { return pattern };
    if letters.is_empty() || !letters.chars().all(|letter| EMBEDDED.contains(letter)) {
        return pattern;
    }
    for letter in letters.chars() {
        options.set(letter);
    }
    rest
}

/// Translates an expression; returns whether it contains a dot that matches any character.
fn write_words(pattern: &str, options: RegexOptions, out: &mut String) -> bool {
    let (mut letters, mut has_dot) = (pattern.chars().peekable(), false);
    while let Some(letter) = letters.next() {
        match letter {
            '\\' => match letters.next() {
                Some('m') => out.push_str("\\b{start}"),
                Some('M') => out.push_str("\\b{end}"),
                Some('y') => out.push_str("\\b"),
                Some('Y') => out.push_str("\\B"),
                Some('Z') => out.push_str("\\z"),
                other => out.extend(['\\'].into_iter().chain(other)),
            },
            '[' => {
                out.push('[');
                write_brackets(&mut letters, options, out);
            }
            _ => {
                has_dot |= letter == '.';
                out.push(letter);
            }
        }
    }
    has_dot
}

/// Translates a bracket expression after its opening bracket.
fn write_brackets(letters: &mut Peekable<Chars<'_>>, options: RegexOptions, out: &mut String) {
    if let Some(not) = letters.next_if_eq(&'^') {
        out.push(not);
        out.push_str(if options.stops_at_lines { "\\n" } else { "" });
    }
    // The first character is a member of the set, even if it is a bracket.
    if letters.next_if_eq(&']').is_some() {
        out.push_str("\\]");
    }
    let mut last = None;
    while let Some(letter) = letters.next() {
        match letter {
            ']' => {
                out.push(']');
                return;
            }
            '\\' => out.extend(['\\'].into_iter().chain(letters.next())),
            '[' if letters.peek() == Some(&':') => write_class(letters, out),
            '[' | '&' | '~' => out.extend(['\\', letter]),
            '-' if last == Some('-') => out.push_str("\\-"),
            // Blanks in a set are literal.
            blank if options.expanded && (blank.is_whitespace() || blank == '#') => {
                out.push_str(&format!("\\x{{{:x}}}", u32::from(blank)));
            }
            _ => out.push(letter),
        }
        last = Some(letter);
    }
}

/// Reads the rest of `[:alpha:]`.
fn write_class(letters: &mut Peekable<Chars<'_>>, out: &mut String) {
    out.push('[');
    for letter in letters {
        out.push(letter);
        if letter == ']' {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{RegexOptions, regex_of, regex_with};

    #[test]
    fn words_and_sets_of_postgresql_are_those_of_the_crate() {
        for (pattern, regex) in [
            ("abc", "abc"),
            ("a.c", "(?s-U)a.c"),
            (r"a\.c", r"a\.c"),
            ("[.]", "[.]"),
            (r"\mfoo\M", r"\b{start}foo\b{end}"),
            (r"\yfoo\Y", r"\bfoo\B"),
            (r"\Aa\Z", r"\Aa\z"),
            (r"\\m", r"\\m"),
            ("[a&&b]", r"[a\&\&b]"),
            ("[a~~b]", r"[a\~\~b]"),
            ("[+--]", r"[+-\-]"),
            ("[[a]", r"[\[a]"),
            ("[]a]", r"[\]a]"),
            ("[^]a]", r"[^\]a]"),
            ("[[:alpha:]_]", "[[:alpha:]_]"),
            (r"[\]y]\y", r"[\]y]\b"),
            ("(?n)a.b", "(?m-U)a.b"),
            ("(?p)a[^x]b", r"(?-U)a[^\nx]b"),
            ("(?ic)a", "(?-iU)a"),
            ("(?x)a [ #]", r"(?x-U)a [\x{20}\x{23}]"),
            ("(?q)a.b", r"(?-U)a\.b"),
            ("***=a.b", r"(?-U)a\.b"),
            ("***:(?i)a", "(?i-U)a"),
            ("(?:a)", "(?:a)"),
            ("(?P<n>a)", "(?P<n>a)"),
        ] {
            assert_eq!(regex_of(pattern), regex, "{pattern}");
            assert_eq!(regex_of(regex), regex, "a second time: {pattern}");
            regex::Regex::new(&regex_of(pattern)).expect(pattern);
        }
    }

    /// PostgreSQL's answers.
    #[test]
    fn options_say_what_ends_of_lines_are() {
        let found = |options: &str, pattern: &str| {
            let options = RegexOptions::read(options).expect("they are options");
            let regex = regex::Regex::new(&regex_with(pattern, options, false)).expect(pattern);
            regex.is_match("a\nb")
        };
        let all = |pattern| ["", "n", "s", "m", "p", "w", "ns"].map(|of| found(of, pattern));
        assert_eq!(all("a.b"), [true, false, true, false, false, true, true]);
        assert_eq!(all("^b"), [false, true, false, true, false, true, false]);
        assert_eq!(all("a[^x]b"), [true, false, true, false, false, true, true]);
        assert_eq!(all(r"a\Wb"), [true; 7]);
        assert_eq!(all("(?p)a.b"), [false; 7]);
        assert_eq!(RegexOptions::read("iz"), Err('z'));
    }

    #[test]
    fn all_of_a_text_is_also_its_last_line() {
        let options = RegexOptions::read("nx").expect("they are options");
        let regex = regex::Regex::new(&regex_with("a # c", options, true)).expect("it is one");
        assert!(regex.is_match("a") && !regex.is_match("a\nb"));
    }
}
