// An issuer of identity tokens, as the CI of a repository has one. Prints its address and that of the
// endpoint where a job asks for a token, then answers each line of standard input (`{"kind", "claims"}`)
// with a line. The kinds beside `good` are attacks, and `rotate` replaces the key of the issuer.
import { createHmac, createPublicKey, generateKeyPairSync, sign } from "node:crypto";
import { createServer } from "node:http";
import { createInterface } from "node:readline";
import { OAuth2Server } from "oauth2-mock-server";

const server = new OAuth2Server();
let kid = "first";
const retired = new Set();
await server.issuer.keys.generate("RS256", { kid });
await server.issuer.keys.generate("ES256", { kid: "curve" });
const all = server.issuer.keys.toJSON.bind(server.issuer.keys);
server.issuer.keys.toJSON = (secret) => all(secret).filter((key) => !retired.has(key.kid));
await server.start(0, "127.0.0.1");
const issuer = server.issuer.url;

const good = (claims, key = kid) =>
  server.issuer.buildToken({
    kid: key,
    expiresIn: 300,
    scopesOrTransform: (_, payload) => {
      delete payload.nbf;
      Object.assign(payload, claims);
      for (const [name, value] of Object.entries(claims)) if (value === null) delete payload[name];
    },
  });

const part = (value) => Buffer.from(JSON.stringify(value)).toString("base64url");
const parts = async (claims, header) => {
  const [, payload] = (await good(claims)).split(".");
  return `${part({ typ: "JWT", kid, ...header })}.${payload}`;
};
const stranger = generateKeyPairSync("rsa", { modulusLength: 2048 }).privateKey;
const bySomebodyElse = async (claims, header) => {
  const text = await parts(claims, { alg: "RS256", ...header });
  return `${text}.${sign("sha256", Buffer.from(text), stranger).toString("base64url")}`;
};
const byCurve = async (claims, header, key) => {
  const text = await parts(claims, { alg: "ES256", ...header });
  const made = sign("sha256", Buffer.from(text), { key, dsaEncoding: "ieee-p1363" });
  return `${text}.${made.toString("base64url")}`;
};
const curve = () => generateKeyPairSync("ec", { namedCurve: "P-256" }).privateKey;
const publicKey = () => {
  const key = all(false).find((key) => key.kid === kid);
  return createPublicKey({ key, format: "jwk" }).export({ type: "spki", format: "pem" });
};
const kinds = {
  good: (claims) => good(claims),
  es256: (claims) => good(claims, "curve"),
  es256Forged: (claims) => byCurve(claims, { kid: "curve" }, curve()),
  es256ByRsaKey: (claims) => byCurve(claims, {}, curve()),
  retired: (claims) => good(claims, "first"),
  forged: (claims) => bySomebodyElse(claims, {}),
  unknownKey: (claims) => bySomebodyElse(claims, { kid: "unknown" }),
  none: async (claims) => `${await parts(claims, { alg: "none" })}.`,
  // The public key of the issuer as the secret of another algorithm.
  hs256: async (claims) => {
    const text = await parts(claims, { alg: "HS256" });
    return `${text}.${createHmac("sha256", publicKey()).update(text).digest("base64url")}`;
  },
  rotate: async () => {
    retired.add(kid);
    kid = "second";
    await server.issuer.keys.generate("RS256", { kid });
    return "";
  },
};

// The endpoint of a CI where a job asks for its identity token.
let job = {};
const endpoint = createServer(async (request, response) => {
  if (request.headers.authorization !== "Bearer of-the-job") return response.writeHead(401).end();
  const audience = new URL(request.url, issuer).searchParams.get("audience");
  response.end(JSON.stringify({ value: await good({ ...job, aud: audience }) }));
});
endpoint.listen(0, "127.0.0.1", () => {
  console.log(issuer);
  console.log(`http://127.0.0.1:${endpoint.address().port}/token?of=job`);
});

let number = 0;
for await (const line of createInterface({ input: process.stdin })) {
  const { kind, claims } = JSON.parse(line);
  number += 1;
  job = { ...claims, jti: `job-${number}` };
  console.log(await kinds[kind]({ jti: `token-${number}`, ...claims }));
}
process.exit(0);
