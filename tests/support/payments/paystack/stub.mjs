// A stateful stub of Paystack. No program of somebody else behaves like Paystack, so all of it is ours; its answers
// are checked against description.mjs. Pages followed: "Transactions", "Plans", "Subscriptions", "Refunds", "Disputes"
// and "Errors" of paystack.com/docs/api, "Subscriptions" and "Webhooks" of paystack.com/docs/payments.
import { createHmac, randomBytes } from "node:crypto";

const PERIODS = { hourly: 1 / 24, daily: 1, weekly: 7, monthly: 30, quarterly: 91, biannually: 182, annually: 365 };
const RESOLUTIONS = { open: null, won: "declined", lost: "merchant-accepted" };
/// Properties that Paystack always has, and that say nothing here.
const nothing = (...names) => Object.fromEntries(names.map((name) => [name, null]));
const unique = (prefix) => prefix + randomBytes(8).toString("hex").slice(0, 15);
const later = (time, plan, periods = 1) =>
  new Date(Date.parse(time) + periods * PERIODS[plan.interval] * 86_400_000).toISOString();

export class Refusal extends Error {
  constructor(status, message, code, type = "validation_error") {
    super(message);
    const meta = { nextStep: "Ensure that the value(s) you're passing are valid." };
    this.answer = { status, body: JSON.stringify({ status: false, message, meta, type, code }) };
  }
}

export class Stub {
  transactions = new Map();
  plans = new Map();
  subscriptions = new Map();
  refunds = [];
  disputes = [];
  #customers = new Map();
  /// The currencies of the account's balances.
  balances = ["NGN"];
  /// After how many looks a subscription is there.
  #looks = new Map();
  #last = 1_000;

  /// `deliver(body, headers)` sends a webhook. How often the list of subscriptions is asked for before a new one
  /// is in it: `looks`.
  constructor({ secretKey, currencies = ["NGN", "GHS", "ZAR", "KES", "USD", "XOF"], looks = 1 }, deliver) {
    Object.assign(this, { secretKey, currencies, looks, deliver });
  }

  #id() {
    this.#last += 1;
    return this.#last;
  }

  notify(event, data) {
    const body = JSON.stringify({ event, data });
    const signature = createHmac("sha512", this.secretKey).update(body).digest("hex");
    return this.deliver(body, { "x-paystack-signature": signature });
  }

  #customer(email) {
    const made = () => ({
      id: this.#id(),
      first_name: null,
      last_name: null,
      email,
      customer_code: unique("CUS_"),
      phone: null,
      metadata: null,
      risk_action: "default",
      international_format_phone: null,
    });
    if (!this.#customers.has(email)) this.#customers.set(email, made());
    return this.#customers.get(email);
  }

  plan({
    code = unique("PLN_"),
    name = "Monthly",
    amount = 5000,
    currency = "NGN",
    interval = "monthly",
    archived = false,
  }) {
    const plan = {
      id: this.#id(),
      domain: "test",
      name,
      plan_code: code,
      description: null,
      amount,
      interval,
      send_invoices: true,
      send_sms: true,
      currency,
      is_deleted: false,
      is_archived: archived,
    };
    this.plans.set(code, plan);
    return plan;
  }

  found(reference) {
    const found = [...this.transactions.values()].find(
      (it) => it.reference === reference || String(it.id) === reference || it.access_code === reference,
    );
    if (!found) throw new Refusal(400, "Transaction reference not found.", "transaction_not_found");
    return found;
  }

  #plan(code) {
    const plan = this.plans.get(code);
    if (!plan) throw new Refusal(404, "Plan not found", "not_found", "api_error");
    return plan;
  }

  subscription(code) {
    const found = this.subscriptions.get(code);
    if (!found || this.#looks.has(found))
      throw new Refusal(404, "Subscription with code/id not found", "not_found", "api_error");
    return found;
  }

  initialize({ email, amount, currency = "NGN", reference = unique("T"), callback_url, plan, metadata = "" }) {
    if (this.transactions.has(reference))
      throw new Refusal(400, "Duplicate Transaction Reference", "duplicate_reference");
    if (!this.currencies.includes(currency))
      throw new Refusal(403, "Currency not supported by merchant", "unsupported_currency");
    const priced = plan ? this.#plan(plan).amount : amount;
    const made = {
      id: this.#id(),
      domain: "test",
      status: "abandoned",
      reference,
      amount: priced,
      message: null,
      gateway_response: "The transaction was not completed",
      paid_at: null,
      created_at: new Date().toISOString(),
      channel: "card",
      currency,
      ip_address: "127.0.0.1",
      metadata,
      log: null,
      fees: null,
      requested_amount: priced,
      plan: plan ?? null,
      plan_object: plan ? this.plans.get(plan) : {},
      customer: this.#customer(email),
      authorization: {},
      split: {},
      subaccount: {},
      access_code: unique(""),
      callback_url,
      charges: 0,
    };
    this.transactions.set(reference, made);
    return made;
  }

  /// The buyer pays. `extra`: fees that the buyer pays on top. `amount`: another amount than what was asked for.
  async pay({ reference, extra = 0, amount, currency }) {
    const it = this.found(reference);
    if (it.status === "success") return it;
    it.charges += 1;
    Object.assign(it, {
      status: "success",
      gateway_response: "Successful",
      paid_at: new Date().toISOString(),
      fees: 150 + extra,
      amount: (amount ?? it.amount) + extra,
      currency: currency ?? it.currency,
    });
    await this.notify("charge.success", shown(it));
    if (it.plan) this.#subscribe(it);
    return it;
  }

  async decline({ reference, reason = "Insufficient Funds" }) {
    const it = this.found(reference);
    if (it.status !== "success") Object.assign(it, { status: "failed", gateway_response: reason });
    return it;
  }

  /// Paystack makes the subscription some time after the charge.
  #subscribe(charge) {
    const plan = this.plans.get(charge.plan);
    const { domain, customer, paid_at } = charge;
    const made = {
      id: this.#id(),
      domain,
      status: "active",
      subscription_code: unique("SUB_"),
      email_token: unique(""),
      amount: plan.amount,
      cron_expression: "0 0 28 * *",
      next_payment_date: later(paid_at, plan),
      createdAt: new Date().toISOString(),
      plan,
      customer,
      most_recent_invoice: null,
      payments_count: 1,
      authorization: {},
      open_invoice: null,
      invoice_limit: 0,
      integration: 1,
    };
    this.subscriptions.set(made.subscription_code, made);
    this.#looks.set(made, this.looks);
  }

  /// The subscriptions come that are not there yet, without a look.
  async begin() {
    for (const it of this.#looks.keys()) {
      this.#looks.delete(it);
      await this.notify("subscription.create", it);
    }
  }

  /// A look at the list. What is made comes after some looks.
  async looked(customer) {
    const all = [...this.subscriptions.values()].filter((it) => String(it.customer.id) === customer);
    const seen = all.filter((it) => !this.#looks.has(it));
    for (const it of all.filter((it) => this.#looks.has(it))) {
      const left = this.#looks.get(it) - 1;
      this.#looks.set(it, left);
      if (left > 0) continue;
      this.#looks.delete(it);
      await this.notify("subscription.create", it);
    }
    return seen;
  }

  async refund({ reference, amount, status = "processed" }) {
    const it = this.found(reference);
    const made = {
      id: this.#id(),
      integration: 1,
      domain: "test",
      transaction: it.id,
      transaction_reference: it.reference,
      amount: amount ?? it.amount,
      deducted_amount: 0,
      fully_deducted: 0,
      refunded_by: "merchant@example.com",
      initiated_by: "merchant@example.com",
      customer_note: "",
      merchant_note: "",
      reason: "",
      refund_type: "partial",
      refund_channel: "",
      transaction_amount: it.amount,
      collect_account_number: false,
      customer: it.customer,
      ...nothing("dispute", "settlement", "refunded_at", "bank_reference", "session_id"),
      currency: it.currency,
      status,
      createdAt: new Date().toISOString(),
    };
    this.refunds.push(made);
    const given = this.refunds
      .filter((of) => of.transaction === it.id && of.status === "processed")
      .reduce((sum, of) => sum + of.amount, 0);
    if (given >= it.amount) it.status = "reversed";
    await this.notify(`refund.${status}`, { ...made, amount: String(made.amount) });
  }

  /// The buyer's bank asks for the money back, or it is decided: {status: "open" | "won" | "lost"}.
  async dispute({ reference, status = "open" }) {
    const resolution = RESOLUTIONS[status];
    const it = this.found(reference);
    let about = this.disputes.find((of) => of.transaction.id === it.id);
    if (!about) {
      about = {
        id: this.#id(),
        refund_amount: it.amount,
        currency: it.currency,
        domain: "test",
        transaction: shown(it),
        category: "chargeback",
        bin: "408408",
        last4: "4081",
        history: [],
        messages: [],
        ...nothing("transaction_reference", "dueAt", "resolvedAt", "evidence", "attachments", "note"),
        customer: it.customer,
        createdAt: new Date().toISOString(),
        updatedAt: new Date().toISOString(),
      };
      this.disputes.push(about);
    }
    Object.assign(about, { resolution, status: resolution ? "resolved" : "awaiting-merchant-feedback" });
    await this.notify(`charge.dispute.${resolution ? "resolve" : "create"}`, about);
  }

  /// A period of a subscription ends: the renewal is paid, or {isDeclined: true}.
  async renew({ id, isDeclined = false }) {
    const it = this.subscription(id);
    const reason = isDeclined ? "Insufficient Funds" : null;
    const start = it.next_payment_date;
    const end = later(start, it.plan);
    const invoice = {
      invoice_code: unique("INV_"),
      status: reason ? "failed" : "success",
      paid: !reason,
      period_start: start,
      period_end: end,
      amount: it.amount,
      description: reason,
    };
    Object.assign(it, {
      status: reason ? "attention" : "active",
      next_payment_date: end,
      most_recent_invoice: invoice,
    });
    const event = reason ? "invoice.payment_failed" : "invoice.update";
    if (!reason) it.payments_count += 1;
    await this.notify(event, {
      ...invoice,
      subscription: { status: it.status, subscription_code: id },
      customer: it.customer,
      transaction: {},
    });
  }

  /// The buyer cancels: the subscription ends with its period, or {now: true}.
  async cancel({ id, now = false }) {
    const it = this.subscription(id);
    Object.assign(it, { status: now ? "cancelled" : "non-renewing" });
    if (now) it.next_payment_date = null;
    await this.notify(now ? "subscription.disable" : "subscription.not_renew", it);
  }
}

/// A transaction as Paystack shows it.
export function shown({ access_code, callback_url, charges, ...seen }) {
  const { paid_at: paidAt, created_at: createdAt } = seen;
  const rest = nothing(
    "receipt_number",
    "fees_split",
    "order_id",
    "pos_transaction_data",
    "source",
    "fees_breakdown",
    "connect",
  );
  return { ...seen, ...rest, paidAt, createdAt, transaction_date: createdAt };
}
