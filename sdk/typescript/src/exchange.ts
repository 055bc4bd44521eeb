/** The largest body that is read, in characters. The longest replies, those with logs, have 1 MiB. */
const LARGEST_BODY = 64 * 1024 * 1024;

/** An HTTP answer, whatever it says. */
export interface Answer {
  status: number;
  headers: Headers;
  /** The body. `undefined` if it is not JSON. */
  body: unknown;
}

/** What `fetch` reports when no connection was made, by the codes of Node.js. Browsers do not tell. */
const NOT_SENT =
  /^(ECONNREFUSED|ENOTFOUND|EAI_|EHOSTUNREACH|ENETUNREACH|UND_ERR_CONNECT_TIMEOUT|ERR_TLS_|ERR_SSL_|CERT_|DEPTH_ZERO_|SELF_SIGNED_|UNABLE_TO_)/;

/** Whether a failed `fetch` certainly did not send the request. */
export function wasNotSent(error: unknown): boolean {
  const cause = error instanceof Error ? error.cause : undefined;
  const code = typeof cause === "object" && cause !== null && "code" in cause ? cause.code : "";
  return NOT_SENT.test(String(code));
}

/** Aborts a request after a time, or with the caller's signal. */
export class TimeLimit {
  readonly #controller = new AbortController();
  readonly #timer: ReturnType<typeof setTimeout>;
  readonly #caller: AbortSignal | undefined;
  readonly #abort = () => this.#controller.abort(this.#caller?.reason);

  constructor(milliseconds: number, caller: AbortSignal | undefined) {
    this.#caller = caller;
    caller?.addEventListener("abort", this.#abort);
    const late = new DOMException("no answer in time", "TimeoutError");
    this.#timer = setTimeout(() => this.#controller.abort(late), milliseconds);
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** To be called when the request is over. */
  end(): void {
    clearTimeout(this.#timer);
    this.#caller?.removeEventListener("abort", this.#abort);
  }
}

/** Reads an answer. */
export async function read(response: Response): Promise<Answer> {
  const { status, headers } = response;
  return { status, headers, body: parsed(await text(response)) };
}

/** The pause that an answer asks for, in whole seconds. A date is ignored. */
export function retryAfter(headers: Headers): number | undefined {
  const told = headers.get("Retry-After")?.trim() ?? "";
  return /^\d+$/.test(told) ? Number(told) : undefined;
}

/** What follows after the limit is cut off. */
async function text(response: Response): Promise<string> {
  const reader = response.body?.getReader();
  if (!reader) return "";
  const decoder = new TextDecoder();
  let text = "";
  while (text.length <= LARGEST_BODY) {
    const { done, value } = await reader.read();
    if (done) return text + decoder.decode();
    text += decoder.decode(value, { stream: true });
  }
  await reader.cancel();
  return text;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
