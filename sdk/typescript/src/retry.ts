/** How often to try, and how long to wait between attempts. */
export interface Patience {
  /** The number of attempts, the first one included. */
  attempts: number;
  /** The pause after the first failure, in milliseconds. Each further failure doubles the pause. */
  firstPauseMs: number;
  /** The longest of these pauses. */
  longestPauseMs: number;
  /** Whether to wait after a rate limit. */
  waitsForLimits: boolean;
}

/** Three attempts, for somebody who waits. */
export const BRIEF: Patience = {
  attempts: 3,
  firstPauseMs: 250,
  longestPauseMs: 1000,
  waitsForLimits: false,
};

/** Eight attempts within about a minute, for work in the background. */
export const LASTING: Patience = {
  attempts: 8,
  firstPauseMs: 500,
  longestPauseMs: 30_000,
  waitsForLimits: true,
};

/** The longest pause that an answer may ask for, in seconds. */
const LONGEST_TOLD = 120;

/** What became of one attempt. */
export type Outcome =
  /** An answer came. It may ask for a pause, in seconds. */
  | { answered: number; retryAfter?: number | undefined }
  /** There was no connection, so nothing was done. */
  | "notSent"
  /** The request may have arrived, and no answer came. */
  | "lost";

/** The attempts of one call so far. */
export class Attempts {
  /** Whether the answer of an attempt was lost: the call may have been executed. */
  lost = false;
  #failures = 0;
  readonly #patience: Patience;
  readonly #repeatsLost: boolean;

  /** `repeatsLost`: whether the request may be repeated after its answer was lost. */
  constructor(patience: Patience, repeatsLost: boolean) {
    this.#patience = patience;
    this.#repeatsLost = repeatsLost;
  }

  /** The pause before the next attempt, in milliseconds; `undefined` if this outcome is the last. */
  after(outcome: Outcome): number | undefined {
    this.#failures += 1;
    const status = typeof outcome === "object" ? outcome.answered : undefined;
    // 502 and 504 come from a gateway that waited for the service in vain.
    const lost = outcome === "lost" || status === 502 || status === 504;
    this.lost ||= lost;
    const again = lost ? this.#repeatsLost : status === undefined || this.#repeats(status);
    if (!again || this.#failures >= this.#patience.attempts) return undefined;
    const { firstPauseMs, longestPauseMs } = this.#patience;
    const doubled = Math.min(firstPauseMs * 2 ** (this.#failures - 1), longestPauseMs);
    // Pauses vary, so that clients that failed at the same time do not come back at the same time.
    const own = doubled * (0.5 + Math.random() / 2);
    const told = typeof outcome === "object" ? (outcome.retryAfter ?? 0) : 0;
    return Math.max(own, Math.min(told, LONGEST_TOLD) * 1000);
  }

  #repeats(status: number): boolean {
    return status === 429 ? this.#patience.waitsForLimits : [408, 500, 503].includes(status);
  }
}

/** Waits. Rejects with the signal's reason when it aborts. */
export function pause(milliseconds: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    signal?.throwIfAborted();
    const end = () => {
      signal?.removeEventListener("abort", abort);
      resolve();
    };
    const timer = setTimeout(end, milliseconds);
    const abort = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    signal?.addEventListener("abort", abort, { once: true });
  });
}
