import type { components, operations } from "./generated/openapi.js";

/** The name of a function of the service. */
export type FunctionName = keyof operations;

/** The parameters of a function. */
export type Params<N extends FunctionName> = NonNullable<
  operations[N]["requestBody"]
>["content"]["application/json"];

/** The reply of a function. */
export type Reply<N extends FunctionName> =
  operations[N]["responses"][200]["content"]["application/json"]["result"];

/** The records of the service by name, such as `Schemas["Project"]`. */
export type Schemas = components["schemas"];

/** The functions that list something in pages. */
export type ListName = {
  [N in FunctionName]: Reply<N> extends { items: unknown[]; nextCursor?: string | null }
    ? N
    : never;
}[FunctionName];

/** The items of a list. */
export type Item<N extends ListName> = Reply<N> extends { items: (infer I)[] } ? I : never;

/**
 * What a call does: `read` changes nothing. A `change` that is repeated with its idempotency key is
 * made once, and gets the first reply again. A `secret` is a change whose reply comes only once.
 */
export type Effect = "read" | "change" | "secret";
