// Kubernetes YAML as charts render it: schemas of resources, most of it by bytes, configuration and workloads.

type Random = () => number

const nouns =
  'certificate issuer endpoint policy template selector replica storage volume network metric target schedule secret backup gateway listener backend tenant quota'.split(
    ' ',
  )
const prose =
  'defines the desired state of a resource and is used by the controller to decide when it has to be renewed, may be empty if unset; defaults apply to all of its members'.split(
    ' ',
  )

/** Documents of about so many bytes in all, every byte of them valid YAML. */
export function manifests(random: Random, name: string, sizeBytes: number): string {
  const documents: string[] = []
  for (let size = 0; size < sizeBytes;) {
    const share = (100 * size) / sizeBytes
    const own = `${name}-${documents.length}`
    const document =
      share < 65
        ? resourceSchema(random, own)
        : share < 85
          ? configuration(random, own)
          : workload(random, own)
    documents.push(document)
    size += document.length
  }
  return documents.join('')
}

const pick = (random: Random, from: readonly string[]) => from[random() % from.length] ?? ''
const sentence = (random: Random, length: number) =>
  Array.from({ length }, () => pick(random, prose)).join(' ')

/** About 12 KB. */
function resourceSchema(random: Random, name: string): string {
  const lines: string[] = []
  const properties = (depth: number, indent: string) => {
    for (let index = 0; index < 6; index += 1) {
      lines.push(`${indent}${pick(random, nouns)}${index}:`)
      lines.push(`${indent}  description: |-`)
      for (let line = random() % 3; line >= 0; line -= 1) lines.push(`${indent}    ${sentence(random, 9)}`)
      if (depth === 0 || index % 3 > 0) {
        lines.push(`${indent}  type: ${index % 2 === 0 ? 'string' : 'integer'}`)
        if (index % 2 === 0) lines.push(`${indent}  maxLength: ${random() % 253}`)
        continue
      }
      lines.push(`${indent}  type: object`, `${indent}  required:`, `${indent}    - name`)
      lines.push(`${indent}  properties:`)
      properties(depth - 1, `${indent}    `)
    }
  }
  properties(3, ' '.repeat(16))
  return `---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: ${name}s.bench.example.com
  annotations: { controller-gen.kubebuilder.io/version: v0.19.0 }
spec:
  group: bench.example.com
  scope: Namespaced
  names: { kind: ${name.replaceAll('-', '')}, plural: ${name}s }
  versions:
    - name: v1
      served: true
      storage: true
      schema:
        openAPIV3Schema:
          type: object
          properties:
            spec:
              type: object
              properties:
${lines.join('\n')}
`
}

/** About 8 KB. */
function configuration(random: Random, name: string): string {
  const lines = Array.from(
    { length: 160 },
    () =>
      `    ${pick(random, nouns)}.${pick(random, nouns)} = ${(random() % 1e6).toString(36)} # ${sentence(random, 4)}`,
  )
  return `---
apiVersion: v1
kind: ConfigMap
metadata:
  name: ${name}
  labels:
    app.kubernetes.io/name: ${name}
data:
  LOG_LEVEL: "info"
  settings.conf: |
${lines.join('\n')}
`
}

/** About 3 KB. */
function workload(random: Random, name: string): string {
  const container = (image: string) => `        - name: ${image}
          image: registry.example.com/bench/${image}:v1.${random() % 40}.${random() % 9}
          args: ["--v=2", "--namespace=$(POD_NAMESPACE)", "--listen=:${8000 + (random() % 999)}"]
          ports:
            - { name: http, containerPort: 8080, protocol: TCP }
          env:
${Array.from(
  { length: 12 },
  () => `            - name: ${pick(random, nouns).toUpperCase()}_${random() % 99}
              value: "${(random() % 1e6).toString(36)}"`,
).join('\n')}
          resources:
            limits: { cpu: 500m, memory: 256Mi }
            requests: { cpu: 10m, memory: 64Mi }
          readinessProbe:
            httpGet: { path: /healthz, port: http }
            periodSeconds: 10
          securityContext:
            allowPrivilegeEscalation: false
            capabilities: { drop: ["ALL"] }`
  return `---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: ${name}
  labels: &labels
    app.kubernetes.io/name: ${name}
    app.kubernetes.io/managed-by: Helm
spec:
  replicas: 2
  selector:
    matchLabels: *labels
  template:
    metadata:
      labels: *labels
    spec:
      serviceAccountName: ${name}
      containers:
${container(`${name}-server`)}
${container(`${name}-proxy`)}
      volumes:
        - name: settings
          configMap: { name: ${name} }
`
}
