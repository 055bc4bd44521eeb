export type { Checkouts, CommerceChannels, Subscriptions } from "./checkout.js";
export { Client, type CallArguments, type CallOptions, type ClientOptions } from "./client.js";
export {
  SvcError,
  type ErrorFacts,
  type ErrorKind,
  type Failure,
  type FieldProblem,
} from "./error.js";
export type { Effect, FunctionName, Item, ListName, Params, Reply, Schemas } from "./functions.js";
export { EFFECTS } from "./generated/effects.js";
export { BRIEF, LASTING, type Patience } from "./retry.js";
