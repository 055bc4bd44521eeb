// The examples of README.md, compiled strictly and run as one program; and types.ts, compiled.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { test } from "node:test";
import ts from "typescript";
import { place } from "./place.mjs";

const root = fileURLToPath(new URL("../", import.meta.url));

test("the examples of the README compile and run, and the types accept and refuse", async () => {
  const text = readFileSync(join(root, "README.md"), "utf8");
  const examples = [...text.matchAll(/```ts\n(.*?)```/gs)].map(([, example]) => example);
  const program = examples
    .join("\n")
    .replace("https://svc.example.com", place.url)
    .replace("your application id", place.applicationId)
    .replace("ada@example.com", `ada.${process.pid}@example.com`);
  if (!program.includes(place.url) || !program.includes(place.applicationId)) {
    throw new Error("an example names another place");
  }
  // In the package, so that its name is known.
  const folder = mkdtempSync(join(root, "dist", "readme-"));
  try {
    const source = join(folder, "examples.ts");
    writeFileSync(source, program);
    const config = ts.readConfigFile(join(root, "tsconfig.json"), ts.sys.readFile).config;
    const { options } = ts.parseJsonConfigFileContent(config, ts.sys, root);
    Object.assign(options, { rootDir: root, outDir: folder, declaration: false });
    // The types are compiled too: a compilation of its own would take as long again.
    const compiled = ts.createProgram([source, join(root, "test", "types.ts")], options);
    const problems = [...ts.getPreEmitDiagnostics(compiled), ...compiled.emit().diagnostics];
    if (problems.length > 0) {
      throw new Error(ts.formatDiagnostics(problems, ts.createCompilerHost(options)));
    }
    const emitted = ts.sys.readDirectory(folder).find((path) => path.endsWith("examples.js"));
    await import(pathToFileURL(emitted));
  } finally {
    rmSync(folder, { recursive: true });
  }
});
