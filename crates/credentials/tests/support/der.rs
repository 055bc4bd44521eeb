//! Writes DER, and changes files in it.

use app_inspect::der::{CONTEXT_0, Der, INTEGER, OCTET_STRING, SEQUENCE, SET};

const CONSTRUCTED: u8 = 0x20;

pub fn value(tag: u8, content: &[u8]) -> Vec<u8> {
    let length = content.len().to_be_bytes();
    let digits = &length[length.iter().take_while(|digit| **digit == 0).count()..];
    let mut value = vec![tag];
    if let [short @ 0..=0x7f] = digits {
        value.push(*short);
    } else {
        value.push(0x80 | u8::try_from(digits.len()).unwrap());
        value.extend(digits);
    }
    value.extend(content);
    value
}

fn sequence(values: &[&[u8]]) -> Vec<u8> {
    value(SEQUENCE, &values.concat())
}

fn oid(dotted: &str) -> Vec<u8> {
    let oid: Vec<u64> = dotted.split('.').map(|arc| arc.parse().unwrap()).collect();
    let oid = x509_parser::der_parser::oid::Oid::from(&oid).unwrap();
    value(0x06, oid.as_bytes())
}

/// A PKCS#12 file without a code, of an `EncryptedPrivateKeyInfo` and a certificate, both in DER.
pub fn pkcs12(encrypted_key: &[u8], certificate: &[u8]) -> Vec<u8> {
    let bag = |kind: &str, bag: &[u8]| {
        let id = value(SET, &value(OCTET_STRING, b"1"));
        let id = sequence(&[&oid("1.2.840.113549.1.9.21"), &id]);
        sequence(&[&oid(kind), &value(CONTEXT_0, bag), &value(SET, &id)])
    };
    let certificate = value(CONTEXT_0, &value(OCTET_STRING, certificate));
    let certificate = sequence(&[&oid("1.2.840.113549.1.9.22.1"), &certificate]);
    let bags = sequence(&[
        &bag("1.2.840.113549.1.12.10.1.2", encrypted_key),
        &bag("1.2.840.113549.1.12.10.1.3", &certificate),
    ]);
    let data = |content: &[u8]| {
        let content = value(CONTEXT_0, &value(OCTET_STRING, content));
        sequence(&[&oid("1.2.840.113549.1.7.1"), &content])
    };
    let safes = sequence(&[&data(&bags)]);
    sequence(&[&value(INTEGER, &[3]), &data(&safes)])
}

/// The same value in BER: lengths are indefinite, and octet strings come in pieces.
pub fn to_ber(der: &[u8]) -> Vec<u8> {
    let mut ber = Vec::new();
    for element in Der::new(der) {
        let (tag, content) = if element.tag & CONSTRUCTED != 0 {
            (element.tag, to_ber(element.content))
        } else if element.tag == OCTET_STRING {
            let pieces = element.content.chunks(100);
            let pieces = pieces.flat_map(|piece| value(OCTET_STRING, piece));
            (OCTET_STRING | CONSTRUCTED, pieces.collect())
        } else {
            ber.extend_from_slice(element.whole);
            continue;
        };
        ber.extend([tag, 0x80]);
        ber.extend(content);
        ber.extend([0, 0]);
    }
    ber
}

/// The same value with another content for each `INTEGER` that has the content `from`, also inside
/// octet strings.
pub fn replace_integers(der: &[u8], from: &[u8], to: &[u8]) -> Vec<u8> {
    let mut changed = Vec::new();
    for element in Der::new(der) {
        let is_der = Der::new(element.content).map(|inner| inner.whole.len()).sum::<usize>()
            == element.content.len();
        if element.tag == INTEGER && element.content == from {
            changed.extend(value(INTEGER, to));
        } else if element.tag & CONSTRUCTED != 0 || element.tag == OCTET_STRING && is_der {
            changed.extend(value(element.tag, &replace_integers(element.content, from, to)));
        } else {
            changed.extend_from_slice(element.whole);
        }
    }
    changed
}
