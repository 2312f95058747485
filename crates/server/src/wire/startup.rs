//! The first message of a connection, which has no kind byte.

use bytes::{Buf, BytesMut};

use super::body::{Body, ProtocolError};

/// Request codes in place of a version.
const CANCEL: u32 = 80_877_102;
const TLS: u32 = 80_877_103;
const GSS: u32 = 80_877_104;

/// A Terminate message in place of the length, from a client that disconnects before its session begins.
const TERMINATE: u32 = u32::from_be_bytes(*b"X\0\0\0");

/// Bytes of a first message, at most.
const FIRST_MAX: usize = 10_000;

/// The first message of a connection.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum FirstMessage {
    /// A request for TLS.
    Tls,
    /// A request for Kerberos encryption.
    Gss,
    /// A request to cancel the statement of another connection.
    Cancel { session: u32, secret: u32 },
    /// The start of a session.
    Startup(StartupMessage),
    /// The end of the connection.
    Terminate,
}

/// The parameters of a new session.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct StartupMessage {
    /// The protocol's minor version.
    pub(crate) minor: u16,
    /// Names and values: `user`, `database`, settings.
    pub(crate) parameters: Vec<(String, String)>,
}

impl StartupMessage {
    /// The value of a parameter.
    pub(crate) fn parameter(&self, name: &str) -> Option<&str> {
        let mut found = self.parameters.iter().filter(|(key, _)| key == name);
        found.next().map(|(_, value)| value.as_str())
    }

    /// The settings in the parameter `options`, in command-line syntax: `-c name=value`, `--name=value`, with a
    /// backslash before a space within a value.
    pub(crate) fn options(&self) -> Result<Vec<(String, String)>, String> {
        let mut words = words(self.parameter("options").unwrap_or_default()).into_iter();
        let mut settings = Vec::new();
        while let Some(word) = words.next() {
            let setting = match (word.strip_prefix("--"), word.strip_prefix("-c")) {
                (Some(setting), _) => setting.to_owned(),
                (None, Some("")) => {
                    words.next().ok_or("-c has no setting; expected -c name=value")?
                }
                (None, Some(setting)) => setting.to_owned(),
                (None, None) => {
                    return Err(format!("unknown option '{word}'; expected -c name=value"));
                }
            };
            let (name, value) = setting.split_once('=').ok_or_else(|| {
                format!("the option '{setting}' has no value; expected -c name=value")
            })?;
            settings.push((name.trim().replace('-', "_"), value.to_owned()));
        }
        Ok(settings)
    }
}

fn words(text: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut chars = text.chars();
    while let Some(char) = chars.next() {
        let last = words.len() - 1;
        match char {
            '\\' => words[last].extend(chars.next()),
            blank if blank.is_whitespace() => words.push(String::new()),
            other => words[last].push(other),
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

/// Takes the first message; None if it is incomplete.
pub(crate) fn take_first(input: &mut BytesMut) -> Result<Option<FirstMessage>, ProtocolError> {
    let Some(length) = input.get(..4).and_then(|bytes| bytes.try_into().ok()) else {
        return Ok(None);
    };
    let length = u32::from_be_bytes(length);
    if length == TERMINATE {
        input.advance(4);
        return Ok(Some(FirstMessage::Terminate));
    }
    let length = length as usize;
    if !(8..=FIRST_MAX).contains(&length) {
        return Err(ProtocolError(format!("the first message has an invalid length, {length}")));
    }
    if input.len() < length {
        return Ok(None);
    }
    let mut message = input.split_to(length);
    message.advance(4);
    let mut body = Body::of_ascii(&message);
    let first = match body.u32()? {
        CANCEL => FirstMessage::Cancel { session: body.u32()?, secret: body.u32()? },
        TLS => FirstMessage::Tls,
        GSS => FirstMessage::Gss,
        version if version >> 16 == 3 => FirstMessage::Startup(startup(version, &mut body)?),
        version => {
            let (major, minor) = (version >> 16, version & 0xffff);
            return Err(ProtocolError(format!(
                "unsupported protocol version {major}.{minor}; this server supports 3.0"
            )));
        }
    };
    body.end()?;
    Ok(Some(first))
}

fn startup(version: u32, body: &mut Body<'_>) -> Result<StartupMessage, ProtocolError> {
    let mut parameters = Vec::new();
    loop {
        let name = body.text()?;
        if name.is_empty() {
            return Ok(StartupMessage { minor: version as u16, parameters });
        }
        parameters.push((name, body.text()?));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn framed(body: &[u8]) -> BytesMut {
        let mut bytes = BytesMut::from(&(body.len() as u32 + 4).to_be_bytes()[..]);
        bytes.extend_from_slice(body);
        bytes
    }

    #[test]
    fn first_messages_are_distinguished() {
        let of = |body: &[u8]| take_first(&mut framed(body)).map(|first| first.expect("whole"));
        assert_eq!(of(b"\x04\xd2\x16\x2f"), Ok(FirstMessage::Tls));
        assert_eq!(of(b"\x04\xd2\x16\x30"), Ok(FirstMessage::Gss));
        let cancel = FirstMessage::Cancel { session: 7, secret: 9 };
        assert_eq!(of(b"\x04\xd2\x16\x2e\0\0\0\x07\0\0\0\x09"), Ok(cancel));
        let parameters = vec![("user".to_owned(), "ann".to_owned())];
        let startup = FirstMessage::Startup(StartupMessage { minor: 2, parameters });
        assert_eq!(of(b"\0\x03\0\x02user\0ann\0\0"), Ok(startup));
        let terminate = take_first(&mut BytesMut::from(&b"X\0\0\0\x04"[..]));
        assert_eq!(terminate, Ok(Some(FirstMessage::Terminate)));
        assert!(of(b"\0\x02\0\0user\0ann\0\0").is_err());
        assert!(of(b"\0\x03\0\0user\0ann").is_err());
        assert!(of(b"GET / HTTP/1.1\r\n").is_err());
    }

    #[test]
    fn options_use_command_line_syntax() {
        let of = |text: &str| {
            let parameters = vec![("options".to_owned(), text.to_owned())];
            StartupMessage { minor: 0, parameters }.options()
        };
        let settings = of(r"-c a=1 -cb=x\ y --search-path=s,t  --c=\\").unwrap();
        let pairs: Vec<_> = settings.iter().map(|(name, value)| (&name[..], &value[..])).collect();
        assert_eq!(pairs, [("a", "1"), ("b", "x y"), ("search_path", "s,t"), ("c", "\\")]);
        assert_eq!(of(""), Ok(vec![]));
        for wrong in ["-c", "-c a", "x", "-B 5", "--a"] {
            assert!(of(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn first_messages_are_bounded() {
        assert!(take_first(&mut BytesMut::from(&b"\0\x10\0\0"[..])).is_err());
        assert!(take_first(&mut BytesMut::from(&b"\0\0\0\x04"[..])).is_err());
        assert_eq!(take_first(&mut BytesMut::from(&b"\0\0\0\x08\0\x03"[..])), Ok(None));
    }
}
