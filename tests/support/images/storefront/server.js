// A shop window: lists what the shop API has for sale, asked anew for each visitor.
const http = require('node:http');

const { SHOP_API_URL, CHANNEL_TOKEN, PORT = 8080 } = process.env;

const QUERY = `{
  products(options: { take: 50 }) { items { name slug description variants { priceWithTax currencyCode } } }
}`;

async function shop() {
  const response = await fetch(SHOP_API_URL, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', ...(CHANNEL_TOKEN && { 'vendure-token': CHANNEL_TOKEN }) },
    body: JSON.stringify({ query: QUERY }),
    signal: AbortSignal.timeout(5000),
  });
  const { data, errors } = await response.json();
  if (!data) throw new Error(errors?.[0]?.message ?? `the shop API answered ${response.status}`);
  return data;
}

const text = value => String(value).replace(/[&<>"]/g, c => `&#${c.charCodeAt(0)};`);
const price = ({ priceWithTax, currencyCode }) => `${(priceWithTax / 100).toFixed(2)} ${currencyCode}`;

const page = body => `<!doctype html>
<html lang="en"><meta charset="utf-8"><title>Shop</title>
<h1>Shop</h1>
${body}
</html>
`;

const list = products => `<ul>
${products.map(product => `<li id="${text(product.slug)}"><b>${text(product.name)}</b> ${text(product.variants.map(price).join(', '))}</li>`).join('\n')}
</ul>`;

const server = http.createServer(async (request, response) => {
  const answer = (status, type, body) => response.writeHead(status, { 'Content-Type': type }).end(body);
  const [pathname] = request.url.split('?');
  if (pathname === '/health') return answer(200, 'application/json', '{"status":"ok"}');
  if (pathname !== '/') return answer(404, 'text/html', page('<p>There is no such page.</p>'));
  try {
    const { products } = await shop();
    answer(200, 'text/html', page(products.items.length ? list(products.items) : '<p>Nothing is for sale yet.</p>'));
  } catch (error) {
    console.error(`the shop API at ${SHOP_API_URL} failed:`, error.cause ?? error);
    answer(502, 'text/html', page('<p>The shop is closed for a moment.</p>'));
  }
});
server.listen(PORT, () => console.log(`storefront on port ${PORT}, selling from ${SHOP_API_URL}`));
process.on('SIGTERM', () => process.exit(0));
