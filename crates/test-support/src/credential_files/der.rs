//! Writes DER, and changes files in it.

use app_inspect::der::{CONTEXT_0, Der, INTEGER, OCTET_STRING, SEQUENCE, SET};
use data_encoding::HEXLOWER;

use super::Folder;

const CONSTRUCTED: u8 = 0x20;

pub fn value(tag: u8, content: &[u8]) -> Vec<u8> {
    let length = content.len().to_be_bytes();
    let digits: Vec<u8> = length.into_iter().skip_while(|digit| *digit == 0).collect();
    let header = match digits[..] {
        [] => vec![tag, 0],
        [short @ 0..=0x7f] => vec![tag, short],
        _ => [&[tag, 0x80 | u8::try_from(digits.len()).unwrap()], &digits[..]].concat(),
    };
    [&header, content].concat()
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

/// The same file with a code that openssl computes for the password.
pub fn with_mac(folder: &Folder, pkcs12: &[u8], password: &str) -> Vec<u8> {
    let mut pfx = Der::new(pkcs12).enter(SEQUENCE).unwrap();
    let version = pfx.expect(INTEGER).unwrap();
    let info = pfx.expect(SEQUENCE).unwrap();
    let content = Der::new(info.content).nth(1).unwrap().content;
    folder.write("mac.content", Der::new(content).expect(OCTET_STRING).unwrap().content);

    let salt = b"saltsalt";
    let password: Vec<u8> = password.encode_utf16().chain([0]).flat_map(u16::to_be_bytes).collect();
    folder.sh(&format!(
        "key=$(openssl kdf -keylen 32 -kdfopt digest:SHA256 -kdfopt hexpass:{} -kdfopt hexsalt:{} \
             -kdfopt iter:1000 -kdfopt id:3 PKCS12KDF | tr -d ':\n')
         openssl dgst -sha256 -mac HMAC -macopt hexkey:$key -binary -out mac mac.content",
        HEXLOWER.encode(&password),
        HEXLOWER.encode(salt),
    ));
    let algorithm = sequence(&[&oid("2.16.840.1.101.3.4.2.1"), &value(0x05, &[])]);
    let digest = sequence(&[&algorithm, &value(OCTET_STRING, &folder.read("mac"))]);
    let mac = [digest, value(OCTET_STRING, salt), value(INTEGER, &1000_u16.to_be_bytes())].concat();
    sequence(&[version.whole, info.whole, &value(SEQUENCE, &mac)])
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
