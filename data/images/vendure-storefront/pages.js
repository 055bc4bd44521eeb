// The pages, as HTML that works without scripts. Each begins with its visitor: `prefix`, the path under which a proxy
// shows this server and to which addresses are relative, and `language`.
const { createHash } = require('node:crypto');

const { SHOP_NAME } = process.env;

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

function page({ prefix, language }, title, body, head = '') {
  const shop = text(SHOP_NAME ?? language.say('shop'));
  return `<!doctype html>
<html lang="${language.tag}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${text(title)} – ${shop}</title>
${head}<style>${STYLE}</style>
</head>
<body>
<header><a href="${prefix}/">${shop}</a></header>
<main>
<h1>${text(title)}</h1>
${body}
</main>
</body>
</html>
`;
}

// `words` are HTML.
const message = (visitor, title, words) => page(visitor, visitor.language.say(title), `<p>${words}</p>`);
const say = ({ language }, name) => text(language.say(name));
// What the platform said, in English.
function quote({ language }, words) {
  const said = text(sentence(words));
  return language.tag === 'en' ? said : `<span lang="en">${said}</span>`;
}

function list(visitor, products, sells) {
  const { prefix, language } = visitor;
  const name = product => sells
    ? `<a href="${prefix}/products/${encodeURIComponent(product.slug)}">${text(product.name)}</a>`
    : text(product.name);
  const item = product => `<li id="${text(product.slug)}">${name(product)}
<b>${text([...new Set(product.variants.map(variant => language.price(variant)))].join(', '))}</b></li>`;
  const body = products.length ? `<ul class="products">\n${products.map(item).join('\n')}\n</ul>` : `<p>${say(visitor, 'nothing_for_sale')}</p>`;
  return page(visitor, language.say('products'), body);
}

// The fields of the address: what they are called in the form, to the browser, and whether they are needed.
const ADDRESS = [
  ['line1', 'address-line1', true],
  ['line2', 'address-line2', false],
  ['postalCode', 'postal-code', false],
  ['city', 'address-level2', true],
  ['province', 'address-level1', false],
  ['phone', 'tel', false],
];

function field(visitor, given, [name, autocomplete, required, type = 'text']) {
  return `<label>${say(visitor, name)} <input name="${name}" type="${type}" autocomplete="${autocomplete}"${required ? ' required' : ''} maxlength="200" value="${text(given[name])}"></label>`;
}

function country(visitor, given, countries) {
  if (!countries.length) {
    return `<label>${say(visitor, 'country_code')} <input name="country" autocomplete="country" required pattern="[A-Za-z]{2}" value="${text(given.country)}"></label>`;
  }
  const option = ({ code, name }) => `<option value="${text(code)}"${code === given.country ? ' selected' : ''}>${text(name)}</option>`;
  return `<label>${say(visitor, 'country')} <select name="country" autocomplete="country" required>
<option value="">${say(visitor, 'choose_country')}</option>
${countries.map(option).join('\n')}
</select></label>`;
}

function variant(visitor, given, product) {
  const [first] = product.variants;
  const price = variant => text(visitor.language.price(variant));
  if (product.variants.length === 1) {
    return `<p><b>${price(first)}</b></p><input type="hidden" name="variantId" value="${text(first.id)}">`;
  }
  const soldOut = v => (v.stockLevel === 'OUT_OF_STOCK' ? `, ${say(visitor, 'sold_out')}` : '');
  const option = v => `<option value="${text(v.id)}"${v.id === given.variantId ? ' selected' : ''}>${text(v.name)}, ${price(v)}${soldOut(v)}</option>`;
  return `<label>${say(visitor, 'variant')} <select name="variantId" required>\n${product.variants.map(option).join('\n')}\n</select></label>`;
}

// A product with the form to buy it. `given` is what the shopper entered before, and `error` why it was refused.
function product(visitor, product, requestId, given = {}, error = '') {
  const alert = error && `<p class="error" role="alert" tabindex="-1" autofocus>${error}</p>`;
  const isSoldOut = product.variants.every(v => v.stockLevel === 'OUT_OF_STOCK');
  const form = isSoldOut ? `<p>${say(visitor, 'this_is_sold_out')}</p>` : `<form method="post" action="${visitor.prefix}/products/${encodeURIComponent(product.slug)}">
<input type="hidden" name="requestId" value="${text(requestId)}">
${variant(visitor, given, product)}
<label>${say(visitor, 'quantity')} <input name="quantity" type="number" min="1" max="999" required value="${text(given.quantity ?? 1)}"></label>
<fieldset><legend>${say(visitor, 'you')}</legend>
${field(visitor, given, ['email', 'email', true, 'email'])}
${field(visitor, given, ['name', 'name', true])}
</fieldset>
<fieldset><legend>${say(visitor, 'delivery_address')}</legend>
${ADDRESS.map(row => field(visitor, given, row)).join('\n')}
${country(visitor, given, product.countries)}
</fieldset>
<p>${say(visitor, 'total_follows')}</p>
<button>${say(visitor, 'continue')}</button>
</form>`;
  return page(visitor, product.name, `${alert}<p>${text(plain(product.description))}</p>\n${form}`);
}

// What a payment can end with, and what is said about it.
const ENDINGS = { pending: 'pending_text', paid: 'paid_text', failed: 'nothing_paid', abandoned: 'nothing_paid' };

// What became of a checkout. The page of a pending one asks again by itself.
function thanks(visitor, { status, amount, currency, orderCode }) {
  const { prefix, language } = visitor;
  const ending = Object.hasOwn(ENDINGS, status) ? status : 'pending';
  const bold = (name, placeholder, value) => `<p>${say(visitor, name).replace(placeholder, () => `<b>${text(value)}</b>`)}</p>`;
  const order = orderCode ? bold('your_order', '{order}', orderCode) : '';
  const hasPaid = status === 'paid' && Number.isInteger(amount) && currency;
  const paid = hasPaid ? bold('amount_paid', '{total}', language.total(amount, currency)) : '';
  const ended = ending !== 'pending';
  const again = ended ? '' : '<meta http-equiv="refresh" content="3">\n';
  const back = ended ? `<p><a href="${prefix}/">${say(visitor, 'back')}</a></p>` : '';
  return page(visitor, language.say(ending), `<p role="status" data-status="${text(status)}">${say(visitor, ENDINGS[ending])}</p>\n${order}${paid}${back}`, again);
}

module.exports = { POLICY, list, message, product, quote, say, thanks };
