//! Parses PL/pgSQL: the code of a DO block or of a routine.

use datafusion::common::{Result, not_impl_err};
use datafusion::sql::sqlparser::tokenizer::Token;

use super::code::Code;
use super::condition::{Condition, code_of};
use super::tree::{Block, Declaration, Handler, Head, IntoClause, Message, Source, Step};
use atoll_sql_common::error::SqlState;
use atoll_sql_parse::syntax::is_word;

/// Statements of PL/pgSQL that are not supported, by their first words.
const REFUSED: [&str; 13] = [
    "assert",
    "call",
    "close",
    "commit",
    "fetch",
    "foreach",
    "move",
    "open",
    "release",
    "rollback",
    "savepoint",
    "start",
    "do",
];

/// How deep blocks and IFs nest at most.
const MAX_DEPTH: usize = 64;

impl Block {
    /// Parses the code.
    ///
    /// # Errors
    /// For code that cannot be parsed, and statements of PL/pgSQL that are not supported.
    pub(super) fn parse(code: &str) -> Result<Self> {
        let mut code = Code::new(code)?;
        let label = code.label()?;
        let block = code.whole_block(label)?;
        code.pass_semicolon();
        match code.peek() {
            None => Ok(block),
            Some(_) => code.unexpected("the end of the block"),
        }
    }
}

impl Code<'_> {
    /// A block from its DECLARE or BEGIN to its END.
    fn whole_block(&mut self, label: Option<String>) -> Result<Block> {
        let mut declarations = Vec::new();
        while self.take("declare") {
            while !self.is("begin") && !self.is("declare") {
                declarations.push(self.declaration()?);
            }
        }
        self.expect("begin")?;
        let block = self.block()?;
        self.end_label(label.as_deref())?;
        Ok(Block { label, declarations, ..block })
    }

    fn declaration(&mut self) -> Result<Declaration> {
        let name = self.name()?;
        if self.is("alias") || self.is("cursor") || self.is("no") || self.is("scroll") {
            return refused("cursor or alias in declare");
        }
        let is_constant = self.take("constant");
        let of = self.text_before(&["not", "default", ":=", "="])?;
        let is_not_null = self.take("not");
        if is_not_null {
            self.expect("null")?;
        }
        let has_default =
            self.take("default") || self.passes(&Token::Assignment) || self.passes(&Token::Eq);
        let default = if has_default { Some(self.text_before(&[])?) } else { None };
        self.semicolon()?;
        Ok(Declaration { name, of, is_constant, is_not_null, default })
    }

    /// What follows BEGIN, to its END.
    fn block(&mut self) -> Result<Block> {
        let steps = self.steps(&["end", "exception"])?;
        let mut block = Block { steps, ..Block::default() };
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
            let message = format!("PL/pgSQL: blocks nest more than {MAX_DEPTH} deep");
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
        let label = self.label()?;
        if let Some(step) = self.labelled(label)? {
            return Ok(step);
        }
        if let Some(word) = REFUSED.into_iter().find(|word| self.is(word)) {
            return refused(word);
        }
        let step = if self.take("if") {
            self.branches()?
        } else if self.take("case") {
            self.case()?
        } else if self.take("null") {
            Step::Null
        } else if self.take("raise") {
            self.raise()?
        } else if self.take("perform") {
            Step::Perform(format!("SELECT {}", self.text_before(&[])?))
        } else if self.is("exit") || self.is("continue") {
            self.leave()?
        } else if self.take("return") {
            self.returned()?
        } else if self.take("get") {
            self.diagnostics()?
        } else if self.take("execute") {
            self.dynamic()?
        } else {
            self.sql()?
        };
        self.semicolon()?;
        Ok(step)
    }

    /// A block or a loop, which may have a label.
    fn labelled(&mut self, label: Option<String>) -> Result<Option<Step>> {
        let step = if self.is("begin") || self.is("declare") {
            Step::Block(self.whole_block(label)?)
        } else if self.is("loop") {
            self.looped(label, Head::Forever)?
        } else if self.take("while") {
            let condition = self.text_before(&["loop"])?;
            self.looped(label, Head::While(condition))?
        } else if self.take("for") {
            let head = self.head()?;
            self.looped(label, head)?
        } else if label.is_some() {
            return self.unexpected("a block or a loop after its label");
        } else {
            return Ok(None);
        };
        self.semicolon()?;
        Ok(Some(step))
    }

    fn looped(&mut self, label: Option<String>, head: Head) -> Result<Step> {
        self.expect("loop")?;
        let steps = self.steps(&["end"])?;
        self.expect("end")?;
        self.expect("loop")?;
        self.end_label(label.as_deref())?;
        Ok(Step::Loop { label, head, steps })
    }

    /// What follows FOR, to LOOP.
    fn head(&mut self) -> Result<Head> {
        let targets = self.targets()?;
        self.expect("in")?;
        if self.take("execute") {
            let source = self.dynamic_source(&["loop"])?;
            return Ok(Head::Rows { targets, source });
        }
        let is_reverse = self.take("reverse");
        let start = self.at;
        let text = self.text_before(&["loop", ".."])?;
        if !self.passes_range() {
            self.at = start;
            let text = if is_reverse { text } else { self.text_before(&["loop"])? };
            return Ok(Head::Rows { targets, source: Source::Sql(text) });
        }
        let [variable] = targets.as_slice() else { return self.unexpected("one variable") };
        let [variable] = variable.as_slice() else { return self.unexpected("one variable") };
        let (variable, from) = (variable.clone(), text);
        let to = self.text_before(&["by", "loop"])?;
        let by = if self.take("by") { Some(self.text_before(&["loop"])?) } else { None };
        Ok(Head::Numbers { variable, is_reverse, from, to, by })
    }

    /// Passes `..`.
    fn passes_range(&mut self) -> bool {
        let found = self.is_range();
        self.at += if found { 2 } else { 0 };
        found
    }

    pub(super) fn is_range(&self) -> bool {
        let is_period =
            |at: usize| self.tokens.get(at).is_some_and(|token| token.token == Token::Period);
        is_period(self.at) && is_period(self.at + 1)
    }

    fn leave(&mut self) -> Result<Step> {
        let is_continue = self.is("continue");
        self.at += 1;
        let is_named = !self.is("when") && matches!(self.peek(), Some(Token::Word(_)));
        let label = if is_named { Some(self.name()?) } else { None };
        let when = if self.take("when") { Some(self.text_before(&[])?) } else { None };
        Ok(Step::Leave { is_continue, label, when })
    }

    fn returned(&mut self) -> Result<Step> {
        let is_empty = |code: &Self| code.peek() == Some(&Token::SemiColon);
        if self.take("next") {
            let value = if is_empty(self) { None } else { Some(self.text_before(&[])?) };
            return Ok(Step::ReturnNext(value));
        }
        if self.take("query") {
            return Ok(Step::ReturnQuery(match self.take("execute") {
                true => self.dynamic_source(&[])?,
                false => Source::Sql(self.text_before(&[])?),
            }));
        }
        let value = if is_empty(self) { None } else { Some(self.text_before(&[])?) };
        Ok(Step::Return(value))
    }

    fn diagnostics(&mut self) -> Result<Step> {
        let is_stacked = self.take("stacked");
        if !is_stacked {
            self.take("current");
        }
        self.expect("diagnostics")?;
        let mut items = Vec::new();
        loop {
            let target = self.target()?;
            if !self.passes(&Token::Eq) && !self.passes(&Token::Assignment) {
                return self.unexpected("'='");
            }
            items.push((target, self.name()?));
            if !self.passes(&Token::Comma) {
                return Ok(Step::Diagnostics { is_stacked, items });
            }
        }
    }

    /// What follows EXECUTE.
    fn dynamic(&mut self) -> Result<Step> {
        let text = self.text_before(&["into", "using"])?;
        let mut into = self.targets_of_into()?;
        let using = self.using(&["into"])?;
        if into.is_none() {
            into = self.targets_of_into()?;
        }
        Ok(Step::Sql { source: Source::Dynamic { text, using }, into })
    }

    fn dynamic_source(&mut self, ends: &[&str]) -> Result<Source> {
        let text = self.text_before(&[&["using"], ends].concat())?;
        let using = self.using(ends)?;
        Ok(Source::Dynamic { text, using })
    }

    fn using(&mut self, ends: &[&str]) -> Result<Vec<String>> {
        let mut values = Vec::new();
        if self.take("using") {
            let ends = [&[","], ends].concat();
            values.push(self.text_before(&ends)?);
            while self.passes(&Token::Comma) {
                values.push(self.text_before(&ends)?);
            }
        }
        Ok(values)
    }

    fn targets_of_into(&mut self) -> Result<Option<IntoClause>> {
        if !self.take("into") {
            return Ok(None);
        }
        let is_strict = self.take("strict");
        Ok(Some(IntoClause { is_strict, targets: self.targets()? }))
    }

    /// What follows CASE, to END CASE.
    fn case(&mut self) -> Result<Step> {
        let value = if self.is("when") { None } else { Some(self.text_before(&["when"])?) };
        let mut branches = Vec::new();
        while self.take("when") {
            let text = self.text_before(&["then"])?;
            self.expect("then")?;
            let condition = match &value {
                Some(value) => format!("({value}) IN ({text})"),
                None => text,
            };
            branches.push((condition, self.steps(&["when", "else", "end"])?));
        }
        let otherwise = if self.take("else") { Some(self.steps(&["end"])?) } else { None };
        self.expect("end")?;
        self.expect("case")?;
        Ok(Step::Case { branches, otherwise })
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
        let start = self.at;
        if matches!(self.peek(), Some(Token::Word(_))) {
            let target = self.target()?;
            if self.passes(&Token::Assignment) || self.passes(&Token::Eq) {
                return Ok(Step::Assign { target, value: self.text_before(&[])? });
            }
            if self.peek() == Some(&Token::LBracket) {
                return not_impl_err!("assignments to elements of arrays are not supported");
            }
        }
        self.at = start;
        let whole = self.text_before(&[])?;
        let end = self.at;
        let Some(at) = self.place_of_into(start, end) else {
            return Ok(Step::Sql { source: Source::Sql(whole), into: None });
        };
        self.at = at;
        let into = self.targets_of_into()?;
        let (before, after) = (self.text(start, at), self.text(self.at, end));
        self.at = end;
        let sql = format!("{} {}", before.unwrap_or_default(), after.unwrap_or_default());
        Ok(Step::Sql { source: Source::Sql(sql.trim().to_owned()), into })
    }

    /// Where the INTO with variables is.
    fn place_of_into(&self, start: usize, end: usize) -> Option<usize> {
        let is = |at: usize, word: &str| {
            self.tokens.get(at).is_some_and(|token| is_word(&token.token, word))
        };
        if !["select", "insert", "update", "delete", "with", "merge", "values"]
            .into_iter()
            .any(|word| is(start, word))
        {
            return None;
        }
        let mut depth = 0_usize;
        for at in start..end {
            match self.tokens[at].token {
                Token::LParen => depth += 1,
                Token::RParen => depth = depth.saturating_sub(1),
                _ if depth == 0
                    && is(at, "into")
                    && at > start
                    && !is(at - 1, "insert")
                    && !is(at - 1, "merge") =>
                {
                    return Some(at);
                }
                _ => {}
            }
        }
        None
    }

    fn raise(&mut self) -> Result<Step> {
        if self.peek() == Some(&Token::SemiColon) {
            return Ok(Step::Again);
        }
        let levels = ["debug", "log", "info", "notice", "warning", "exception"];
        let level = levels.into_iter().find(|level| self.take(level)).unwrap_or("exception");
        let mut message = Message {
            is_error: level == "exception",
            is_shown: ["info", "notice", "warning"].contains(&level),
            ..Message::default()
        };
        if self.take("sqlstate") {
            let Some(Token::SingleQuotedString(code)) = self.peek() else {
                return self.unexpected("a code");
            };
            message.code = Some(code.clone());
            self.at += 1;
        } else if !self.is("using")
            && let Some(Token::Word(word)) = self.peek()
        {
            message.code = Some(code_of(&word.value)?);
            message.parts = vec![word.value.clone()];
            self.at += 1;
        } else if let Some(Token::SingleQuotedString(format)) = self.peek() {
            message.parts = parts_of(format);
            self.at += 1;
            while self.passes(&Token::Comma) {
                message.arguments.push(self.text_before(&[",", "using"])?);
            }
            if message.arguments.len() + 1 != message.parts.len() {
                let message = "RAISE needs an argument for each % of its text";
                return Err(SqlState::SYNTAX_ERROR.error(message));
            }
        }
        if self.take("using") {
            loop {
                let word = self.name()?;
                if !self.passes(&Token::Eq) && !self.passes(&Token::Assignment) {
                    return self.unexpected("'='");
                }
                message.using.push((word, self.text_before(&[","])?));
                if !self.passes(&Token::Comma) {
                    break;
                }
            }
        }
        Ok(Step::Raise(message))
    }
}

/// The text between the places of arguments.
fn parts_of(format: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut characters = format.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '%' if characters.next_if_eq(&'%').is_none() => parts.push(String::new()),
            other => parts.last_mut().into_iter().for_each(|part| part.push(other)),
        }
    }
    parts
}

fn refused<T>(word: &str) -> Result<T> {
    let word = word.to_uppercase();
    not_impl_err!("{word} in PL/pgSQL is not supported; the client program can do it")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sql(text: &str) -> Step {
        Step::Sql { source: Source::Sql(text.to_owned()), into: None }
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
            ..Block::default()
        };
        let message = Message {
            is_error: false,
            is_shown: true,
            parts: vec!["ä ".to_owned(), "-%".to_owned()],
            arguments: vec!["f(1, 2)".to_owned()],
            ..Message::default()
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
            "BEGIN FOR x IN SELECT 1 LOOP NULL; END; END",
            "BEGIN OPEN c; END",
            "DECLARE c CURSOR FOR SELECT 1; BEGIN END",
            "<<a>> BEGIN END b",
            "BEGIN RAISE nothing_known; END",
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
