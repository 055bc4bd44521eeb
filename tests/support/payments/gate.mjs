// The server that the tested program talks to, as a payment provider for tests: it injects failures, notes
// requests, checks each request and answer against the provider's description, and delivers webhooks.
import { createServer } from "node:http";
import { read } from "../github/front.mjs";

export class Gate {
  requests = [];
  violations = [];
  /// What was delivered: {event, status, body, headers}.
  deliveries = [];
  /// Where webhooks are sent to.
  receiver = null;
  #faults = [];
  #checks;
  #provider;

  /// `provider.api(request)` answers calls of the API, `provider.page(request)` everything else, each with
  /// {status, headers, body}; `provider.failure(how)` is the body of an error that a test asks for.
  constructor(checks, provider) {
    this.#checks = checks;
    this.#provider = provider;
  }

  async listen() {
    const server = createServer((request, response) => {
      this.#answer(request, response).catch((error) => {
        // A client may hang up whenever it likes.
        if (!request.socket.destroyed) this.#violation(request, [String(error.stack)]);
        response.destroy();
      });
    });
    server.keepAliveTimeout = 600_000;
    await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
    return `http://127.0.0.1:${server.address().port}`;
  }

  /// Lets the requests fail that fit, `times` of them after the first `skip`.
  fail({ path = "", method, skip = 0, times = 1, how }) {
    this.#faults.push({ path: new RegExp(path), method, skip, times, how });
  }

  heal() {
    this.#faults = [];
  }

  #fault(request) {
    for (const fault of this.#faults) {
      if (!fault.path.test(request.url) || (fault.method && fault.method !== request.method)) continue;
      if (fault.skip > 0) {
        fault.skip -= 1;
        continue;
      }
      if (fault.times === 0) continue;
      fault.times -= 1;
      return fault.how;
    }
  }

  #violation({ method, url }, problems) {
    for (const detail of problems) this.violations.push({ method, path: url, detail });
  }

  async #answer(incoming, response) {
    const { method, url, headers } = incoming;
    const request = { method, url, headers, body: await read(incoming) };
    if (!this.#provider.isApi(url)) return send(response, await this.#provider.page(request));
    const entry = { method, path: url, status: null, idempotencyKey: headers["idempotency-key"] };
    this.requests.push(entry);
    const how = this.#fault(request);
    if (how) entry.fault = how;
    if (how === "hang") return;
    if (how === "cutBefore") return void incoming.socket.destroy();
    if (how?.status) {
      entry.status = how.status;
      const after = how.retryAfter === undefined ? {} : { "retry-after": String(how.retryAfter) };
      return send(response, { status: how.status, headers: after, body: this.#provider.failure(how) });
    }
    this.#violation(request, this.#checks.request(request));
    const answer = await this.#provider.api(request);
    this.#violation(request, this.#checks.answer(request, answer));
    entry.status = answer.status;
    if (how === "cutAfter") return void incoming.socket.destroy();
    send(response, answer);
  }

  /// Delivers a webhook once, if there is a receiver.
  async deliver(body, headers) {
    const { event, type } = JSON.parse(body);
    const delivery = { event: event ?? type, status: null, body, headers };
    this.deliveries.push(delivery);
    if (!this.receiver) return delivery;
    const signal = AbortSignal.timeout(10_000);
    const sent = { method: "POST", body, headers: { "content-type": "application/json", ...headers } };
    const answer = await fetch(this.receiver, { ...sent, redirect: "manual", signal }).catch((error) => ({
      status: String(error.cause ?? error),
    }));
    delivery.status = answer.status;
    return delivery;
  }
}

function send(response, { status, headers = {}, body = "" }) {
  const type = body.startsWith("<") ? "text/html; charset=utf-8" : "application/json; charset=utf-8";
  response.writeHead(status, { "content-type": type, ...headers }).end(body);
}

/// Answers each command on standard input with a line. Ends, with `end`, when standard input does.
export async function serve(start, end = () => {}) {
  const { createInterface } = await import("node:readline");
  const stop = (code) => {
    end();
    process.exit(code);
  };
  for (const signal of ["SIGTERM", "SIGINT"]) process.on(signal, () => stop(0));
  const input = createInterface({ input: process.stdin });
  input.on("close", () => stop(0));
  const lines = input[Symbol.asyncIterator]();
  const config = JSON.parse((await lines.next()).value);
  const { ready, commands } = await start(config).catch((error) => {
    process.stderr.write(`${error.stack}\n`);
    stop(1);
  });
  console.log(JSON.stringify(ready));
  for await (const line of lines) {
    const { do: name, ...command } = JSON.parse(line);
    const said = async () => (await commands[name](command)) ?? { ok: true };
    console.log(JSON.stringify(await said().catch((error) => ({ error: String(error.stack) }))));
  }
}

/// The commands that every provider has.
export const common = (gate) => ({
  // What was asked: {method, path, status, fault, idempotencyKey} each.
  requests: () => ({ requests: gate.requests }),
  // Requests and answers that do not fit the description.
  violations: () => ({ violations: gate.violations }),
  // Requests go wrong: {path, method, skip, times, how: "cutBefore" | "cutAfter" | "hang" | {status, retryAfter}};
  // path is a pattern.
  fail: (fault) => gate.fail(fault),
  // They go well again.
  heal: () => gate.heal(),
  // Where webhooks go from now on: {url}.
  receiver: ({ url }) => void (gate.receiver = url),
  // What was delivered, oldest first.
  deliveries: () => ({ deliveries: gate.deliveries }),
  // Delivers again what was delivered: {index}.
  redeliver: async ({ index }) => {
    const { body, headers } = gate.deliveries.at(index);
    return { delivery: await gate.deliver(body, headers) };
  },
});
