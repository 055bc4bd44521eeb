// Paystack for tests: its API, with the checks of ../checks.mjs, and the page on which buyers pay.
//
// The first line of standard input is the configuration: {secretKey, currencies, looks}. Prints one line with the
// address, then answers each command on standard input with a line.
import { Checks } from "../checks.mjs";
import { Gate, common, serve } from "../gate.mjs";
import { description } from "./description.mjs";
import { Refusal, Stub, shown } from "./stub.mjs";

const escaped = (text) => String(text).replace(/[&<>"]/g, (it) => `&#${it.charCodeAt(0)};`);

function page(it) {
  const price = `${escaped(it.currency)} ${(it.requested_amount / 100).toFixed(2)}`;
  const form = `<form method="post"><button name="action" value="pay">Pay ${price}</button> <button name="action" value="decline">Use a card without money</button></form>`;
  const said = it.status === "failed" ? `<p role="alert">${escaped(it.gateway_response)}</p>` : "";
  // Without an icon of its own, browsers ask for /favicon.ico.
  return `<!doctype html><title>Paystack Checkout</title><link rel="icon" href="data:,"><h1>Pay ${price}</h1><p>${escaped(it.customer.email)}</p>${said}${form}`;
}

serve(async (config) => {
  let base = "";
  const list = (rows) => ({
    data: rows,
    meta: { total: rows.length, skipped: 0, perPage: 100, page: 1, pageCount: 1 },
  });
  const routes = [
    [
      /^POST \/transaction\/initialize$/,
      (_, body) => {
        const { access_code, reference } = stub.initialize(body);
        return { data: { authorization_url: `${base}/pay/${access_code}`, access_code, reference } };
      },
    ],
    [/^GET \/transaction\/(?:verify\/)?([^/]+)$/, ([reference]) => ({ data: shown(stub.found(reference)) })],
    [
      /^GET \/plan\/([^/]+)$/,
      ([code]) => {
        if (!stub.plans.has(code)) throw new Refusal(404, "Plan not found", "not_found", "api_error");
        return { data: stub.plans.get(code) };
      },
    ],
    [/^GET \/subscription$/, async (_, __, query) => list(await stub.looked(query.get("customer")))],
    [/^GET \/subscription\/([^/]+)$/, ([code]) => ({ data: stub.subscription(code) })],
    [
      /^GET \/refund$/,
      (_, __, query) => list(stub.refunds.filter((it) => String(it.transaction) === query.get("transaction"))),
    ],
    [
      /^GET \/dispute$/,
      (_, __, query) => list(stub.disputes.filter((it) => String(it.transaction.id) === query.get("transaction"))),
    ],
    [/^GET \/balance$/, () => ({ data: stub.balances.map((currency) => ({ currency, balance: 0 })) })],
  ];
  const provider = {
    isApi: (url) => !url.startsWith("/pay/"),
    failure: ({ status, message = "An error occurred" }) =>
      JSON.stringify({ status: false, message, type: "api_error", code: `http_${status}` }),
    async api({ method, url, headers, body }) {
      const { pathname, searchParams } = new URL(url, base);
      try {
        if (headers.authorization !== `Bearer ${stub.secretKey}`) throw new Refusal(401, "Invalid key", "invalid_Key");
        for (const [pattern, answer] of routes) {
          const match = `${method} ${pathname}`.match(pattern);
          if (!match) continue;
          const made = await answer(match.slice(1), body.length ? JSON.parse(body.toString()) : {}, searchParams);
          return { status: 200, body: JSON.stringify({ status: true, message: "Done", ...made }) };
        }
        throw new Refusal(404, "Not found", "not_found", "api_error");
      } catch (error) {
        if (error.answer) return error.answer;
        throw error;
      }
    },
    /// Pays or declines, and sends the buyer back with the reference.
    async page({ method, url, body }) {
      const it = stub.found(url.split("/")[2].split("?")[0]);
      const action = new URLSearchParams(body.toString()).get("action");
      if (method === "POST" && action === "decline") await stub.decline(it);
      if (method === "POST" && action === "pay") {
        await stub.pay(it);
        const back = new URL(it.callback_url);
        back.searchParams.set("trxref", it.reference);
        back.searchParams.set("reference", it.reference);
        return { status: 302, headers: { location: back.href } };
      }
      return { status: 200, body: page(it) };
    },
  };
  const gate = new Gate(new Checks(description), provider);
  const stub = new Stub(config, (body, headers) => gate.deliver(body, headers));
  base = await gate.listen();
  const commands = {
    ...common(gate),
    // Adds a plan: {code, name, amount, currency, interval, archived}. The amount is as Paystack counts it.
    plan: (plan) => ({ plan: stub.plan(plan) }),
    // The buyer pays: {reference, extra, amount, currency}; see `pay` in stub.mjs.
    pay: async (how) => void (await stub.pay(how)),
    // The buyer's card is declined: {reference, reason}.
    decline: async (how) => void (await stub.decline(how)),
    // A transaction changes to what it never is by itself: {reference, ...}.
    change: ({ reference, ...changes }) => void Object.assign(stub.found(reference), changes),
    refund: (how) => stub.refund(how),
    dispute: (how) => stub.dispute(how),
    // The subscriptions come that payments began.
    begin: () => stub.begin(),
    renew: (how) => stub.renew(how),
    cancel: (how) => stub.cancel(how),
    // {charges} of a reference, 0 if it is unknown.
    charges: ({ reference }) => ({ charges: stub.transactions.get(reference)?.charges ?? 0 }),
    // Every transaction, with how often it was charged.
    transactions: () => ({ transactions: [...stub.transactions.values()] }),
    // The account has balances in these currencies: {currencies}.
    balances: ({ currencies }) => void (stub.balances = currencies),
    // The secret key is replaced: {secretKey}.
    rotate: ({ secretKey }) => void (stub.secretKey = secretKey),
  };
  return { ready: { address: base }, commands };
});
