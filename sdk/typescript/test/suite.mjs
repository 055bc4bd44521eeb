// What the client does with a running service. It runs in Node.js and in browsers, so it imports
// nothing.

const PASSWORD = "correct horse";

/** Fails unless both are the same JSON. */
export function same(actual, expected, what = "") {
  const [is, wanted] = [actual, expected].map((value) => JSON.stringify(value));
  if (is !== wanted) throw new Error(`${what} is ${is}, not ${wanted}`);
}

function check(holds, what) {
  if (!holds) throw new Error(what);
}

/** Waits until `holds` gives true, at most half a minute. */
async function eventually(what, holds) {
  const end = Date.now() + 30_000;
  while (!(await holds())) {
    check(Date.now() < end, `${what}: not within 30 s`);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

/** The error of a call that must fail. */
async function failure(call) {
  return call.then(
    (reply) => {
      throw new Error(`not refused: ${JSON.stringify(reply)}`);
    },
    (error) => error,
  );
}

/**
 * The tests by name. `place.url` is the service, `place.lossy` a gateway that loses the first answer
 * to each change, and `place.nobody` an address where nothing listens.
 */
export function suite({ Client, SvcError }, place) {
  const client = (options = {}) =>
    new Client({ baseUrl: `${place.url}/backend`, applicationId: place.applicationId, ...options });
  const brief = { firstPauseMs: 1, longestPauseMs: 5 };
  let people = 0;
  const unused = () => `person${++people}.${Math.random().toString(36).slice(2)}@example.com`;
  const signedUp = async (options) => {
    const svc = client(options);
    await svc.registerUser({ email: unused(), password: PASSWORD, name: "Ada" });
    return svc;
  };
  /** A fetch that keeps the idempotency key of each request. */
  const watched = (keys) => async (address, request) => {
    keys.push(request.headers.get("X-Backend-Request-Id"));
    return fetch(address, request);
  };
  const projects = async (svc, name) => {
    const found = [];
    for await (const project of svc.list("svc_getProjects")) {
      if (project.name === name) found.push(project.id);
    }
    return found;
  };

  return {
    "a person signs up, in and out, and changes the password": async () => {
      const svc = client();
      const email = unused();
      const made = await svc.registerUser({ email, password: PASSWORD });
      check(/^r:[0-9a-f]{32}$/.test(svc.sessionToken), svc.sessionToken);
      same((await svc.call("getCurrentUser")).id, made.user.id);
      const { sessionToken } = svc;
      await svc.changePassword({ currentPassword: PASSWORD, newPassword: "another horse" });
      check(svc.sessionToken !== sessionToken, "the session is the same");
      same((await svc.call("getCurrentUser")).email, email);
      await svc.logout();
      same(svc.sessionToken, undefined);
      same((await failure(svc.call("getCurrentUser"))).code, 119);
      const back = await svc.loginWithEmail({ email, password: "another horse" });
      same([back.user.id, back.sessionToken], [made.user.id, svc.sessionToken]);
    },

    "a project and its app are made and read": async () => {
      const svc = await signedUp();
      const project = await svc.call("svc_createProject", { name: "Shop" });
      const app = await svc.call("createApp", { projectId: project.id, name: "Shop" });
      const read = await svc.call("getApp", { appId: app.id });
      same([read.id, read.projectId, read.name], [app.id, project.id, "Shop"]);
    },

    "a refusal has its code, its status and the id in the log": async () => {
      const svc = await signedUp();
      const missing = { appId: "app_01J9ZQ8F5W7V3T6M2K4N8R0P1S" };
      const error = await failure(svc.call("getApp", missing));
      check(error instanceof SvcError && error instanceof Error, String(error));
      same([error.kind, error.code, error.status], ["refused", 101, 404]);
      check(error.message.includes("no such app"), error.message);
      check(error.requestId, "no request id");
      same(error.idempotencyKey, undefined);
      same((await failure(client().call("getCurrentUser"))).status, 401);
    },

    "invalid fields are named": async () => {
      const svc = await signedUp();
      const error = await failure(svc.call("svc_createProject", { name: "" }));
      same([error.kind, error.code, error.status], ["refused", 142, 400]);
      same(
        error.details.map((detail) => detail.field),
        ["name"],
      );
      check(error.details[0].problem, "no problem");
    },

    "a change whose answer is lost is made once": async () => {
      const svc = await signedUp();
      const keys = [];
      const lossy = client({
        baseUrl: `${place.lossy}/backend`,
        sessionToken: svc.sessionToken,
        fetch: watched(keys),
        patience: brief,
      });
      const project = await lossy.call("svc_createProject", { name: "Once" });
      same(await projects(svc, "Once"), [project.id]);
      check(keys.length === 2 && keys[0] && keys[0] === keys[1], String(keys));
    },

    "an unclear change is made once with its key": async () => {
      const svc = await signedUp();
      const lossy = client({
        baseUrl: `${place.lossy}/backend`,
        sessionToken: svc.sessionToken,
        patience: { attempts: 1 },
      });
      const shop = { name: "Unclear" };
      const error = await failure(lossy.call("svc_createProject", shop));
      same([error.kind, error.code, error.status], ["unclear", undefined, undefined]);
      const { idempotencyKey } = error;
      const project = await svc.call("svc_createProject", shop, { idempotencyKey });
      same(await projects(svc, "Unclear"), [project.id]);
    },

    "a reply that comes once is not asked for twice": async () => {
      const keys = [];
      const lossy = client({
        baseUrl: `${place.lossy}/backend`,
        fetch: watched(keys),
        patience: brief,
      });
      const person = { email: unused(), password: PASSWORD };
      const error = await failure(lossy.registerUser(person));
      same([error.kind, keys.length, lossy.sessionToken], ["unclear", 1, undefined]);
      await client().loginWithEmail(person);
    },

    "a busy service is asked again, with the same key": async () => {
      const keys = [];
      const real = watched(keys);
      let busy = 2;
      const svc = await signedUp({
        patience: brief,
        fetch: async (address, request) => {
          const answer = await real(address, request);
          if (!address.endsWith("svc_createProject") || busy-- <= 0) return answer;
          const body = JSON.stringify({ code: 100, error: "busy" });
          return new Response(body, { status: 503, headers: { "Retry-After": "0" } });
        },
      });
      const project = await svc.call("svc_createProject", { name: "Busy" });
      same(await projects(svc, "Busy"), [project.id]);
      check(keys[1] && keys[1] === keys[2] && keys[2] === keys[3], String(keys));
      check(keys[0] !== keys[1], "another call has another key");
    },

    "a limit is told, or waited for": async () => {
      const svc = await signedUp();
      let error;
      for (let calls = 0; !error; calls += 1) {
        check(calls < 200, "nothing limits this caller");
        await svc.call("getCurrentUser").catch((refused) => (error = refused));
      }
      same([error.kind, error.code, error.status], ["limited", 429, 429]);
      check(error.retryAfter >= 1, String(error.retryAfter));
      const { sessionToken } = svc;
      const patient = client({ sessionToken, patience: { waitsForLimits: true, attempts: 5 } });
      await patient.call("getCurrentUser");
    },

    "a list is read page by page": async () => {
      const svc = await signedUp();
      const made = [];
      for (const name of ["A", "B", "C", "D", "E"]) {
        made.unshift((await svc.call("svc_createProject", { name })).id);
      }
      const listed = [];
      for await (const project of svc.list("svc_getProjects", { limit: 2 }))
        listed.push(project.id);
      same(listed, made);
    },

    "a buyer pays once, even if the answer to the checkout is lost": async () => {
      const buyer = client({ baseUrl: `${place.lossy}/backend`, patience: brief });
      const email = unused();
      const price = { amount: 450_000, currency: "NGN" };
      const order = { flow: "direct", appId: place.sellingApp, ...price, customer: { email } };
      const once = { idempotencyKey: `cart of ${email}` };
      const checkout = await buyer.checkout.create(order, once);
      same(await buyer.checkout.create(order, once), checkout);
      const { reference, checkoutUrl } = checkout;
      same([checkout.amount, checkout.currency], [450_000, "NGN"]);
      // What the page of the provider does. A browser does not show its answer to other pages.
      const pay = { method: "POST", body: "action=pay", redirect: "manual" };
      await fetch(checkoutUrl, pay).catch(() => {});
      const paid = async () => (await buyer.checkout.verify({ reference })).status === "paid";
      await eventually("it is paid", paid);

      const seller = client({ sessionToken: place.sellerToken });
      const settled = async () => (await seller.checkout.get({ reference })).state === "settled";
      await eventually("it is settled", settled);
      const listed = [];
      for await (const kept of seller.checkout.list({ appId: place.sellingApp, limit: 1 })) {
        listed.push(kept.reference);
      }
      same(listed.filter((kept) => kept === reference).length, 1);
      same((await failure(seller.checkout.settle({ reference }))).code, 119);
    },

    "subscriptions and channels of shops are asked for by methods": async () => {
      const buyer = client();
      const seller = client({ sessionToken: place.sellerToken });
      const appId = place.sellingApp;
      same((await buyer.subscriptions.check({ email: unused(), appId })).active, false);
      for await (const subscription of seller.subscriptions.list({ appId })) {
        throw new Error(`a subscription of nobody: ${subscription.id}`);
      }
      // They need the master key.
      const channels = seller.commerceChannels;
      const channel = { channelToken: "t", appId, storeId: "main", label: "Main" };
      const shop = { adminApiUrl: "https://shop.example.com/admin-api", adminToken: "token" };
      same((await failure(channels.register({ ...channel, ...shop }))).code, 403);
      same((await failure(channels.list().next())).code, 403);
      same((await failure(channels.delete({ channelToken: "t" }))).code, 403);
    },

    "a call ends with its signal": async () => {
      const svc = await signedUp();
      const signal = AbortSignal.abort(new Error("enough"));
      same((await failure(svc.call("getCurrentUser", {}, { signal }))).message, "enough");
      const later = new AbortController();
      const silent = client({ fetch: silence, patience: { firstPauseMs: 60_000 } });
      const call = failure(silent.call("getCurrentUser", {}, { signal: later.signal }));
      later.abort(new Error("changed my mind"));
      same((await call).message, "changed my mind");
    },

    "no answer in time leaves a change unclear": async () => {
      const silent = client({ fetch: silence, timeoutMs: 10, patience: { attempts: 1 } });
      const read = await failure(silent.call("getCurrentUser"));
      same([read.kind, read.message.includes("in time")], ["unreachable", true]);
      const change = await failure(silent.call("createOrganization", { name: "Acme" }));
      same([change.kind, Boolean(change.idempotencyKey)], ["unclear", true]);
    },

    "where nobody listens, a read is unreachable": async () => {
      const svc = client({ baseUrl: `${place.nobody}/backend`, patience: brief });
      const error = await failure(svc.call("getCurrentUser"));
      same([error.kind, error.status, error.code], ["unreachable", undefined, undefined]);
      check(error.cause, "no cause");
      const change = await failure(svc.call("createOrganization", { name: "Acme" }));
      same(change.kind, place.tellsConnections ? "unreachable" : "unclear");
    },

    "another program at the address is not taken for the service": async () => {
      const page = (status) => async () => new Response("<html>not found</html>", { status });
      const stranger = (status) => client({ fetch: page(status), patience: { attempts: 1 } });
      const read = await failure(stranger(404).call("getCurrentUser"));
      same([read.kind, read.status, read.code], ["unreachable", 404, undefined]);
      const kind = async (status) =>
        (await failure(stranger(status).call("createOrganization", { name: "Acme" }))).kind;
      same(
        [await kind(404), await kind(504), await kind(200)],
        ["unreachable", "unclear", "unclear"],
      );
    },

    "an answer that knows nothing of a lost attempt leaves a change unclear": async () => {
      const kind = async (name, code, status) => {
        let lost = false;
        const body = JSON.stringify({ code, error: "as the test wants it" });
        const svc = client({
          patience: { ...brief, attempts: 2 },
          fetch: async () => {
            if (lost) return new Response(body, { status });
            lost = true;
            throw new TypeError("lost");
          },
        });
        return (await failure(svc.call(name, { name: "Acme" }))).kind;
      };
      same(await kind("createOrganization", 119, 401), "unclear");
      same(await kind("createOrganization", 100, 503), "unclear");
      same(await kind("createOrganization", 137, 409), "refused");
      same(await kind("getCurrentUser", 100, 503), "unavailable");
    },

    "an address that is none is refused at once": async () => {
      for (const baseUrl of ["svc.example.com", "file:///etc", "https://svc.example.com/?a=b"]) {
        const error = await failure((async () => client({ baseUrl }))());
        check(error instanceof TypeError, `${baseUrl}: ${error}`);
      }
    },
  };
}

/** A fetch that gets no answer until it is aborted. */
function silence(_, { signal }) {
  return new Promise((_, reject) => {
    signal.addEventListener("abort", () => reject(signal.reason));
  });
}
