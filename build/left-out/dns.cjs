// Fastify asks it only where it listens on a name. Loaded, it reads /etc/resolv.conf at once, and waits for ever where a pipe
// stands there: so it is loaded by the first question.
exports.lookup = (...args) => require('node:dns').lookup(...args)
