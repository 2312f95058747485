//! The encodings of texts. Inside, all texts are UTF-8; clients may have others, and `convert_from` and `convert_to` know
//! them.

use std::borrow::Cow;
use std::fmt::{self, Write};

use encoding_rs::{
    BIG5, Decoder, DecoderResult, EUC_JP, EUC_KR, Encoding, GB18030, GBK, IBM866, ISO_8859_2,
    ISO_8859_3, ISO_8859_4, ISO_8859_5, ISO_8859_6, ISO_8859_7, ISO_8859_8, ISO_8859_10,
    ISO_8859_13, ISO_8859_14, ISO_8859_15, ISO_8859_16, KOI8_R, KOI8_U, SHIFT_JIS, UTF_8,
    WINDOWS_874, WINDOWS_1250, WINDOWS_1251, WINDOWS_1252, WINDOWS_1253, WINDOWS_1254,
    WINDOWS_1255, WINDOWS_1256, WINDOWS_1257, WINDOWS_1258,
};

/// The encoding of a text; UTF-8 by default.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TextEncoding(&'static Charset);

#[derive(Debug, PartialEq, Eq)]
struct Charset {
    /// PostgreSQL's name and number.
    name: &'static str,
    number: i64,
    /// All its names, in lower case without blanks and punctuation.
    names: &'static [&'static str],
    of: &'static Encoding,
    controls: Controls,
}

/// The characters from U+0080 to U+009F, which the tables of the WHATWG have otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Controls {
    /// The bytes of the same numbers, as in ISO 8859.
    Iso,
    /// None.
    Windows,
    /// Those of the table.
    Whole,
}

const fn charset(
    name: &'static str,
    number: i64,
    names: &'static [&'static str],
    of: &'static Encoding,
    controls: Controls,
) -> Charset {
    Charset { name, number, names, of, controls }
}

/// As PostgreSQL lists them. Texts of SQL_ASCII are UTF-8.
#[rustfmt::skip]
static CHARSETS: [Charset; 37] = [
    charset("SQL_ASCII", 0, &["sqlascii"], UTF_8, Controls::Whole),
    charset("EUC_JP", 1, &["eucjp"], EUC_JP, Controls::Windows),
    charset("EUC_CN", 2, &["euccn"], GBK, Controls::Windows),
    charset("EUC_KR", 3, &["euckr"], EUC_KR, Controls::Windows),
    charset("UTF8", 6, &["utf8", "unicode"], UTF_8, Controls::Whole),
    charset("LATIN1", 8, &["latin1", "iso88591"], WINDOWS_1252, Controls::Iso),
    charset("LATIN2", 9, &["latin2", "iso88592"], ISO_8859_2, Controls::Iso),
    charset("LATIN3", 10, &["latin3", "iso88593"], ISO_8859_3, Controls::Iso),
    charset("LATIN4", 11, &["latin4", "iso88594"], ISO_8859_4, Controls::Iso),
    charset("LATIN5", 12, &["latin5", "iso88599"], WINDOWS_1254, Controls::Iso),
    charset("LATIN6", 13, &["latin6", "iso885910"], ISO_8859_10, Controls::Iso),
    charset("LATIN7", 14, &["latin7", "iso885913"], ISO_8859_13, Controls::Iso),
    charset("LATIN8", 15, &["latin8", "iso885914"], ISO_8859_14, Controls::Iso),
    charset("LATIN9", 16, &["latin9", "iso885915"], ISO_8859_15, Controls::Iso),
    charset("LATIN10", 17, &["latin10", "iso885916"], ISO_8859_16, Controls::Iso),
    charset("WIN1256", 18, &["win1256", "windows1256"], WINDOWS_1256, Controls::Windows),
    charset("WIN1258", 19, &["win1258", "windows1258", "abc", "tcvn", "tcvn5712", "vscii"], WINDOWS_1258, Controls::Windows),
    charset("WIN866", 20, &["win866", "windows866", "alt"], IBM866, Controls::Windows),
    charset("WIN874", 21, &["win874", "windows874"], WINDOWS_874, Controls::Windows),
    charset("KOI8R", 22, &["koi8r", "koi8"], KOI8_R, Controls::Windows),
    charset("WIN1251", 23, &["win1251", "windows1251", "win"], WINDOWS_1251, Controls::Windows),
    charset("WIN1252", 24, &["win1252", "windows1252"], WINDOWS_1252, Controls::Windows),
    charset("ISO_8859_5", 25, &["iso88595"], ISO_8859_5, Controls::Iso),
    charset("ISO_8859_6", 26, &["iso88596"], ISO_8859_6, Controls::Iso),
    charset("ISO_8859_7", 27, &["iso88597"], ISO_8859_7, Controls::Iso),
    charset("ISO_8859_8", 28, &["iso88598"], ISO_8859_8, Controls::Iso),
    charset("WIN1250", 29, &["win1250", "windows1250"], WINDOWS_1250, Controls::Windows),
    charset("WIN1253", 30, &["win1253", "windows1253"], WINDOWS_1253, Controls::Windows),
    charset("WIN1254", 31, &["win1254", "windows1254"], WINDOWS_1254, Controls::Windows),
    charset("WIN1255", 32, &["win1255", "windows1255"], WINDOWS_1255, Controls::Windows),
    charset("WIN1257", 33, &["win1257", "windows1257"], WINDOWS_1257, Controls::Windows),
    charset("KOI8U", 34, &["koi8u"], KOI8_U, Controls::Windows),
    charset("SJIS", 35, &["sjis", "shiftjis", "mskanji", "win932", "windows932"], SHIFT_JIS, Controls::Windows),
    charset("BIG5", 36, &["big5", "win950", "windows950"], BIG5, Controls::Windows),
    charset("GBK", 37, &["gbk", "win936", "windows936"], GBK, Controls::Windows),
    charset("UHC", 38, &["uhc", "win949", "windows949"], EUC_KR, Controls::Windows),
    charset("GB18030", 39, &["gb18030"], GB18030, Controls::Whole),
];

/// A text that cannot be converted, with its SQLSTATE.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EncodingError {
    /// The SQLSTATE.
    pub state: &'static str,
    /// What is wrong, in PostgreSQL's words.
    pub message: String,
}

impl Default for TextEncoding {
    fn default() -> Self {
        let utf8 = CHARSETS.iter().find(|charset| charset.name == "UTF8");
        Self(utf8.unwrap_or(&CHARSETS[0]))
    }
}

impl TextEncoding {
    /// The encoding with a name, of which only letters and digits count: `latin-1` is LATIN1.
    pub fn named(name: &str) -> Option<Self> {
        let plain: String = name.chars().filter(char::is_ascii_alphanumeric).collect();
        let plain = plain.to_ascii_lowercase();
        CHARSETS.iter().find(|charset| charset.names.contains(&plain.as_str())).map(Self)
    }

    /// The encoding with PostgreSQL's number.
    pub fn numbered(number: i64) -> Option<Self> {
        CHARSETS.iter().find(|charset| charset.number == number).map(Self)
    }

    /// PostgreSQL's name for it.
    pub fn name(self) -> &'static str {
        self.0.name
    }

    /// PostgreSQL's number for it.
    pub fn number(self) -> i64 {
        self.0.number
    }

    /// Whether texts are as they are inside.
    pub fn is_utf8(self) -> bool {
        self.0.of == UTF_8
    }

    /// The text that bytes are.
    ///
    /// # Errors
    /// If the bytes are not a text in the encoding.
    pub fn decoded(self, bytes: &[u8]) -> Result<Cow<'_, str>, EncodingError> {
        if self.is_utf8() {
            return std::str::from_utf8(bytes).map(Cow::Borrowed).map_err(|error| {
                let rest = &bytes[error.valid_up_to()..];
                invalid("UTF8", &rest[..error.error_len().unwrap_or(rest.len())])
            });
        }
        if bytes.is_ascii() {
            return Ok(String::from_utf8_lossy(bytes));
        }
        let mut decoder = TextDecoder::new(self);
        let mut text = decoder.push(bytes)?;
        text.push_str(&decoder.finish().map_err(|_| invalid(self.name(), bytes))?);
        Ok(Cow::Owned(text))
    }

    /// A text as bytes.
    ///
    /// # Errors
    /// If a character has no equivalent in the encoding.
    pub fn encoded(self, text: &str) -> Result<Cow<'_, [u8]>, EncodingError> {
        if self.is_utf8() || text.is_ascii() {
            return Ok(Cow::Borrowed(text.as_bytes()));
        }
        let mut bytes = Vec::with_capacity(text.len());
        for character in text.chars() {
            if !self.0.push(character, &mut bytes) {
                return Err(untranslatable(self.name(), character));
            }
        }
        Ok(Cow::Owned(bytes))
    }

    /// Writes a zero-terminated text, which must not contain a zero byte, with `?` for characters that have no
    /// equivalent.
    pub fn write(self, body: &mut Vec<u8>, text: &str) {
        if self.is_utf8() {
            body.extend(text.bytes().filter(|byte| *byte != 0));
        } else {
            for character in text.chars().filter(|character| *character != '\0') {
                if !self.0.push(character, body) {
                    body.push(b'?');
                }
            }
        }
        body.push(0);
    }
}

impl Charset {
    /// Appends a character; false if it has no equivalent.
    fn push(&self, character: char, bytes: &mut Vec<u8>) -> bool {
        let number = u32::from(character);
        match (number, self.controls) {
            (0..0x80, _) | (0x80..0xa0, Controls::Iso) => {
                bytes.push(number as u8);
                return true;
            }
            (0x80..0xa0, Controls::Windows) => return false,
            _ => {}
        }
        let mut buffer = [0; 4];
        let (encoded, _, has_failed) = self.of.encode(character.encode_utf8(&mut buffer));
        let is_other = self.controls == Controls::Iso && matches!(*encoded, [0x80..=0x9f]);
        if has_failed || is_other {
            return false;
        }
        bytes.extend_from_slice(&encoded);
        true
    }
}

/// Decodes a text that arrives in pieces, which may end within a character.
pub struct TextDecoder {
    charset: &'static Charset,
    decoder: Decoder,
}

impl fmt::Debug for TextDecoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.charset.name)
    }
}

impl TextDecoder {
    /// At the beginning of a text.
    pub fn new(encoding: TextEncoding) -> Self {
        let charset = encoding.0;
        Self { charset, decoder: charset.of.new_decoder_without_bom_handling() }
    }

    /// The text of a piece, without an incomplete character at its end.
    ///
    /// # Errors
    /// If the bytes are not a text in the encoding.
    pub fn push(&mut self, piece: &[u8]) -> Result<String, EncodingError> {
        self.decode(piece, false)
    }

    /// The text of what is left.
    ///
    /// # Errors
    /// If that is an incomplete character.
    pub fn finish(&mut self) -> Result<String, EncodingError> {
        self.decode(&[], true)
    }

    fn decode(&mut self, piece: &[u8], is_last: bool) -> Result<String, EncodingError> {
        let Self { charset, decoder } = self;
        if charset.controls == Controls::Iso {
            let mut text = String::with_capacity(piece.len());
            for byte in piece {
                match byte {
                    0..0xa0 => text.push(char::from(*byte)),
                    _ => match charset.of.decode_without_bom_handling_and_without_replacement(
                        std::slice::from_ref(byte),
                    ) {
                        Some(character) => text.push_str(&character),
                        None => return Err(invalid(charset.name, &[*byte])),
                    },
                }
            }
            return Ok(text);
        }
        let room = decoder.max_utf8_buffer_length_without_replacement(piece.len());
        let mut text = String::with_capacity(room.unwrap_or(piece.len()));
        let (result, read) =
            decoder.decode_to_string_without_replacement(piece, &mut text, is_last);
        match result {
            DecoderResult::Malformed(length, after) => {
                let end = read - usize::from(after).min(read);
                let start = end.saturating_sub(length.into());
                Err(invalid(charset.name, &piece[start..end.max(start)]))
            }
            DecoderResult::InputEmpty | DecoderResult::OutputFull => {
                let is_control = |it: char| ('\u{80}'..='\u{9f}').contains(&it);
                match text
                    .chars()
                    .find(|it| charset.controls == Controls::Windows && is_control(*it))
                {
                    Some(control) => Err(invalid(charset.name, &[u32::from(control) as u8])),
                    None => Ok(text),
                }
            }
        }
    }
}

fn invalid(name: &str, bytes: &[u8]) -> EncodingError {
    let message = format!("invalid byte sequence for encoding \"{name}\":{}", hexadecimal(bytes));
    EncodingError { state: "22021", message }
}

fn untranslatable(name: &str, character: char) -> EncodingError {
    let mut buffer = [0; 4];
    let bytes = hexadecimal(character.encode_utf8(&mut buffer).as_bytes());
    let message = format!(
        "character with byte sequence{bytes} in encoding \"UTF8\" has no equivalent in encoding \"{name}\""
    );
    EncodingError { state: "22P05", message }
}

fn hexadecimal(bytes: &[u8]) -> String {
    let mut text = String::new();
    for byte in bytes.iter().take(8) {
        let _ = write!(text, " 0x{byte:02x}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes that PostgreSQL 15 converts in the same way: `convert_to('…', 'LATIN9')`.
    const KNOWN: [(&str, &str, &[u8]); 12] = [
        ("LATIN1", "é\u{85}", &[0xe9, 0x85]),
        ("LATIN2", "Łódź", &[0xa3, 0xf3, 0x64, 0xbc]),
        ("LATIN5", "ğ\u{80}", &[0xf0, 0x80]),
        ("LATIN9", "€", &[0xa4]),
        ("WIN1252", "€", &[0x80]),
        ("WIN1251", "Ж", &[0xc6]),
        ("KOI8R", "Ж", &[0xf6]),
        ("EUC_JP", "日本", &[0xc6, 0xfc, 0xcb, 0xdc]),
        ("SJIS", "日本", &[0x93, 0xfa, 0x96, 0x7b]),
        ("BIG5", "中", &[0xa4, 0xa4]),
        ("GB18030", "中€", &[0xd6, 0xd0, 0xa2, 0xe3]),
        ("EUC_KR", "한", &[0xc7, 0xd1]),
    ];

    #[test]
    fn texts_are_converted_both_ways() {
        for (name, text, bytes) in KNOWN {
            let encoding = TextEncoding::named(name).unwrap();
            assert_eq!(*encoding.encoded(text).unwrap(), *bytes, "{name}");
            assert_eq!(encoding.decoded(bytes).unwrap(), text, "{name}");
            let mut decoder = TextDecoder::new(encoding);
            let pieces: String = bytes.iter().map(|byte| decoder.push(&[*byte]).unwrap()).collect();
            assert_eq!(pieces + &decoder.finish().unwrap(), text, "{name} byte by byte");
            let ascii = "SELECT 'x'\\n~\u{7f}";
            assert_eq!(*encoding.encoded(ascii).unwrap(), *ascii.as_bytes(), "{name}");
            assert_eq!(encoding.decoded(ascii.as_bytes()).unwrap(), ascii, "{name}");
        }
        assert!(TextEncoding::default().is_utf8());
    }

    #[test]
    fn all_bytes_are_decoded_or_refused_and_come_back() {
        for charset in &CHARSETS {
            let encoding = TextEncoding(charset);
            for first in 0..=255 {
                for second in [None, Some(b'a'), Some(0xa1), Some(0xfe)] {
                    let bytes: Vec<u8> = [first].into_iter().chain(second).collect();
                    let Ok(text) = encoding.decoded(&bytes) else { continue };
                    // Several sequences of two bytes may stand for one character, which comes back as one of
                    // them; those that vendors added do not.
                    let Ok(back) = encoding.encoded(&text) else {
                        assert!(text.chars().count() < bytes.len(), "{} {bytes:?}", charset.name);
                        continue;
                    };
                    assert_eq!(
                        encoding.decoded(&back).unwrap(),
                        text,
                        "{} {bytes:?}",
                        charset.name
                    );
                }
            }
        }
    }

    #[test]
    fn encodings_have_several_names() {
        for (name, wanted) in [
            ("utf-8", Some("UTF8")),
            ("ISO-8859-1", Some("LATIN1")),
            ("latin 9", Some("LATIN9")),
            ("Windows-1252", Some("WIN1252")),
            ("shift_jis", Some("SJIS")),
            ("sql_ascii", Some("SQL_ASCII")),
            ("klingon", None),
            ("", None),
        ] {
            assert_eq!(TextEncoding::named(name).map(TextEncoding::name), wanted, "{name}");
        }
        for charset in &CHARSETS {
            assert_eq!(TextEncoding::numbered(charset.number), Some(TextEncoding(charset)));
            assert_eq!(TextEncoding::named(charset.name), Some(TextEncoding(charset)));
        }
    }

    #[test]
    fn errors_name_the_bytes() {
        let of = |name: &str| TextEncoding::named(name).unwrap();
        let error = of("LATIN1").encoded("a€").unwrap_err();
        assert_eq!(
            (error.state, error.message.as_str()),
            (
                "22P05",
                "character with byte sequence 0xe2 0x82 0xac in encoding \"UTF8\" has no equivalent in encoding \"LATIN1\""
            )
        );
        let error = of("EUC_JP").decoded(&[b'a', 0xff, b'b']).unwrap_err();
        let message = "invalid byte sequence for encoding \"EUC_JP\": 0xff";
        assert_eq!((error.state, error.message.as_str()), ("22021", message));
        assert!(of("EUC_JP").decoded(&[b'a', 0xc6]).is_err());
        assert!(of("UTF8").decoded(&[0xc3]).unwrap_err().message.ends_with("\"UTF8\": 0xc3"));
        let mut body = Vec::new();
        of("LATIN1").write(&mut body, "a€\0é");
        assert_eq!(body, [b'a', b'?', 0xe9, 0]);
    }
}
