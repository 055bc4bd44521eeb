// Loaded before `emulate`, which listens on every address of the machine otherwise.
const { Server } = require("node:net");

const listen = Server.prototype.listen;
Server.prototype.listen = function (first, ...rest) {
  const done = rest.find((it) => typeof it === "function");
  const port = typeof first === "object" ? first.port : first;
  return listen.call(this, { port: Number(port), host: "127.0.0.1" }, done);
};
