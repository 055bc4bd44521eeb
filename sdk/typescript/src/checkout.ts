import type { CallOptions, Client } from "./client.js";
import type { Params, Reply } from "./functions.js";

/** Checkouts: payments of buyers, with the orders of a shop that they pay for. */
export class Checkouts {
  readonly #svc: Client;

  constructor(svc: Client) {
    this.#svc = svc;
  }

  /**
   * Opens the page on which a buyer pays: send the buyer to `checkoutUrl` of the reply. With the flow
   * `commerce`, it builds the order in the shop. The same idempotency key gets the same checkout.
   */
  create(
    params: Params<"svc_checkout_create">,
    options?: CallOptions,
  ): Promise<Reply<"svc_checkout_create">> {
    return this.#svc.call("svc_checkout_create", params, options);
  }

  /**
   * Finds out whether a payment arrived. An order of the shop is then paid: `orderCode` is its code.
   * Safe to repeat.
   */
  verify(
    params: Params<"svc_checkout_verify">,
    options?: CallOptions,
  ): Promise<Reply<"svc_checkout_verify">> {
    return this.#svc.call("svc_checkout_verify", params, options);
  }

  /** Reads a checkout with its payment and its order. */
  get(params: Params<"svc_getCheckout">, options?: CallOptions): Promise<Reply<"svc_getCheckout">> {
    return this.#svc.call("svc_getCheckout", params, options);
  }

  /** Lists all checkouts of an app, page by page. */
  list(params: Params<"svc_getCheckouts">, options?: CallOptions) {
    return this.#svc.list("svc_getCheckouts", params, options);
  }

  /** Settles a paid checkout now, after what prevented it was mended. */
  settle(
    params: Params<"svc_settleCheckout">,
    options?: CallOptions,
  ): Promise<Reply<"svc_settleCheckout">> {
    return this.#svc.call("svc_settleCheckout", params, options);
  }
}

/** Subscriptions of buyers. */
export class Subscriptions {
  readonly #svc: Client;

  constructor(svc: Client) {
    this.#svc = svc;
  }

  /** Checks whether an e-mail address has an active subscription to a plan of the app. */
  check(
    params: Params<"svc_subscriptions_check">,
    options?: CallOptions,
  ): Promise<Reply<"svc_subscriptions_check">> {
    return this.#svc.call("svc_subscriptions_check", params, options);
  }

  /** Lists all subscriptions of an app, page by page. */
  list(params: Params<"svc_getSubscriptions">, options?: CallOptions) {
    return this.#svc.list("svc_getSubscriptions", params, options);
  }
}

/** The channels of shops in which orders are built. Only the master key may use them. */
export class CommerceChannels {
  readonly #svc: Client;

  constructor(svc: Client) {
    this.#svc = svc;
  }

  /** Registers a channel of a shop, or changes its registration. */
  register(
    params: Params<"svc_admin_registerCommerceChannel">,
    options?: CallOptions,
  ): Promise<Reply<"svc_admin_registerCommerceChannel">> {
    return this.#svc.call("svc_admin_registerCommerceChannel", params, options);
  }

  /** Lists all registered channels, page by page. */
  list(params?: Params<"svc_admin_getCommerceChannels">, options?: CallOptions) {
    return this.#svc.list("svc_admin_getCommerceChannels", params, options);
  }

  /** Forgets a channel. */
  delete(
    params: Params<"svc_admin_deleteCommerceChannel">,
    options?: CallOptions,
  ): Promise<Reply<"svc_admin_deleteCommerceChannel">> {
    return this.#svc.call("svc_admin_deleteCommerceChannel", params, options);
  }
}
