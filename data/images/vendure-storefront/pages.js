// The pages, as HTML that works without scripts. Addresses are relative to `prefix`, the path under which a proxy
// shows this server.
const { createHash } = require('node:crypto');

const { SHOP_NAME = 'Shop' } = process.env;

const STYLE = `
body { font: 1.0625rem/1.5 system-ui, sans-serif; color: #1b1b1b; background: #fff; max-width: 40rem; margin: 0 auto; padding: 1rem 1rem 3rem; overflow-wrap: anywhere; }
header { border-bottom: 1px solid #d0d0d0; padding-bottom: .75rem; }
header a { font-size: 1.25rem; font-weight: bold; color: inherit; text-decoration: none; }
a { color: #0b57a4; }
h1 { font-size: 1.75rem; line-height: 1.25; }
ul.products { list-style: none; padding: 0; }
ul.products li { display: flex; justify-content: space-between; gap: 1rem; border-bottom: 1px solid #d0d0d0; padding: .75rem 0; }
fieldset { border: 0; margin: 1.5rem 0; padding: 0; min-width: 0; }
legend { font-weight: bold; padding: 0; }
label { display: block; margin: 1rem 0; }
input, select { margin-top: .25rem; font: inherit; color: inherit; background: #fff; display: block; width: 100%; box-sizing: border-box; border: 1px solid #767676; border-radius: 4px; padding: .5rem; }
input[type=number] { width: 6rem; }
button { font: inherit; font-weight: bold; color: #fff; background: #0b57a4; border: 0; border-radius: 4px; padding: .75rem 1.5rem; cursor: pointer; }
:focus-visible { outline: 3px solid #0b57a4; outline-offset: 2px; }
.error { border: 2px solid #b00020; border-radius: 4px; padding: .75rem; }
.error:focus { outline: 0; }
`;

// Nothing is loaded from elsewhere, and only this style applies.
const POLICY = [
  "default-src 'none'",
  `style-src 'sha256-${createHash('sha256').update(STYLE).digest('base64')}'`,
  "base-uri 'none'",
  "frame-ancestors 'none'",
].join('; ');

const text = value => String(value ?? '').replace(/[&<>"']/g, c => `&#${c.charCodeAt(0)};`);
const plain = html => String(html ?? '').replace(/<[^>]*>/g, ' ').trim();
const sentence = words => `${words.charAt(0).toUpperCase()}${words.slice(1)}${/[.!?]$/.test(words) ? '' : '.'}`;

// An amount in units of which `perUnit` make a unit of the currency.
const money = (amount, currency, perUnit) => new Intl.NumberFormat('en', { style: 'currency', currency }).format(amount / perUnit);
// Vendure keeps two decimals for every currency.
const price = ({ priceWithTax, currencyCode }) => money(priceWithTax, currencyCode, 100);
// The platform counts in minor units: none for yen, three decimals for dinar.
function total(amount, currency) {
  const { maximumFractionDigits } = new Intl.NumberFormat('en', { style: 'currency', currency }).resolvedOptions();
  return money(amount, currency, 10 ** maximumFractionDigits);
}

function page(prefix, title, body, head = '') {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${text(title)} – ${text(SHOP_NAME)}</title>
${head}<style>${STYLE}</style>
</head>
<body>
<header><a href="${prefix}/">${text(SHOP_NAME)}</a></header>
<main>
<h1>${text(title)}</h1>
${body}
</main>
</body>
</html>
`;
}

const message = (prefix, title, words) => page(prefix, title, `<p>${text(words)}</p>`);

function list(prefix, products, sells) {
  const name = product => sells
    ? `<a href="${prefix}/products/${encodeURIComponent(product.slug)}">${text(product.name)}</a>`
    : text(product.name);
  const item = product => `<li id="${text(product.slug)}">${name(product)}
<b>${text([...new Set(product.variants.map(price))].join(', '))}</b></li>`;
  const body = products.length ? `<ul class="products">\n${products.map(item).join('\n')}\n</ul>` : '<p>Nothing is for sale yet.</p>';
  return page(prefix, 'Products', body);
}

const ADDRESS = [
  ['line1', 'Street and number', 'address-line1', true],
  ['line2', 'Apartment, floor (optional)', 'address-line2', false],
  ['postalCode', 'Postal code (optional)', 'postal-code', false],
  ['city', 'City', 'address-level2', true],
  ['province', 'State or province (optional)', 'address-level1', false],
  ['phone', 'Phone (optional)', 'tel', false],
];

function field(given, [name, label, autocomplete, required, type = 'text']) {
  return `<label>${label} <input name="${name}" type="${type}" autocomplete="${autocomplete}"${required ? ' required' : ''} maxlength="200" value="${text(given[name])}"></label>`;
}

function country(given, countries) {
  if (!countries.length) {
    return `<label>Country, as two letters such as DE <input name="country" autocomplete="country" required pattern="[A-Za-z]{2}" value="${text(given.country)}"></label>`;
  }
  const option = ({ code, name }) => `<option value="${text(code)}"${code === given.country ? ' selected' : ''}>${text(name)}</option>`;
  return `<label>Country <select name="country" autocomplete="country" required>
<option value="">Choose a country</option>
${countries.map(option).join('\n')}
</select></label>`;
}

function variant(given, product) {
  const [first] = product.variants;
  if (product.variants.length === 1) {
    return `<p><b>${text(price(first))}</b></p><input type="hidden" name="variantId" value="${text(first.id)}">`;
  }
  const option = v => `<option value="${text(v.id)}"${v.id === given.variantId ? ' selected' : ''}>${text(v.name)}, ${text(price(v))}${v.stockLevel === 'OUT_OF_STOCK' ? ', sold out' : ''}</option>`;
  return `<label>Variant <select name="variantId" required>\n${product.variants.map(option).join('\n')}\n</select></label>`;
}

// A product with the form to buy it. `given` is what the shopper entered before, and `error` why it was refused.
function product(prefix, product, requestId, given = {}, error = '') {
  const alert = error && `<p class="error" role="alert" tabindex="-1" autofocus>${text(sentence(error))}</p>`;
  const soldOut = product.variants.every(v => v.stockLevel === 'OUT_OF_STOCK');
  const form = soldOut ? '<p>This product is sold out.</p>' : `<form method="post" action="${prefix}/products/${encodeURIComponent(product.slug)}">
<input type="hidden" name="requestId" value="${text(requestId)}">
${variant(given, product)}
<label>Quantity <input name="quantity" type="number" min="1" max="999" required value="${text(given.quantity ?? 1)}"></label>
<fieldset><legend>You</legend>
${field(given, ['email', 'E-mail', 'email', true, 'email'])}
${field(given, ['name', 'Name', 'name', true])}
</fieldset>
<fieldset><legend>Delivery address</legend>
${ADDRESS.map(row => field(given, row)).join('\n')}
${country(given, product.countries)}
</fieldset>
<p>The next page shows the total with delivery.</p>
<button>Continue to payment</button>
</form>`;
  return page(prefix, product.name, `${alert}<p>${text(plain(product.description))}</p>\n${form}`);
}

const ENDINGS = {
  pending: ['Your payment is on its way', 'The payment is not complete yet. This page looks again every few seconds.'],
  paid: ['Thank you', 'Your payment has arrived.'],
  failed: ['The payment failed', 'Nothing was paid. You can buy again.'],
  abandoned: ['The payment was not made', 'Nothing was paid. You can buy again.'],
};

// What became of a checkout. The page of a pending one asks again by itself.
function thanks(prefix, { status, amount, currency, orderCode }) {
  const [title, words] = ENDINGS[status] ?? ENDINGS.pending;
  const order = orderCode ? `<p>Your order is <b>${text(orderCode)}</b>.</p>` : '';
  const paid = status === 'paid' && Number.isInteger(amount) && currency ? `<p>Paid: <b>${text(total(amount, currency))}</b></p>` : '';
  const ended = ENDINGS[status] && status !== 'pending';
  const again = ended ? '' : '<meta http-equiv="refresh" content="3">\n';
  const back = ended ? `<p><a href="${prefix}/">Back to the products</a></p>` : '';
  return page(prefix, title, `<p role="status" data-status="${text(status)}">${words}</p>\n${order}${paid}${back}`, again);
}

module.exports = { POLICY, list, message, product, sentence, thanks };
