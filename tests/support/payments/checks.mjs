// Checks requests and answers against an OpenAPI 3.0 description: methods, paths, parameters, forms and JSON. A
// field of a request that the description does not name is a violation: providers refuse or ignore such fields.
import Ajv from "ajv";

/// The names and values of a query or a form, with `a[b][0]` as objects and lists.
export function unflattened(text) {
  const top = {};
  for (const [name, value] of new URLSearchParams(text)) {
    const parts = [name.split("[")[0], ...[...name.matchAll(/\[([^\]]*)\]/g)].map(([, part]) => part)];
    let into = top;
    parts.forEach((part, at) => {
      const key = part === "" ? String(Object.keys(into).length) : part;
      if (at + 1 === parts.length) into[key] = value;
      else into = into[key] ??= {};
    });
  }
  return listed(top);
}

function listed(node) {
  if (typeof node !== "object") return node;
  const entries = Object.entries(node).map(([name, of]) => [name, listed(of)]);
  const isList = entries.length > 0 && entries.every(([name], at) => name === String(at));
  return isList ? entries.map(([, of]) => of) : Object.fromEntries(entries);
}

const withoutWords = ["description", "title", "example", "x-expansionResources", "format", "discriminator", "xml"];

/// A schema of OpenAPI 3.0 as one of JSON Schema. `strict` refuses properties that are not named.
function schema(given, strict) {
  if (Array.isArray(given)) return given.map((it) => schema(it, strict));
  if (!given || typeof given !== "object") return given;
  if (given.$ref) return { $ref: `d${given.$ref}` };
  const { nullable, properties, ...rest } = given;
  const made = {};
  for (const [name, of] of Object.entries(rest)) {
    if (withoutWords.includes(name) || name.startsWith("x-")) continue;
    made[name] = ["enum", "required", "default"].includes(name) ? of : schema(of, strict);
  }
  if (properties) {
    made.properties = Object.fromEntries(Object.entries(properties).map(([name, of]) => [name, schema(of, strict)]));
    if (strict) made.additionalProperties ??= false;
  }
  return nullable ? { anyOf: [made, { type: "null" }] } : made;
}

export class Checks {
  #description;
  #operations = [];
  #compiled = new Map();
  // Forms and queries are texts, and the description says which of them are numbers.
  #texts = new Ajv({ strict: false, coerceTypes: "array", validateFormats: false });
  #json = new Ajv({ strict: false, validateFormats: false });

  constructor(description) {
    this.#description = description;
    const components = schema({ components: description.components }, false);
    for (const ajv of [this.#texts, this.#json]) ajv.addSchema(components, "d");
    for (const [path, methods] of Object.entries(description.paths)) {
      const pattern = new RegExp(`^${path.replace(/\{[^}]+\}/g, "[^/]+")}$`);
      for (const [method, operation] of Object.entries(methods)) {
        if (method === "parameters") continue;
        const parameters = [...(methods.parameters ?? []), ...(operation.parameters ?? [])];
        this.#operations.push({
          name: `${method} ${path}`,
          method: method.toUpperCase(),
          pattern,
          parameters,
          operation,
        });
      }
    }
  }

  #operation(method, path) {
    return this.#operations.find((it) => it.method === method && it.pattern.test(path));
  }

  /// What is wrong with a value; undefined if nothing is.
  #wrong(ajv, name, make, value) {
    if (!this.#compiled.has(name)) this.#compiled.set(name, ajv.compile(make()));
    const check = this.#compiled.get(name);
    if (!check(value)) return ajv.errorsText(check.errors, { dataVar: name }).slice(0, 2000);
  }

  /// What is wrong with a request, as a list of sentences.
  request({ method, url, headers, body }) {
    const { pathname, search } = new URL(url, "http://provider");
    const found = this.#operation(method, pathname);
    if (!found) return [`the description has no ${method} ${pathname}`];
    const problems = [];
    const query = found.parameters.filter((it) => it.in === "query");
    const properties = Object.fromEntries(query.map((it) => [it.name, schema(it.schema, true)]));
    const required = query.filter((it) => it.required).map((it) => it.name);
    const ofQuery = () => ({ type: "object", properties, required, additionalProperties: false });
    problems.push(this.#wrong(this.#texts, `query of ${found.name}`, ofQuery, unflattened(search.slice(1))));
    if (!/^Bearer \S+$/.test(headers.authorization ?? "")) problems.push("there is no key");
    const content = found.operation.requestBody?.content ?? {};
    const type = (headers["content-type"] ?? "").split(";")[0];
    const isForm = type === "application/x-www-form-urlencoded";
    const of = content[type]?.schema;
    if (body.length && !of) problems.push(`${found.name} takes no body of the type ${type}`);
    if (of) {
      const value = isForm ? unflattened(body.toString()) : JSON.parse(body.toString());
      problems.push(
        this.#wrong(isForm ? this.#texts : this.#json, `body of ${found.name}`, () => schema(of, true), value),
      );
    }
    return problems.filter(Boolean);
  }

  #resolved(node) {
    if (!node?.$ref) return node;
    return node.$ref
      .split("/")
      .slice(1)
      .reduce((at, part) => at[part], this.#description);
  }

  /// What is wrong with an answer, as a list of sentences.
  answer({ method, url }, { status, body }) {
    const found = this.#operation(method, new URL(url, "http://provider").pathname);
    const responses = found?.operation.responses ?? {};
    const response = this.#resolved(responses[status] ?? responses.default);
    const of = response?.content?.["application/json"]?.schema;
    if (!of) return [`${found?.name} does not answer ${status}`];
    const name = `answer ${status} of ${found.name}`;
    return [this.#wrong(this.#json, name, () => schema(of, false), JSON.parse(body))].filter(Boolean);
  }
}
