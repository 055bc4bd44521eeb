import { readFileSync } from "node:fs";
import { test } from "node:test";
import { inspect } from "node:util";
import * as sdk from "@svc/client";
import { place } from "./place.mjs";
import { same, suite } from "./suite.mjs";

for (const [name, run] of Object.entries(suite(sdk, { ...place, tellsConnections: true }))) {
  test(name, run);
}

test("every function of the document can be called", () => {
  const source = new URL("../../../docs/openapi.json", import.meta.url);
  const { paths } = JSON.parse(readFileSync(source, "utf8"));
  const effects = {};
  for (const path of Object.keys(paths).sort()) {
    const [, name] = path.match(/^\/functions\/(\w+)$/) ?? [];
    const { "x-secret": secret, "x-effect": effect } = paths[path].post ?? {};
    if (name) effects[name] = secret ? "secret" : effect;
  }
  same(sdk.EFFECTS, effects);
});

test("a client that is printed shows no credential", () => {
  const secrets = { sessionToken: "secret", deployToken: "secret", masterKey: "secret" };
  const svc = new sdk.Client({ baseUrl: place.url, applicationId: "shop", ...secrets });
  same([inspect(svc), JSON.stringify(svc)].join().includes("secret"), false);
});
