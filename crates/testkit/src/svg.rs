//! Reads SVG pictures in tests.

use quick_xml::events::Event;

/// The texts of a picture.
///
/// # Panics
/// If it is not well-formed XML, or has an invalid number.
pub fn svg_texts(svg: &str) -> Vec<String> {
    let mut reader = quick_xml::Reader::from_str(svg);
    let (mut texts, mut depth) = (vec![String::new()], 0);
    loop {
        match reader.read_event().unwrap_or_else(|error| panic!("{error}: {svg}")) {
            Event::Start(_) => {
                depth += 1;
                texts.push(String::new());
            }
            Event::End(_) => depth -= 1,
            Event::Text(text) => texts
                .last_mut()
                .expect("the first is there from the start")
                .push_str(&text.xml10_content()),
            Event::GeneralRef(name) => {
                let name = format!("&{};", &*name);
                let text = quick_xml::escape::unescape(&name)
                    .expect("one of the five of XML")
                    .into_owned();
                texts.last_mut().expect("the first is there from the start").push_str(&text);
            }
            Event::Eof => break,
            _ => {}
        }
    }
    assert_eq!(depth, 0, "an element is left open");
    texts.into_iter().map(|text| text.trim().to_owned()).filter(|text| !text.is_empty()).collect()
}
