// The payments of the platform: creates checkouts and asks what became of them.
const { SVC_URL, SVC_APPLICATION_ID, SVC_JAVASCRIPT_KEY, SVC_APP_ID, STORE_ID } = process.env;

const WITHIN_MS = 30_000;

// Without these settings, the storefront only lists.
const sells = Boolean(SVC_URL && SVC_APPLICATION_ID && SVC_APP_ID && STORE_ID);

// The platform refused, for the reason in the message.
class Refused extends Error {}

async function call(name, params, requestId) {
  const response = await fetch(`${SVC_URL.replace(/\/$/, '')}/functions/${name}`, {
    method: 'POST',
    headers: {
      'Content-Type': 'application/json',
      'X-Backend-Application-Id': SVC_APPLICATION_ID,
      ...(SVC_JAVASCRIPT_KEY && { 'X-Backend-JavaScript-Key': SVC_JAVASCRIPT_KEY }),
      // The same id makes the same checkout.
      ...(requestId && { 'X-Backend-Request-Id': requestId }),
    },
    body: JSON.stringify(params),
    signal: AbortSignal.timeout(WITHIN_MS),
  });
  const reply = await response.json();
  if (response.ok) return reply.result ?? reply;
  // 5xx and 429: another attempt may succeed.
  const message = reply.error ?? `the platform answered ${response.status}`;
  throw response.status >= 500 || response.status === 429 ? new Error(message) : new Refused(message);
}

// Creates a checkout of the order, and returns the address at which the shopper pays.
async function checkout(order, callbackUrl, requestId) {
  const params = { flow: 'commerce', appId: SVC_APP_ID, storeId: STORE_ID, ...order, callbackUrl };
  const { checkoutUrl } = await call('svc_checkout_create', params, requestId);
  if (!/^https?:\/\//.test(checkoutUrl)) throw new Error('the platform gave no address to pay at');
  return checkoutUrl;
}

// What became of a checkout: { status, amount, currency, orderCode }.
const verify = reference => call('svc_checkout_verify', { reference });

module.exports = { sells, checkout, verify, Refused };
