// The next release of the same cloud code: hello and version answer something else.

Parse.Cloud.define('hello', ({ params }) => `Welcome, ${params.name || 'world'}`);
Parse.Cloud.define('version', () => '2');
Parse.Cloud.define('echo', ({ params }) => params);
Parse.Cloud.define('whoami', ({ user }) => ({ id: user.id, username: user.get('username') }), { requireUser: true });
Parse.Cloud.define('boom', () => { throw new Error('boom'); });
Parse.Cloud.define('perr', ({ params }) => { throw new Parse.Error(Number(params.code), `error ${params.code}`); });
Parse.Cloud.define('slow', ({ params }) => new Promise(done => setTimeout(() => done('slow'), params.ms || 100)));
