// The description of the part of Google's APIs that the tests need, for the checking proxy: Google's discovery
// documents, as the package of requirements.txt has them, converted to OpenAPI 3.0. The converted description is
// strict: a property that a schema does not name is refused.
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const file = (name) => fileURLToPath(new URL(name, import.meta.url));
const cache = file("node_modules/.cache");
const DOCUMENTS = ["androidpublisher.v3.json", "firebaseappdistribution.v1.json"];
const WANTED = [
  /^androidpublisher\.applications\.tracks\.releases\.list$/,
  /^androidpublisher\.edits\.(insert|get|delete|validate|commit)$/,
  /^androidpublisher\.edits\.(bundles|apks)\.(list|upload)$/,
  /^androidpublisher\.edits\.tracks\.(get|list|update|patch)$/,
  /^androidpublisher\.edits\.details\.get$/,
  /^firebaseappdistribution\.media\.upload$/,
  /^firebaseappdistribution\.projects\.apps\.getAabInfo$/,
  /^firebaseappdistribution\.projects\.apps\.releases\.(get|list|patch|distribute|batchDelete)$/,
  /^firebaseappdistribution\.projects\.apps\.releases\.operations\.get$/,
  /^firebaseappdistribution\.projects\.groups\.(get|list)$/,
];

/// Google's documents, downloaded once for each version of requirements.txt.
function documents() {
  const requirements = file("requirements.txt");
  const folder = join(cache, `discovery-${hash(readFileSync(requirements))}`);
  if (!existsSync(folder)) {
    mkdirSync(cache, { recursive: true });
    // Tests start in parallel, none shall read half a file.
    const fresh = mkdtempSync(join(cache, "fresh-"));
    const pip = ["-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps", "--require-hashes"];
    const quiet = { stdio: ["ignore", "ignore", "inherit"] };
    execFileSync("python3", [...pip, "--dest", fresh, "--requirement", requirements], quiet);
    const wheel = readdirSync(fresh).find((name) => name.endsWith(".whl"));
    const inside = (name) => `googleapiclient/discovery_cache/documents/${name}`;
    const unzip = "import sys, zipfile; zipfile.ZipFile(sys.argv[1]).extractall(sys.argv[2], sys.argv[3:])";
    const unzipped = join(fresh, "unzipped");
    execFileSync("python3", ["-c", unzip, join(fresh, wheel), unzipped, ...DOCUMENTS.map(inside)], quiet);
    try {
      renameSync(join(unzipped, "googleapiclient/discovery_cache/documents"), folder);
    } catch (error) {
      if (!existsSync(folder)) throw error;
    }
    rmSync(fresh, { recursive: true });
  }
  return DOCUMENTS.map((name) => JSON.parse(readFileSync(join(folder, name))));
}

const hash = (bytes) => createHash("sha256").update(bytes).digest("hex").slice(0, 16);

const NOT_OF_OPENAPI = ["google-datetime", "google-duration", "google-fieldmask"];

function schema(given) {
  if (given.$ref) return { $ref: `#/components/schemas/${given.$ref}` };
  const made = {};
  if (given.type && given.type !== "any") made.type = given.type;
  for (const name of ["enum", "pattern", "readOnly"]) if (given[name]) made[name] = given[name];
  const is64 = given.type === "string" && /^u?int64$/.test(given.format ?? "");
  if (is64) made.pattern = "^-?[0-9]+$";
  else if (given.format && !NOT_OF_OPENAPI.includes(given.format)) made.format = given.format;
  if (given.items) made.items = schema(given.items);
  if (given.properties) {
    made.properties = Object.fromEntries(Object.entries(given.properties).map(([name, of]) => [name, schema(of)]));
    if (!given.additionalProperties) made.additionalProperties = false;
  }
  if (given.additionalProperties) made.additionalProperties = schema(given.additionalProperties);
  return made;
}

function parameters(method, path) {
  const inPath = [...path.matchAll(/\{([^}]+)\}/g)].map(([, name]) => ({
    name, in: "path", required: true, schema: { type: "string" },
  }));
  const query = Object.entries(method.parameters ?? {}).filter(([, { location }]) => location === "query");
  const inQuery = query.map(([name, given]) => ({
    name, in: "query", required: given.required === true,
    schema: given.repeated ? { type: "array", items: schema(given) } : schema(given),
  }));
  return [...inPath, ...inQuery];
}

const ERROR = {
  description: "a refusal",
  content: {
    "application/json": {
      schema: {
        type: "object",
        required: ["error"],
        properties: {
          error: {
            type: "object",
            required: ["code", "message"],
            properties: { code: { type: "integer" }, message: { type: "string" }, status: { type: "string" } },
          },
        },
      },
    },
  },
};
const refusals = Object.fromEntries([400, 401, 403, 404, 409, 410, 429, 500].map((status) => [status, ERROR]));
const binary = (type) => ({ [type]: { schema: { type: "string", format: "binary" } } });

/// The paths of a method. An upload has its own: the file as a whole, or in a session.
function* pathsOf(method) {
  const path = `/${(method.flatPath ?? method.path).replace(/^\//, "").replaceAll("{+", "{")}`;
  const verb = method.httpMethod.toLowerCase();
  const json = ({ $ref }) => ({ "application/json": { schema: schema({ $ref }) } });
  const ok = method.response ? { 200: { description: "done", content: json(method.response) } } : { 204: { description: "done" } };
  const operation = { parameters: parameters(method, path), responses: { ...ok, ...refusals } };
  if (!method.mediaUpload) {
    if (method.request) operation.requestBody = { content: json(method.request) };
    return yield [path, verb, { ...operation, operationId: method.id }];
  }
  const types = method.mediaUpload.accept.map((type) => (type === "*/*" ? "application/octet-stream" : type));
  const content = Object.assign({}, ...types.map(binary));
  const type = (values) => ({ name: "uploadType", in: "query", required: false, schema: { type: "string", enum: values } });
  const raw = { name: "X-Goog-Upload-Protocol", in: "header", required: true, schema: { type: "string", enum: ["raw"] } };
  const resumable = Boolean(method.mediaUpload.protocols.resumable);
  const length = { name: "X-Upload-Content-Length", in: "header", required: true, schema: { type: "string", pattern: "^[0-9]+$" } };
  const begin = resumable ? [{ ...type(["resumable"]), required: true }, length] : [raw];
  const { parameters: common } = operation;
  // The answer that opens a session has no body.
  const opened = resumable ? { ...refusals, 200: { description: "the session" } } : operation.responses;
  yield [`/upload${path}`, verb, {
    operationId: `${method.id}.begin`, parameters: [...common, ...begin], responses: opened,
    ...(resumable ? {} : { requestBody: { required: true, content } }),
  }];
  if (!resumable) return;
  const range = { name: "Content-Range", in: "header", required: true, schema: { type: "string", pattern: "^bytes ([0-9]+-[0-9]+|\\*)/[0-9]+$" } };
  const id = { name: "upload_id", in: "query", required: true, schema: { type: "string" } };
  const responses = { ...operation.responses, 308: { description: "more is to come" } };
  yield [`/upload${path}`, "put", {
    operationId: `${method.id}.resume`, parameters: [...common, { ...type(["resumable"]), required: true }, id, range],
    requestBody: { content }, responses,
  }];
}

function* methodsOf({ methods = {}, resources = {} }) {
  yield* Object.values(methods);
  for (const inner of Object.values(resources)) yield* methodsOf(inner);
}

function converted(given) {
  const paths = {};
  const schemas = {};
  const keep = (node) => {
    if (!node || typeof node !== "object") return;
    for (const document of typeof node.$ref === "string" ? given : []) {
      const name = node.$ref.split("/").at(-1);
      if (!document.schemas[name] || schemas[name]) continue;
      schemas[name] = schema(document.schemas[name]);
      keep(schemas[name]);
    }
    Object.values(node).forEach(keep);
  };
  for (const document of given) {
    for (const method of methodsOf(document)) {
      if (!WANTED.some((wanted) => wanted.test(method.id))) continue;
      for (const [path, verb, operation] of pathsOf(method)) (paths[path] ??= {})[verb] = operation;
    }
  }
  keep(paths);
  return {
    openapi: "3.0.3",
    info: { title: "Google Play and Firebase App Distribution", version: given.map((it) => it.revision).join("-") },
    servers: [{ url: "https://androidpublisher.googleapis.com" }],
    security: [{ bearer: [] }],
    components: { schemas, securitySchemes: { bearer: { type: "http", scheme: "bearer" } } },
    paths,
  };
}

/// The path of the description. It is made when this file or the documents have changed.
export function description() {
  const made = [readFileSync(file("requirements.txt")), readFileSync(file("description.mjs"))];
  const path = join(cache, `google-${hash(Buffer.concat(made))}.json`);
  if (existsSync(path)) return path;
  const text = JSON.stringify(converted(documents()));
  writeFileSync(`${path}.${process.pid}`, text);
  renameSync(`${path}.${process.pid}`, path);
  return path;
}
