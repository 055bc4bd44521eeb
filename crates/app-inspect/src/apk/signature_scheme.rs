//! Verifies signatures of the APK Signature Schemes v2, v3, v3.1 and v3.2.
//!
//! Each signature must be valid, and its digest must match the contents. The lineage with which v3
//! proves that a key replaced another is not followed, because the caller decides who may sign.
//!
//! v3.2, from Android 17 on, is hybrid: it has exactly two signers for the same range of Android
//! versions, one with a classical key and one with an ML-DSA key. Both signatures must be valid. As
//! on Android, the ML-DSA key is the signer, and other schemes do not accept ML-DSA.
//!
//! Source: source.android.com/docs/security/features/apksigning/v2, …/v3 and …/v3-2; AOSP,
//! `android.util.apk.ApkSignatureSchemeV3Verifier` for the ids of v3.2 and the choice of its signer.

use super::content_digest::content_digest;
use super::signing_block::SigningBlock;
use crate::archive::Archive;
use crate::certificate::{Certificate, Hash, Padding, Verdict};
use crate::cursor::Cursor;
use crate::refusal::{Failure, Refusal};
use crate::report::Signer;

struct Scheme {
    name: &'static str,
    block_id: u32,
    /// From v3 on, a signer states its range of Android versions.
    has_sdk_range: bool,
    /// The attribute with which a signer of an older scheme announces a signature of this scheme,
    /// so that its removal is noticed.
    announced_by: Option<u32>,
}

const V2: Scheme =
    Scheme { name: "APK v2", block_id: 0x7109_871a, has_sdk_range: false, announced_by: None };
const V3: Scheme = Scheme {
    name: "APK v3",
    block_id: 0xf053_68c0,
    has_sdk_range: true,
    announced_by: Some(0xbeef_f00d),
};
/// Accompanies a v3 signature, which is for phones that do not know v3.1.
const V3_1: Scheme = Scheme {
    name: "APK v3.1",
    block_id: 0x1b93_ad61,
    has_sdk_range: true,
    announced_by: Some(0x559f_8b02),
};

const V3_2: Scheme = Scheme {
    name: "APK v3.2",
    block_id: 0x70e1_c89f,
    has_sdk_range: true,
    announced_by: Some(0xbf94_0529),
};
/// The newest first, as Android prefers them.
const SCHEMES: [Scheme; 4] = [V3_2, V3_1, V3, V2];

/// Verifies every signature in the block. Returns the signer of the newest scheme, or `None` if the
/// block has none of these schemes.
pub(super) fn verify(archive: &Archive, block: &SigningBlock) -> Result<Option<Signer>, Failure> {
    let mut digests = ContentDigests { archive, block_offset: block.offset, known: Vec::new() };
    let mut newest = None;
    let mut attributes = Vec::new();
    let mut missing = Vec::new();
    for scheme in SCHEMES {
        let Some(value) = block.value(scheme.block_id, scheme.name)? else {
            missing.push(scheme);
            continue;
        };
        let verified = scheme.verify(value, &mut digests)?;
        attributes.extend(verified.attributes);
        newest.get_or_insert(verified.signer);
    }
    for scheme in missing {
        if scheme.announced_by.is_some_and(|announcement| attributes.contains(&announcement)) {
            return Err(Refusal::StrippedSignature { scheme: scheme.name }.into());
        }
    }
    refuse_newer_schemes(block)?;
    Ok(newest)
}

/// Refuses a value that a newer Android could prefer to the signatures verified here.
fn refuse_newer_schemes(block: &SigningBlock) -> Result<(), Refusal> {
    for value in block.unknown(&SCHEMES.map(|scheme| scheme.block_id))? {
        if [&V2, &V3].into_iter().any(|shape| shape.has_shape_of(value)) {
            return Err(Refusal::UnknownScheme);
        }
    }
    Ok(())
}

struct Verified {
    signer: Signer,
    /// The ids of the additional attributes of all signers.
    attributes: Vec<u32>,
}

impl Scheme {
    /// Verifies all signers. Returns the first signer of v2, the signer of v3 and v3.1 for the
    /// newest Android, and the ML-DSA signer of v3.2.
    fn verify(&self, value: &[u8], digests: &mut ContentDigests) -> Result<Verified, Failure> {
        let mut value = Cursor::new(value);
        let mut signers = prefixed(&mut value).ok_or_else(|| self.malformed())?;
        let mut attributes = Vec::new();
        let mut best: Option<(u32, Signer)> = None;
        let mut hybrid = Hybrid::default();
        let mut count: usize = 0;
        while !signers.is_empty() {
            count = count.saturating_add(1);
            if count > MAX_SIGNERS {
                return Err(self.invalid("it has too many signers").into());
            }
            let signer = prefixed(&mut signers).ok_or_else(|| self.malformed())?;
            let block = SignerBlock::parse(self, signer).ok_or_else(|| self.malformed())?;
            let (signer, algorithm) = self.verify_signer(&block, digests)?;
            if self.block_id == V3_2.block_id {
                hybrid.add(algorithm, block.sdk_range, signer)?;
                attributes.extend(block.signed.attributes);
                continue;
            }
            let max_sdk = block.signed.sdk_range.map_or(0, |(_, max)| max);
            attributes.extend(block.signed.attributes);
            if best.as_ref().is_none_or(|(best, _)| *best < max_sdk) {
                best = Some((max_sdk, signer));
            }
        }
        let signer = if self.block_id == V3_2.block_id {
            hybrid.signer()?
        } else {
            best.ok_or_else(|| self.invalid("it has no signers"))?.1
        };
        Ok(Verified { signer, attributes })
    }

    /// Whether a value parses as signers of this scheme.
    fn has_shape_of(&self, value: &[u8]) -> bool {
        let first = || {
            let signer = prefixed(&mut prefixed(&mut Cursor::new(value))?)?;
            SignerBlock::parse(self, signer).filter(|signer| {
                !signer.signatures.is_empty()
                    && Certificate::parse(signer.signed.certificate).is_some()
            })
        };
        first().is_some()
    }

    fn verify_signer(
        &self,
        block: &SignerBlock,
        digests: &mut ContentDigests,
    ) -> Result<(Signer, SignatureAlgorithm), Failure> {
        let supported = block.signatures.iter().filter_map(|(id, bytes)| {
            SignatureAlgorithm::of(*id).map(|algorithm| (*id, algorithm, *bytes))
        });
        let (id, algorithm, signature) = supported
            .filter(|(_, algorithm, _)| !algorithm.is_ml_dsa() || self.block_id == V3_2.block_id)
            .max_by_key(|(_, algorithm, _)| algorithm.hash().algorithm().output_len())
            .ok_or(Refusal::UnsupportedSignature { scheme: self.name })?;

        let certificate = Certificate::parse(block.signed.certificate)
            .ok_or_else(|| self.invalid("its certificate is malformed"))?;
        if certificate.public_key_info() != block.public_key {
            return Err(self.invalid("its certificate is for another key").into());
        }
        let verdict = match algorithm {
            SignatureAlgorithm::Classical(hash, padding) => {
                certificate.verify(hash, padding, block.signed_data, signature)
            }
            SignatureAlgorithm::MlDsa => certificate.verify_ml_dsa(block.signed_data, signature),
        };
        match verdict {
            Verdict::Valid => {}
            Verdict::Invalid => {
                return Err(self.invalid("it was not made with the key of its certificate").into());
            }
            Verdict::Unsupported => {
                return Err(Refusal::UnsupportedSignature { scheme: self.name }.into());
            }
        }

        // Else a strong algorithm could be removed from the signatures, whose list is not signed.
        let signature_ids = block.signatures.iter().map(|(id, _)| id);
        let digest_ids = block.signed.digests.iter().map(|(id, _)| id);
        if !signature_ids.eq(digest_ids) {
            return Err(self.invalid("its signatures and digests use different algorithms").into());
        }
        if block.sdk_range != block.signed.sdk_range {
            return Err(self.invalid("it states two ranges of Android versions").into());
        }
        let stated = block.signed.digests.iter().find(|(digest_id, _)| *digest_id == id);
        let actual = digests.get(algorithm.hash())?;
        if stated.is_none_or(|(_, stated)| *stated != actual) {
            return Err(Refusal::ChangedAfterSigning { scheme: self.name }.into());
        }
        Ok((certificate.signer(), algorithm))
    }

    fn malformed(&self) -> Refusal {
        self.invalid("its block is malformed")
    }

    fn invalid(&self, reason: &'static str) -> Refusal {
        Refusal::InvalidSignature { scheme: self.name, reason }
    }
}

/// The two signers of v3.2.
#[derive(Default)]
struct Hybrid {
    classical: Option<Signer>,
    ml_dsa: Option<Signer>,
    sdk_range: Option<(u32, u32)>,
}

impl Hybrid {
    fn add(
        &mut self,
        algorithm: SignatureAlgorithm,
        sdk_range: Option<(u32, u32)>,
        signer: Signer,
    ) -> Result<(), Refusal> {
        let place = if algorithm.is_ml_dsa() { &mut self.ml_dsa } else { &mut self.classical };
        if place.replace(signer).is_some() {
            return Err(V3_2.invalid("it has two signers with the same kind of key"));
        }
        if self.sdk_range.is_some() && self.sdk_range != sdk_range {
            return Err(V3_2.invalid("its signers are for different Android versions"));
        }
        self.sdk_range = sdk_range;
        Ok(())
    }

    fn signer(self) -> Result<Signer, Refusal> {
        let Self { classical: Some(_), ml_dsa: Some(signer), .. } = self else {
            return Err(
                V3_2.invalid("it has not one signer with a classical and one with an ML-DSA key")
            );
        };
        Ok(signer)
    }
}

#[derive(Clone, Copy)]
enum SignatureAlgorithm {
    /// RSA or ECDSA, depending on the key.
    Classical(Hash, Padding),
    MlDsa,
}

impl SignatureAlgorithm {
    /// The algorithm with this id. DSA and the digests for fs-verity are not supported: signers
    /// that use those add another signature.
    fn of(id: u32) -> Option<Self> {
        let (hash, padding) = match id {
            0x0101 => (Hash::Sha256, Padding::Pss),
            0x0102 => (Hash::Sha512, Padding::Pss),
            0x0103 | 0x0201 => (Hash::Sha256, Padding::Pkcs1),
            0x0104 | 0x0202 => (Hash::Sha512, Padding::Pkcs1),
            0x0501 => return Some(Self::MlDsa),
            _ => return None,
        };
        Some(Self::Classical(hash, padding))
    }

    fn is_ml_dsa(self) -> bool {
        matches!(self, Self::MlDsa)
    }

    /// The hash algorithm of the content digest.
    fn hash(self) -> Hash {
        match self {
            Self::Classical(hash, _) => hash,
            Self::MlDsa => Hash::Sha512,
        }
    }
}

/// Most signers of one scheme, as on Android.
const MAX_SIGNERS: usize = 10;

/// Most items in a list of a signer, which has one for each algorithm. Fewer than ten exist.
const MAX_ALGORITHMS: usize = 16;

type ById<'a> = Vec<(u32, &'a [u8])>;

/// A signer in the signing block. Only [`SignerBlock::signed_data`] is signed.
struct SignerBlock<'a> {
    signed_data: &'a [u8],
    signed: SignedData<'a>,
    sdk_range: Option<(u32, u32)>,
    signatures: ById<'a>,
    public_key: &'a [u8],
}

struct SignedData<'a> {
    digests: ById<'a>,
    certificate: &'a [u8],
    sdk_range: Option<(u32, u32)>,
    /// The ids of the attributes. The values do not matter here.
    attributes: Vec<u32>,
}

impl<'a> SignerBlock<'a> {
    fn parse(scheme: &Scheme, mut signer: Cursor<'a>) -> Option<Self> {
        let signed_data = prefixed(&mut signer)?;
        let sdk_range = sdk_range(scheme, &mut signer)?;
        let signatures = by_id(prefixed(&mut signer)?)?;
        let public_key = prefixed(&mut signer)?.rest();
        let signed = SignedData::parse(scheme, signed_data)?;
        Some(Self { signed_data: signed_data.rest(), signed, sdk_range, signatures, public_key })
    }
}

impl<'a> SignedData<'a> {
    fn parse(scheme: &Scheme, mut data: Cursor<'a>) -> Option<Self> {
        let digests = by_id(prefixed(&mut data)?)?;
        let certificate = prefixed(&mut prefixed(&mut data)?)?.rest();
        let sdk_range = sdk_range(scheme, &mut data)?;
        let mut input = prefixed(&mut data)?;
        let mut attributes = Vec::new();
        while !input.is_empty() {
            attributes.push(prefixed(&mut input)?.u32_le()?);
        }
        Some(Self { digests, certificate, sdk_range, attributes })
    }
}

#[expect(clippy::option_option, reason = "malformed, and a scheme without ranges")]
fn sdk_range(scheme: &Scheme, input: &mut Cursor) -> Option<Option<(u32, u32)>> {
    if scheme.has_sdk_range { Some(Some((input.u32_le()?, input.u32_le()?))) } else { Some(None) }
}

/// A sequence of pairs of an algorithm id and bytes.
fn by_id(mut items: Cursor) -> Option<ById> {
    let mut list = Vec::new();
    while !items.is_empty() {
        let mut item = prefixed(&mut items)?;
        list.push((item.u32_le()?, prefixed(&mut item)?.rest()));
        (list.len() <= MAX_ALGORITHMS).then_some(())?;
    }
    Some(list)
}

/// Takes a length and as many bytes.
fn prefixed<'a>(input: &mut Cursor<'a>) -> Option<Cursor<'a>> {
    let len = input.size_le()?;
    input.take(len).map(Cursor::new)
}

/// Digests of the contents. Each is made once, because it reads the whole file.
struct ContentDigests<'a> {
    archive: &'a Archive<'a>,
    block_offset: u64,
    known: Vec<(Hash, Vec<u8>)>,
}

impl ContentDigests<'_> {
    fn get(&mut self, hash: Hash) -> Result<Vec<u8>, Failure> {
        if let Some((_, digest)) = self.known.iter().find(|(known, _)| *known == hash) {
            return Ok(digest.clone());
        }
        let digest = content_digest(self.archive, self.block_offset, hash.algorithm())?;
        self.known.push((hash, digest.clone()));
        Ok(digest)
    }
}
