// For servers that speak HTTP/2, which none of ours does.
module.exports = {}
