// Answers as Google's services give them.
import { createHash, randomBytes } from "node:crypto";

export const json = (status, body, headers = {}) => ({
  status,
  headers: { "content-type": "application/json; charset=UTF-8", ...headers },
  body: JSON.stringify(body),
});
export const empty = (status, headers = {}) => ({ status, headers, body: "" });

const STATUS = {
  400: "INVALID_ARGUMENT",
  401: "UNAUTHENTICATED",
  403: "PERMISSION_DENIED",
  404: "NOT_FOUND",
  409: "ABORTED",
  429: "RESOURCE_EXHAUSTED",
  500: "INTERNAL",
  503: "UNAVAILABLE",
};

/// The body of a refusal, as "Errors" of Google's API design guide has it.
export function refusal(status, reason, message, headers) {
  const errors = [{ domain: "androidpublisher", reason, message }];
  return json(status, { error: { code: status, message, status: STATUS[status] ?? "UNKNOWN", errors } }, headers);
}

export class Refusal extends Error {
  constructor(status, reason, message) {
    super(message);
    this.answer = refusal(status, reason, message);
  }
}

export const sha = (name, bytes) => createHash(name).update(bytes).digest("hex");
export const random = (bytes) => randomBytes(bytes).toString("base64url");
export const copy = (value) => structuredClone(value);
