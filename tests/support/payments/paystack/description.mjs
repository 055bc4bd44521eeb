// The part of Paystack's API that the tests need, as an OpenAPI 3.0 description. The facts are from the API reference
// at paystack.com/docs/api (Transactions, Plans, Subscriptions, Refunds, Disputes, Balance, Errors) and from Paystack's
// own description, `dist/paystack.yaml` in the GitHub repository PaystackOSS/openapi, which no package registry has.
//
// Where the two differ, both are allowed: an unknown reference is 404 in the description and 400 in practice; a
// subscription has no next payment when it does not go on; and lists can be filtered by what the reference names.
const text = { type: "string" };
const number = { type: "integer" };
const flag = { type: "boolean" };
const time = { type: "string", pattern: "^\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d\\.\\d{3}Z$" };
const maybe = (schema) => ({ ...schema, nullable: true });
const list = (items) => ({ type: "array", items });
/// An object of which all these properties are there; `free` are ones of which nothing else is known.
const object = (properties, free = []) => ({
  type: "object",
  properties: { ...properties, ...Object.fromEntries(free.map((name) => [name, {}])) },
  required: [...Object.keys(properties), ...free],
});
const metadata = { anyOf: [{ type: "object" }, text, number], nullable: true };
const plan = {
  id: number,
  name: text,
  plan_code: text,
  description: maybe(text),
  amount: number,
  interval: text,
  send_invoices: flag,
  send_sms: flag,
  currency: text,
};
const customer = object({
  id: number,
  first_name: maybe(text),
  last_name: maybe(text),
  email: text,
  customer_code: text,
  phone: maybe(text),
  metadata,
  risk_action: text,
});
const transaction = {
  id: number,
  domain: text,
  status: text,
  reference: text,
  amount: number,
  message: maybe(text),
  gateway_response: text,
  paid_at: maybe(time),
  created_at: time,
  channel: text,
  currency: text,
  ip_address: maybe(text),
  metadata,
};
const seen = object({ ...transaction, fees: maybe(number), requested_amount: number, plan: maybe(text), customer }, [
  "log",
  "authorization",
  "plan_object",
  "split",
  "subaccount",
]);
const invoice = maybe(
  object({
    invoice_code: text,
    status: text,
    paid: { anyOf: [flag, number] },
    period_start: time,
    period_end: time,
    amount: number,
    description: maybe(text),
  }),
);
const subscription = object(
  {
    id: number,
    domain: text,
    status: text,
    subscription_code: text,
    email_token: text,
    amount: number,
    cron_expression: text,
    next_payment_date: maybe(time),
    createdAt: time,
    plan: object(plan),
    customer,
    most_recent_invoice: invoice,
    payments_count: number,
  },
  ["authorization", "open_invoice", "invoice_limit", "integration"],
);
const refund = object({
  id: number,
  integration: number,
  domain: text,
  transaction: number,
  transaction_reference: text,
  amount: number,
  deducted_amount: maybe(number),
  currency: text,
  status: { type: "string", enum: ["pending", "processing", "processed", "failed", "needs-attention"] },
  createdAt: time,
});
const dispute = object(
  {
    id: number,
    refund_amount: maybe(number),
    currency: maybe(text),
    resolution: maybe(text),
    domain: text,
    status: {
      type: "string",
      enum: ["awaiting-merchant-feedback", "awaiting-bank-feedback", "pending", "resolved", "archived"],
    },
    transaction: object(transaction),
    category: maybe(text),
    createdAt: time,
  },
  ["customer"],
);

const json = (schema) => ({ description: "", content: { "application/json": { schema } } });
const done = (data, meta) =>
  json(
    object({
      status: flag,
      message: text,
      data,
      ...(meta ? { meta: object({ total: number, perPage: number, page: number, pageCount: number }) } : {}),
    }),
  );
const refused = json({
  type: "object",
  properties: { status: flag, message: text, type: text, code: text, meta: object({ nextStep: text }) },
  required: ["status", "message"],
});
const refusals = Object.fromEntries([400, 401, 403, 404].map((status) => [status, refused]));
const query = (name, schema = text) => ({ name, in: "query", schema });
const paged = [query("perPage", number), query("page", number), query("from"), query("to")];
const get = (data, parameters = []) => ({
  get: { parameters, responses: { 200: done(data, parameters.length > 0), ...refusals } },
});

const initialize = {
  type: "object",
  required: ["email", "amount"],
  properties: {
    email: text,
    amount: { type: "integer", minimum: 1 },
    currency: { type: "string", enum: ["NGN", "GHS", "ZAR", "KES", "USD", "XOF", "RWF", "EGP"] },
    reference: { type: "string", pattern: "^[A-Za-z0-9.=-]+$" },
    callback_url: text,
    plan: text,
    invoice_limit: number,
    metadata: { type: "object", additionalProperties: true },
  },
};

export const description = {
  components: {},
  paths: {
    "/transaction/initialize": {
      post: {
        requestBody: { content: { "application/json": { schema: initialize } } },
        responses: { 200: done(object({ authorization_url: text, access_code: text, reference: text })), ...refusals },
      },
    },
    "/transaction/verify/{reference}": get(seen),
    "/transaction/{id}": get(seen),
    "/plan/{code}": get(object({ ...plan, domain: text, is_deleted: flag, is_archived: flag })),
    "/subscription": get(list(subscription), [...paged, query("customer"), query("plan", number)]),
    "/subscription/{code}": get(subscription),
    "/refund": get(list(refund), [...paged, query("transaction"), query("currency")]),
    "/dispute": get(list(dispute), [...paged, query("transaction"), query("status")]),
    "/balance": get(list(object({ currency: text, balance: number }))),
  },
};
