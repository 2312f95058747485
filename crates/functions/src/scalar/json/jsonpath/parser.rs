//! The parser of paths.
//!
//! ```text
//! predicate   and { || and }
//! and         not { && not }
//! not         ! ( predicate ) | comparison
//! comparison  sum [ == sum | starts with text | like_regex text [flag text] ]
//! sum         product { + product }        product  signed { * signed }
//! signed      - signed | steps             steps    value { .key | [0] | ?(predicate) | .size() }
//! ```

use bigdecimal::BigDecimal;
use regex::Regex;

use super::super::value::JsonFailure;
use super::tokens::{Token, syntax_error, tokens};
use super::tree::{JsonPath, Method, Node, Operation, Relation, Sign, Step};
use crate::scalar::text::regex_words::{RegexOptions, regex_with};

/// Maximum number of nested parts.
const DEPTH_MAX: usize = 256;

/// Parses a path.
pub(super) fn parse_path(text: &str) -> Result<JsonPath, JsonFailure> {
    let mut parser =
        PathParser { text, tokens: tokens(text)?, at: 0, depth: 0, filters: 0, subscripts: 0 };
    if parser.peek() == &Token::End {
        return Err(("22P02", format!("invalid input syntax for type jsonpath: \"{text}\"")));
    }
    let is_lax = match parser.takes_word("strict") {
        true => false,
        false => {
            parser.takes_word("lax");
            true
        }
    };
    let root = parser.predicate()?;
    match parser.peek() {
        Token::End => Ok(JsonPath { is_lax, root }),
        _ => parser.fails(),
    }
}

struct PathParser<'a> {
    text: &'a str,
    tokens: Vec<(Token, usize, usize)>,
    at: usize,
    depth: usize,
    /// The number of filters and of subscripts around.
    filters: usize,
    subscripts: usize,
}

impl PathParser<'_> {
    fn peek(&self) -> &Token {
        self.ahead(0)
    }

    fn ahead(&self, count: usize) -> &Token {
        self.tokens.get(self.at + count).map_or(&Token::End, |(token, ..)| token)
    }

    fn fails<T>(&self) -> Result<T, JsonFailure> {
        // PostgreSQL sees the end of a last word only at the end.
        let is_end = matches!(self.peek(), Token::Word(_)) && *self.ahead(1) == Token::End;
        let found = self.tokens.get(self.at).filter(|_| !is_end);
        let found = found.map_or("", |(_, from, to)| &self.text[*from..*to]);
        Err(syntax_error(found))
    }

    fn takes(&mut self, symbol: &str) -> bool {
        let is_there = matches!(self.peek(), Token::Symbol(found) if *found == symbol);
        self.at += usize::from(is_there);
        is_there
    }

    fn expect(&mut self, symbol: &str) -> Result<(), JsonFailure> {
        if self.takes(symbol) { Ok(()) } else { self.fails() }
    }

    fn is_word(&self, ahead: usize, word: &str) -> bool {
        matches!(self.ahead(ahead), Token::Word(found) if found.eq_ignore_ascii_case(word))
    }

    fn takes_word(&mut self, word: &str) -> bool {
        let is_there = self.is_word(0, word);
        self.at += usize::from(is_there);
        is_there
    }

    /// Counts one more nested part.
    fn deeper(&mut self) -> Result<(), JsonFailure> {
        self.depth += 1;
        match self.depth > DEPTH_MAX {
            true => Err(("54001", format!("a jsonpath has more than {DEPTH_MAX} nested parts"))),
            false => Ok(()),
        }
    }

    fn predicate(&mut self) -> Result<Node, JsonFailure> {
        let depth = self.depth;
        self.deeper()?;
        let mut left = self.conjunction()?;
        while left.is_predicate() && self.takes("||") {
            self.deeper()?;
            let right = self.conjunction()?;
            left = Node::Or(Box::new(left), Box::new(self.checked(right)?));
        }
        self.depth = depth;
        Ok(left)
    }

    fn conjunction(&mut self) -> Result<Node, JsonFailure> {
        let mut left = self.negation()?;
        while left.is_predicate() && self.takes("&&") {
            self.deeper()?;
            let right = self.negation()?;
            left = Node::And(Box::new(left), Box::new(self.checked(right)?));
        }
        Ok(left)
    }

    /// A node that must be a predicate.
    fn checked(&self, node: Node) -> Result<Node, JsonFailure> {
        if node.is_predicate() { Ok(node) } else { self.fails() }
    }

    fn negation(&mut self) -> Result<Node, JsonFailure> {
        if !self.takes("!") {
            return self.comparison();
        }
        let negated = match self.is_word(0, "exists") {
            true => self.comparison()?,
            false => self.within_parentheses()?,
        };
        Ok(Node::Not(Box::new(negated)))
    }

    /// A predicate in parentheses.
    fn within_parentheses(&mut self) -> Result<Node, JsonFailure> {
        self.expect("(")?;
        let inner = self.predicate()?;
        let inner = self.checked(inner)?;
        self.expect(")")?;
        Ok(inner)
    }

    fn comparison(&mut self) -> Result<Node, JsonFailure> {
        if self.is_word(0, "exists") && *self.ahead(1) == Token::Symbol("(") {
            self.at += 2;
            let path = self.sum()?;
            self.expect(")")?;
            return Ok(Node::Exists(Box::new(path)));
        }
        let left = self.sum()?;
        if left.is_predicate() {
            return Ok(left);
        }
        if self.takes_word("starts") {
            if !self.takes_word("with") {
                return self.fails();
            }
            let prefix = match self.peek().clone() {
                Token::Text(text) => Node::Text(text),
                Token::Variable(name) => Node::Variable(name),
                _ => return self.fails(),
            };
            self.at += 1;
            return Ok(Node::StartsWith(Box::new(left), Box::new(prefix)));
        }
        if self.takes_word("like_regex") {
            return self.like_regex(left);
        }
        let relations = [
            ("==", Relation::Equal),
            ("!=", Relation::NotEqual),
            ("<>", Relation::NotEqual),
            ("<=", Relation::AtMost),
            (">=", Relation::AtLeast),
            ("<", Relation::Less),
            (">", Relation::Greater),
        ];
        for (symbol, relation) in relations {
            if self.takes(symbol) {
                let right = self.sum()?;
                if right.is_predicate() {
                    return self.fails();
                }
                return Ok(Node::Comparison(Box::new(left), relation, Box::new(right)));
            }
        }
        Ok(left)
    }

    fn like_regex(&mut self, left: Node) -> Result<Node, JsonFailure> {
        let Token::Text(pattern) = self.peek().clone() else { return self.fails() };
        self.at += 1;
        let mut flags = String::new();
        if self.takes_word("flag") {
            let Token::Text(given) = self.peek().clone() else { return self.fails() };
            self.at += 1;
            flags = given;
        }
        Ok(Node::LikeRegex(Box::new(left), regex_of_flags(&pattern, &flags)?))
    }

    fn sum(&mut self) -> Result<Node, JsonFailure> {
        let depth = self.depth;
        let mut left = self.product()?;
        while !left.is_predicate() {
            let operation = match () {
                () if self.takes("+") => Operation::Add,
                () if self.takes("-") => Operation::Subtract,
                () => break,
            };
            self.deeper()?;
            let right = self.product()?;
            left = self.arithmetic(left, operation, right)?;
        }
        self.depth = depth;
        Ok(left)
    }

    fn product(&mut self) -> Result<Node, JsonFailure> {
        let mut left = self.signed()?;
        while !left.is_predicate() {
            let operation = match () {
                () if self.takes("*") => Operation::Multiply,
                () if self.takes("/") => Operation::Divide,
                () if self.takes("%") => Operation::Modulo,
                () => break,
            };
            self.deeper()?;
            let right = self.signed()?;
            left = self.arithmetic(left, operation, right)?;
        }
        Ok(left)
    }

    fn arithmetic(&self, left: Node, of: Operation, right: Node) -> Result<Node, JsonFailure> {
        match right.is_predicate() {
            true => self.fails(),
            false => Ok(Node::Arithmetic(Box::new(left), of, Box::new(right))),
        }
    }

    fn signed(&mut self) -> Result<Node, JsonFailure> {
        let sign = match () {
            () if self.takes("+") => Sign::Plus,
            () if self.takes("-") => Sign::Minus,
            () => return self.steps(),
        };
        let depth = self.depth;
        self.deeper()?;
        let operand = self.signed()?;
        self.depth = depth;
        match operand.is_predicate() {
            true => self.fails(),
            false => Ok(Node::Signed(sign, Box::new(operand))),
        }
    }

    fn steps(&mut self) -> Result<Node, JsonFailure> {
        let value = self.value()?;
        if value.is_predicate() && self.is_word(0, "is") && self.is_word(1, "unknown") {
            self.at += 2;
            return Ok(Node::IsUnknown(Box::new(value)));
        }
        let mut steps = Vec::new();
        while let Some(step) = self.step()? {
            steps.push(step);
        }
        Ok(if steps.is_empty() { value } else { Node::Steps(Box::new(value), steps) })
    }

    fn value(&mut self) -> Result<Node, JsonFailure> {
        let node = match self.peek().clone() {
            Token::Symbol("(") => {
                self.at += 1;
                let inner = self.predicate()?;
                self.expect(")")?;
                return Ok(inner);
            }
            Token::Symbol("$") => Node::Root,
            Token::Symbol("@") if self.filters > 0 => Node::Current,
            Token::Symbol("@") => {
                return Err(("42601", "@ is not allowed in root expressions".to_owned()));
            }
            Token::Number(digits) => Node::Number(number(&digits)?),
            Token::Text(text) => Node::Text(text),
            Token::Variable(name) => Node::Variable(name),
            Token::Word(word) => match word.as_str() {
                "null" => Node::Null,
                "true" => Node::Flag(true),
                "false" => Node::Flag(false),
                last if last.eq_ignore_ascii_case("last") && self.subscripts > 0 => Node::Last,
                last if last.eq_ignore_ascii_case("last") => {
                    let message = "LAST is allowed only in array subscripts";
                    return Err(("42601", message.to_owned()));
                }
                _ => return self.fails(),
            },
            _ => return self.fails(),
        };
        self.at += 1;
        Ok(node)
    }

    fn step(&mut self) -> Result<Option<Step>, JsonFailure> {
        if self.takes("[") {
            return self.subscript().map(Some);
        }
        if self.takes("?") {
            self.filters += 1;
            let filter = self.within_parentheses()?;
            self.filters -= 1;
            return Ok(Some(Step::Filter(filter)));
        }
        if !self.takes(".") {
            return Ok(None);
        }
        if self.takes("**") {
            return self.levels().map(Some);
        }
        if self.takes("*") {
            return Ok(Some(Step::AnyMember));
        }
        let (name, is_word) = match self.peek().clone() {
            Token::Text(name) => (name, false),
            Token::Word(name) => (name, true),
            _ => return self.fails(),
        };
        self.at += 1;
        if !is_word || *self.peek() != Token::Symbol("(") {
            return Ok(Some(Step::Member(name)));
        }
        let lower = name.to_ascii_lowercase();
        if lower == "datetime" {
            let message =
                "jsonpath item method .datetime() is not supported; compare texts in ISO format";
            return Err(("0A000", message.to_owned()));
        }
        let Some(method) = Method::named(&lower) else { return self.fails() };
        self.at += 1;
        self.expect(")")?;
        Ok(Some(Step::Call(method)))
    }

    fn subscript(&mut self) -> Result<Step, JsonFailure> {
        if self.takes("*") {
            self.expect("]")?;
            return Ok(Step::AnyItem);
        }
        self.subscripts += 1;
        let mut ranges = Vec::new();
        loop {
            let from = self.index()?;
            let to = if self.takes_word("to") { Some(self.index()?) } else { None };
            ranges.push((from, to));
            if !self.takes(",") {
                break;
            }
        }
        self.expect("]")?;
        self.subscripts -= 1;
        Ok(Step::Items(ranges))
    }

    fn index(&mut self) -> Result<Node, JsonFailure> {
        self.deeper()?;
        let index = self.sum()?;
        self.depth -= 1;
        if index.is_predicate() { self.fails() } else { Ok(index) }
    }

    /// The levels after `.**`.
    fn levels(&mut self) -> Result<Step, JsonFailure> {
        if !self.takes("{") {
            return Ok(Step::Below(Some(0), None));
        }
        let from = self.level()?;
        let to = if self.takes_word("to") { self.level()? } else { from };
        self.expect("}")?;
        Ok(Step::Below(from, to))
    }

    /// A level; None for `last`.
    fn level(&mut self) -> Result<Option<usize>, JsonFailure> {
        if self.takes_word("last") {
            return Ok(None);
        }
        let level = match self.peek() {
            Token::Number(digits) => digits.parse().ok(),
            _ => None,
        };
        match level {
            Some(level) => {
                self.at += 1;
                Ok(Some(level))
            }
            None => self.fails(),
        }
    }
}

fn number(digits: &str) -> Result<BigDecimal, JsonFailure> {
    let number = digits.trim_end_matches('.').parse::<BigDecimal>();
    let number = number.map_err(|_| syntax_error(digits))?;
    let scale = number.fractional_digit_count();
    // As long as NUMERIC's at most.
    if !(-131_072..=16_383).contains(&scale) {
        return Err(("22003", "value overflows numeric format".to_owned()));
    }
    Ok(number.with_scale(scale.max(0)))
}

/// A regular expression with the flags of XQuery: a dot matches line ends only with `s`.
fn regex_of_flags(pattern: &str, flags: &str) -> Result<Regex, JsonFailure> {
    let (mut options, mut stops_at_lines, mut anchors_at_lines) = (String::new(), true, false);
    for flag in flags.chars() {
        match flag {
            'i' | 'q' => options.push(flag),
            'm' => anchors_at_lines = true,
            's' => stops_at_lines = false,
            'x' => {
                let message = "XQuery \"x\" flag (expanded regular expressions) is not implemented";
                return Err(("0A000", message.to_owned()));
            }
            other => {
                let message =
                    format!("unrecognized flag character \"{other}\" in LIKE_REGEX predicate");
                return Err(("42601", message));
            }
        }
    }
    options.push_str(match (stops_at_lines, anchors_at_lines) {
        (true, true) => "m",
        (true, false) => "p",
        (false, true) => "w",
        (false, false) => "",
    });
    let invalid = |why: String| ("2201B", format!("invalid regular expression: {why}"));
    let options = RegexOptions::read(&options).map_err(|other| invalid(other.to_string()))?;
    Regex::new(&regex_with(pattern, options, false)).map_err(|error| invalid(error.to_string()))
}
