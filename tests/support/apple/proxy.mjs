// The proxy that checks requests and answers against the description: Prism, without its command line, which
// changes the names of parameters with brackets when it prints examples of paths.
import { createRequire } from "node:module";

const require = createRequire(import.meta.url);
const { createLogger } = require("@stoplight/prism-core");
const { getHttpOperationsFromSpec } = require("@stoplight/prism-http");
const { createServer } = require("@stoplight/prism-http-server");

/// Starts a proxy to `upstream`, and answers with its address.
export async function startProxy(description, upstream) {
  const operations = await getHttpOperationsFromSpec(description);
  const config = {
    isProxy: true,
    upstream: new URL(upstream),
    checkSecurity: true,
    validateRequest: true,
    validateResponse: true,
    errors: true,
    mock: { dynamic: false },
  };
  const logger = createLogger("proxy", { level: "silent" });
  const server = createServer(operations, { cors: false, config, components: { logger } });
  return server.listen(0, "127.0.0.1");
}
