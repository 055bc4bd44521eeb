// The smallest server. Its log shows the variable WORDS.
const http = require('node:http');

const { WORDS, PORT = 8080 } = process.env;

const server = http.createServer((request, response) => response.end('ok'));
server.listen(PORT, () => console.log(`a server on port ${PORT}, which says ${WORDS}`));
process.on('SIGTERM', () => process.exit(0));
