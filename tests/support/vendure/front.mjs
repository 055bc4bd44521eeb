// The server that the tested program talks to. The first part of a request's path is its place: each test has
// its own, so that it can count its requests and let them go wrong. The rest of the path is Vendure's.
import { createServer } from "node:http";
import { read, send } from "../github/front.mjs";

const HOP = ["connection", "keep-alive", "transfer-encoding"];
const withoutHops = (headers) => Object.fromEntries(Object.entries(headers).filter(([name]) => !HOP.includes(name)));

export class Front {
  #requests = [];
  #faults = [];
  #last = Promise.resolve();

  constructor(behind, { oneAtATime }) {
    this.behind = behind;
    this.oneAtATime = oneAtATime;
  }

  async listen() {
    const server = createServer((request, response) => {
      this.#answer(request, response).catch(() => response.destroy());
    });
    server.keepAliveTimeout = 600_000;
    await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
    return `http://127.0.0.1:${server.address().port}`;
  }

  requests(place) {
    return this.#requests.filter((request) => request.place === place);
  }

  /// The request after the first `skip` ones goes wrong, with `each` that of each operation, and with
  /// `always` every one until the place is healed.
  fail({ place, skip = 0, each = false, always = false, how }) {
    this.#faults.push({ place, skip, each, always, how, seen: new Map() });
  }

  heal(place) {
    this.#faults = this.#faults.filter((fault) => fault.place !== place);
  }

  #fault(place, operation) {
    const isDue = (fault) => {
      if (fault.place !== place) return false;
      if (fault.always) return true;
      const kind = fault.each ? operation : "any";
      const seen = fault.seen.get(kind) ?? 0;
      fault.seen.set(kind, seen + 1);
      return seen === fault.skip;
    };
    return this.#faults.find(isDue)?.how;
  }

  /// Sends a request to Vendure.
  pass(request) {
    if (!this.oneAtATime) return send(this.behind, request);
    const answer = this.#last.then(() => send(this.behind, request));
    this.#last = answer.catch(() => {});
    return answer;
  }

  async #answer(request, response) {
    const { method, url, headers } = request;
    const body = await read(request);
    const [, place, path] = url.match(/^\/([^/]*)(\/.*)$/) ?? [];
    const [, operation] = String(body).match(/"(?:query|mutation) (\w+)/) ?? [];
    const how = this.#fault(place, operation);
    this.#requests.push({ place, operation, how });
    if (how === "cutBefore") return void request.socket.destroy();
    if (how?.status) {
      const after = how.retryAfter === undefined ? {} : { "retry-after": String(how.retryAfter) };
      return void response.writeHead(how.status, after).end("The shop is being repaired.");
    }
    const answer = await this.pass({ method, url: path ?? url, headers: withoutHops(headers), body });
    if (how === "cutAfter") return void request.socket.destroy();
    response.writeHead(answer.status, withoutHops(answer.headers)).end(answer.body);
  }
}
