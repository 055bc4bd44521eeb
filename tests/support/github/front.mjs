// The server that the tested program talks to: it injects failures, notes requests and hands the rest to the
// checking proxy. Failures are made here and not behind the proxy, because the proxy would answer a cut
// connection with a 500 of its own, and the tested program shall see the cut.
import { createServer, request as open } from "node:http";

const DOCS = "https://docs.github.com/rest";
// The fake marks its answers with this header: an answer without it is one with which the proxy refused a
// request, or replaced an answer that does not fit the description.
export const MARK = "x-answered-by";

const hidden = [MARK, "sl-violations", "connection", "keep-alive", "transfer-encoding"];
const without = (headers, names) =>
  Object.fromEntries(Object.entries(headers).filter(([name]) => !names.includes(name)));
const parsed = (text) => {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
};

export async function read(stream) {
  const chunks = [];
  for await (const chunk of stream) chunks.push(chunk);
  return Buffer.concat(chunks);
}

/// Sends a request to `base` and answers with status, headers and body.
export function send(base, { method, url, headers = {}, body = Buffer.alloc(0) }) {
  const address = new URL(base);
  const sent = without(headers, ["host", "connection", "keep-alive", "transfer-encoding", "expect"]);
  if (body.length || sent["content-length"]) sent["content-length"] = body.length;
  return new Promise((resolve, reject) => {
    // A connection of its own for each: one that was kept could be closed by the server just then.
    const target = { host: address.hostname, port: address.port, agent: false };
    const options = { ...target, path: url, method, headers: sent };
    const outgoing = open(options, async (answer) => {
      const { statusCode: status, headers } = answer;
      resolve({ status, headers, body: await read(answer) });
    });
    outgoing.on("error", reject);
    outgoing.end(body);
  });
}

function kindOf(authorization = "") {
  const [, credential] = authorization.match(/^(?:bearer|token)\s+(\S+)$/i) ?? [];
  if (!credential) return "none";
  return credential.startsWith("eyJ") ? "jwt" : "token";
}

// Bodies and headers as GitHub documents them in "Rate limits for the REST API" and "Troubleshooting the
// REST API"; its load balancer answers 502 and the like with a page, not with JSON.
function failure(how) {
  const { status } = how;
  const headers = { "content-type": "application/json; charset=utf-8" };
  if (how.retryAfter !== undefined) headers["retry-after"] = String(how.retryAfter);
  if (status >= 502) {
    headers["content-type"] = "text/html; charset=utf-8";
    return { status, headers, body: "<html><body><h1>Unicorn!</h1></body></html>" };
  }
  const body = { message: how.message ?? messages[status] ?? "Server Error", documentation_url: DOCS };
  if (how.secondary) {
    body.message =
      "You have exceeded a secondary rate limit. Please wait a few minutes before you try again.";
    body.documentation_url = `${DOCS}/overview/rate-limits-for-the-rest-api#about-secondary-rate-limits`;
  } else if (status === 429) {
    const reset = Math.floor(Date.now() / 1000) + (how.retryAfter ?? 60);
    headers["x-ratelimit-remaining"] = "0";
    headers["x-ratelimit-reset"] = String(reset);
  }
  return { status, headers, body: JSON.stringify({ ...body, status: String(status) }) };
}
const messages = {
  401: "Bad credentials",
  403: "Resource not accessible by integration",
  404: "Not Found",
  409: "Conflict",
  422: "Validation Failed",
  429: "API rate limit exceeded",
};

const nameless = {
  status: 403,
  headers: { "content-type": "text/html; charset=utf-8" },
  body: "Request forbidden by administrative rules. Please make sure your request has a User-Agent header",
};

export class Front {
  requests = [];
  violations = [];
  #faults = [];
  #proxy = "";

  /// Listens; requests wait for nothing, so `through` is to be told before the address is given away.
  async listen() {
    this.server = createServer((request, response) => {
      this.#answer(request, response).catch((error) => {
        // A client may hang up whenever it likes.
        if (!request.socket.destroyed) this.#violation(request, 0, String(error));
        response.destroy();
      });
    });
    // A client that comes back after a while shall not meet a closing connection that no test asked for.
    this.server.keepAliveTimeout = 600_000;
    await new Promise((resolve) => this.server.listen(0, "127.0.0.1", resolve));
    return `http://127.0.0.1:${this.server.address().port}`;
  }

  through(proxy) {
    this.#proxy = proxy;
  }

  fail({ path, method, times = 1, how }) {
    this.#faults.push({ path: new RegExp(path), method, times, how });
  }

  heal() {
    this.#faults = [];
  }

  #fault(request) {
    const fault = this.#faults.find(
      ({ path, method, times }) =>
        times > 0 && path.test(request.url) && (!method || method === request.method),
    );
    if (fault) fault.times -= 1;
    return fault?.how;
  }

  #violation(request, status, detail) {
    this.violations.push({ method: request.method, path: request.url, status, detail });
  }

  async #answer(request, response) {
    const { method, url, headers } = request;
    const entry = { method, path: url, auth: kindOf(headers.authorization), status: null, at: null };
    entry.at = new Date().toISOString();
    this.requests.push(entry);
    const body = await read(request);
    const how = this.#fault(request);
    if (how) entry.fault = how;
    if (how === "hang") return;
    if (how === "cutBefore") return void request.socket.destroy();
    if (how?.status) return reply(entry, response, failure(how));
    if (!headers["user-agent"]) {
      this.#violation(request, nameless.status, nameless.body);
      return reply(entry, response, nameless);
    }
    const answer = await send(this.#proxy, { method, url, headers, body });
    const fromFake = answer.headers[MARK] !== undefined;
    if (!fromFake) this.#violation(request, answer.status, parsed(answer.body.toString()));
    if (how === "cutAfter") {
      entry.performed = answer.status;
      return void request.socket.destroy();
    }
    reply(entry, response, { ...answer, headers: without(answer.headers, hidden) });
  }
}

function reply(entry, response, { status, headers, body }) {
  entry.status = status;
  response.writeHead(status, headers).end(status === 204 || status === 304 ? undefined : body);
}
