//! Evaluates a path on a value, as PostgreSQL does: in lax mode lists are opened and missing parts are skipped.

use bigdecimal::{BigDecimal, RoundingMode, ToPrimitive};

use super::super::value::{Json, JsonFailure, write_double};
use super::item::{Item, Truth};
use super::number::computed;
use super::tree::{JsonPath, Method, Node, Operation, Sign, Step};

/// The state of an unknown variable, an error that nothing suppresses.
const UNKNOWN_VARIABLE: &str = "42704";

/// The evaluation of a path on a value.
pub(super) struct Evaluation<'a> {
    path: &'a JsonPath,
    root: &'a Json<'a>,
    variables: Option<&'a Json<'a>>,
}

/// What `@` and `last` are.
#[derive(Clone)]
struct Scope<'a> {
    current: Item<'a>,
    last: usize,
}

type Items<'a> = Result<Vec<Item<'a>>, JsonFailure>;

/// Whether an error may be suppressed.
pub(super) fn is_suppressed(failure: &JsonFailure) -> bool {
    failure.0 != UNKNOWN_VARIABLE
}

impl<'a> Evaluation<'a> {
    pub(super) fn new(
        path: &'a JsonPath,
        root: &'a Json<'a>,
        variables: Option<&'a Json<'a>>,
    ) -> Self {
        Self { path, root, variables }
    }

    /// Returns what the path finds.
    pub(super) fn items(&self) -> Items<'a> {
        let scope = Scope { current: Item::Json(self.root), last: 0 };
        self.values(&self.path.root, &scope)
    }

    fn values(&self, node: &'a Node, scope: &Scope<'a>) -> Items<'a> {
        Ok(vec![match node {
            Node::Steps(first, steps) => return self.after(first, steps, scope),
            Node::Root => Item::Json(self.root),
            Node::Current => scope.current.clone(),
            Node::Last => Item::Number(BigDecimal::from(scope.last as i64 - 1)),
            Node::Null => Item::Null,
            Node::Flag(flag) => Item::Flag(*flag),
            Node::Number(number) => Item::Number(number.clone()),
            Node::Text(text) => Item::Text(text.clone()),
            Node::Variable(name) => {
                let found = self.variables.and_then(|variables| variables.get(name));
                match found {
                    Some(value) => Item::Json(value),
                    None => {
                        let message = format!("could not find jsonpath variable \"{name}\"");
                        return Err((UNKNOWN_VARIABLE, message));
                    }
                }
            }
            Node::Signed(sign, operand) => return self.signed(*sign, operand, scope),
            Node::Arithmetic(left, operation, right) => {
                let left = self.single(left, scope, *operation, "left")?;
                let right = self.single(right, scope, *operation, "right")?;
                Item::Number(computed(&left, *operation, &right)?)
            }
            predicate => match self.truth(predicate, scope)? {
                Truth::True => Item::Flag(true),
                Truth::False => Item::Flag(false),
                Truth::Unknown => Item::Null,
            },
        }])
    }

    /// The values of an operand, with lists opened in lax mode.
    fn operands(&self, node: &'a Node, scope: &Scope<'a>) -> Items<'a> {
        Ok(self.opened(self.values(node, scope)?))
    }

    fn opened(&self, items: Vec<Item<'a>>) -> Vec<Item<'a>> {
        if !self.path.is_lax || items.iter().all(|item| item.items().is_none()) {
            return items;
        }
        let mut all = Vec::with_capacity(items.len());
        for item in items {
            match item.items() {
                Some(within) => all.extend(within.iter().map(Item::Json)),
                None => all.push(item),
            }
        }
        all
    }

    fn signed(&self, sign: Sign, operand: &'a Node, scope: &Scope<'a>) -> Items<'a> {
        let numbers = self.operands(operand, scope)?.into_iter().map(|item| {
            let Some(number) = item.number() else {
                let symbol = if sign == Sign::Plus { "+" } else { "-" };
                let message =
                    format!("operand of unary jsonpath operator {symbol} is not a numeric value");
                return Err(("2203B", message));
            };
            Ok(Item::Number(if sign == Sign::Plus { number } else { -number }))
        });
        numbers.collect()
    }

    fn single(
        &self,
        node: &'a Node,
        scope: &Scope<'a>,
        operation: Operation,
        side: &str,
    ) -> Result<BigDecimal, JsonFailure> {
        let items = self.operands(node, scope)?;
        let number = match &items[..] {
            [item] => item.number(),
            _ => None,
        };
        number.ok_or_else(|| {
            let symbol = operation.symbol();
            let message = format!(
                "{side} operand of jsonpath operator {symbol} is not a single numeric value"
            );
            ("22038", message)
        })
    }

    fn after(&self, first: &'a Node, steps: &'a [Step], scope: &Scope<'a>) -> Items<'a> {
        let mut items = self.values(first, scope)?;
        // After `.**` missing parts are skipped in strict mode, too.
        let mut is_tolerant = self.path.is_lax;
        for step in steps {
            items = self.step(step, items, scope, is_tolerant)?;
            is_tolerant |= matches!(step, Step::Below(..));
        }
        Ok(items)
    }

    fn step(
        &self,
        step: &'a Step,
        items: Vec<Item<'a>>,
        scope: &Scope<'a>,
        is_tolerant: bool,
    ) -> Items<'a> {
        let mut found = Vec::with_capacity(items.len());
        let opens = !matches!(
            step,
            Step::Items(_)
                | Step::AnyItem
                | Step::Below(..)
                | Step::Call(Method::Size | Method::Type)
        );
        let items = if opens { self.opened(items) } else { items };
        for item in items {
            match step {
                Step::Member(key) => match item.member(key) {
                    Some(value) => found.push(value),
                    None if is_tolerant => {}
                    None => return Err(no_member(&item, key)),
                },
                Step::AnyMember => match item.values().filter(|_| item.is_object()) {
                    Some(values) => found.extend(values),
                    None if is_tolerant => {}
                    None => {
                        let of = "wildcard member accessor";
                        return Err(wrong_kind(of, "an object", "2203C"));
                    }
                },
                Step::AnyItem => match item.items() {
                    Some(items) => found.extend(items.iter().map(Item::Json)),
                    None if self.path.is_lax => found.push(item),
                    None if is_tolerant => {}
                    None => {
                        return Err(wrong_kind("wildcard array accessor", "an array", "22039"));
                    }
                },
                Step::Items(ranges) => self.at(ranges, item, scope, is_tolerant, &mut found)?,
                Step::Below(from, to) => below(&item, 0, (*from, *to), &mut found),
                Step::Filter(filter) => {
                    let within = Scope { current: item.clone(), last: scope.last };
                    if self.truth(filter, &within)? == Truth::True {
                        found.push(item);
                    }
                }
                Step::Call(method) => self.call(*method, item, &mut found)?,
            }
        }
        Ok(found)
    }

    /// The items of a list at these places; in lax mode another value is a list of one.
    fn at(
        &self,
        ranges: &'a [(Node, Option<Node>)],
        item: Item<'a>,
        scope: &Scope<'a>,
        is_tolerant: bool,
        found: &mut Vec<Item<'a>>,
    ) -> Result<(), JsonFailure> {
        let items: Vec<Item<'a>> = match item.items() {
            Some(items) => items.iter().map(Item::Json).collect(),
            None if self.path.is_lax => vec![item],
            None if is_tolerant => return Ok(()),
            None => return Err(wrong_kind("array accessor", "an array", "22039")),
        };
        let scope = Scope { current: scope.current.clone(), last: items.len() };
        for (from, to) in ranges {
            let from = self.index(from, &scope)?;
            let to = match to {
                Some(to) => self.index(to, &scope)?,
                None => from,
            };
            let is_outside = from < 0 || from > to || to >= items.len() as i64;
            if is_outside && !is_tolerant {
                return Err(("22033", "jsonpath array subscript is out of bounds".to_owned()));
            }
            for at in from.max(0)..=to.min(items.len() as i64 - 1) {
                found.push(items[at as usize].clone());
            }
        }
        Ok(())
    }

    fn index(&self, node: &'a Node, scope: &Scope<'a>) -> Result<i64, JsonFailure> {
        let items = self.values(node, scope)?;
        let number = match &items[..] {
            [item] => item.number(),
            _ => None,
        };
        let Some(number) = number else {
            let message = "jsonpath array subscript is not a single numeric value";
            return Err(("22033", message.to_owned()));
        };
        let index = number.with_scale_round(0, RoundingMode::Down).to_i32();
        match index {
            Some(index) => Ok(index.into()),
            None => Err(("22033", "jsonpath array subscript is out of integer range".to_owned())),
        }
    }

    fn call(
        &self,
        method: Method,
        item: Item<'a>,
        found: &mut Vec<Item<'a>>,
    ) -> Result<(), JsonFailure> {
        let numeric = |item: &Item<'_>| {
            let of = format!("item method .{}()", method.name());
            item.number().ok_or_else(|| wrong_kind(&of, "a numeric value", "22036"))
        };
        found.push(match method {
            Method::Abs => Item::Number(numeric(&item)?.abs()),
            Method::Ceiling => {
                Item::Number(numeric(&item)?.with_scale_round(0, RoundingMode::Ceiling))
            }
            Method::Floor => Item::Number(numeric(&item)?.with_scale_round(0, RoundingMode::Floor)),
            Method::Double => double(&item)?,
            Method::Type => Item::Text(item.kind().to_owned()),
            Method::Size => match item.items() {
                Some(items) => Item::Number((items.len() as u64).into()),
                None if self.path.is_lax => Item::Number(1.into()),
                None => return Err(wrong_kind("item method .size()", "an array", "22039")),
            },
            Method::KeyValue => {
                let Item::Json(json @ Json::Object(pairs)) = item else {
                    return Err(wrong_kind("item method .keyvalue()", "an object", "2203C"));
                };
                let number = self.number_of(json);
                let members = pairs.iter().map(|(key, value)| Item::Member(key, value, number));
                found.extend(members);
                return Ok(());
            }
        });
        Ok(())
    }

    /// The number of an object among those of the value.
    fn number_of(&self, object: &Json<'a>) -> usize {
        fn count(json: &Json<'_>, wanted: *const (), seen: &mut usize) -> bool {
            if std::ptr::from_ref(json).cast::<()>() == wanted {
                return true;
            }
            match json {
                Json::List(items) => items.iter().any(|item| count(item, wanted, seen)),
                Json::Object(pairs) => {
                    *seen += 1;
                    pairs.iter().any(|(_, value)| count(value, wanted, seen))
                }
                _ => false,
            }
        }
        let mut seen = 0;
        count(self.root, std::ptr::from_ref(object).cast(), &mut seen);
        seen
    }

    fn truth(&self, node: &'a Node, scope: &Scope<'a>) -> Result<Truth, JsonFailure> {
        Ok(match node {
            Node::And(left, right) => match self.truth(left, scope)? {
                Truth::False => Truth::False,
                left => match self.truth(right, scope)? {
                    Truth::True => left,
                    right => right,
                },
            },
            Node::Or(left, right) => match self.truth(left, scope)? {
                Truth::True => Truth::True,
                left => match self.truth(right, scope)? {
                    Truth::False => left,
                    right => right,
                },
            },
            Node::Not(inner) => match self.truth(inner, scope)? {
                Truth::True => Truth::False,
                Truth::False => Truth::True,
                Truth::Unknown => Truth::Unknown,
            },
            Node::IsUnknown(inner) => Truth::of(self.truth(inner, scope)? == Truth::Unknown),
            Node::Exists(path) => match known(self.values(path, scope))? {
                Some(items) => Truth::of(!items.is_empty()),
                None => Truth::Unknown,
            },
            Node::Comparison(left, relation, right) => {
                self.related(left, right, scope, |left, right| left.is(*relation, right))?
            }
            Node::StartsWith(text, prefix) => {
                self.related(text, prefix, scope, |text, prefix| {
                    match (text.text(), prefix.text()) {
                        (Some(text), Some(prefix)) => Truth::of(text.starts_with(prefix)),
                        _ => Truth::Unknown,
                    }
                })?
            }
            Node::LikeRegex(text, regex) => {
                self.related(text, &Node::Null, scope, |text, _| match text.text() {
                    Some(text) => Truth::of(regex.is_match(text)),
                    None => Truth::Unknown,
                })?
            }
            // The grammar has no other predicates.
            _ => Truth::Unknown,
        })
    }

    /// Whether a relation holds for any two values of the operands.
    fn related(
        &self,
        left: &'a Node,
        right: &'a Node,
        scope: &Scope<'a>,
        holds: impl Fn(&Item<'a>, &Item<'a>) -> Truth,
    ) -> Result<Truth, JsonFailure> {
        let (left, right) =
            (known(self.operands(left, scope))?, known(self.operands(right, scope))?);
        let (Some(left), Some(right)) = (left, right) else { return Ok(Truth::Unknown) };
        let (mut has_true, mut has_unknown) = (false, false);
        for (left, right) in left.iter().flat_map(|left| right.iter().map(move |of| (left, of))) {
            match holds(left, right) {
                Truth::True if self.path.is_lax => return Ok(Truth::True),
                Truth::True => has_true = true,
                Truth::Unknown if !self.path.is_lax => return Ok(Truth::Unknown),
                Truth::Unknown => has_unknown = true,
                Truth::False => {}
            }
        }
        Ok(match (has_true, has_unknown) {
            (true, _) => Truth::True,
            (false, true) => Truth::Unknown,
            (false, false) => Truth::False,
        })
    }
}

/// Within a predicate, an error makes it unknown.
fn known<T>(result: Result<T, JsonFailure>) -> Result<Option<T>, JsonFailure> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(failure) if is_suppressed(&failure) => Ok(None),
        Err(failure) => Err(failure),
    }
}

/// Collects values of some levels below one; None for the leaves, or without an end.
fn below<'a>(
    item: &Item<'a>,
    level: usize,
    (from, to): (Option<usize>, Option<usize>),
    found: &mut Vec<Item<'a>>,
) {
    let within = item.values();
    let is_wanted = match from {
        Some(from) => level >= from,
        None => to.is_none() && within.is_none(),
    };
    if is_wanted {
        found.push(item.clone());
    }
    if to.is_none_or(|to| level < to) {
        for value in within.into_iter().flatten() {
            below(&value, level + 1, (from, to), found);
        }
    }
}

/// A number stays as it is; a text becomes the number of its double.
fn double<'a>(item: &Item<'a>) -> Result<Item<'a>, JsonFailure> {
    let invalid = |kind: &str| {
        let message = format!(
            "{kind} argument of jsonpath item method .double() is not a valid representation of a double \
             precision number"
        );
        ("22036", message)
    };
    if let Some(number) = item.number() {
        return match number.to_f64().is_some_and(f64::is_finite) {
            true => Ok(item.clone()),
            false => Err(invalid("numeric")),
        };
    }
    let Some(text) = item.text() else {
        return Err(wrong_kind("item method .double()", "a string or numeric value", "22036"));
    };
    let value = text.trim().parse::<f64>().ok().filter(|value| value.is_finite());
    let mut digits = String::new();
    write_double(value.ok_or_else(|| invalid("string"))?, &mut digits);
    let digits = digits.strip_suffix(".0").unwrap_or(&digits);
    let number = digits.parse::<BigDecimal>().map_err(|_| invalid("string"))?;
    let scale = number.fractional_digit_count().max(0);
    Ok(Item::Number(number.with_scale(scale)))
}

fn no_member(item: &Item<'_>, key: &str) -> JsonFailure {
    match item.is_object() {
        true => ("2203A", format!("JSON object does not contain key \"{key}\"")),
        false => wrong_kind("member accessor", "an object", "2203A"),
    }
}

fn wrong_kind(of: &str, kind: &str, state: &'static str) -> JsonFailure {
    (state, format!("jsonpath {of} can only be applied to {kind}"))
}
