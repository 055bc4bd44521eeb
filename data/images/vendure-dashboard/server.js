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
  // The UI puts a port behind the host and paths behind both, so the host may have a path of its own.
  return { ...published, apiHost: API_URL.replace(/\/$/, ''), apiPort: '' };
}

// All of it is read at the start: a request names a file of the UI or gets its first page, and nothing else.
const root = path.join(__dirname, 'node_modules/@vendure/admin-ui-plugin/lib/admin-ui/browser');
const files = new Map(
  fs.readdirSync(root, { recursive: true, withFileTypes: true })
    .filter(entry => entry.isFile())
    .map(entry => path.join(entry.parentPath ?? entry.path, entry.name))
    .map(file => [`/${path.relative(root, file)}`, fs.readFileSync(file)]),
);
files.set('/vendure-ui-config.json', JSON.stringify(config(JSON.parse(files.get('/vendure-ui-config.json')))));
// The page says what all its addresses are relative to: the path under which a proxy shows this server.
const [before, after] = String(files.get('/index.html')).split(/<base href="[^"]*"/);
const page = prefix => `${before}<base href="${/^(\/[\w.~-]+)*$/.test(prefix) ? prefix : ''}/"${after}`;
files.set('/health', '{"status":"ok"}');

const server = http.createServer((request, response) => {
  const [pathname] = request.url.split('?');
  const name = files.has(pathname) ? pathname : '/index.html';
  const content = name === '/index.html' ? page(request.headers['x-forwarded-prefix'] ?? '') : files.get(name);
  response.writeHead(200, { 'Content-Type': TYPES[path.extname(name)] ?? 'application/json' }).end(content);
});
server.listen(PORT, () => console.log(`dashboard on port ${PORT}, for ${API_URL ?? 'the server it is served from'}`));
process.on('SIGTERM', () => process.exit(0));
