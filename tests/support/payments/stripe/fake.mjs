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
// - disputes, and the signed webhooks about refunds and disputes;
// - the states that localstripe does not move by itself: a subscription with an unpaid renewal is past due, and its
//   period goes on;
// - required properties that say nothing, see `completed` in description.mjs.
import { createHmac } from "node:crypto";
import { unflattened } from "../checks.mjs";
import { completed } from "./description.mjs";

const CARDS = { good: "4242424242424242", declined: "4000000000000341" };

export class Refusal extends Error {
  constructor(status, message, code, type = "invalid_request_error") {
    super(message);
    this.answer = { status, body: JSON.stringify({ error: { message, type, ...(code ? { code } : {}) } }) };
  }
}

/// Sends a form to one of the programs, and answers with the object; throws its refusal.
async function ask(base, method, path, form) {
  const headers = { authorization: "Bearer sk_test_of_the_tests" };
  const body = form && new URLSearchParams(Object.entries(form).filter(([, value]) => value !== undefined));
  const answer = await fetch(base + path, { method, headers, body });
  const made = await answer.json();
  if (answer.ok) return made;
  throw new Refusal(answer.status, made.error?.message ?? "Bad request", made.error?.code);
}

export class Fake {
  /// What ours is of a session, by its id.
  sessions = new Map();
  disputes = [];
  /// How many periods of a subscription have ended.
  #periods = new Map();
  #keys = new Map();

  constructor({ secretKey, webhookSecret }, gate) {
    Object.assign(this, { secretKey, webhookSecret, gate });
  }

  sign(body, secret = this.webhookSecret, time = Math.floor(Date.now() / 1000)) {
    const v1 = createHmac("sha256", secret).update(`${time}.${body}`).digest("hex");
    return { "stripe-signature": `t=${time},v1=${v1}` };
  }

  #notify(type, object) {
    const event = {
      id: `evt_${Date.now()}`,
      object: "event",
      api_version: "2022-11-15",
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

  money(method, path, form) {
    return ask(this.localstripe, method, `/v1/${path}`, form);
  }

  /// A price with a period: {id, name, amount, currency, interval, tiers, once}.
  async price({
    id,
    name = "Gold",
    amount = 900,
    currency = "eur",
    interval = "month",
    once = false,
    archived = false,
  }) {
    const product = await ask(this.emulate, "POST", "/v1/products", { name });
    const price = await ask(this.emulate, "POST", "/v1/prices", { product: product.id, currency, unit_amount: amount });
    await this.money("POST", "plans", { id, amount, currency, interval, "product[name]": name });
    this.prices.set(id, { price, product, interval, once, archived });
  }
  prices = new Map();

  #shownPrice(id, expand) {
    const found = this.prices.get(id);
    if (!found) throw new Refusal(404, `No such price: '${id}'`, "resource_missing");
    const recurring = { interval: found.interval, interval_count: 1, usage_type: "licensed" };
    const product = expand.includes("product") ? completed("product", found.product) : found.product.id;
    const type = found.once ? "one_time" : "recurring";
    return completed("price", {
      ...found.price,
      id,
      product,
      type,
      recurring: found.once ? null : recurring,
      active: !found.archived,
    });
  }

  /// Does what a request asks for once for each idempotency key, and answers the same again.
  async #once({ headers, url, body }, act) {
    const key = headers["idempotency-key"];
    if (!key) return act();
    const asked = `${url} ${body}`;
    const known = this.#keys.get(key);
    if (known && known.asked !== asked) {
      const message = `Keys for idempotent requests can only be used with the same parameters they were first used with. Try using a key other than '${key}' if you meant to execute a different request.`;
      throw new Refusal(400, message, undefined, "idempotency_error");
    }
    if (known && !known.answer)
      throw new Refusal(
        409,
        "There is currently another in-progress request using this idempotency key.",
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
      const price = id ? this.#shownPrice(id, []) : await this.#inline(data);
      if (id && (price.type === "recurring") !== (mode === "subscription"))
        throw new Refusal(
          400,
          "You must provide at least one recurring price in `subscription` mode when using prices.",
        );
      const known = id ? this.prices.get(id).price.id : price.id;
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

  async #inline({ currency, unit_amount, product_data }) {
    const product = await ask(this.emulate, "POST", "/v1/products", { name: product_data.name });
    return ask(this.emulate, "POST", "/v1/prices", { product: product.id, currency, unit_amount });
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
    made.payment_intent = own?.intent ? (wants("payment_intent") ? await this.intent(own.intent) : own.intent) : null;
    made.subscription = own?.subscription ?? null;
    made.invoice = own?.invoice ? (wants("invoice") ? await this.#invoice(own.invoice) : own.invoice) : null;
    return completed("checkout.session", made);
  }

  async intent(id) {
    const { charges, ...made } = await this.money("GET", `payment_intents/${id}`);
    const latest_charge = made.latest_charge && this.#charge(made.latest_charge);
    const last_payment_error = made.last_payment_error && { type: "card_error", ...made.last_payment_error };
    return completed("payment_intent", { ...made, latest_charge, last_payment_error });
  }

  #charge({ refunds, ...made }) {
    const disputed = this.disputes.some((it) => it.charge === made.id);
    return completed("charge", { ...made, disputed, refunded: made.amount_refunded === made.amount });
  }

  async #invoice(id) {
    const made = await this.money("GET", `invoices/${id}`);
    const { lines, parent, ...plain } = made;
    const charge =
      made.charge &&
      this.#charge(typeof made.charge === "string" ? await this.money("GET", `charges/${made.charge}`) : made.charge);
    const payment_intent = made.payment_intent && (await this.intent(made.payment_intent));
    return completed("invoice", { ...plain, charge, payment_intent, paid: made.status === "paid" });
  }

  async #subscription(id) {
    const made = await this.money("GET", `subscriptions/${id}`);
    const latest_invoice = made.latest_invoice && (await this.#invoice(made.latest_invoice));
    const length = made.current_period_end - made.current_period_start;
    const shift = (this.#periods.get(id) ?? 0) * length;
    const data = made.items.data.map(({ plan, ...item }) =>
      completed("subscription_item", { ...item, price: this.#shownPrice(plan.id, []) }),
    );
    const { email } = await this.money("GET", `customers/${made.customer}`);
    const { plan, quantity, tax_percent, default_tax_rates, ...plain } = made;
    const isUnpaid = made.status === "active" && latest_invoice?.status === "open";
    return completed("subscription", {
      ...plain,
      status: isUnpaid ? "past_due" : made.status,
      latest_invoice,
      items: { ...made.items, data },
      customer: completed("customer", { id: made.customer, email }),
      current_period_start: made.current_period_start + shift,
      current_period_end: made.current_period_end + shift,
    });
  }

  /// Answers a call of the API.
  async api(request) {
    const { method, url, headers, body } = request;
    const { pathname, search } = new URL(url, "http://stripe");
    const query = unflattened(search.slice(1));
    const expand = query.expand ?? [];
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
      if (kind === "prices") return say(this.#shownPrice(id, expand));
      if (kind === "subscriptions") return say(await this.#subscription(id));
      if (kind === "disputes")
        return say({
          object: "list",
          data: this.disputes.filter((it) => it.charge === query.charge),
          has_more: false,
          url: pathname,
        });
      if (kind === "payment_intents") {
        const made = await this.intent(id);
        if (made.invoice) {
          const invoice = await this.#invoice(made.invoice);
          invoice.subscription = invoice.subscription && (await this.#subscription(invoice.subscription));
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

  async #card(customer, card) {
    const details = {
      type: "card",
      "card[number]": CARDS[card],
      "card[exp_month]": 12,
      "card[exp_year]": 2034,
      "card[cvc]": 123,
    };
    const method = await this.money("POST", "payment_methods", details);
    await this.money("POST", `payment_methods/${method.id}/attach`, { customer });
    await this.money("POST", `customers/${customer}`, { "invoice_settings[default_payment_method]": method.id });
    return method.id;
  }

  /// The buyer pays with a card, good or declined. Answers whether it is paid.
  async pay(id, card = "good") {
    const own = this.sessions.get(id);
    const { status } = await ask(this.emulate, "GET", `/v1/checkout/sessions/${id}`);
    if (status !== "open") return false;
    own.customer ??= (await this.money("POST", "customers", { email: own.customer_email })).id;
    const method = await this.#card(own.customer, card);
    const metadata = Object.fromEntries(
      Object.entries(own.metadata).map(([name, value]) => [`metadata[${name}]`, value]),
    );
    let isPaid;
    if (own.mode === "payment") {
      const { amount_total: amount, currency, customer } = own;
      const intent = await this.money("POST", "payment_intents", {
        amount,
        currency,
        customer,
        payment_method: method,
        ...metadata,
      });
      own.intent = intent.id;
      await this.money("POST", `payment_intents/${intent.id}/confirm`, {}).catch((error) => {
        if (error.answer?.status !== 402) throw error;
      });
      isPaid = (await this.intent(intent.id)).status === "succeeded";
    } else {
      const made = await this.money("POST", "subscriptions", {
        customer: own.customer,
        "items[0][plan]": own.lines[0].price.id,
        ...metadata,
      });
      isPaid = made.status === "active";
      if (isPaid) Object.assign(own, { subscription: made.id, invoice: made.latest_invoice });
    }
    if (!isPaid) return false;
    own.charges += 1;
    await fetch(`${this.emulate}/checkout/${id}/complete`, { method: "POST", redirect: "manual" });
    return true;
  }

  async #chargeOf(reference) {
    const [, own] = this.sessionOf(reference);
    const intent = own.intent ?? (await this.money("GET", `invoices/${own.invoice}`)).payment_intent;
    return (await this.intent(intent)).latest_charge;
  }

  async refund({ reference, amount }) {
    const { payment_intent } = await this.#chargeOf(reference);
    await this.money("POST", "refunds", { payment_intent, amount });
    await this.#notify("charge.refunded", await this.#chargeOf(reference));
  }

  /// A dispute begins, or changes: {status} of Stripe, such as `needs_response`, `won` and `lost`.
  async dispute({ reference, status = "needs_response" }) {
    const charge = await this.#chargeOf(reference);
    let found = this.disputes.find((it) => it.charge === charge.id);
    if (!found) {
      const { amount, currency, payment_intent } = charge;
      found = completed("dispute", {
        id: `dp_${charge.id}`,
        amount,
        currency,
        charge: charge.id,
        payment_intent,
        reason: "fraudulent",
        created: Math.floor(Date.now() / 1000),
      });
      this.disputes.push(found);
    }
    found.status = status;
    const isOver = ["won", "lost", "warning_closed"].includes(status);
    await this.#notify(`charge.dispute.${isOver ? "closed" : "created"}`, found);
  }

  /// A period of a subscription ends. The renewal is paid with a card, good or declined.
  async renew({ id, card = "good" }) {
    const { customer } = await this.money("GET", `subscriptions/${id}`);
    await this.#card(customer, card);
    const invoice = await this.money("POST", "invoices", { customer, subscription: id });
    await this.money("POST", `invoices/${invoice.id}/pay`, {}).catch((error) => {
      if (error.answer?.status !== 402) throw error;
    });
    this.#periods.set(id, (this.#periods.get(id) ?? 0) + 1);
    const made = await this.#invoice(invoice.id);
    await this.#notify(made.paid ? "invoice.paid" : "invoice.payment_failed", { ...made, subscription: id });
  }

  /// The buyer pays the renewal that was declined.
  async settle({ id }) {
    const { customer, latest_invoice } = await this.money("GET", `subscriptions/${id}`);
    await this.#card(customer, "good");
    await this.money("POST", `invoices/${latest_invoice}/pay`, {});
    await this.#notify("invoice.paid", { ...(await this.#invoice(latest_invoice)), subscription: id });
  }

  /// The buyer cancels: the subscription ends with its period, or {now: true}.
  async cancel({ id, now = false }) {
    if (now) await this.money("DELETE", `subscriptions/${id}`);
    else await this.money("POST", `subscriptions/${id}`, { cancel_at_period_end: true });
    await this.#notify(`customer.subscription.${now ? "deleted" : "updated"}`, await this.#subscription(id));
  }
}
