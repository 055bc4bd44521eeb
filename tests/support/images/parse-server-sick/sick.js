const server = require('node:http').createServer((request, response) => {
  response.writeHead(503, { 'Content-Type': 'application/json' }).end('{"status":"error"}');
});
server.listen(process.env.PORT, () => console.log('listening, and not well'));
process.on('SIGTERM', () => process.exit(0));
