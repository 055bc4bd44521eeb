// Stripe for tests: see fake.mjs for what it is made of. Requests and answers are checked against Stripe's own
// description.
//
// The first line of standard input is the configuration: {secretKey, webhookSecret}. Prints one line with the address,
// then answers each command on standard input with a line. Ends, with its children, when standard input does.
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { Checks } from "../checks.mjs";
import { Gate, common, serve } from "../gate.mjs";
import { description } from "./description.mjs";
import { Fake } from "./fake.mjs";
import { end, startEmulate, startLocalstripe } from "./programs.mjs";

async function start(config) {
  if (process.platform !== "linux" || process.arch !== "x64") throw new Error("needs Linux on x64 for its newer Node");
  if (!existsSync(fileURLToPath(new URL("../node_modules", import.meta.url))))
    throw new Error("`npm ci --ignore-scripts` has not been run");
  const provider = {
    isApi: (url) => url.startsWith("/v1/"),
    failure: ({ status, message = "An error occurred", code, type = "api_error" }) =>
      JSON.stringify({ error: { message, type, ...(code ? { code } : {}) }, status }),
    api: (request) => fake.api(request),
    /// Webhooks of the two programs, which go on as they are; and the page of a session, which `emulate` shows and on
    /// which the buyer pays with `localstripe`'s money.
    async page({ method, url, headers, body }) {
      if (url === "/webhooks") {
        await gate.deliver(body.toString(), { "stripe-signature": headers["stripe-signature"] });
        return { status: 200 };
      }
      const [, , id, action] = url.split("?")[0].split("/");
      if (method === "POST" && action === "complete") {
        const isPaid = await fake.pay(id);
        const { success_url } = isPaid ? await (await fetch(`${fake.emulate}/v1/checkout/sessions/${id}`)).json() : {};
        return { status: 302, headers: { location: success_url ?? `/checkout/${id}` } };
      }
      const page = await fetch(fake.emulate + url);
      return { status: page.status, body: (await page.text()).trimStart() };
    },
  };
  const gate = new Gate(new Checks(description), provider);
  const fake = new Fake(config, gate);
  const base = await gate.listen();
  const receiver = `${base}/webhooks`;
  const emulate = startEmulate({ base, receiver, secret: config.webhookSecret });
  fake.through(...(await Promise.all([emulate, startLocalstripe()])));
  const events = [
    "customer.subscription.created",
    "customer.subscription.deleted",
    "invoice.payment_succeeded",
    "invoice.payment_failed",
    "payment_intent.succeeded",
    "payment_intent.payment_failed",
  ];
  const hook = { url: receiver, secret: config.webhookSecret, events };
  const answer = await fetch(`${fake.money.localstripe}/_config/webhooks/tests`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(hook),
  });
  if (!answer.ok) throw new Error(`localstripe takes no webhook: ${answer.status}`);
  const commands = {
    ...common(gate),
    // Adds a price with a period: {id, name, amount, currency, interval, once, archived}.
    price: (price) => fake.money.price(price),
    // The buyer pays: {reference}; or with a card that is declined: `decline`.
    pay: async ({ reference }) => ({ isPaid: await fake.pay(fake.sessionOf(reference)[0]) }),
    decline: async ({ reference }) => ({ isPaid: await fake.pay(fake.sessionOf(reference)[0], "declined") }),
    // Gives back {amount} of {reference}, or all.
    refund: async ({ reference, amount }) => fake.money.refund(await fake.chargeOf(reference), amount),
    // A dispute begins, or changes: {reference, status}; `open`, or a status of Stripe, such as `won` and `lost`.
    dispute: async ({ reference, status = "open" }) =>
      fake.money.dispute(await fake.chargeOf(reference), status === "open" ? "needs_response" : status),
    renew: (how) => fake.money.renew(how),
    settle: (how) => fake.money.settle(how),
    cancel: (how) => fake.money.cancel(how),
    // {charges} of a reference, over all sessions that have it.
    charges: ({ reference }) => ({
      charges: [...fake.sessions.values()]
        .filter((it) => it.client_reference_id === reference)
        .reduce((sum, it) => sum + it.charges, 0),
    }),
    // Every session, with how often it was charged.
    sessions: () => ({ sessions: Object.fromEntries(fake.sessions) }),
    // Signs with another secret from now on: {webhookSecret}. The two programs stay with the first one.
    roll: ({ webhookSecret }) => void (fake.webhookSecret = webhookSecret),
  };
  return { ready: { address: base }, commands };
}

serve(start, end);
