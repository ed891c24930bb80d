// Stands for node:http2 in the bundle, see bundle.ts.
module.exports = {}
