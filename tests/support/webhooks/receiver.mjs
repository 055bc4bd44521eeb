// A receiver of webhooks that verifies signatures with the library of Standard Webhooks. Listens at the given
// host, or at the loopback address. Prints its address, then answers each line of standard input with a line:
//
// - {"secrets": {"name": "whsec_…"}}: verify each later request with these.
// - {"path": "/a", "answers": [{…}], "always": {…}}: answer the next requests to the path like this:
//   `status`, `headers`, `body`, `delay` in milliseconds, `cut` to break the connection, `hang` to
//   never answer. Without answers, the status is 204.
// - {"received": "/a"}: all requests to the path so far.
import { createServer } from "node:http";
import { createInterface } from "node:readline";
import { Webhook } from "standardwebhooks";

let secrets = {};
const received = new Map();
const answers = new Map();

const verifiedBy = (body, headers) =>
  Object.keys(secrets).filter((name) => {
    try {
      new Webhook(secrets[name]).verify(body, headers);
      return true;
    } catch {
      return false;
    }
  });

const server = createServer(async (request, response) => {
  let body = "";
  for await (const piece of request) body += piece;
  const path = request.url;
  if (!received.has(path)) received.set(path, []);
  const { headers, method } = request;
  received.get(path).push({ at: Date.now(), method, headers, body, verifiedBy: verifiedBy(body, headers) });
  const { queue, always } = answers.get(path) ?? { queue: [] };
  const answer = queue.shift() ?? always ?? {};
  if (answer.cut) return request.socket.destroy();
  if (answer.hang) return;
  if (answer.delay) await new Promise((done) => setTimeout(done, answer.delay));
  response.writeHead(answer.status ?? 204, answer.headers ?? {}).end(answer.body ?? "");
});
const host = process.argv[2] ?? "127.0.0.1";
server.listen(0, host, () => console.log(`${host}:${server.address().port}`));

const kinds = {
  secrets: (question) => ((secrets = question.secrets), null),
  answers: ({ path, answers: queue, always }) => (answers.set(path, { queue, always }), null),
  received: (question) => received.get(question.received) ?? [],
};
for await (const line of createInterface({ input: process.stdin })) {
  const question = JSON.parse(line);
  const kind = Object.keys(kinds).find((kind) => kind in question);
  console.log(JSON.stringify(kinds[kind](question)));
}
process.exit(0);
