use std::time::{Duration, UNIX_EPOCH};

use atoll_formats::render;
use atoll_topology::{
    Conditions, CpuId, DomainId, Fact, NodeId, Quantity, Source, Spread, Subject,
};

fn fact(subject: Subject, quantity: Quantity, value: f64, source: Source) -> Fact {
    Fact::new(subject, quantity, value, source, "a test")
}

#[test]
fn facts_as_json_have_all_their_keys_in_every_object() {
    let path = Subject::Path { from: NodeId(0), to: NodeId(1) };
    let measured = Fact {
        conditions: Conditions { threads: Some(4), load: Some(2.5) },
        spread: Some(Spread { min: 11.0, max: 13.5, runs: 5 }),
        at: Some(UNIX_EPOCH + Duration::from_secs(1_700_000_000)),
        ..fact(path, Quantity::ReadBandwidth, 12.25, Source::Measured)
    };
    let cache = fact(Subject::Domain(DomainId(3)), Quantity::Cache, 16777216.0, Source::Assumed);
    let pair = Subject::CpuPair { from: CpuId(2), to: CpuId(5) };
    let pair = fact(pair, Quantity::CoreToCore, 55.0, Source::Observed);
    let now = UNIX_EPOCH + Duration::from_millis(1_700_000_090_999);
    let json = render::facts_json([&measured, &cache, &pair], now);
    let expected = [
        r#"{"subject":"path","id":null,"from":0,"to":1,"quantity":"read_bandwidth","value":12.25,"#,
        r#""unit":"GB/s","threads":4,"load":2.5,"min":11,"max":13.5,"runs":5,"source":"measured","#,
        r#""origin":"a test","at":"2023-11-14T22:13:20Z","age_seconds":90}"#,
    ];
    assert_eq!(json[0].to_string(), expected.concat());
    let keys = |index: usize| json[index].as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert_eq!((keys(1), keys(2)), (keys(0), keys(0)));
    assert_eq!(json[1]["value"].to_string(), "16777216");
    assert_eq!((json[1]["id"].as_u64(), json[1]["at"].as_str()), (Some(3), None));
    assert_eq!((json[2]["from"].as_u64(), json[2]["to"].as_u64()), (Some(2), Some(5)));
}
