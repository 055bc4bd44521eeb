// Google's token service: it checks the signature and the claims of a service account, and issues access tokens.
import { createPublicKey, verify } from "node:crypto";
import { json, random } from "./answers.mjs";

const GRANT = "urn:ietf:params:oauth:grant-type:jwt-bearer";
const SCOPES = {
  "https://www.googleapis.com/auth/androidpublisher": "play",
  "https://www.googleapis.com/auth/cloud-platform": "firebase",
};

const decoded = (part) => JSON.parse(Buffer.from(part, "base64url"));
const refused = (error, error_description) => json(400, { error, error_description });

export class Tokens {
  issued = [];
  lifetime = 3599;
  #keys = new Map();
  #tokens = new Map();

  constructor(audience) {
    this.audience = audience;
  }

  /// Adds a key of a service account, or disables it.
  account({ clientEmail, privateKeyId, privateKey, disabled = false }) {
    const known = this.#keys.get(privateKeyId);
    const key = privateKey ? createPublicKey(privateKey) : known?.key;
    this.#keys.set(privateKeyId, { key, email: clientEmail ?? known?.email, disabled });
  }

  /// No token that was issued until now is worth anything any more.
  revoke() {
    this.#tokens.clear();
  }

  issue(headers, body) {
    if (headers["content-type"] !== "application/x-www-form-urlencoded") {
      return refused("invalid_request", "Bad content type");
    }
    const form = new URLSearchParams(body.toString());
    if (form.get("grant_type") !== GRANT) return refused("unsupported_grant_type", "Invalid grant_type");
    const parts = (form.get("assertion") ?? "").split(".");
    let header, claims;
    try {
      [header, claims] = parts.slice(0, 2).map(decoded);
    } catch {
      return refused("invalid_grant", "Invalid JWT");
    }
    const key = this.#keys.get(header.kid);
    if (!key || key.email !== claims.iss) return refused("invalid_grant", "Invalid grant: account not found");
    if (key.disabled) return refused("invalid_grant", "Invalid JWT Signature.");
    const signed = Buffer.from(parts.slice(0, 2).join("."));
    const signature = Buffer.from(parts[2] ?? "", "base64url");
    if (header.alg !== "RS256" || !verify("RSA-SHA256", signed, key.key, signature)) {
      return refused("invalid_grant", "Invalid JWT Signature.");
    }
    if (claims.aud !== this.audience) return refused("invalid_grant", "Invalid JWT: Failed audience check.");
    const now = Date.now() / 1000;
    const isTime = Number.isInteger(claims.iat) && Number.isInteger(claims.exp);
    const isShort = isTime && claims.iat <= now + 5 && claims.exp > now && claims.exp <= claims.iat + 3600;
    if (!isShort) {
      const why = "Token must be a short-lived token (60 minutes) and in a reasonable timeframe.";
      return refused("invalid_grant", `Invalid JWT: ${why} Check your iat and exp values in the JWT claim.`);
    }
    const scope = SCOPES[claims.scope];
    if (!scope) return refused("invalid_scope", `${claims.scope} is not a valid audience string.`);
    const token = `ya29.c.${random(96)}`;
    this.#tokens.set(token, { email: key.email, scope, until: now + this.lifetime });
    this.issued.push({ email: key.email, scope });
    return json(200, { access_token: token, expires_in: this.lifetime, token_type: "Bearer" });
  }

  /// The e-mail address of the account that a request comes from; `undefined` if its token is no good.
  accountOf({ authorization = "" }, scope) {
    const known = this.#tokens.get(authorization.match(/^Bearer (\S+)$/)?.[1]);
    return known?.scope === scope && known.until > Date.now() / 1000 ? known.email : undefined;
  }
}
