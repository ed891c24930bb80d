/** Namespaces that every cluster has. */
export const builtInNamespaces: ReadonlySet<string> = new Set([
  'default',
  'kube-system',
  'kube-public',
  'kube-node-lease',
])
