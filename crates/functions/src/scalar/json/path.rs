//! JSON paths: `$.a[0]`, `/a/0`, the name of a key, or the number of an element.

use std::borrow::Cow;

use super::value::Json;

/// A step of a path.
#[derive(Clone, Debug, PartialEq)]
enum Step<'a> {
    Key(Cow<'a, str>),
    /// Counted from the end if negative.
    Index(i64),
    /// A key or the number of an element: in `/a/0`.
    KeyOrIndex(Cow<'a, str>),
    EachKey,
    EachItem,
    /// At any depth.
    Deep,
    /// A nonexistent element: `[#]`.
    Nowhere,
}

/// A path.
#[derive(Clone, Debug)]
pub(super) struct Path<'a>(Vec<Step<'a>>);

impl<'a> Path<'a> {
    /// A path to the element with this number.
    pub(super) fn index(at: i64) -> Self {
        Self(vec![Step::Index(at)])
    }

    pub(super) fn parse(text: &'a str) -> Result<Self, String> {
        match text.chars().next() {
            None => Ok(Self(vec![])),
            Some('$') => jsonpath(&text[1..]).ok_or_else(|| {
                format!("'{text}' is not a path; one is '$.key[0]', '/key/0' or 'key'")
            }),
            Some('/') => Ok(Self(text[1..].split('/').map(pointer).collect())),
            Some(_) => Ok(Self(vec![Step::Key(Cow::Borrowed(text))])),
        }
    }

    /// Whether it may match several values.
    pub(super) fn finds_many(&self) -> bool {
        self.0.iter().any(|step| matches!(step, Step::EachKey | Step::EachItem | Step::Deep))
    }

    /// Returns all matches, in the order of the text.
    pub(super) fn find<'j, 'b>(&self, value: &'j Json<'b>) -> Vec<&'j Json<'b>> {
        let mut found = Vec::new();
        walk(value, &self.0, &mut found);
        found
    }

    /// Returns the first match.
    pub(super) fn first<'j, 'b>(&self, value: &'j Json<'b>) -> Option<&'j Json<'b>> {
        self.find(value).into_iter().next()
    }
}

/// Decodes a name in a pointer, with ~1 for / and ~0 for ~ (RFC 6901).
fn pointer(name: &str) -> Step<'_> {
    match name.contains('~') {
        true => Step::KeyOrIndex(Cow::Owned(name.replace("~1", "/").replace("~0", "~"))),
        false => Step::KeyOrIndex(Cow::Borrowed(name)),
    }
}

/// Parses what follows `$`.
fn jsonpath(mut rest: &str) -> Option<Path<'_>> {
    let mut steps = Vec::new();
    while let Some(first) = rest.chars().next() {
        match first {
            '.' => {
                rest = &rest[1..];
                if let Some(after) = rest.strip_prefix('.') {
                    steps.push(Step::Deep);
                    rest = after;
                    if rest.starts_with('[') {
                        continue;
                    }
                }
                rest = key(rest, &mut steps)?;
            }
            '[' => {
                let (inside, after) = rest[1..].split_once(']')?;
                rest = after;
                steps.push(match inside {
                    "*" => Step::EachItem,
                    "#" => Step::Nowhere,
                    index => {
                        let index = index
                            .strip_prefix('#')
                            .filter(|rest| rest.starts_with('-'))
                            .unwrap_or(index);
                        Step::Index(index.parse().ok()?)
                    }
                });
            }
            _ => return None,
        }
    }
    Some(Path(steps))
}

fn key<'a>(rest: &'a str, steps: &mut Vec<Step<'a>>) -> Option<&'a str> {
    if let Some(quoted) = rest.strip_prefix('"') {
        let (name, after) = quoted.split_once('"')?;
        steps.push(Step::Key(Cow::Borrowed(name)));
        return Some(after);
    }
    let end = rest.find(['.', '[']).unwrap_or(rest.len());
    match &rest[..end] {
        "" => return None,
        "*" => steps.push(Step::EachKey),
        name => steps.push(Step::Key(Cow::Borrowed(name))),
    }
    Some(&rest[end..])
}

fn walk<'j, 'b>(value: &'j Json<'b>, steps: &[Step<'_>], found: &mut Vec<&'j Json<'b>>) {
    let Some((step, rest)) = steps.split_first() else {
        found.push(value);
        return;
    };
    match (step, value) {
        (Step::Key(key) | Step::KeyOrIndex(key), Json::Object(_)) => {
            if let Some(value) = value.get(key) {
                walk(value, rest, found);
            }
        }
        (Step::KeyOrIndex(index), Json::List(items)) => {
            if let Some(item) = index.parse().ok().and_then(|at: usize| items.get(at)) {
                walk(item, rest, found);
            }
        }
        (Step::Index(index), Json::List(items)) => {
            let count = items.len() as i64;
            let at = if *index < 0 { index.checked_add(count) } else { Some(*index) };
            let at = at.and_then(|at| usize::try_from(at).ok());
            if let Some(item) = at.and_then(|at| items.get(at)) {
                walk(item, rest, found);
            }
        }
        (Step::EachItem, Json::List(items)) => {
            items.iter().for_each(|item| walk(item, rest, found));
        }
        (Step::EachKey, Json::Object(pairs)) => {
            pairs.iter().for_each(|(_, value)| walk(value, rest, found));
        }
        (Step::Deep, _) => {
            walk(value, rest, found);
            match value {
                Json::List(items) => items.iter().for_each(|item| walk(item, steps, found)),
                Json::Object(pairs) => {
                    pairs.iter().for_each(|(_, value)| walk(value, steps, found));
                }
                _ => {}
            }
        }
        _ => {}
    }
}
