// The Parse JavaScript library, as npm delivers it, against a running service. The service, and
// what may be known of it, come in the environment; `tests/library.rs` starts both.
'use strict';

const assert = require('node:assert/strict');
const { beforeEach, test } = require('node:test');
const Parse = require('parse/node');

const { URL: url, APP_ID: applicationId, MASTER_KEY: masterKey } = process.env;
const password = 'correct horse';

Parse.initialize(applicationId, 'any key', masterKey);
Parse.serverURL = `${url}/backend`;
Parse.User.enableUnsafeCurrentUser();

// What the library sends, and what it gets, as it goes by.
const wire = [];
const realFetch = globalThis.fetch;
globalThis.fetch = async (address, options) => {
  const answer = await realFetch(address, options);
  wire.push({ address, options, answer });
  return answer;
};

let people = 0;
const email = () => `person${++people}@example.com`;

/** Signs a new user up; it is the current one. */
const signUp = async (attributes = {}) => {
  const username = email();
  const user = new Parse.User();
  await user.signUp({ username, password, ...attributes });
  return user;
};

/** The call must be refused with this code; answers the error. */
const refused = async (call, code) => {
  const error = await call.then(
    (reply) => assert.fail(`not refused: ${JSON.stringify(reply)}`),
    (error) => error,
  );
  assert.ok(error instanceof Parse.Error, String(error));
  assert.equal(error.code, code, error.message);
  return error;
};

beforeEach(async () => {
  Parse.idempotency = false;
  Parse.CoreManager.set('REQUEST_HEADERS', {});
  // Forgets the user on this side only.
  await Parse.User._clearCache();
  await Parse.User.logOut().catch(() => {});
  wire.length = 0;
});

test('a function runs with and without a session', async () => {
  await refused(Parse.Cloud.run('getCurrentUser'), 119);
  const user = await signUp({ name: 'Ada' });
  assert.equal((await Parse.Cloud.run('getCurrentUser')).id, user.id);
  const token = user.getSessionToken();
  await Parse.User._clearCache();
  const asked = await Parse.Cloud.run('getCurrentUser', {}, { sessionToken: token, installationId: 'any' });
  assert.deepEqual([asked.id, asked.name], [user.id, 'Ada']);
  await refused(Parse.Cloud.run('getCurrentUser', {}, { sessionToken: `r:${'0'.repeat(32)}` }), 119);
});

test('a user signs up, logs in and out, and becomes itself again', async () => {
  const made = await signUp();
  assert.match(made.getSessionToken(), /^r:[0-9a-f]{32}$/);
  assert.ok(made.createdAt instanceof Date);
  await Parse.User.logOut();
  assert.equal(Parse.User.current(), null);
  await refused(Parse.User.become(made.getSessionToken()), 209);

  const loggedIn = await Parse.User.logIn(made.getUsername().toUpperCase(), password);
  assert.equal(loggedIn.id, made.id);
  assert.notEqual(loggedIn.getSessionToken(), made.getSessionToken());
  assert.equal(Parse.User.current().id, made.id);
  assert.equal(loggedIn.getEmail(), made.getUsername());
  assert.equal(loggedIn.get('tier'), 'free');

  const token = loggedIn.getSessionToken();
  const become = await Parse.User.become(token);
  assert.deepEqual([become.id, become.getSessionToken()], [made.id, token]);
  // A session that has ended does not keep anybody from logging in.
  await Parse.Cloud.run('logout');
  assert.equal((await Parse.User.logIn(made.getUsername(), password)).id, made.id);
});

test('the current session tells whose it is and when it ends', async () => {
  const user = await signUp();
  const session = await Parse.Session.current();
  assert.equal(session.getSessionToken(), user.getSessionToken());
  assert.equal(session.get('user').id, user.id);
  const days = (session.get('expiresAt') - session.createdAt) / 86_400_000;
  assert.ok(days > 29 && days <= 30, `${days} days`);
});

test('a new password ends every other session and goes on in a new one', async () => {
  const user = await signUp();
  const old = user.getSessionToken();
  user.set('name', 'Countess');
  user.setPassword('another horse');
  await user.save();
  const renewed = Parse.User.current().getSessionToken();
  assert.notEqual(renewed, old);
  assert.equal((await Parse.Cloud.run('getCurrentUser')).name, 'Countess');
  await refused(Parse.Cloud.run('getCurrentUser', {}, { sessionToken: old }), 119);
  await refused(Parse.User.become(old), 209);
  await refused(Parse.User.logIn(user.getUsername(), password), 101);
  assert.equal((await Parse.User.logIn(user.getUsername(), 'another horse')).id, user.id);
});

test('a user changes and clears its own profile, and nobody else\'s', async () => {
  const other = await signUp({ name: 'Other' });
  const user = await signUp({ name: 'Ada' });
  await user.save({ company: 'Analytical Engines' });
  assert.equal((await Parse.Cloud.run('getCurrentUser')).company, 'Analytical Engines');
  user.unset('company');
  await user.save();
  assert.equal((await Parse.Cloud.run('getCurrentUser')).company, null);

  const unknown = await refused(user.save({ shoeSize: 38 }), 142);
  assert.match(unknown.message, /shoeSize/);
  user.revert();
  await refused(Parse.User.createWithoutData(other.id).save({ name: 'Mallory', password: 'taken over' }), 101);
  assert.equal((await Parse.Cloud.run('getCurrentUser')).name, 'Ada');
  assert.equal((await Parse.User.logIn(other.getUsername(), password)).get('name'), 'Other');
});

test('a forgotten password is answered the same for everybody', async () => {
  const user = await signUp();
  assert.deepEqual(await Parse.User.requestPasswordReset(user.getUsername()), {});
  assert.deepEqual(await Parse.User.requestPasswordReset('nobody@example.com'), {});
  const [known, unknown] = await Promise.all(wire.slice(-2).map(({ answer }) => answer.status));
  assert.deepEqual([known, unknown], [200, 200]);
  await refused(Parse.User.requestPasswordReset('no address'), 142);
});

test('refusals arrive with their code and a sentence', async () => {
  const user = await signUp();
  await refused(Parse.User.logIn(user.getUsername(), 'wrong horse'), 101);
  await refused(Parse.User.logIn('nobody@example.com', 'wrong horse'), 101);
  await refused(new Parse.User().signUp({ username: user.getUsername(), password }), 202);
  const differs = new Parse.User().signUp({ username: 'ada', email: email(), password });
  assert.match((await refused(differs, 142)).message, /username/);
  const short = new Parse.User().signUp({ username: email(), password: 'short' });
  assert.match((await refused(short, 142)).message, /password/);
  await refused(Parse.Cloud.run('registerUser', { email: user.getUsername(), password }), 137);

  await Parse.User.logIn(user.getUsername(), password);
  assert.match((await refused(Parse.Cloud.run('noSuchFunction'), 141)).message, /noSuchFunction/);
  assert.match((await refused(Parse.Cloud.run('svc_createProject', { name: 7 }), 142)).message, /name/);
  assert.match((await refused(Parse.Cloud.run('svc_createProject', {}), 142)).message, /name/);
  const extra = Parse.Cloud.run('svc_createProject', { name: 'Shop', colour: 'red' });
  assert.match((await refused(extra, 142)).message, /colour/);
  await refused(Parse.Cloud.run('svc_admin_getActors'), 403);
  await refused(Parse.Cloud.run('svc_getProject', { projectId: 'prj_01J9ZQ8F5W7V3T6M2K4N8R0P1S' }), 101);
});

test('dates go out as dates and come back as moments', async () => {
  await signUp();
  const expiresAt = new Date(Date.now() + 3_600_000);
  const params = { name: 'ci', scopes: ['artifact:upload'], expiresAt };
  const { deployToken } = await Parse.Cloud.run('svc_createDeployToken', params);
  assert.match(wire.at(-1).options.body, /"__type":"Date"/);
  assert.equal(deployToken.expiresAt, expiresAt.toISOString());
  const iso = expiresAt.toISOString();
  for (const bad of [{ __type: 'Date', iso: 'nope' }, { __type: 'Pointer', iso }, { __type: 'Date' }, { iso }]) {
    const refusal = await refused(Parse.Cloud.run('svc_createDeployToken', { ...params, expiresAt: bad }), 142);
    assert.match(refusal.message, /expiresAt/);
  }
});

test('the master key passes, whatever session comes with it', async () => {
  const user = await signUp();
  await refused(Parse.Cloud.run('svc_admin_setTier', { userId: user.id, tier: 'developer' }), 403);
  const params = { userId: user.id, tier: 'developer' };
  const raised = await Parse.Cloud.run('svc_admin_setTier', params, { useMasterKey: true });
  assert.equal(raised.tier, 'developer');
  Parse.masterKey = 'wrong';
  await refused(Parse.Cloud.run('svc_admin_setTier', params, { useMasterKey: true }), 119);
  Parse.masterKey = masterKey;
});

test('an idempotent call that is repeated happens once', async () => {
  await signUp();
  Parse.idempotency = true;
  const made = await Parse.Cloud.run('svc_createProject', { name: 'Once' });
  const { address, options } = wire.at(-1);
  assert.ok(options.headers['X-Parse-Request-Id']);
  const again = await realFetch(address, options);
  assert.deepEqual([again.status, await again.json()], [200, { result: made }]);
  const changed = await realFetch(address, { ...options, body: options.body.replace('Once', 'Twice') });
  assert.deepEqual([changed.status, (await changed.json()).code], [400, 142]);
  await Parse.Cloud.run('svc_createProject', { name: 'Once' });
  const { items } = await Parse.Cloud.run('svc_getProjects');
  assert.deepEqual(items.map(({ name }) => name), ['Once', 'Once']);
});

test('the headers of this service win over what the library puts into the body', async () => {
  const header = await signUp();
  const body = await signUp();
  assert.equal((await Parse.Cloud.run('getCurrentUser')).id, body.id);
  Parse.CoreManager.set('REQUEST_HEADERS', {
    'X-Backend-Application-Id': applicationId,
    'X-Backend-Session-Token': header.getSessionToken(),
  });
  assert.equal((await Parse.Cloud.run('getCurrentUser')).id, header.id);
  Parse.CoreManager.set('REQUEST_HEADERS', { 'X-Backend-Application-Id': 'another' });
  await refused(Parse.Cloud.run('getCurrentUser'), 119);
  // It is the application that is not known, not the session.
  await refused(Parse.User.become(body.getSessionToken()), 119);
});

test('the service is healthy', async () => {
  assert.deepEqual(await Parse.getServerHealth(), { status: 'ok' });
});

test('a caller over its limit is told so once, and when to come again', async () => {
  const user = await signUp();
  let refusal;
  for (let calls = 0; !refusal; calls++) {
    assert.ok(calls <= 120, 'a free account is not limited');
    await Parse.Cloud.run('getCurrentUser').catch((error) => (refusal = error));
  }
  assert.equal(refusal.code, 429, refusal.message);
  const limited = wire.filter(({ answer }) => answer.status === 429);
  assert.equal(limited.length, 1, 'the library sends nothing again');
  const header = (name) => Number(limited[0].answer.headers.get(name));
  assert.deepEqual([header('X-RateLimit-Limit'), header('X-RateLimit-Remaining')], [60, 0]);
  assert.ok(header('Retry-After') >= 1);
  assert.ok(header('X-RateLimit-Reset') * 1000 > Date.now());

  await Parse.Cloud.run('svc_admin_setTier', { userId: user.id, tier: 'professional' }, { useMasterKey: true });
  assert.equal((await Parse.Cloud.run('getCurrentUser')).tier, 'professional');
  assert.equal(wire.at(-1).answer.headers.get('X-RateLimit-Limit'), '1000');
});
