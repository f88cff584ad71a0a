use std::time::Duration;

use backstop_engine::snapshot::{CopyFacts, ObservedAt, OriginLimit};
use backstop_engine::time::{BootId, Mono, Wall};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

use super::*;
use crate::key::Target;

fn duration() -> impl Strategy<Value = Duration> {
    (any::<u64>(), 0..1_000_000_000u32).prop_map(|(seconds, nanoseconds)| Duration::new(seconds, nanoseconds))
}

fn limit() -> impl Strategy<Value = OriginLimit> {
    prop_oneof![
        Just(OriginLimit::Unlimited),
        Just(OriginLimit::Never),
        duration().prop_map(OriginLimit::WhileFresh),
        duration().prop_map(OriginLimit::UpTo),
    ]
}

prop_compose! {
    fn facts()(mono in any::<u64>(), wall in any::<i64>(), boot in any::<[u8; 16]>(), received_age in duration(),
               origin_limit in limit()) -> CopyFacts {
        let observed_at = ObservedAt {
            mono: Mono::from_ns(mono), wall: Wall::from_unix_ns(wall), boot: BootId(boot), received_age,
        };
        CopyFacts { observed_at, origin_limit }
    }
}

prop_compose! {
    fn key()(host in ".{0,20}", path in ".{0,40}", query in option::of(".{0,40}"), route in ".{0,20}",
             partition in vec(any::<u8>(), 0..40)) -> CopyKey {
        let target = Target::new(&host, &path, query.as_deref());
        CopyKey { target, route: route.into(), partition: partition.into() }
    }
}

fn name() -> impl Strategy<Value = HeaderName> {
    "[a-z][a-z0-9-]{0,20}".prop_map(|name| HeaderName::from_bytes(name.as_bytes()).unwrap())
}

fn value() -> impl Strategy<Value = HeaderValue> {
    vec(prop_oneof![32..=126u8, 128..=255u8], 0..40)
        .prop_map(|value| HeaderValue::from_bytes(&value).unwrap())
}

fn vary() -> impl Strategy<Value = Vec<VaryField>> {
    let value = option::of(vec(any::<u8>(), 0..20).prop_map(Vec::into_boxed_slice));
    vec((name(), value).prop_map(|(name, value)| VaryField { name, value }), 0..4)
}

prop_compose! {
    fn stored()(facts in facts(), vary in vary(), status in any::<u16>(), headers in vec((name(), value()), 0..12),
                body in vec(any::<u8>(), 0..2_000)) -> StoredCopy {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(name, value);
        }
        StoredCopy { facts, vary, status, headers: map, body: body.into() }
    }
}

prop_compose! {
    fn entry()(id in any::<u64>(), sequence in any::<u64>(), record_bytes in any::<u64>(), facts in facts(),
               key in key(), vary in vary()) -> Entry {
        Entry { id, sequence, record_bytes, facts, key, vary }
    }
}

/// Bytes with a right prefix and checksum around anything, so that the parts behind the checksum are reached.
fn sealed(kind: u8) -> impl Strategy<Value = Vec<u8>> {
    vec(any::<u8>(), 0..400).prop_map(move |content| {
        let mut bytes = [&MAGIC[..], &[VERSION, kind], &content].concat();
        bytes.extend_from_slice(&crc32fast::hash(&bytes).to_be_bytes());
        bytes
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_copy_survives_the_round_trip(id in any::<u64>(), key in key(), copy in stored()) {
        let bytes = Bytes::from(encode_copy(id, &key, &copy));
        prop_assert_eq!(decode_copy(&bytes), Ok((id, key, copy)));
    }

    #[test]
    fn an_entry_survives_the_round_trip(entry in entry()) {
        let bytes = encode_entry(&entry);
        let peek = peek_entry(&bytes).unwrap();
        prop_assert_eq!(peek.record_bytes, entry.record_bytes);
        prop_assert_eq!(peek.sequence, entry.sequence);
        prop_assert_eq!(decode_entry(&bytes), Ok(entry));
    }

    #[test]
    fn any_flipped_bit_is_noticed(key in key(), copy in stored(), at in any::<prop::sample::Index>(), bit in 0..8) {
        let mut bytes = encode_copy(1, &key, &copy);
        let at = at.index(bytes.len());
        bytes[at] ^= 1u8 << bit;
        prop_assert!(decode_copy(&bytes.into()).is_err());
    }

    #[test]
    fn any_truncation_is_noticed(entry in entry(), key in key(), copy in stored(), at in any::<prop::sample::Index>()) {
        let copy = Bytes::from(encode_copy(1, &key, &copy));
        prop_assert!(decode_copy(&copy.slice(..at.index(copy.len()))).is_err());
        let entry = encode_entry(&entry);
        prop_assert!(decode_entry(&entry[..at.index(entry.len())]).is_err());
    }

    #[test]
    fn anything_may_be_read(bytes in vec(any::<u8>(), 0..400)) {
        prop_assert!(decode_entry(&bytes).is_err());
        prop_assert!(decode_copy(&bytes.into()).is_err());
    }

    #[test]
    fn anything_may_lie_behind_a_right_checksum(entry in sealed(KIND_ENTRY), copy in sealed(KIND_COPY)) {
        let _ = decode_entry(&entry);
        let _ = decode_copy(&copy.into());
    }
}

#[test]
fn another_version_or_kind_is_not_read() {
    let reseal = |bytes: &mut Vec<u8>| {
        bytes.truncate(bytes.len() - CHECKSUM);
        let checksum = crc32fast::hash(bytes);
        bytes.extend_from_slice(&checksum.to_be_bytes());
    };
    let entry = Entry {
        id: 1,
        sequence: 2,
        record_bytes: 3,
        facts: CopyFacts {
            observed_at: ObservedAt::new(Default::default(), Duration::ZERO),
            origin_limit: OriginLimit::Unlimited,
        },
        key: CopyKey { target: Target::new("h", "/", None), route: "r".into(), partition: Box::default() },
        vary: Vec::new(),
    };
    let mut bytes = encode_entry(&entry);
    assert_eq!(decode_copy(&bytes.clone().into()), Err(CodecError::Kind));
    bytes[4] = VERSION + 1;
    reseal(&mut bytes);
    assert_eq!(decode_entry(&bytes), Err(CodecError::Version));
    bytes[0] = b'X';
    assert_eq!(decode_entry(&bytes), Err(CodecError::Kind));
}
