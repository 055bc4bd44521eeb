import { Checkouts, CommerceChannels, Subscriptions } from "./checkout.js";
import {
  SvcError,
  kindOfRefusal,
  kindOfSilence,
  kindOfStranger,
  type Attempted,
  type Failure,
} from "./error.js";
import { TimeLimit, read, retryAfter, wasNotSent, type Answer } from "./exchange.js";
import type { Effect, FunctionName, Item, ListName, Params, Reply } from "./functions.js";
import { EFFECTS } from "./generated/effects.js";
import { Attempts, BRIEF, pause, type Patience } from "./retry.js";

/** Longer than the service takes for a call: 30 s, unless its operator allows more. */
const ANSWERED_WITHIN_MS = 60_000;

/** The settings of a client. */
export interface ClientOptions {
  /** The `{base_url}` of the service, such as `https://svc.example.com/backend`. */
  baseUrl: string;
  /** Who operates the service knows it. Calls with a deploy token do not need it. */
  applicationId?: string | undefined;
  /** The JavaScript key, if the service wants one. */
  javascriptKey?: string | undefined;
  /** The session of a person, `r:…`. */
  sessionToken?: string | undefined;
  /** A deploy token, `svc_dt_…`. It acts for who created it, within its scopes. */
  deployToken?: string | undefined;
  /** The master key. Never in a browser: it may do everything. */
  masterKey?: string | undefined;
  /** A `fetch` in the place of the global one. */
  fetch?: typeof globalThis.fetch | undefined;
  /** How long to wait for the answer of one attempt, in milliseconds. The default is 60,000. */
  timeoutMs?: number | undefined;
  /** How often to try. What is left out is as in `BRIEF`. */
  patience?: Partial<Patience> | undefined;
}

/** The options of one call. */
export interface CallOptions {
  /** Ends the call. It then rejects with the reason of the signal; a change may have been made. */
  signal?: AbortSignal | undefined;
  /**
   * The idempotency key of a change, at most 256 characters. Further calls of the same caller with
   * the same key and parameters get the first reply for 24 hours, and change nothing. The default is
   * a random key for each call.
   */
  idempotencyKey?: string | undefined;
}

/** The parameters of a function, which may be left out if none is required, and the options. */
export type CallArguments<N extends FunctionName> =
  Record<never, never> extends Params<N>
    ? [params?: Params<N>, options?: CallOptions]
    : [params: Params<N>, options?: CallOptions];

/** Calls the functions of one service. */
export class Client {
  /** Payments of buyers, with the orders of a shop that they pay for. */
  readonly checkout: Checkouts;
  /** Subscriptions of buyers. */
  readonly subscriptions: Subscriptions;
  /** The channels of shops in which orders are built. */
  readonly commerceChannels: CommerceChannels;
  #sessionToken: string | undefined;
  readonly #options: ClientOptions;
  readonly #baseUrl: string;
  readonly #patience: Patience;

  constructor(options: ClientOptions) {
    const address = new URL(options.baseUrl);
    if (!/^https?:$/.test(address.protocol) || address.search || address.hash) {
      throw new TypeError(`baseUrl ${options.baseUrl} is not the address of a service`);
    }
    this.#options = { ...options };
    this.#baseUrl = options.baseUrl.replace(/\/+$/, "");
    this.#patience = { ...BRIEF, ...options.patience };
    this.#sessionToken = options.sessionToken;
    this.checkout = new Checkouts(this);
    this.subscriptions = new Subscriptions(this);
    this.commerceChannels = new CommerceChannels(this);
  }

  /** The session of later calls. Keep it where your program keeps secrets. */
  get sessionToken(): string | undefined {
    return this.#sessionToken;
  }

  set sessionToken(token: string | undefined) {
    this.#sessionToken = token;
  }

  /**
   * Calls a function.
   *
   * It is repeated, with growing pauses, after a failed connection and the statuses 408, 500 and 502
   * to 504. A change has the same idempotency key in all attempts, so the service makes it once. A
   * call whose reply has a secret is not repeated after its answer was lost: the secret comes once.
   *
   * @throws {SvcError} when there is no reply.
   */
  async call<N extends FunctionName>(
    name: N,
    ...[params, options = {}]: CallArguments<N>
  ): Promise<Reply<N>> {
    // A function of a newer service may change something.
    const effect = (EFFECTS as Record<string, Effect | undefined>)[name] ?? "change";
    const change = effect !== "read";
    const idempotencyKey = change ? (options.idempotencyKey ?? randomKey()) : undefined;
    const request = {
      method: "POST",
      headers: this.#headers(idempotencyKey),
      body: JSON.stringify(params ?? {}),
      // Nothing but the headers identifies the caller, and nothing of an answer is kept.
      credentials: "omit",
      cache: "no-store",
      // A redirect would turn a call into a GET, and send the credentials elsewhere.
      redirect: "manual",
    } satisfies RequestInit;
    const url = `${this.#baseUrl}/functions/${name}`;
    const attempts = new Attempts(this.#patience, effect !== "secret");
    for (;;) {
      const attempt = await this.#attempt(url, request, options.signal);
      const wait = attempts.after(attempt.outcome);
      if (wait !== undefined) {
        await pause(wait, options.signal);
        continue;
      }
      const attempted = { change, lost: attempts.lost };
      if (!attempt.answer) throw this.#silence(attempt.error, attempted, idempotencyKey);
      const { status, body } = attempt.answer;
      if (status === 200 && isSuccess<Reply<N>>(body)) return body.result;
      throw this.#refusal(attempt.answer, attempted, idempotencyKey);
    }
  }

  /** Lists all items of all pages. Pages are read as they are needed. */
  async *list<N extends ListName>(
    name: N,
    ...[params, options]: CallArguments<N>
  ): AsyncGenerator<Item<N>, void, undefined> {
    let cursor: string | null | undefined;
    do {
      const asked = cursor ? { ...params, cursor } : params;
      const page: { items: unknown[]; nextCursor?: string | null } = await this.call(
        name,
        ...([asked, options] as CallArguments<N>),
      );
      yield* page.items as Item<N>[];
      cursor = page.nextCursor;
    } while (cursor);
  }

  /** Creates an account, and calls in its session from now on. */
  async registerUser(params: Params<"registerUser">, options?: CallOptions) {
    return this.#keepSession(await this.call("registerUser", params, options));
  }

  /** Signs in, and calls in the new session from now on. */
  async loginWithEmail(params: Params<"loginWithEmail">, options?: CallOptions) {
    return this.#keepSession(await this.call("loginWithEmail", params, options));
  }

  /** Changes the password, and calls in the new session from now on. */
  async changePassword(params: Params<"changePassword">, options?: CallOptions) {
    return this.#keepSession(await this.call("changePassword", params, options));
  }

  /** Ends the session. */
  async logout(options?: CallOptions): Promise<void> {
    await this.call("logout", {}, options);
    this.sessionToken = undefined;
  }

  #keepSession<R extends { sessionToken: string }>(reply: R): R {
    this.sessionToken = reply.sessionToken;
    return reply;
  }

  #headers(idempotencyKey: string | undefined): Headers {
    const headers = new Headers({ "Content-Type": "application/json" });
    const { applicationId, javascriptKey, deployToken, masterKey } = this.#options;
    const values = {
      "X-Backend-Application-Id": applicationId,
      "X-Backend-Javascript-Key": javascriptKey,
      "X-Backend-Session-Token": this.sessionToken,
      "X-Backend-Master-Key": masterKey,
      "X-Backend-Request-Id": idempotencyKey,
      Authorization: deployToken && `Bearer ${deployToken}`,
    };
    for (const [name, value] of Object.entries(values)) {
      if (value) headers.set(name, value);
    }
    return headers;
  }

  async #attempt(url: string, request: RequestInit, signal: AbortSignal | undefined) {
    signal?.throwIfAborted();
    const limit = new TimeLimit(this.#options.timeoutMs ?? ANSWERED_WITHIN_MS, signal);
    const send = this.#options.fetch ?? globalThis.fetch;
    try {
      const answer = await read(await send(url, { ...request, signal: limit.signal }));
      const { status, headers } = answer;
      return { answer, outcome: { answered: status, retryAfter: retryAfter(headers) } } as const;
    } catch (error) {
      signal?.throwIfAborted();
      return { error, outcome: wasNotSent(error) ? "notSent" : "lost" } as const;
    } finally {
      limit.end();
    }
  }

  #refusal(answer: Answer, attempted: Attempted, idempotencyKey: string | undefined): SvcError {
    const { status, headers, body } = answer;
    const failure = status !== 200 && isFailure(body) ? body : undefined;
    const kind = failure ? kindOfRefusal(status, attempted) : kindOfStranger(status, attempted);
    const message =
      failure?.error ?? `${this.#baseUrl} answered, but not as this service does (HTTP ${status})`;
    const requestId = headers.get("X-Request-Id") ?? undefined;
    const facts = { status, failure, retryAfter: retryAfter(headers), requestId, idempotencyKey };
    return new SvcError(kind, message, facts);
  }

  #silence(cause: unknown, attempted: Attempted, idempotencyKey: string | undefined): SvcError {
    const kind = kindOfSilence(attempted);
    const late = cause instanceof DOMException && cause.name === "TimeoutError";
    const what = late ? "gave no answer in time" : "cannot be reached";
    const hint = kind === "unclear" ? "; it may have been done, so read before a retry" : "";
    return new SvcError(kind, `${this.#baseUrl} ${what}${hint}`, { idempotencyKey, cause });
  }
}

/** `crypto.randomUUID` is missing on pages without https. */
function randomKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

function isSuccess<R>(body: unknown): body is { result: R } {
  return typeof body === "object" && body !== null && "result" in body;
}

function isFailure(body: unknown): body is Failure {
  if (typeof body !== "object" || body === null) return false;
  const { code, error } = body as Partial<Failure>;
  return typeof code === "number" && typeof error === "string";
}
