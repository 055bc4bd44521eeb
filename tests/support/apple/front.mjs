// The server that the tested program talks to: it injects failures, notes requests and hands the rest to the
// checking proxy. Failures are made here and not behind the proxy, because the proxy would answer a cut
// connection with a 500 of its own, and the tested program shall see the cut.
import { createServer } from "node:http";
import { MARK, read, send } from "../github/front.mjs";

/// Parts of files go past the proxy: their addresses are not of Apple's description.
export const STORAGE = "/storage/";
const HIDDEN = [MARK, "sl-violations", "connection", "keep-alive", "transfer-encoding"];
const without = (headers, names) =>
  Object.fromEntries(Object.entries(headers).filter(([name]) => !names.includes(name)));
const parsed = (text) => {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
};

// As Apple documents them in "Identifying Rate Limits" and "Interpreting and Handling Errors".
const WORDS = {
  401: ["NOT_AUTHORIZED", "Authentication credentials are missing or invalid."],
  403: ["FORBIDDEN_ERROR", "This request is forbidden for security reasons"],
  404: ["NOT_FOUND", "The specified resource does not exist"],
  409: ["STATE_ERROR", "The request cannot be fulfilled because of the state of another resource."],
  429: ["RATE_LIMIT_EXCEEDED", "The request rate limit has been reached."],
  500: ["UNEXPECTED_ERROR", "An unexpected error occurred."],
};

function failure({ status, retryAfter, code, detail }) {
  const headers = { "content-type": "application/json" };
  if (retryAfter !== undefined) headers["retry-after"] = String(retryAfter);
  if (status === 429) headers["x-rate-limit"] = "user-hour-lim:3600;user-hour-rem:0;";
  const [usual, title] = WORDS[status] ?? WORDS[500];
  const error = { id: "injected", status: String(status), code: code ?? usual, title, detail: detail ?? title };
  return { status, headers, body: JSON.stringify({ errors: [error] }) };
}

export class Front {
  requests = [];
  violations = [];
  #faults = [];
  #proxy = "";
  #fake = "";

  async listen() {
    this.server = createServer((request, response) => {
      this.#answer(request, response).catch((error) => {
        // A client may hang up whenever it likes.
        if (!request.socket.destroyed) this.violate(request.method, request.url, 0, String(error));
        response.destroy();
      });
    });
    // A client that comes back after a while shall not meet a closing connection that no test asked for.
    this.server.keepAliveTimeout = 600_000;
    await new Promise((resolve) => this.server.listen(0, "127.0.0.1", resolve));
    return `http://127.0.0.1:${this.server.address().port}`;
  }

  through(proxy, fake) {
    this.#proxy = proxy;
    this.#fake = fake;
  }

  /// Fails requests: `how` is `cutBefore`, `cutAfter`, `hang`, or an object with a `status`. The first `skip`
  /// requests that match pass. With `each`, every different request fails `times` times.
  fail({ path = "", method, skip = 0, times = 1, each = false, how }) {
    this.#faults.push({ path: new RegExp(path), method, skip, times, each: each && new Map(), how });
  }

  heal() {
    this.#faults = [];
  }

  #fault(request, body) {
    const matches = ({ path, method, times }) =>
      times > 0 && path.test(request.url) && (!method || method === request.method);
    for (const fault of this.#faults.filter(matches)) {
      if (fault.each) {
        const one = `${request.method} ${request.url} ${body}`;
        const failed = fault.each.get(one) ?? 0;
        if (failed >= fault.times) continue;
        fault.each.set(one, failed + 1);
        return fault.how;
      }
      if (fault.skip > 0) {
        fault.skip -= 1;
        continue;
      }
      fault.times -= 1;
      return fault.how;
    }
  }

  violate(method, path, status, detail) {
    this.violations.push({ method, path, status, detail });
  }

  async #answer(request, response) {
    const { method, url, headers } = request;
    const entry = { method, path: url, status: null };
    this.requests.push(entry);
    const body = await read(request);
    const how = this.#fault(request, body);
    if (how) entry.fault = how;
    if (how === "hang") return;
    if (how === "cutBefore") return void request.socket.destroy();
    if (how?.status) return reply(entry, response, failure(how));
    const upstream = url.startsWith(STORAGE) ? this.#fake : this.#proxy;
    const answer = await send(upstream, { method, url, headers, body });
    const fromFake = answer.headers[MARK] !== undefined;
    if (!fromFake) this.violate(method, url, answer.status, parsed(answer.body.toString()));
    if (how === "cutAfter") {
      entry.performed = answer.status;
      return void request.socket.destroy();
    }
    reply(entry, response, { ...answer, headers: without(answer.headers, HIDDEN) });
  }
}

function reply(entry, response, { status, headers, body }) {
  entry.status = status;
  response.writeHead(status, headers).end(status === 204 ? undefined : body);
}
