// Sets up a shop in a Vendure that runs already, as its keepers would.
//
// The first line of standard input is {address, identifier, password, channels}: the root of the server, its
// superadmin, and keys of CHANNELS in shop.mjs. Prints one line with channels and tokens, then answers each command
// on standard input with a line. Ends when standard input does.
import { createInterface } from "node:readline";
import { Shop } from "./shop.mjs";

let address;
const shop = new Shop(async ({ method, url, headers, body }) => {
  const answer = await fetch(address + url, { method, headers, body });
  return { headers: Object.fromEntries(answer.headers), body: await answer.text() };
});

const commands = {
  // Asks the admin API as the superadmin: {channel, query, variables}. Answers {data}.
  admin: async ({ channel, query, variables }) => ({ data: await shop.ask(query, variables, channel) }),
  // Adds a product with one variant to a channel: {channel, name, sku, price, stock}; the price without taxes.
  // Answers {variant}.
  product: async (product) => ({ variant: await shop.product(product) }),
  // An API key for one channel: {channel}. Answers {apiKey}.
  apiKey: async ({ channel }) => ({ apiKey: await shop.apiKey(channel) }),
};

for await (const line of createInterface({ input: process.stdin })) {
  const { do: name, ...command } = JSON.parse(line);
  const said = async () => {
    if (name) return commands[name](command);
    address = command.address;
    await shop.open(command, command.channels);
    return { channels: shop.channels, tokens: shop.tokens };
  };
  console.log(JSON.stringify(await said().catch((error) => ({ error: String(error) }))));
}
