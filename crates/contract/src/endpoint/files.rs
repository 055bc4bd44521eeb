//! Uploads and downloads. A signed URL grants access to one object for one use, until it expires.

use super::Received;

edge_endpoints! {
    group Transfers "Uploads and downloads";

    /// Upload the bytes of an artifact, whole or in parts.
    ///
    /// Without `Content-Range`, the body is the whole file. With it, the body is a part that must
    /// start where the stored bytes end. If the connection breaks, the service keeps the durable
    /// bytes.
    "putArtifactContent": Put "/api/v1/artifacts/{artifactId}/content" => PutArtifactContent
    {
        access: SignedAddress,
        reads: [
            "Content-Range" "the range of the part, such as `bytes 0-8388607/12345678`",
            "Content-Digest" "the expected hash of the body, as in RFC 9530: `sha-256=:…:`",
        ],
        body: Media("application/octet-stream"),
        answers: [
            200 Json(Received) "All bytes are stored."
                ["Upload-Offset" "the number of stored bytes", "Upload-Length" "the size of the whole file", "Upload-Complete" "`?1` if all bytes are stored"],
            202 Json(Received) "The part is stored."
                ["Upload-Offset" "the number of stored bytes", "Upload-Length" "the size of the whole file", "Upload-Complete" "`?1` if all bytes are stored"],
        ],
        errors: [
            Invalid "the digest or the range of the part is wrong",
            Unauthenticated "the URL's signature is wrong or has expired",
            NotFound "no such artifact",
            NotNow "another client sends bytes, the part does not start at `expectedOffset`, or the upload accepts no more bytes",
            TooLarge "the file exceeds the maximum size of an artifact",
            RequestTimeout "the bytes did not arrive in time",
        ],
    }

    /// Read how many bytes of an upload are stored.
    "headArtifactContent": Head "/api/v1/artifacts/{artifactId}/content" => HeadArtifactContent
    {
        access: SignedAddress,
        answers: [200 Empty "The headers contain the progress."
            ["Upload-Offset" "the number of stored bytes", "Upload-Length" "the size of the whole file", "Upload-Complete" "`?1` if all bytes are stored"]],
        errors: [
            Unauthenticated "the URL's signature is wrong or has expired",
            NotFound "no such artifact",
        ],
    }

    /// Download a verified artifact.
    "downloadArtifact": Get "/api/v1/artifacts/{artifactId}/download" => DownloadArtifact
    {
        access: SignedAddress,
        reads: [
            "Range" "a range of the bytes, such as `bytes=0-99`",
            "If-Range" "the `ETag` of the file that the range refers to",
            "If-None-Match" "the `ETag` of the file that the caller already has",
        ],
        answers: [
            200 Media("application/octet-stream") "The bytes." ["ETag" "the SHA-256 of the file", "Repr-Digest" "the same, as in RFC 9530"],
            206 Media("application/octet-stream") "The range of the bytes." ["Content-Range" "the range of these bytes"],
            304 Empty "The caller already has the file.",
        ],
        errors: [
            Unauthenticated "the URL's signature is wrong or has expired",
            NotFound "no such artifact",
            NotNow "the artifact is not verified",
            RangeOutside "the range lies outside the file",
        ],
    }

    /// Download the data of a backup.
    "downloadBackup": Get "/api/v1/backups/{backupId}/download" => DownloadBackup
    {
        access: SignedAddress,
        reads: [
            "Range" "a range of the bytes, such as `bytes=0-99`",
            "If-Range" "the `ETag` of the file that the range refers to",
            "If-None-Match" "the `ETag` of the file that the caller already has",
        ],
        answers: [
            200 Media("application/gzip") "The bytes." ["ETag" "the SHA-256 of the file", "Repr-Digest" "the same, as in RFC 9530"],
            206 Media("application/gzip") "The range of the bytes." ["Content-Range" "the range of these bytes"],
            304 Empty "The caller already has the file.",
        ],
        errors: [
            Unauthenticated "the URL's signature is wrong or has expired",
            NotFound "no such backup",
            NotNow "the backup is not ready",
            RangeOutside "the range lies outside the file",
        ],
    }
}
