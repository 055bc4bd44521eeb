//! Uploads and downloads. A signed URL grants access to one object for one use, until it expires.

use super::Received;

edge_endpoints! {
    group "Uploads and downloads";

    /// Upload the bytes of an artifact, whole or in parts.
    ///
    /// Without `Content-Range`, the body is the whole file. With it, the body is a part that must
    /// start where the stored bytes end. If the connection breaks, the service keeps the durable
    /// bytes.
    "putArtifactContent": Put "/api/v1/artifacts/{artifactId}/content" => PutArtifactContent
    {
        access: SignedAddress,
        reads: [
            "Content-Range" "which part this is, as in `bytes 0-8388607/12345678`",
            "Content-Digest" "what the body must hash to, as in RFC 9530: `sha-256=:…:`",
        ],
        body: Media("application/octet-stream"),
        answers: [
            200 Json(Received) "All bytes are stored."
                ["Upload-Offset" "how many bytes are stored", "Upload-Length" "how many there will be", "Upload-Complete" "`?1` when all are stored"],
            202 Json(Received) "The part is stored."
                ["Upload-Offset" "how many bytes are stored", "Upload-Length" "how many there will be", "Upload-Complete" "`?1` when all are stored"],
        ],
        errors: [
            Invalid "the part's digest or range is wrong",
            Unauthenticated "the address is forged or has expired",
            NotFound "no such artifact",
            NotNow "another writer is at work, the part starts elsewhere than at `expectedOffset`, or no more bytes are taken",
            TooLarge "larger than an artifact may be",
            RequestTimeout "the bytes did not arrive in time",
        ],
    }

    /// Read how many bytes of an upload are stored.
    "headArtifactContent": Head "/api/v1/artifacts/{artifactId}/content" => HeadArtifactContent
    {
        access: SignedAddress,
        answers: [200 Empty "The headers say how far."
            ["Upload-Offset" "how many bytes are stored", "Upload-Length" "how many there will be", "Upload-Complete" "`?1` when all are stored"]],
        errors: [
            Unauthenticated "the address is forged or has expired",
            NotFound "no such artifact",
        ],
    }

    /// Download a verified artifact.
    "downloadArtifact": Get "/api/v1/artifacts/{artifactId}/download" => DownloadArtifact
    {
        access: SignedAddress,
        reads: [
            "Range" "a range of the bytes, as in `bytes=0-99`",
            "If-Range" "the `ETag` that the range is of",
            "If-None-Match" "the `ETag` of what the caller has",
        ],
        answers: [
            200 Media("application/octet-stream") "The bytes." ["ETag" "the SHA-256 of the file", "Repr-Digest" "the same, as in RFC 9530"],
            206 Media("application/octet-stream") "The range of the bytes." ["Content-Range" "which bytes these are"],
            304 Empty "The caller has them.",
        ],
        errors: [
            Unauthenticated "the address is forged or has expired",
            NotFound "no such artifact",
            NotNow "it is not verified",
            RangeOutside "the range lies outside of the file",
        ],
    }

    /// Download a backup.
    "downloadBackup": Get "/api/v1/backups/{backupId}/download" => DownloadBackup
    {
        access: SignedAddress,
        reads: [
            "Range" "a range of the bytes, as in `bytes=0-99`",
            "If-Range" "the `ETag` that the range is of",
            "If-None-Match" "the `ETag` of what the caller has",
        ],
        answers: [
            200 Media("application/gzip") "The bytes." ["ETag" "the SHA-256 of the file", "Repr-Digest" "the same, as in RFC 9530"],
            206 Media("application/gzip") "The range of the bytes." ["Content-Range" "which bytes these are"],
            304 Empty "The caller has them.",
        ],
        errors: [
            Unauthenticated "the address is forged or has expired",
            NotFound "no such backup",
            NotNow "it is not ready",
            RangeOutside "the range lies outside of the file",
        ],
    }
}
