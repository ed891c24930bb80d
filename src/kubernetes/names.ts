/** Namespaces that every cluster has. */
export const builtInNamespaces: ReadonlySet<string> = new Set([
  'default',
  'kube-system',
  'kube-public',
  'kube-node-lease',
])

// The rules of the API server for names (kubernetes.io/docs/concepts/overview/working-with-objects, "names" and "labels").

const label = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/
const subdomain = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/
const labelValue = /^([A-Za-z0-9]([-_.A-Za-z0-9]{0,61}[A-Za-z0-9])?)?$/

/** Whether a text is a label of RFC 1123, as the name of a namespace. */
export const isDnsLabel = (text: string): boolean => label.test(text)

/** Whether a text is a subdomain of RFC 1123, as the names of most objects. */
export const isDnsSubdomain = (text: string): boolean => text.length <= 253 && subdomain.test(text)

/** Whether a text is the value of a label or of a taint; it may be empty. */
export const isLabelValue = (text: string): boolean => labelValue.test(text)

/** Whether a text is the key of a label or of a taint: a name, with or without the subdomain of its owner before it. */
export function isQualifiedName(text: string): boolean {
  const [, owner, name = ''] = /^(?:([^/]*)\/)?([^/]+)$/.exec(text) ?? []
  return (owner === undefined || isDnsSubdomain(owner)) && name !== '' && isLabelValue(name)
}
