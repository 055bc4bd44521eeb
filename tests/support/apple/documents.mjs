// Documents and refusals in the form of JSON:API, as Apple writes them.

/// An answer that refuses: one error, or several.
export class Refusal extends Error {
  constructor(status, ...errors) {
    super(errors.map(({ code }) => code).join());
    const filled = errors.map((error, index) => ({
      id: `00000000-0000-4000-8000-00000000000${index}`,
      status: String(status),
      title: error.detail,
      ...error,
    }));
    this.answer = { status, body: { errors: filled } };
  }
}

export const refuse = (status, code, detail, meta) => {
  throw new Refusal(status, { code, detail, ...(meta && { meta }) });
};

export const notFound = (type, id) =>
  refuse(404, "NOT_FOUND", `There is no resource of type '${type}' with id '${id}'`);

export const INVALID_STATE = "STATE_ERROR.ENTITY_STATE_INVALID";

/// A resource whose relationships name one other each, or a list of others.
export function resource(type, id, attributes, relationships = {}) {
  const link = ([kind, target]) => (Array.isArray(target) ? target.map((id) => ({ type: kind, id })) : { type: kind, id: target });
  const links = Object.entries(relationships)
    .filter(([, [, target]]) => target !== null && target !== undefined)
    .map(([name, relation]) => [name, { data: link(relation) }]);
  const known = Object.entries(attributes).filter(([, value]) => value !== null && value !== undefined);
  return {
    type,
    id,
    attributes: Object.fromEntries(known),
    ...(links.length && { relationships: Object.fromEntries(links) }),
  };
}

const links = { self: "https://api.appstoreconnect.apple.com/v1" };
export const one = (data, included) => ({ data, ...(included && { included }), links });
export const many = (data, query, included) => {
  const limit = Math.min(200, Number(query.get("limit") ?? 50));
  const paging = { total: data.length, limit };
  return { data: data.slice(0, limit), ...(included && { included }), links, meta: { paging } };
};

/// The values of a filter, or null.
export const filter = (query, name) => query.get(`filter[${name}]`)?.split(",") ?? null;
export const passes = (wanted, value) => !wanted || wanted.includes(value);
