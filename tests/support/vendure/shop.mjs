// A shop as its keepers set it up: channels, taxes, shipping, products, administrators.

const translations = (name, more = {}) => [{ languageCode: "en", name, ...more }];

/// Channels by the end of their tokens. Prices have two decimals everywhere, also those in yen. Nothing is shipped
/// in the channel `kw`.
const CHANNELS = {
  ng: { currency: "NGN", country: ["NG", "Nigeria"], tax: 7.5 },
  eu: { currency: "EUR", country: ["DE", "Germany"], tax: 19 },
  jp: { currency: "JPY", country: ["JP", "Japan"], tax: 10 },
  gh: { currency: "GHS", country: ["GH", "Ghana"], tax: 15 },
  kw: { currency: "KWD", country: ["KW", "Kuwait"], tax: 0 },
};
/// What checkouts need.
const PERMISSIONS = ["ReadOrder", "CreateOrder", "UpdateOrder", "DeleteOrder", "ReadProduct", "ReadCustomer"];

export class Shop {
  /// Tokens of channels, and what else tests name: by the key of CHANNELS.
  channels = {};
  /// `session` of an administrator with the permissions that checkouts need, `apiKey` with the same for the first
  /// channel, and `superadmin`.
  tokens = {};
  #send;
  #roles = 0;

  constructor(send) {
    this.#send = send;
  }

  async ask(query, variables = {}, channel = undefined, token = this.tokens.superadmin) {
    const headers = { "content-type": "application/json" };
    if (token) headers.authorization = `Bearer ${token}`;
    if (channel) headers["vendure-token"] = this.channels[channel].token;
    const body = Buffer.from(JSON.stringify({ query, variables }));
    headers["content-length"] = String(body.length);
    const answer = await this.#send({ method: "POST", url: "/admin-api", headers, body });
    this.session = answer.headers["vendure-auth-token"];
    const { data, errors } = JSON.parse(answer.body);
    if (errors) throw new Error(`${query}: ${JSON.stringify(errors[0])}`);
    const refused = Object.values(data).find((it) => it?.errorCode);
    if (refused) throw new Error(`${query}: ${JSON.stringify(refused)}`);
    return data;
  }

  async #signIn({ identifier, password }) {
    const query = `mutation($u: String!, $p: String!) {
      login(username: $u, password: $p) { __typename ... on ErrorResult { errorCode message } }
    }`;
    await this.ask(query, { u: identifier, p: password }, undefined, null);
    return this.session;
  }

  /// Sets up these channels, by the keys of CHANNELS.
  async open(superadmin, names = Object.keys(CHANNELS)) {
    this.tokens.superadmin = await this.#signIn(superadmin);
    const { sellers, stockLocations } = await this.ask("{ sellers { items { id } } stockLocations { items { id } } }");
    const sellerId = sellers.items[0].id;
    this.stockLocationId = stockLocations.items[0].id;
    const made = await this.ask(`mutation { createTaxCategory(input: {name: "Standard", isDefault: true}) { id } }`);
    this.taxCategoryId = made.createTaxCategory.id;
    for (const name of names) await this.#channel(name, CHANNELS[name], sellerId);
    this.tokens.session = await this.administrator({ permissions: PERMISSIONS, channels: names });
    this.tokens.apiKey = await this.apiKey(names[0]);
  }

  async #channel(name, { currency, country: [code, land], tax }, sellerId) {
    const { createZone: zone } = await this.ask(
      "mutation($name: String!) { createZone(input: {name: $name}) { id } }",
      { name },
    );
    const { createCountry: country } = await this.ask(
      "mutation($i: CreateCountryInput!) { createCountry(input: $i) { id } }",
      { i: { code, enabled: true, translations: translations(land) } },
    );
    await this.ask("mutation($z: ID!, $c: [ID!]!) { addMembersToZone(zoneId: $z, memberIds: $c) { id } }", {
      z: zone.id,
      c: [country.id],
    });
    const channel = {
      code: `store-${name}`,
      token: `channel-token-of-${name}`,
      defaultLanguageCode: "en",
      pricesIncludeTax: false,
      defaultCurrencyCode: currency,
      availableCurrencyCodes: [currency],
      defaultTaxZoneId: zone.id,
      defaultShippingZoneId: zone.id,
      sellerId,
    };
    const { createChannel: made } = await this.ask(
      `mutation($i: CreateChannelInput!) {
        createChannel(input: $i) { ... on Channel { id code token } ... on ErrorResult { errorCode message } }
      }`,
      { i: channel },
    );
    this.channels[name] = { ...made, currency, country: code };
    await this.ask("mutation($i: CreateTaxRateInput!) { createTaxRate(input: $i) { id } }", {
      i: { name, enabled: true, value: tax, categoryId: this.taxCategoryId, zoneId: zone.id },
    });
    const locations = { stockLocationIds: [this.stockLocationId], channelId: made.id };
    await this.ask(
      "mutation($i: AssignStockLocationsToChannelInput!) { assignStockLocationsToChannel(input: $i) { id } }",
      { i: locations },
    );
    if (name === "kw") return;
    for (const [code, rate] of [["express", 250000], ["standard", 100000]]) {
      const method = {
        code: `${code}-${name}`,
        fulfillmentHandler: "manual-fulfillment",
        checker: {
          code: "default-shipping-eligibility-checker",
          arguments: [{ name: "orderMinimum", value: "0" }],
        },
        calculator: {
          code: "default-shipping-calculator",
          arguments: [
            { name: "rate", value: String(rate) },
            { name: "includesTax", value: "include" },
            { name: "taxRate", value: "0" },
          ],
        },
        translations: translations(code === "express" ? "Express delivery" : "Delivery", { description: "" }),
      };
      await this.ask("mutation($i: CreateShippingMethodInput!) { createShippingMethod(input: $i) { id } }", { i: method }, name);
    }
  }

  async product({ channel, name, sku, price, stock }) {
    const { createProduct: product } = await this.ask(
      "mutation($i: CreateProductInput!) { createProduct(input: $i) { id } }",
      { i: { enabled: true, translations: translations(name, { slug: sku.toLowerCase(), description: "" }) } },
      channel,
    );
    const variant = {
      productId: product.id,
      sku,
      price,
      taxCategoryId: this.taxCategoryId,
      trackInventory: stock === undefined ? "FALSE" : "TRUE",
      stockLevels: [{ stockLocationId: this.stockLocationId, stockOnHand: stock ?? 0 }],
      translations: translations(name),
    };
    const { createProductVariants: made } = await this.ask(
      "mutation($i: [CreateProductVariantInput!]!) { createProductVariants(input: $i) { id } }",
      { i: [variant] },
      channel,
    );
    return made[0].id;
  }

  async promotion({ channel, variant, percent, freeShipping }) {
    const discount = { code: "order_percentage_discount", arguments: [{ name: "discount", value: String(percent) }] };
    const promotion = {
      enabled: true,
      conditions: [
        {
          code: "contains_products",
          arguments: [
            { name: "minimum", value: "1" },
            { name: "productVariantIds", value: JSON.stringify([variant]) },
          ],
        },
      ],
      actions: freeShipping ? [discount, { code: "free_shipping", arguments: [] }] : [discount],
      translations: translations(`${percent}% off`),
    };
    const query = `mutation($i: CreatePromotionInput!) {
      createPromotion(input: $i) { __typename ... on ErrorResult { errorCode message } }
    }`;
    await this.ask(query, { i: promotion }, channel);
  }

  async #role({ permissions, channels }) {
    this.#roles += 1;
    const name = `role-${this.#roles}`;
    const { createRole: role } = await this.ask("mutation($i: CreateRoleInput!) { createRole(input: $i) { id } }", {
      i: { code: name, description: name, permissions, channelIds: channels.map((it) => this.channels[it].id) },
    });
    return { name, id: role.id };
  }

  async administrator(like) {
    const { name, id } = await this.#role(like);
    const password = "a password of tests";
    const who = { firstName: name, lastName: name, emailAddress: `${name}@example.com`, password, roleIds: [id] };
    await this.ask("mutation($i: CreateAdministratorInput!) { createAdministrator(input: $i) { id } }", { i: who });
    return this.#signIn({ identifier: who.emailAddress, password });
  }

  /// An API key for this channel alone, with the permissions that checkouts need.
  async apiKey(channel) {
    const { id } = await this.#role({ permissions: PERMISSIONS, channels: [channel] });
    const { createApiKey: made } = await this.ask(
      "mutation($i: CreateApiKeyInput!) { createApiKey(input: $i) { apiKey } }",
      { i: { roleIds: [id], translations: translations("Checkouts") } },
      channel,
    );
    return made.apiKey;
  }
}
