// A Stripe for tests, made of two independent programs:
// - `emulate` has the sessions of Checkout: their states, their page, expiring, and the signed webhooks about them.
// - `localstripe` has the money: customers, cards that are declined, charges, refunds, subscriptions, invoices, and the
//   signed webhooks about subscriptions and invoices.
//
// Ours is what neither has:
// - what a session is made of beside prices: `price_data`, `client_reference_id`, amounts, `expires_at`, and the link
//   from a session to its payment or subscription;
// - idempotency keys;
// - prices with a period, which are the plans of localstripe under the same id;
// - the account of the key;
// - disputes, and the signed webhooks about refunds and disputes;
// - the states that localstripe does not move by itself: a subscription with an unpaid renewal is past due, and its
//   period goes on;
// - required properties that say nothing, see `completed` in description.mjs.
import { createHmac } from "node:crypto";
import { unflattened } from "../checks.mjs";
import { completed } from "./description.mjs";
import { Money, Refusal, ask } from "./money.mjs";

// Of which the description has the shapes.
const VERSION = "2022-11-15";

export class Fake {
  /// What ours is of a session, by its id.
  sessions = new Map();
  /// What ours is of the account.
  account = { id: "acct_1", object: "account", default_currency: "eur" };
  #keys = new Map();

  constructor({ secretKey, webhookSecret }, gate) {
    Object.assign(this, { secretKey, webhookSecret, gate });
  }

  /// The addresses of the two programs are known after this has one.
  through(emulate, localstripe) {
    this.emulate = emulate;
    this.money = new Money(emulate, localstripe, (type, object) => this.#notify(type, object));
  }

  sign(body, secret = this.webhookSecret, time = Math.floor(Date.now() / 1000)) {
    const v1 = createHmac("sha256", secret).update(`${time}.${body}`).digest("hex");
    return { "stripe-signature": `t=${time},v1=${v1}` };
  }

  #notify(type, object) {
    const event = {
      id: `evt_${Date.now()}`,
      object: "event",
      api_version: VERSION,
      created: Math.floor(Date.now() / 1000),
      livemode: false,
      pending_webhooks: 1,
      request: null,
      type,
      data: { object },
    };
    const body = JSON.stringify(event);
    return this.gate.deliver(body, this.sign(body));
  }

  /// Does what a request asks for once for each idempotency key, and answers the same again.
  async #once({ headers, url, body }, act) {
    const key = headers["idempotency-key"];
    if (!key) return act();
    const asked = `${url} ${body}`;
    const known = this.#keys.get(key);
    if (known && known.asked !== asked) {
      const message = `Keys for idempotent requests can only be used with the same parameters they were first used with. The key is '${key}'.`;
      throw new Refusal(400, message, undefined, "idempotency_error");
    }
    if (known && !known.answer)
      throw new Refusal(
        409,
        "Another request with this idempotency key is in progress.",
        "idempotency_key_in_use",
        "idempotency_error",
      );
    if (known) return { ...known.answer, headers: { "idempotent-replayed": "true" } };
    const entry = { asked };
    this.#keys.set(key, entry);
    // Stripe does not keep the answer to a request that it did not begin to execute.
    entry.answer = await act().catch((error) => {
      this.#keys.delete(key);
      throw error;
    });
    return entry.answer;
  }

  async #create(form) {
    const { mode, line_items: items, expires_at: until } = form;
    const now = Math.floor(Date.now() / 1000);
    // Half an hour and a day, with a minute for clocks and slow machines.
    if (until && (until < now + 29 * 60 || until > now + 86_460)) {
      throw new Refusal(
        400,
        "The `expires_at` timestamp must be between 30 minutes and 24 hours from Checkout Session creation.",
      );
    }
    const asked = { mode, success_url: form.success_url, cancel_url: form.cancel_url };
    for (const [name, value] of Object.entries(form.metadata ?? {})) asked[`metadata[${name}]`] = value;
    let total = 0;
    let currency;
    const lines = [];
    for (const [at, { price: id, price_data: data, quantity = "1" }] of items.entries()) {
      const price = id ? this.money.shownPrice(id, []) : await this.money.inline(data);
      if (id && (price.type === "recurring") !== (mode === "subscription"))
        throw new Refusal(
          400,
          "You must provide at least one recurring price in `subscription` mode when using prices.",
        );
      const known = id ? this.money.prices.get(id).price.id : price.id;
      Object.assign(asked, { [`line_items[${at}][price]`]: known, [`line_items[${at}][quantity]`]: quantity });
      total += price.unit_amount * Number(quantity);
      ({ currency } = price);
      lines.push(
        completed("item", {
          id: `li_${at}`,
          amount_subtotal: total,
          amount_total: total,
          currency,
          description: "",
          price: completed("price", price),
          quantity: Number(quantity),
        }),
      );
    }
    const made = await ask(this.emulate, "POST", "/v1/checkout/sessions", asked);
    const expires_at = Number(until ?? now + 86_400);
    const data = form.payment_intent_data ?? form.subscription_data ?? {};
    const { client_reference_id, customer_email } = form;
    this.sessions.set(made.id, {
      client_reference_id,
      customer_email,
      amount_total: total,
      currency,
      expires_at,
      lines,
      mode,
      metadata: data.metadata ?? {},
      charges: 0,
    });
    return this.#session(made.id, []);
  }

  async #session(id, expand) {
    const own = this.sessions.get(id);
    const of = await ask(this.emulate, "GET", `/v1/checkout/sessions/${id}`);
    const { client_reference_id, customer_email, amount_total, currency, expires_at } = own ?? {};
    const made = {
      ...of,
      client_reference_id,
      customer_email,
      amount_total,
      amount_subtotal: amount_total,
      currency,
      expires_at,
    };
    const wants = (name) => expand.some((it) => it.split(".")[0] === name);
    if (wants("line_items"))
      made.line_items = {
        object: "list",
        data: own.lines,
        has_more: false,
        url: `/v1/checkout/sessions/${id}/line_items`,
      };
    if (own?.customer) made.customer = own.customer;
    made.payment_intent = own?.intent
      ? wants("payment_intent")
        ? await this.money.intent(own.intent)
        : own.intent
      : null;
    made.subscription = own?.subscription ?? null;
    made.invoice = own?.invoice ? (wants("invoice") ? await this.money.invoice(own.invoice) : own.invoice) : null;
    return completed("checkout.session", made);
  }

  /// Answers a call of the API.
  async api(request) {
    const { method, url, headers, body } = request;
    const { pathname, search } = new URL(url, "http://stripe");
    const query = unflattened(search.slice(1));
    const expand = query.expand ?? [];
    if (headers["stripe-version"] !== VERSION) {
      this.gate.violations.push({ method, path: url, detail: `the version is ${headers["stripe-version"]}` });
    }
    const say = (object) => ({ status: 200, body: JSON.stringify(object) });
    try {
      if (headers.authorization !== `Bearer ${this.secretKey}`) {
        throw new Refusal(401, `Invalid API Key provided: ${String(headers.authorization).slice(7, 15)}****`);
      }
      const [, , kind, id, verb] = pathname.split("/").map(decodeURIComponent);
      if (pathname === "/v1/checkout/sessions" && method === "POST") {
        return await this.#once(request, async () => say(await this.#create(unflattened(body.toString()))));
      }
      if (pathname === "/v1/checkout/sessions") {
        return say({ object: "list", data: [], has_more: false, url: pathname });
      }
      if (kind === "checkout") {
        const [session, action] = [verb, pathname.split("/")[5]];
        if (action === "expire") await ask(this.emulate, "POST", `/v1/checkout/sessions/${session}/expire`, {});
        return say(await this.#session(session, expand));
      }
      if (pathname === "/v1/account") return say(completed("account", this.account));
      if (kind === "prices") return say(this.money.shownPrice(id, expand));
      if (kind === "subscriptions") return say(await this.money.subscription(id));
      if (kind === "disputes")
        return say({
          object: "list",
          data: this.money.disputes.filter((it) => it.charge === query.charge),
          has_more: false,
          url: pathname,
        });
      if (kind === "payment_intents") {
        const made = await this.money.intent(id);
        if (made.invoice) {
          const invoice = await this.money.invoice(made.invoice);
          invoice.subscription = invoice.subscription && (await this.money.subscription(invoice.subscription));
          made.invoice = invoice;
        }
        return say(made);
      }
      throw new Refusal(404, `Unrecognized request URL (${method}: ${pathname}).`);
    } catch (error) {
      if (error.answer) return error.answer;
      throw error;
    }
  }

  sessionOf(reference) {
    const found = [...this.sessions].filter(([, it]) => it.client_reference_id === reference);
    if (found.length !== 1) throw new Error(`${found.length} sessions have the reference ${reference}`);
    return found[0];
  }

  /// The buyer pays with a card, good or declined. Answers whether it is paid.
  async pay(id, card = "good") {
    const own = this.sessions.get(id);
    const { status } = await ask(this.emulate, "GET", `/v1/checkout/sessions/${id}`);
    if (status !== "open") return false;
    own.customer ??= (await this.money.ask("POST", "customers", { email: own.customer_email })).id;
    const named = Object.entries(own.metadata).map(([name, value]) => [`metadata[${name}]`, value]);
    const { amount_total: amount, currency, customer, lines } = own;
    const metadata = Object.fromEntries(named);
    let isPaid;
    if (own.mode === "payment") {
      const intent = await this.money.charge({ amount, currency, customer, metadata }, card);
      own.intent = intent.id;
      isPaid = intent.status === "succeeded";
    } else {
      const made = await this.money.subscribe({ price: lines[0].price.id, customer, metadata }, card);
      isPaid = made.status === "active";
      if (isPaid) Object.assign(own, { subscription: made.id, invoice: made.latest_invoice });
    }
    if (!isPaid) return false;
    own.charges += 1;
    await fetch(`${this.emulate}/checkout/${id}/complete`, { method: "POST", redirect: "manual" });
    return true;
  }

  /// The charge that paid a reference: of a subscription, the first one.
  async chargeOf(reference) {
    const [, own] = this.sessionOf(reference);
    const intent = own.intent ?? (await this.money.ask("GET", `invoices/${own.invoice}`)).payment_intent;
    return (await this.money.intent(intent)).latest_charge;
  }
}
