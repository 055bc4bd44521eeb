// The same suite in Chromium. A page of another origin than the service's runs it, and posts the
// results.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { before, test } from "node:test";
import * as sdk from "@svc/client";
import { place } from "./place.mjs";
import { suite } from "./suite.mjs";

const PAGE = `<!doctype html>
<script type="importmap">{"imports": {"@svc/client": "/dist/index.js"}}</script>
<script type="module">
  const results = {};
  try {
    const sdk = await import("@svc/client");
    const { suite } = await import("/test/suite.mjs");
    const place = ${JSON.stringify(place)};
    for (const [name, run] of Object.entries(suite(sdk, place))) {
      results[name] = await run().then(() => "passed", (error) => String(error.stack));
    }
  } catch (error) {
    results.page = String(error.stack);
  }
  await fetch("/results", { method: "POST", body: JSON.stringify(results) });
</script>`;

const root = new URL("../", import.meta.url);
let report;
const reported = new Promise((resolve) => (report = resolve));

/** Serves the page, the built package and the suite, and takes the results. */
const server = createServer(async (request, response) => {
  if (request.method === "POST") {
    const body = [];
    for await (const part of request) body.push(part);
    response.end();
    report(JSON.parse(Buffer.concat(body).toString()));
    return;
  }
  if (request.url === "/") {
    response.setHeader("Content-Type", "text/html").end(PAGE);
    return;
  }
  if (/^\/(dist|test)\/[\w/.-]+\.m?js$/.test(request.url)) {
    response.setHeader("Content-Type", "text/javascript");
    response.end(readFileSync(new URL(`.${request.url}`, root)));
    return;
  }
  response.writeHead(404).end();
});

let results;

before(async () => {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const profile = mkdtempSync(join(tmpdir(), "chromium-"));
  // Without the sandbox, because root cannot use it; the page is from this file.
  const chromium = spawn(
    "chromium",
    [
      "--headless=new",
      "--no-sandbox",
      "--disable-gpu",
      "--disable-dev-shm-usage",
      "--disable-background-networking",
      "--disable-component-update",
      "--no-first-run",
      "--no-proxy-server",
      `--user-data-dir=${profile}`,
      `http://127.0.0.1:${server.address().port}/`,
    ],
    { detached: true, stdio: ["ignore", "ignore", "pipe"] },
  );
  let said = "";
  chromium.stderr.on("data", (text) => (said += text));
  const ended = once(chromium, "exit");
  // Sooner than the limit of the test program, which would leave Chromium behind.
  const late = setTimeout(() => report({ chromium: `no results in time: ${said}` }), 90_000);
  results = await Promise.race([reported, ended.then(() => ({ chromium: said }))]);
  clearTimeout(late);
  if (chromium.exitCode === null) {
    // The whole group: Chromium is several processes.
    process.kill(-chromium.pid, "SIGKILL");
    await ended;
  }
  rmSync(profile, { recursive: true, force: true, maxRetries: 5 });
  server.close();
  server.closeAllConnections();
});

test("the page ran", () => {
  if (results.page ?? results.chromium) throw new Error(results.page ?? results.chromium);
});

for (const name of Object.keys(suite(sdk, place))) {
  test(name, () => {
    if (results[name] !== "passed") throw new Error(results[name] ?? "did not run");
  });
}
