// The money of the Stripe for tests: what `localstripe` has, as Stripe shows it. See fake.mjs for what is ours.
import { completed } from "./description.mjs";

const CARDS = { good: "4242424242424242", declined: "4000000000000341" };

export class Refusal extends Error {
  constructor(status, message, code, type = "invalid_request_error") {
    super(message);
    this.answer = { status, body: JSON.stringify({ error: { message, type, ...(code ? { code } : {}) } }) };
  }
}

/// Sends a form to one of the programs, and answers with the object; throws its refusal.
export async function ask(base, method, path, form) {
  const headers = { authorization: "Bearer sk_test_of_the_tests" };
  const body = form && new URLSearchParams(Object.entries(form).filter(([, value]) => value !== undefined));
  const answer = await fetch(base + path, { method, headers, body });
  const made = await answer.json();
  if (answer.ok) return made;
  throw new Refusal(answer.status, made.error?.message ?? "Bad request", made.error?.code);
}

/// Answers what `act` answers, also if a card is declined.
function declining(act) {
  return act.catch((error) => {
    if (error.answer?.status !== 402) throw error;
  });
}

export class Money {
  prices = new Map();
  disputes = [];
  /// How many periods of a subscription have ended.
  #periods = new Map();
  #notify;

  /// The addresses of the two programs. `notify(type, object)` sends a webhook.
  constructor(emulate, localstripe, notify) {
    Object.assign(this, { emulate, localstripe });
    this.#notify = notify;
  }

  ask(method, path, form) {
    return ask(this.localstripe, method, `/v1/${path}`, form);
  }

  /// A price with a period: {id, name, amount, currency, interval, once, archived}.
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
    await this.ask("POST", "plans", { id, amount, currency, interval, "product[name]": name });
    this.prices.set(id, { price, product, interval, once, archived });
  }
  shownPrice(id, expand) {
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

  async inline({ currency, unit_amount, product_data }) {
    const product = await ask(this.emulate, "POST", "/v1/products", { name: product_data.name });
    return ask(this.emulate, "POST", "/v1/prices", { product: product.id, currency, unit_amount });
  }

  async intent(id) {
    const { charges, ...made } = await this.ask("GET", `payment_intents/${id}`);
    const latest_charge = made.latest_charge && this.shownCharge(made.latest_charge);
    const last_payment_error = made.last_payment_error && { type: "card_error", ...made.last_payment_error };
    return completed("payment_intent", { ...made, latest_charge, last_payment_error });
  }

  shownCharge({ refunds, ...made }) {
    const disputed = this.disputes.some((it) => it.charge === made.id);
    return completed("charge", { ...made, disputed, refunded: made.amount_refunded === made.amount });
  }

  async invoice(id) {
    const made = await this.ask("GET", `invoices/${id}`);
    const { lines, parent, ...plain } = made;
    const charge =
      made.charge &&
      this.shownCharge(typeof made.charge === "string" ? await this.ask("GET", `charges/${made.charge}`) : made.charge);
    const payment_intent = made.payment_intent && (await this.intent(made.payment_intent));
    return completed("invoice", { ...plain, charge, payment_intent, paid: made.status === "paid" });
  }

  async subscription(id) {
    const made = await this.ask("GET", `subscriptions/${id}`);
    const latest_invoice = made.latest_invoice && (await this.invoice(made.latest_invoice));
    const length = made.current_period_end - made.current_period_start;
    const shift = (this.#periods.get(id) ?? 0) * length;
    const data = made.items.data.map(({ plan, ...item }) =>
      completed("subscription_item", { ...item, price: this.shownPrice(plan.id, []) }),
    );
    const { email } = await this.ask("GET", `customers/${made.customer}`);
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

  async card(customer, card) {
    const details = {
      type: "card",
      "card[number]": CARDS[card],
      "card[exp_month]": 12,
      "card[exp_year]": 2034,
      "card[cvc]": 123,
    };
    const method = await this.ask("POST", "payment_methods", details);
    await this.ask("POST", `payment_methods/${method.id}/attach`, { customer });
    await this.ask("POST", `customers/${customer}`, { "invoice_settings[default_payment_method]": method.id });
    return method.id;
  }

  /// Charges a customer once. Answers with the payment intent, which is not paid if the card is declined.
  async charge({ amount, currency, customer, metadata }, card) {
    const payment_method = await this.card(customer, card);
    const asked = { amount, currency, customer, payment_method, ...metadata };
    const { id } = await this.ask("POST", "payment_intents", asked);
    await declining(this.ask("POST", `payment_intents/${id}/confirm`, {}));
    return this.intent(id);
  }

  /// Begins a subscription. Answers with it as localstripe has it: it is not active if the card is declined.
  async subscribe({ price, customer, metadata }, card) {
    await this.card(customer, card);
    return this.ask("POST", "subscriptions", { customer, "items[0][plan]": price, ...metadata });
  }

  /// Gives back an amount of a charge, or all of it.
  async refund({ payment_intent }, amount) {
    await this.ask("POST", "refunds", { payment_intent, amount });
    await this.#notify("charge.refunded", (await this.intent(payment_intent)).latest_charge);
  }

  /// A dispute begins, or changes to a status of Stripe.
  async dispute(charge, status) {
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

  /// A period of a subscription ends: the renewal is paid, or {isDeclined: true}.
  async renew({ id, isDeclined = false }) {
    const { customer } = await this.ask("GET", `subscriptions/${id}`);
    await this.card(customer, isDeclined ? "declined" : "good");
    const invoice = await this.ask("POST", "invoices", { customer, subscription: id });
    await declining(this.ask("POST", `invoices/${invoice.id}/pay`, {}));
    this.#periods.set(id, (this.#periods.get(id) ?? 0) + 1);
    const made = await this.invoice(invoice.id);
    await this.#notify(made.paid ? "invoice.paid" : "invoice.payment_failed", { ...made, subscription: id });
  }

  /// The buyer pays the renewal that was declined.
  async settle({ id }) {
    const { customer, latest_invoice } = await this.ask("GET", `subscriptions/${id}`);
    await this.card(customer, "good");
    await this.ask("POST", `invoices/${latest_invoice}/pay`, {});
    await this.#notify("invoice.paid", { ...(await this.invoice(latest_invoice)), subscription: id });
  }

  /// The buyer cancels: the subscription ends with its period, or {now: true}.
  async cancel({ id, now = false }) {
    if (now) await this.ask("DELETE", `subscriptions/${id}`);
    else await this.ask("POST", `subscriptions/${id}`, { cancel_at_period_end: true });
    await this.#notify(`customer.subscription.${now ? "deleted" : "updated"}`, await this.subscription(id));
  }
}
