// Holds an OpenAPI document to the specification. The client in sdk/typescript proves that types can
// be made of it.
import { readFileSync } from "node:fs";
import { Validator } from "@seriousme/openapi-schema-validator";

const document = JSON.parse(readFileSync(process.argv[2], "utf8"));
const verdict = await new Validator().validate(structuredClone(document));
if (!verdict.valid) {
  console.error(JSON.stringify(verdict.errors, null, 2));
  process.exit(1);
}
console.log(`${Object.keys(document.paths).length} paths are valid`);
