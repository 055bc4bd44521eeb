// Serves the Admin UI. API_URL is the shop server's root as a browser sees it; without it, this server's own.
const fs = require('node:fs');
const http = require('node:http');
const path = require('node:path');

const { API_URL, PORT = 8080 } = process.env;

const TYPES = {
  '.css': 'text/css', '.html': 'text/html', '.ico': 'image/x-icon', '.js': 'text/javascript', '.json': 'application/json',
  '.png': 'image/png', '.svg': 'image/svg+xml', '.webp': 'image/webp', '.woff': 'font/woff', '.woff2': 'font/woff2',
};

function config(published) {
  if (!API_URL) return { ...published, apiHost: 'auto', apiPort: 'auto' };
  const { protocol, hostname, port, pathname } = new URL(API_URL);
  const adminApiPath = path.posix.join(pathname, 'admin-api').slice(1);
  return { ...published, apiHost: `${protocol}//${hostname}`, apiPort: port, adminApiPath };
}

// All of it is read at the start: a request names a file of the UI or gets its first page, and nothing else.
const root = path.join(__dirname, 'admin-ui/browser');
const files = new Map(
  fs.readdirSync(root, { recursive: true, withFileTypes: true })
    .filter(entry => entry.isFile())
    .map(entry => path.join(entry.parentPath ?? entry.path, entry.name))
    .map(file => [`/${path.relative(root, file)}`, fs.readFileSync(file)]),
);
files.set('/vendure-ui-config.json', JSON.stringify(config(JSON.parse(files.get('/vendure-ui-config.json')))));
files.set('/index.html', String(files.get('/index.html')).replace(/<base href="[^"]*"/, '<base href="/"'));
files.set('/health', '{"status":"ok"}');

const server = http.createServer((request, response) => {
  const [pathname] = request.url.split('?');
  const name = files.has(pathname) ? pathname : '/index.html';
  response.writeHead(200, { 'Content-Type': TYPES[path.extname(name)] ?? 'application/json' }).end(files.get(name));
});
server.listen(PORT, () => console.log(`dashboard on port ${PORT}, for ${API_URL ?? 'the server it is served from'}`));
process.on('SIGTERM', () => process.exit(0));
