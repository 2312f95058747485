//! Parses the code of a DO block.

use datafusion::common::{Result, not_impl_err};
use datafusion::sql::sqlparser::dialect::PostgreSqlDialect;
use datafusion::sql::sqlparser::tokenizer::{Location, Token, TokenWithSpan, Tokenizer};

use super::condition::Condition;
use atoll_sql_common::error::SqlState;
use atoll_sql_parse::syntax::{is_word, offset};

/// Statements of PL/pgSQL that are not supported, by their first words.
const REFUSED: [&str; 22] = [
    "assert",
    "call",
    "case",
    "close",
    "commit",
    "continue",
    "declare",
    "execute",
    "exit",
    "fetch",
    "for",
    "foreach",
    "get",
    "loop",
    "move",
    "open",
    "release",
    "return",
    "rollback",
    "savepoint",
    "start",
    "while",
];

/// How deep blocks and IFs nest at most.
const MAX_DEPTH: usize = 64;

/// `BEGIN … EXCEPTION WHEN … THEN … END`
#[derive(Debug, Default, PartialEq, Eq)]
pub(in crate::session) struct Block {
    pub(super) steps: Vec<Step>,
    pub(super) handlers: Vec<Handler>,
}

/// `WHEN a OR b THEN …`
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Handler {
    pub(super) conditions: Vec<Condition>,
    pub(super) steps: Vec<Step>,
}

/// A statement of a block.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// A statement of SQL.
    Sql(String),
    /// A query whose rows are discarded.
    Perform(String),
    /// The conditions in order, each with its steps, and those of ELSE.
    If {
        branches: Vec<(String, Vec<Step>)>,
        otherwise: Vec<Step>,
    },
    Block(Block),
    Raise(Message),
    Null,
}

/// `RAISE NOTICE 'a % b', x`
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Message {
    /// Whether it is an error, and else a notice.
    pub(super) is_error: bool,
    /// Whether clients see it: not below NOTICE.
    pub(super) is_shown: bool,
    /// The text around the values of the arguments.
    pub(super) parts: Vec<String>,
    pub(super) arguments: Vec<String>,
}

impl Block {
    /// Parses the code.
    ///
    /// # Errors
    /// For code that cannot be parsed, and statements of PL/pgSQL that are not supported.
    pub(super) fn parse(code: &str) -> Result<Self> {
        let tokens = Tokenizer::new(&PostgreSqlDialect {}, code).tokenize_with_location();
        let mut tokens = tokens.map_err(|error| SqlState::SYNTAX_ERROR.error(error.to_string()))?;
        tokens.retain(|token| !matches!(token.token, Token::Whitespace(_)));
        let mut code = Code { code, tokens, at: 0, depth: 0 };
        if code.is("declare") {
            return refused("declare");
        }
        code.expect("begin")?;
        let block = code.block()?;
        code.pass_semicolon();
        match code.peek() {
            None => Ok(block),
            Some(_) => code.unexpected("the end of the block"),
        }
    }
}

/// The tokens of the code, and how many were read.
struct Code<'a> {
    code: &'a str,
    tokens: Vec<TokenWithSpan>,
    at: usize,
    depth: usize,
}

impl Code<'_> {
    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.at).map(|token| &token.token)
    }

    fn is(&self, word: &str) -> bool {
        self.peek().is_some_and(|token| is_word(token, word))
    }

    fn take(&mut self, word: &str) -> bool {
        let found = self.is(word);
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, word: &str) -> Result<()> {
        match self.take(word) {
            true => Ok(()),
            false => self.unexpected(&word.to_uppercase()),
        }
    }

    fn unexpected<T>(&self, wanted: &str) -> Result<T> {
        let found = self.peek().map_or("the end".to_owned(), |token| format!("'{token}'"));
        let message = format!("DO: expected {wanted}, found {found}");
        Err(SqlState::SYNTAX_ERROR.error(message))
    }

    fn pass_semicolon(&mut self) {
        self.at += usize::from(self.peek() == Some(&Token::SemiColon));
    }

    fn semicolon(&mut self) -> Result<()> {
        match self.peek() {
            Some(Token::SemiColon) => {
                self.at += 1;
                Ok(())
            }
            _ => self.unexpected("';'"),
        }
    }

    /// What follows BEGIN, to its END.
    fn block(&mut self) -> Result<Block> {
        let mut block = Block { steps: self.steps(&["end", "exception"])?, handlers: vec![] };
        if self.take("exception") {
            while self.take("when") {
                let mut conditions = vec![self.condition()?];
                while self.take("or") {
                    conditions.push(self.condition()?);
                }
                self.expect("then")?;
                let steps = self.steps(&["when", "end"])?;
                block.handlers.push(Handler { conditions, steps });
            }
            if block.handlers.is_empty() {
                return self.unexpected("WHEN");
            }
        }
        self.expect("end")?;
        Ok(block)
    }

    fn condition(&mut self) -> Result<Condition> {
        let is_state = self.take("sqlstate");
        let condition = match (self.peek(), is_state) {
            (Some(Token::SingleQuotedString(code)), true) => Condition::from_code(code)?,
            (Some(Token::Word(word)), false) => Condition::from_name(&word.value)?,
            _ => return self.unexpected("the name of a condition"),
        };
        self.at += 1;
        Ok(condition)
    }

    /// The statements before one of these words.
    fn steps(&mut self, ends: &[&str]) -> Result<Vec<Step>> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            let message = format!("DO: blocks nest more than {MAX_DEPTH} deep");
            return Err(SqlState::PROGRAM_LIMIT_EXCEEDED.error(message));
        }
        let mut steps = Vec::new();
        while self.peek().is_some() && !ends.iter().any(|end| self.is(end)) {
            steps.push(self.step()?);
        }
        self.depth -= 1;
        Ok(steps)
    }

    fn step(&mut self) -> Result<Step> {
        if let Some(word) = REFUSED.into_iter().find(|word| self.is(word)) {
            return refused(word);
        }
        let step = if self.take("begin") {
            Step::Block(self.block()?)
        } else if self.take("if") {
            self.branches()?
        } else if self.take("null") {
            Step::Null
        } else if self.take("raise") {
            Step::Raise(self.message()?)
        } else if self.take("perform") {
            Step::Perform(format!("SELECT {}", self.text_before(&[])?))
        } else {
            self.sql()?
        };
        self.semicolon()?;
        Ok(step)
    }

    /// What follows IF, to END IF.
    fn branches(&mut self) -> Result<Step> {
        let mut branches = Vec::new();
        loop {
            let condition = self.text_before(&["then"])?;
            self.expect("then")?;
            branches.push((condition, self.steps(&["elsif", "elseif", "else", "end"])?));
            if !self.take("elsif") && !self.take("elseif") {
                break;
            }
        }
        let otherwise = if self.take("else") { self.steps(&["end"])? } else { vec![] };
        self.expect("end")?;
        self.expect("if")?;
        Ok(Step::If { branches, otherwise })
    }

    fn sql(&mut self) -> Result<Step> {
        let is_assignment =
            |token: &TokenWithSpan| matches!(token.token, Token::Assignment | Token::Eq);
        if self.tokens.get(self.at + 1).is_some_and(is_assignment) {
            return not_impl_err!("variables in DO are not supported");
        }
        self.text_before(&[]).map(Step::Sql)
    }

    fn message(&mut self) -> Result<Message> {
        let levels = ["debug", "log", "info", "notice", "warning", "exception"];
        let level = levels.into_iter().find(|level| self.take(level)).unwrap_or("exception");
        let Some(Token::SingleQuotedString(format)) = self.peek() else {
            return not_impl_err!("RAISE in DO takes a text: RAISE NOTICE 'a % b', x");
        };
        let mut parts = vec![String::new()];
        let mut characters = format.chars().peekable();
        while let Some(character) = characters.next() {
            match character {
                '%' if characters.next_if_eq(&'%').is_none() => parts.push(String::new()),
                other => parts.last_mut().into_iter().for_each(|part| part.push(other)),
            }
        }
        self.at += 1;
        let mut arguments = Vec::new();
        while self.peek() == Some(&Token::Comma) {
            self.at += 1;
            arguments.push(self.text_before(&[","])?);
        }
        if arguments.len() + 1 != parts.len() {
            let message = "DO: RAISE needs an argument for each % of its text";
            return Err(SqlState::SYNTAX_ERROR.error(message));
        }
        let (is_error, is_shown) =
            (level == "exception", ["info", "notice", "warning"].contains(&level));
        Ok(Message { is_error, is_shown, parts, arguments })
    }

    /// The text from here to a semicolon, or to one of these words outside of parentheses and CASE.
    fn text_before(&mut self, ends: &[&str]) -> Result<String> {
        let first = self.at;
        let mut depth = 0_usize;
        while let Some(token) = self.peek() {
            let is_end = |end: &&str| is_word(token, end) || token.to_string() == **end;
            if *token == Token::SemiColon || depth == 0 && ends.iter().any(is_end) {
                break;
            }
            match token {
                Token::LParen | Token::LBracket => depth += 1,
                Token::RParen | Token::RBracket => depth = depth.saturating_sub(1),
                token if is_word(token, "case") => depth += 1,
                token if is_word(token, "end") => depth = depth.saturating_sub(1),
                _ => {}
            }
            self.at += 1;
        }
        let place = |location: Location| offset(self.code, location);
        let text = match (self.tokens.get(first), self.tokens.get(self.at)) {
            (Some(from), Some(to)) if first < self.at => place(from.span.start)
                .zip(place(to.span.start))
                .and_then(|(from, to)| self.code.get(from..to)),
            _ => None,
        };
        match text {
            Some(text) => Ok(text.trim_end().to_owned()),
            None => self.unexpected("an expression or a statement, and ';'"),
        }
    }
}

fn refused<T>(word: &str) -> Result<T> {
    let word = word.to_uppercase();
    not_impl_err!(
        "{word} in DO is not supported; it runs SQL, IF, PERFORM, RAISE, nested blocks and EXCEPTION"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sql(text: &str) -> Step {
        Step::Sql(text.to_owned())
    }

    #[test]
    fn blocks_nest() {
        let block = Block::parse(
            "begin if a = CASE WHEN b THEN 1 END THEN CREATE TABLE t (a text DEFAULT ';');\n \
             ELSIF c THEN NULL; ELSE BEGIN DROP TABLE u; EXCEPTION WHEN others THEN NULL; END; END IF;\n \
             raise notice 'ä %-%%', f(1, 2); EXCEPTION WHEN duplicate_table OR sqlstate '42710' THEN \
             PERFORM f(x) FROM y; end;",
        )
        .expect("a block");
        let create = vec![sql("CREATE TABLE t (a text DEFAULT ';')")];
        let inner = Block {
            steps: vec![sql("DROP TABLE u")],
            handlers: vec![Handler {
                conditions: vec![Condition::from_name("others").expect("known")],
                steps: vec![Step::Null],
            }],
        };
        let message = Message {
            is_error: false,
            is_shown: true,
            parts: vec!["ä ".to_owned(), "-%".to_owned()],
            arguments: vec!["f(1, 2)".to_owned()],
        };
        let branches = Step::If {
            branches: vec![
                ("a = CASE WHEN b THEN 1 END".to_owned(), create),
                ("c".to_owned(), vec![Step::Null]),
            ],
            otherwise: vec![Step::Block(inner)],
        };
        assert_eq!(block.steps, [branches, Step::Raise(message)]);
        let [handler] = &block.handlers[..] else { panic!("one handler: {block:?}") };
        assert_eq!(handler.conditions.len(), 2);
        assert_eq!(handler.steps, [Step::Perform("SELECT f(x) FROM y".to_owned())]);
    }

    #[test]
    fn what_is_not_supported_is_named() {
        for code in [
            "",
            "BEGIN",
            "BEGIN END END",
            "BEGIN DROP TABLE t END",
            "BEGIN FOR x IN SELECT 1 LOOP NULL; END LOOP; END",
            "DECLARE x int; BEGIN x := 1; END",
            "BEGIN x := 1; END",
            "BEGIN IF a THEN NULL; END",
            "BEGIN EXCEPTION END",
            "BEGIN EXCEPTION WHEN nothing_known THEN NULL; END",
            "BEGIN RAISE NOTICE '%'; END",
            "BEGIN 'x; END",
            &"BEGIN ".repeat(100_000),
        ] {
            assert!(Block::parse(code).is_err(), "{code}");
        }
    }
}
