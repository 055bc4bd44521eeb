// The storefront of one channel of a Vendure server. It lists the products, takes orders of them, and leads to the
// payment. The platform builds the order and names its price.
const { randomUUID } = require('node:crypto');
const http = require('node:http');
const pages = require('./pages.js');
const platform = require('./platform.js');
const shop = require('./shop.js');

const { STOREFRONT_URL, PORT = 8080 } = process.env;

// Bytes of a form.
const LARGEST = 16 << 10;

const CLOSED = 'The shop is closed for a moment. Please come back later.';

class BadRequest extends Error {}

async function form(request) {
  let body = '';
  for await (const part of request.setEncoding('utf8')) {
    body += part;
    if (body.length > LARGEST) throw new BadRequest('the form is too large');
  }
  return Object.fromEntries([...new URLSearchParams(body)].map(([name, value]) => [name, value.trim()]));
}

// The order of a form, as the platform takes it.
function order({ variantId, quantity, email, name, country, ...given }) {
  const number = Number(quantity);
  if (!variantId) throw new BadRequest('choose a variant');
  if (!Number.isInteger(number) || number < 1 || number > 999) throw new BadRequest('the quantity must be a number from 1 to 999');
  if (!/^\S+@\S+$/.test(email ?? '')) throw new BadRequest('enter an e-mail address');
  if (!name) throw new BadRequest('enter a name');
  if (!given.line1 || !given.city) throw new BadRequest('enter the street and the city');
  if (!/^[A-Za-z]{2}$/.test(country ?? '')) throw new BadRequest('choose a country');
  const shippingAddress = { fullName: name, line1: given.line1, city: given.city, country: country.toUpperCase() };
  for (const optional of ['line2', 'province', 'postalCode', 'phone']) {
    if (given[optional]) shippingAddress[optional] = given[optional];
  }
  return { lineItems: [{ variantId, quantity: number }], customer: { email, name }, shippingAddress };
}

// The address of the page that a payment leads back to.
function callback(request, prefix) {
  const base = STOREFRONT_URL || `http://${request.headers.host}${prefix}`;
  return `${base.replace(/\/$/, '')}/thanks`;
}

async function buy(request, prefix, product) {
  const given = await form(request);
  const requestId = given.requestId || randomUUID();
  try {
    const url = await platform.checkout(order(given), callback(request, prefix), requestId);
    return { status: 303, headers: { Location: url }, body: '' };
  } catch (error) {
    const refused = error instanceof BadRequest || error instanceof platform.Refused;
    if (!refused) console.error('a checkout was not created:', error.cause ?? error);
    // A refused order is another one when it is corrected. One of unknown fate is repeated as it was.
    const next = refused ? randomUUID() : requestId;
    const why = refused ? error.message : 'The payment cannot be reached right now. Nothing was paid; please try again.';
    return { status: refused ? 400 : 502, body: pages.product(prefix, product, next, given, why) };
  }
}

async function thanks(prefix, reference) {
  try {
    return { body: pages.thanks(prefix, await platform.verify(reference)) };
  } catch (error) {
    if (error instanceof platform.Refused) {
      return { status: 404, body: pages.message(prefix, 'No such payment', pages.sentence(error.message)) };
    }
    console.error('a payment was not verified:', error.cause ?? error);
    return { status: 502, body: pages.thanks(prefix, { status: 'pending' }) };
  }
}

async function answer(request, prefix) {
  const { pathname, searchParams } = new URL(request.url, 'http://storefront');
  const reads = request.method === 'GET' || request.method === 'HEAD';
  if (pathname === '/health') return { type: 'application/json', body: '{"status":"ok"}' };
  if (pathname === '/' && reads) return { body: pages.list(prefix, await shop.products(), platform.sells) };
  if (platform.sells) {
    const reference = searchParams.get('reference');
    if (pathname === '/thanks' && reads && reference) return thanks(prefix, reference);
    const slug = pathname.match(/^\/products\/([^/]+)$/)?.[1];
    const product = slug && await shop.product(decodeURIComponent(slug));
    if (product && request.method === 'POST') return buy(request, prefix, product);
    if (product && reads) return { body: pages.product(prefix, product, randomUUID()) };
  }
  return { status: 404, body: pages.message(prefix, 'Not found', 'There is no such page.') };
}

const server = http.createServer(async (request, response) => {
  const given = request.headers['x-forwarded-prefix'] ?? '';
  const prefix = /^(\/[\w.~-]+)*$/.test(given) ? given : '';
  let reply;
  try {
    reply = await answer(request, prefix);
  } catch (error) {
    const bad = error instanceof BadRequest || error instanceof URIError;
    if (!bad) console.error('a page was not made:', error.cause ?? error);
    reply = bad
      ? { status: 400, body: pages.message(prefix, 'Not understood', pages.sentence(error.message)) }
      : { status: 502, body: pages.message(prefix, 'Closed', CLOSED) };
  }
  const { status = 200, type = 'text/html; charset=utf-8', headers, body } = reply;
  response.writeHead(status, {
    'Content-Type': type,
    'Content-Security-Policy': pages.POLICY,
    'Cache-Control': 'no-store',
    'Referrer-Policy': 'same-origin',
    'X-Content-Type-Options': 'nosniff',
    ...headers,
  }).end(body);
});
server.listen(PORT, () => console.log(`storefront on port ${PORT}${platform.sells ? '' : ': it only lists, because not all of SVC_URL, SVC_APPLICATION_ID, SVC_APP_ID and STORE_ID are set'}`));
process.on('SIGTERM', () => process.exit(0));
