// An instance of Sigstore with fresh keys: a certificate authority, its log of certificates, and a
// transparency log. Writes `trusted_root.json` into the folder of the argument and prints `ready`. Then
// answers each line of standard input (`{"sha256", "name", "claims"}`) with a line (`{"bundle"}`): the
// attestation that the run in the claims built the file.
import { createHash, generateKeyPairSync, sign } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { initializeCA, initializeCTLog, initializeTLog } from "@sigstore/mock";
import { extensions, GITHUB, statement } from "./claims.mjs";

const PAYLOAD_TYPE = "application/vnd.in-toto+json";
const ROOT_TYPE = "application/vnd.dev.sigstore.trustedroot+json;version=0.1";
const BUNDLE_TYPE = "application/vnd.dev.sigstore.bundle.v0.3+json";
const AUTHORITY = "https://fulcio.example";
const CERTIFICATE_LOG = "https://ctfe.example";
const LOG = "https://rekor.example";

const hash = (bytes, encoding) => createHash("sha256").update(bytes).digest(encoding);
const base64 = (bytes) => Buffer.from(bytes).toString("base64");
const fresh = (namedCurve = "P-256") => generateKeyPairSync("ec", { namedCurve });

const certificateLog = await initializeCTLog(fresh());
// As that of the public instance, because the authority signs with SHA-384.
const authority = await initializeCA(fresh("P-384"), certificateLog);
const log = await initializeTLog(LOG, fresh());

/// Source: "sigstore_trustroot.proto" of Sigstore protobuf-specs.
function trustedRoot() {
  // Logs write times in whole seconds, so the first entry can seem older than its log by a second.
  const validFor = { start: new Date(Date.now() - 60_000).toISOString() };
  const trusted = (baseUrl, { publicKey }) => ({
    baseUrl,
    hashAlgorithm: "SHA2_256",
    publicKey: { rawBytes: base64(publicKey), keyDetails: "PKIX_ECDSA_P256_SHA_256", validFor },
    logId: { keyId: hash(publicKey, "base64") },
  });
  return {
    mediaType: ROOT_TYPE,
    tlogs: [trusted(LOG, log)],
    certificateAuthorities: [
      {
        subject: { organization: "sigstore.mock", commonName: "sigstore" },
        uri: AUTHORITY,
        certChain: { certificates: [{ rawBytes: base64(authority.rootCertificate) }] },
        validFor,
      },
    ],
    ctlogs: [trusted(CERTIFICATE_LOG, certificateLog)],
    timestampAuthorities: [],
  };
}

/// The bytes that the signature of an envelope is over, the "pre-authentication encoding" of DSSE.
function signedBytes(payload) {
  const head = `DSSEv1 ${PAYLOAD_TYPE.length} ${PAYLOAD_TYPE} ${payload.length} `;
  return Buffer.concat([Buffer.from(head), payload]);
}

function pem(certificate) {
  const lines = base64(certificate).match(/.{1,64}/g);
  return ["-----BEGIN CERTIFICATE-----", ...lines, "-----END CERTIFICATE-----", ""].join("\n");
}

/// What the transparency log of the public instance keeps of an envelope, the type `dsse`.
function proposedEntry(envelope, payload, certificate) {
  const sha256 = (bytes) => ({ algorithm: "sha256", value: hash(bytes, "hex") });
  const [{ sig }] = envelope.signatures;
  return {
    apiVersion: "0.0.1",
    kind: "dsse",
    spec: {
      envelopeHash: sha256(JSON.stringify(envelope)),
      payloadHash: sha256(payload),
      signatures: [{ signature: sig, verifier: base64(pem(certificate)) }],
    },
  };
}

/// Logs an entry, and puts the answer of the log into the form of a bundle, where numbers of 64 bits are
/// texts and hashes are in base64.
async function logged(proposed) {
  const [entry] = Object.values(await log.log(proposed));
  const { inclusionProof: proof, signedEntryTimestamp } = entry.verification;
  const inBase64 = (hex) => Buffer.from(hex, "hex").toString("base64");
  return {
    logIndex: String(entry.logIndex),
    logId: { keyId: inBase64(entry.logID) },
    kindVersion: { kind: proposed.kind, version: proposed.apiVersion },
    integratedTime: String(entry.integratedTime),
    inclusionPromise: { signedEntryTimestamp },
    inclusionProof: {
      logIndex: String(proof.logIndex),
      rootHash: inBase64(proof.rootHash),
      treeSize: String(proof.treeSize),
      hashes: proof.hashes.map(inBase64),
      checkpoint: { envelope: proof.checkpoint },
    },
    canonicalizedBody: entry.body,
  };
}

async function attest({ sha256, name, claims }) {
  const { publicKey, privateKey } = fresh();
  const certificate = await authority.issueCertificate({
    publicKey: publicKey.export({ format: "der", type: "spki" }),
    subjectAltName: `${GITHUB}/${claims.signerWorkflow}`,
    extensions: extensions(claims),
  });
  const payload = Buffer.from(JSON.stringify(statement(sha256, name, claims)));
  const sig = sign("sha256", signedBytes(payload), privateKey).toString("base64");
  const dsseEnvelope = { payload: base64(payload), payloadType: PAYLOAD_TYPE, signatures: [{ sig }] };
  const entry = await logged(proposedEntry(dsseEnvelope, payload, certificate));
  return {
    mediaType: BUNDLE_TYPE,
    verificationMaterial: { certificate: { rawBytes: base64(certificate) }, tlogEntries: [entry] },
    dsseEnvelope,
  };
}

writeFileSync(join(process.argv[2], "trusted_root.json"), JSON.stringify(trustedRoot(), null, 2));
console.log("ready");
for await (const line of createInterface({ input: process.stdin })) {
  console.log(JSON.stringify({ bundle: await attest(JSON.parse(line)) }));
}
