// Writes src/generated from docs/openapi.json: the types of all parameters and replies, and the
// effect of each function.
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import openapiTS, { astToString } from "openapi-typescript";

const source = new URL("../../../docs/openapi.json", import.meta.url);
const target = new URL("../src/generated/", import.meta.url);
const document = JSON.parse(readFileSync(source, "utf8"));

const NOTE = "// Made of docs/openapi.json by scripts/generate.mjs.\n";
const PREFIX = "/functions/";
const functions = Object.entries(document.paths)
  .filter(([path]) => path.startsWith(PREFIX))
  .map(([path, { post }]) => ({ path, name: path.slice(PREFIX.length), post }))
  .sort((a, b) => (a.name < b.name ? -1 : 1));

// Errors and headers are the same for all functions, and are types of this package.
const paths = {};
for (const { path, post } of functions) {
  const { operationId, summary, description, requestBody, responses } = post;
  const answer = { description: responses[200].description, content: responses[200].content };
  paths[path] = {
    post: { operationId, summary, description, requestBody, responses: { 200: answer } },
  };
}
const { openapi, info, components } = document;
const reduced = { openapi, info, paths, components: { schemas: components.schemas } };
// A parameter with a default may be left out.
const types = await openapiTS(reduced, { defaultNonNullable: false });

const effects = functions.map(({ name, post }) => {
  const effect = post["x-secret"] ? "secret" : post["x-effect"];
  return `  ${name}: ${JSON.stringify(effect)},`;
});
const table = `${NOTE}import type { Effect, FunctionName } from "../functions.js";

/** The effect of each function. */
export const EFFECTS = {
${effects.join("\n")}
} as const satisfies Record<FunctionName, Effect>;
`;

mkdirSync(target, { recursive: true });
writeFileSync(new URL("openapi.ts", target), NOTE + astToString(types));
writeFileSync(new URL("effects.ts", target), table);
