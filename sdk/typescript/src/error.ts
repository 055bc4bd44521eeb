import type { Schemas } from "./functions.js";

/**
 * What a failure means for the caller.
 *
 * - `refused`: The service refuses the call, and did nothing. The same call is refused again until
 *   the caller or the object changes. `code` tells refusals apart.
 * - `limited`: The caller exceeded a rate limit, and nothing was done.
 * - `unavailable`: The service, or something behind it, is not able to do it now, and nothing was
 *   done.
 * - `unclear`: Nobody can tell whether the change was made. Read the object, or call again with the
 *   same `idempotencyKey`: the service then makes the change once.
 * - `unreachable`: The service did not get the call, or the call changes nothing.
 */
export type ErrorKind = "refused" | "limited" | "unavailable" | "unclear" | "unreachable";

/** The body of a refusal. */
export type Failure = Schemas["Failure"];

/** An invalid field of the parameters. */
export type FieldProblem = Schemas["FieldProblem"];

/** What a client knows of a failed call. */
export interface ErrorFacts {
  status?: number | undefined;
  failure?: Failure | undefined;
  retryAfter?: number | undefined;
  requestId?: string | undefined;
  idempotencyKey?: string | undefined;
  cause?: unknown;
}

/** Why a call has no reply. `message` is a sentence for a person. */
export class SvcError extends Error {
  override readonly name = "SvcError";
  /** What it means for the caller. */
  readonly kind: ErrorKind;
  /** The code of the service, if it refused: 100, 101, 119, 137, 141, 142, 403 or 429. */
  readonly code: number | undefined;
  /** The HTTP status of the last answer, if one came. */
  readonly status: number | undefined;
  /** The invalid fields of the parameters. */
  readonly details: readonly FieldProblem[];
  /** The pause after which a repetition can succeed, in seconds. */
  readonly retryAfter: number | undefined;
  /** The id of the request in the log of the service. */
  readonly requestId: string | undefined;
  /** The idempotency key of the change. */
  readonly idempotencyKey: string | undefined;

  constructor(kind: ErrorKind, message: string, facts: ErrorFacts = {}) {
    super(message, facts.cause === undefined ? undefined : { cause: facts.cause });
    this.kind = kind;
    this.code = facts.failure?.code;
    this.status = facts.status;
    this.details = facts.failure?.details ?? [];
    this.retryAfter = facts.retryAfter;
    this.requestId = facts.requestId;
    this.idempotencyKey = facts.idempotencyKey;
  }
}

/** What the attempts of a call tell about whether a change was made. */
export interface Attempted {
  /** Whether the call changes something. */
  change: boolean;
  /** Whether the answer of an attempt was lost. */
  lost: boolean;
}

/** What a refusal of the service means. */
export function kindOfRefusal(status: number, { change, lost }: Attempted): ErrorKind {
  if (status === 424) return change ? "unclear" : "unavailable";
  const passing = status === 408 || status >= 500;
  // The service decides these before it reads the idempotency key, so they tell nothing about the
  // attempt whose answer was lost.
  if (change && lost && (status === 401 || status === 429 || passing)) return "unclear";
  if (status === 429) return "limited";
  return passing ? "unavailable" : "refused";
}

/** What it means when another program answers, or the service in a form that is not known. */
export function kindOfStranger(status: number, { change, lost }: Attempted): ErrorKind {
  const mayBeDone = lost || (status >= 200 && status < 300) || status >= 500;
  return change && mayBeDone ? "unclear" : "unreachable";
}

/** What it means when no answer came. */
export function kindOfSilence({ change, lost }: Attempted): ErrorKind {
  return change && lost ? "unclear" : "unreachable";
}
