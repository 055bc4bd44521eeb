// A Vendure with some channels for tests, and before it a front that lets requests go wrong.
//
// Prints one line with addresses, ids and tokens, then answers each command on standard input with a line.
// Ends when standard input does. Vendure is GPL-3: it runs as a process of its own, and nothing here is linked
// with the program.
import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { Front } from "./front.mjs";
import { Shop } from "./shop.mjs";

process.env.VENDURE_DISABLE_TELEMETRY = "true";
for (const signal of ["SIGTERM", "SIGINT"]) process.on(signal, () => process.exit());
if (!existsSync(fileURLToPath(new URL("node_modules", import.meta.url)))) {
  process.stderr.write("vendure.mjs: `npm ci --ignore-scripts` has not been run here\n");
  process.exit(1);
}
const { bootstrap } = createRequire(import.meta.url)("@vendure/core");

// Standard output is for answers, and what matters of a failure is in the answers of the API.
const quiet = () => {};
const logger = { error: quiet, warn: quiet, info: quiet, verbose: quiet, debug: quiet };

const superadmin = { identifier: "superadmin", password: "a password of tests" };
// DATABASE_URL is for trials by hand: requests share one connection to sqljs, and none is under way beside another.
const database = process.env.DATABASE_URL
  ? { type: "postgres", url: process.env.DATABASE_URL }
  : { type: "sqljs", autoSave: false };
const app = await bootstrap({
  apiOptions: { port: 0, hostname: "127.0.0.1", adminApiPath: "admin-api", shopApiPath: "shop-api", cors: false },
  authOptions: {
    tokenMethod: ["bearer", "api-key"],
    superadminCredentials: superadmin,
    cookieOptions: { secret: "a secret of tests" },
  },
  dbConnectionOptions: { ...database, synchronize: true, logging: false },
  paymentOptions: { paymentMethodHandlers: [] },
  logger,
});
const behind = `http://127.0.0.1:${app.getHttpServer().address().port}`;
const front = new Front(behind, { oneAtATime: database.type === "sqljs" });
const shop = new Shop((request) => front.pass(request));
await shop.open(superadmin);
const base = await front.listen();
console.log(JSON.stringify({ base, channels: shop.channels, tokens: shop.tokens }));

const done = { ok: true };
const commands = {
  // Asks the admin API as the superadmin: {channel, query, variables}. Answers {data}.
  admin: async ({ channel, query, variables }) => ({ data: await shop.ask(query, variables, channel) }),
  // Adds a product with one variant to a channel: {channel, name, sku, price, stock}; the price without taxes.
  // Answers {variant}. Without stock, it is not counted.
  product: async (product) => ({ variant: await shop.product(product) }),
  // A discount for every order with this variant: {channel, variant, percent, freeShipping}.
  promotion: async (promotion) => (await shop.promotion(promotion)) ?? done,
  // A token of an administrator with these permissions in these channels: {permissions, channels}. Answers
  // {token}.
  administrator: async (like) => ({ token: await shop.administrator(like) }),
  // What was asked at a place: {place}. Answers {requests}, in order: {operation, how}, how it went wrong.
  requests: ({ place }) => ({ requests: front.requests(place) }),
  // Requests go wrong: {place, skip, each, how: "cutBefore" | "cutAfter" | {status, retryAfter}}.
  fail: (fault) => front.fail(fault) ?? done,
  // They go well again: {place}.
  heal: ({ place }) => front.heal(place) ?? done,
};

const input = createInterface({ input: process.stdin });
input.on("close", () => process.exit());
for await (const line of input) {
  const { do: name, ...command } = JSON.parse(line);
  const said = async () => commands[name](command);
  console.log(JSON.stringify(await said().catch((error) => ({ error: String(error) }))));
}
