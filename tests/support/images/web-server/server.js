// The smallest server. Its log shows the variable WORDS. Its cookie is for more than its own host.
const http = require('node:http');

const { WORDS, PORT = 8080 } = process.env;

const server = http.createServer((request, response) => {
  response.setHeader('Set-Cookie', 'a=1; Path=/; Domain=localhost');
  response.end('ok');
});
server.listen(PORT, () => console.log(`a server on port ${PORT}, which says ${WORDS}`));
process.on('SIGTERM', () => process.exit(0));
