// What the shop has for sale, read from the shop API of its Vendure server for each visitor.
const { SHOP_API_URL, CHANNEL_TOKEN } = process.env;

// A shop API that answers later counts as closed.
const WITHIN_MS = 5000;

const PRODUCT = 'name slug description variants { id name priceWithTax currencyCode stockLevel }';

// In this language, as far as the shop has translations.
async function ask(language, query, variables) {
  const response = await fetch(`${SHOP_API_URL}?languageCode=${language}`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', ...(CHANNEL_TOKEN && { 'vendure-token': CHANNEL_TOKEN }) },
    body: JSON.stringify({ query, variables }),
    signal: AbortSignal.timeout(WITHIN_MS),
  });
  const { data, errors } = await response.json();
  if (!data || errors) throw new Error(errors?.[0]?.message ?? `the shop API answered ${response.status}`);
  return data;
}

// The first products of the channel, in the order of their names.
async function products(language) {
  const { products } = await ask(language, `{ products(options: { take: 100, sort: { name: ASC } }) { items { ${PRODUCT} } } }`);
  return products.items;
}

// A product, and the countries that the shop knows. `null`: there is no such product.
async function product(slug, language) {
  const query = `query ($slug: String!) { product(slug: $slug) { ${PRODUCT} } availableCountries { code name } }`;
  const { product, availableCountries } = await ask(language, query, { slug });
  return product && { ...product, countries: availableCountries };
}

module.exports = { products, product };
