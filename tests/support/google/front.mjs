// The server that the tested program talks to: it injects failures, notes requests and hands the rest to the
// checking proxy. Failures are made here and not behind the proxy, because the tested program shall see a cut
// connection and not the proxy's word about it.
//
// The proxy reads bodies as text, so the bytes of uploads go past it: it sees one byte in their place, and the
// fake finds them under the number in the header `x-body`.
import { createServer } from "node:http";
import { MARK, read, send } from "../github/front.mjs";
import { refusal } from "./answers.mjs";

const HIDDEN = [MARK, "sl-violations", "connection", "keep-alive", "transfer-encoding"];
const visible = (headers) =>
  Object.fromEntries(Object.entries(headers).filter(([name]) => !HIDDEN.includes(name)));

export class Front {
  requests = [];
  violations = [];
  bodies = new Map();
  #faults = [];
  #proxy = "";
  #last = 0;

  constructor(issue) {
    this.issue = issue;
  }

  async listen() {
    const server = createServer((request, response) => {
      this.#answer(request, response).catch((error) => {
        // A client may hang up whenever it likes.
        if (!request.socket.destroyed) this.#violation(request, 0, String(error));
        response.destroy();
      });
    });
    server.keepAliveTimeout = 600_000;
    await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
    return `http://127.0.0.1:${server.address().port}`;
  }

  through(proxy) {
    this.#proxy = proxy;
  }

  /// Lets the requests fail that fit, `times` of them after the first `skip`.
  fail({ path = "", method, skip = 0, times = 1, how }) {
    this.#faults.push({ path: new RegExp(path), method, skip, times, how });
  }

  /// Nothing goes wrong with these paths any more.
  heal({ path = "" }) {
    this.#faults = this.#faults.filter((fault) => path && fault.path.source !== new RegExp(path).source);
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

  #violation({ method, url }, status, detail) {
    this.violations.push({ method, path: url, status, detail });
  }

  async #answer(request, response) {
    const { method, url, headers } = request;
    const entry = { method, path: url, status: null };
    this.requests.push(entry);
    const body = await read(request);
    const how = this.#fault(request);
    if (how) entry.fault = how;
    if (how === "hang") return;
    if (how === "cutBefore") return void request.socket.destroy();
    if (how?.status) {
      const after = how.retryAfter === undefined ? {} : { "retry-after": String(how.retryAfter) };
      const { reason = "backendError", message = "Internal error encountered." } = how;
      return reply(entry, response, refusal(how.status, reason, message, after));
    }
    const hasLength = headers["content-length"] !== undefined || headers["transfer-encoding"] !== undefined;
    if (!hasLength && ["POST", "PUT", "PATCH"].includes(method)) {
      this.#violation(request, 411, "A request with a body must have a length, also if the body is empty.");
    }
    const answer = await this.#pass({ method, url, headers, body });
    if (how === "cutAfter") {
      entry.performed = answer.status;
      return void request.socket.destroy();
    }
    reply(entry, response, { ...answer, headers: visible(answer.headers) });
  }

  async #pass({ method, url, headers, body }) {
    if (url === "/token") return method === "POST" ? this.issue(headers, body) : refusal(405, "", "");
    const sent = { method, url, headers: { ...headers }, body };
    if (url.startsWith("/upload/") && body.length) {
      this.#last += 1;
      this.bodies.set(String(this.#last), body);
      sent.headers["x-body"] = String(this.#last);
      sent.body = Buffer.from("0");
    }
    const answer = await send(this.#proxy, sent);
    this.bodies.delete(sent.headers["x-body"]);
    if (answer.headers[MARK] === undefined) {
      this.#violation({ method, url }, answer.status, answer.body.toString());
    }
    return answer;
  }
}

function reply(entry, response, { status, headers, body }) {
  entry.status = status;
  response.writeHead(status, headers).end(status === 204 ? undefined : body);
}
