// Holds an OpenAPI document to the specification, and compiles the client types that are made of it.
import { readFileSync, writeFileSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Validator } from "@seriousme/openapi-schema-validator";
import openapiTS, { astToString } from "openapi-typescript";
import ts from "typescript";

const document = JSON.parse(readFileSync(process.argv[2], "utf8"));
const verdict = await new Validator().validate(structuredClone(document));
if (!verdict.valid) {
  console.error(JSON.stringify(verdict.errors, null, 2));
  process.exit(1);
}

const folder = mkdtempSync(join(tmpdir(), "openapi-"));
const types = join(folder, "client.ts");
const use = `
type Project = components["schemas"]["Project"];
type Page = paths["/functions/svc_getProjects"]["post"]["responses"]["200"]["content"]["application/json"];
export const names = (page: Page): string[] => page.result.items.map((project: Project) => project.name);
`;
writeFileSync(types, astToString(await openapiTS(document)) + use);
const program = ts.createProgram([types], { strict: true, noEmit: true, skipLibCheck: true });
const problems = ts.getPreEmitDiagnostics(program);
rmSync(folder, { recursive: true });
if (problems.length > 0) {
  console.error(ts.formatDiagnostics(problems, {
    getCanonicalFileName: (name) => name,
    getCurrentDirectory: () => folder,
    getNewLine: () => "\n",
  }));
  process.exit(1);
}
console.log(`${Object.keys(document.paths).length} paths are valid`);
