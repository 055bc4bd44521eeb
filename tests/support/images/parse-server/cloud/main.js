// What a team's cloud code does, in small: it answers, it refuses, it fails, it takes its time.

Parse.Cloud.define('hello', ({ params }) => `Hello, ${params.name || 'world'}`);
Parse.Cloud.define('version', () => '1');
Parse.Cloud.define('echo', ({ params }) => params);
Parse.Cloud.define('whoami', ({ user }) => ({ id: user.id, username: user.get('username') }), { requireUser: true });
Parse.Cloud.define('boom', () => { throw new Error('boom'); });
Parse.Cloud.define('perr', ({ params }) => { throw new Parse.Error(Number(params.code), `error ${params.code}`); });
Parse.Cloud.define('slow', ({ params }) => new Promise(done => setTimeout(() => done('slow'), params.ms || 100)));
