// What a storefront talks to: a shop API with one product, and the two functions of the platform for payments. Each
// line of input sets how the functions answer: {"create": [status, reply], "verify": [status, reply]}. The answer is
// the list of the calls so far.
import { createServer } from 'node:http';
import { createInterface } from 'node:readline';

const PRODUCT = {
  name: 'Pen <b>', slug: 'pen', description: '<p>Blue & fine</p>',
  variants: [{ id: '7', name: 'Pen', priceWithTax: 1234, currencyCode: 'EUR', stockLevel: 'IN_STOCK' }],
};

let answers = {};
const calls = [];

function shop({ query, variables }) {
  if (query.includes('products(')) return { products: { items: [PRODUCT] } };
  return { product: variables.slug === PRODUCT.slug ? PRODUCT : null, availableCountries: [{ code: 'DE', name: 'Germany' }] };
}

const server = createServer(async (request, response) => {
  let body = '';
  for await (const part of request) body += part;
  const params = JSON.parse(body);
  const answer = (status, reply) => response.writeHead(status, { 'Content-Type': 'application/json' }).end(JSON.stringify(reply));
  if (request.url.startsWith('/shop-api?languageCode=')) return answer(200, { data: shop(params) });
  const { 'x-backend-request-id': requestId, 'x-backend-application-id': application } = request.headers;
  calls.push({ path: request.url, requestId, application, params });
  answer(...answers[request.url.endsWith('svc_checkout_create') ? 'create' : 'verify']);
});

server.listen(0, '127.0.0.1', () => console.log(server.address().port));
createInterface({ input: process.stdin }).on('line', line => {
  answers = JSON.parse(line);
  console.log(JSON.stringify(calls));
});
