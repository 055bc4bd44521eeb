// The sentences of each language, and figures as it writes them. A page is in the language that its visitor's browser
// asks for.
const SENTENCES = Object.fromEntries(['en', 'fr', 'de', 'es'].map(tag => [tag, require(`./languages/${tag}.json`)]));

// The language of a header `Accept-Language` (RFC 9110, 12.5.4) that fits best. The first one stands for all others.
function accepted(header = '') {
  const wanted = header.split(',').map(part => {
    const [tag, weight] = part.split(';');
    return { tag: tag.trim().toLowerCase().split('-')[0], weight: weight ? Number(weight.split('=')[1]) : 1 };
  });
  const known = wanted.filter(({ tag, weight }) => Object.hasOwn(SENTENCES, tag) && weight > 0);
  return known.sort((a, b) => b.weight - a.weight)[0]?.tag ?? 'en';
}

class Language {
  constructor(header) {
    this.tag = accepted(header);
  }

  say(name) {
    return SENTENCES[this.tag][name];
  }

  // An amount in units of which `perUnit` make a unit of the currency.
  #money(amount, currency, perUnit) {
    return new Intl.NumberFormat(this.tag, { style: 'currency', currency }).format(amount / perUnit);
  }

  // Vendure keeps two decimals for every currency.
  price({ priceWithTax, currencyCode }) {
    return this.#money(priceWithTax, currencyCode, 100);
  }

  // The platform counts in minor units: none for yen, three decimals for dinar.
  total(amount, currency) {
    const { maximumFractionDigits } = new Intl.NumberFormat('en', { style: 'currency', currency }).resolvedOptions();
    return this.#money(amount, currency, 10 ** maximumFractionDigits);
  }
}

module.exports = { Language };
