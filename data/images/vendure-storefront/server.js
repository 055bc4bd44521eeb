// The storefront of one channel of a Vendure server. It lists the products, takes orders of them, and leads to the
// payment. The platform builds the order and names its price.
const { randomUUID } = require('node:crypto');
const http = require('node:http');
const { Language } = require('./languages.js');
const pages = require('./pages.js');
const platform = require('./platform.js');
const shop = require('./shop.js');

const { STOREFRONT_URL, PORT = 8080 } = process.env;

// Bytes of a form.
const LARGEST = 16 << 10;

// The message is the name of a sentence.
class BadRequest extends Error {}

async function form(request) {
  let body = '';
  for await (const part of request.setEncoding('utf8')) {
    body += part;
    if (body.length > LARGEST) throw new BadRequest('too_large');
  }
  return Object.fromEntries([...new URLSearchParams(body)].map(([name, value]) => [name, value.trim()]));
}

// The order of a form, as the platform takes it.
function order({ variantId, quantity, email, name, country, ...given }) {
  const number = Number(quantity);
  if (!variantId) throw new BadRequest('need_variant');
  if (!Number.isInteger(number) || number < 1 || number > 999) throw new BadRequest('need_quantity');
  if (!/^\S+@\S+$/.test(email ?? '')) throw new BadRequest('need_email');
  if (!name) throw new BadRequest('need_name');
  if (!given.line1 || !given.city) throw new BadRequest('need_address');
  if (!/^[A-Za-z]{2}$/.test(country ?? '')) throw new BadRequest('need_country');
  const shippingAddress = { fullName: name, line1: given.line1, city: given.city, country: country.toUpperCase() };
  for (const optional of ['line2', 'province', 'postalCode', 'phone']) {
    if (given[optional]) shippingAddress[optional] = given[optional];
  }
  return { lineItems: [{ variantId, quantity: number }], customer: { email, name }, shippingAddress };
}

// The address of the page that a payment leads back to.
function callback(request, { prefix }) {
  const base = STOREFRONT_URL || `http://${request.headers.host}${prefix}`;
  return `${base.replace(/\/$/, '')}/thanks`;
}

async function buy(request, visitor, product) {
  const given = await form(request);
  const requestId = given.requestId || randomUUID();
  try {
    const url = await platform.checkout(order(given), callback(request, visitor), requestId);
    return { status: 303, headers: { Location: url }, body: '' };
  } catch (error) {
    // A refused order is another one when it is corrected. One of unknown fate is repeated as it was.
    const again = (status, next, why) => ({ status, body: pages.product(visitor, product, next, given, why) });
    if (error instanceof BadRequest) return again(400, randomUUID(), pages.say(visitor, error.message));
    if (error instanceof platform.Refused) return again(400, randomUUID(), pages.quote(visitor, error.message));
    console.error('a checkout was not created:', error.cause ?? error);
    return again(502, requestId, pages.say(visitor, 'unreachable'));
  }
}

async function thanks(visitor, reference) {
  try {
    return { body: pages.thanks(visitor, await platform.verify(reference)) };
  } catch (error) {
    if (error instanceof platform.Refused) {
      return { status: 404, body: pages.message(visitor, 'no_such_payment', pages.quote(visitor, error.message)) };
    }
    console.error('a payment was not verified:', error.cause ?? error);
    return { status: 502, body: pages.thanks(visitor, { status: 'pending' }) };
  }
}

async function answer(request, visitor) {
  const { pathname, searchParams } = new URL(request.url, 'http://storefront');
  const reads = request.method === 'GET' || request.method === 'HEAD';
  const { tag } = visitor.language;
  if (pathname === '/health') return { type: 'application/json', body: '{"status":"ok"}' };
  if (pathname === '/' && reads) return { body: pages.list(visitor, await shop.products(tag), platform.sells) };
  if (platform.sells) {
    const reference = searchParams.get('reference');
    if (pathname === '/thanks' && reads && reference) return thanks(visitor, reference);
    const slug = pathname.match(/^\/products\/([^/]+)$/)?.[1];
    const product = slug && await shop.product(decodeURIComponent(slug), tag);
    if (product && request.method === 'POST') return buy(request, visitor, product);
    if (product && reads) return { body: pages.product(visitor, product, randomUUID()) };
  }
  return { status: 404, body: pages.message(visitor, 'not_found', pages.say(visitor, 'not_found_text')) };
}

const server = http.createServer(async (request, response) => {
  const given = request.headers['x-forwarded-prefix'] ?? '';
  const prefix = /^(\/[\w.~-]+)*$/.test(given) ? given : '';
  const visitor = { prefix, language: new Language(request.headers['accept-language']) };
  let reply;
  try {
    reply = await answer(request, visitor);
  } catch (error) {
    const said = (status, title, words) => ({ status, body: pages.message(visitor, title, pages.say(visitor, words)) });
    if (error instanceof BadRequest) reply = said(400, 'not_understood', error.message);
    else if (error instanceof URIError) reply = said(400, 'not_understood', 'not_understood_text');
    else {
      console.error('a page was not made:', error.cause ?? error);
      reply = said(502, 'closed', 'closed_text');
    }
  }
  const { status = 200, type = 'text/html; charset=utf-8', headers, body } = reply;
  response.writeHead(status, {
    'Content-Type': type,
    'Content-Security-Policy': pages.POLICY,
    'Cache-Control': 'no-store',
    'Content-Language': visitor.language.tag,
    'Referrer-Policy': 'same-origin',
    'X-Content-Type-Options': 'nosniff',
    ...headers,
  }).end(body);
});
server.listen(PORT, () => console.log(`storefront on port ${PORT}${platform.sells ? '' : ': it only lists, because not all of SVC_URL, SVC_APPLICATION_ID, SVC_APP_ID and STORE_ID are set'}`));
process.on('SIGTERM', () => process.exit(0));
