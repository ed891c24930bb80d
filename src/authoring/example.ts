/** A file of the example: its path below the folder, and its text. */
export type ExampleFile = readonly [path: string, text: string]

interface ExampleOptions {
  /** Name of the profile. */
  readonly name: string
  /** Version of Kubernetes, without `v`. */
  readonly kubernetes: string
}

// A tag: a digest would be one of this day, and nothing here could look whether it is still there.
const image = 'docker.io/library/busybox:1'

/**
 * The files of a small definition that works: a profile with an operating system, Kubernetes, a network for one host, a manifest with
 * a template and a macro, and a chart with a sensitive variable. Pure.
 */
export const exampleFiles = ({ name, kubernetes }: ExampleOptions): readonly ExampleFile[] => [
  ['profile.yaml', profile(name, kubernetes)],
  ...pack({
    name: 'edge-native-byoi',
    version: '1.0.0',
    layer: 'os',
    about: [
      'The layer of the operating system, which every profile with infrastructure has to have.',
      'edgehostd installs none: the host has its own, and images that this pack lists are not needed.',
    ],
    values: `# Values of the layer of the operating system: there are none, since the host brings its own system.
# Manifests in a folder manifests of this pack would be applied together with the network.
pack: {}
`,
  }),
  ...pack({
    name: 'edge-k8s',
    version: kubernetes,
    layer: 'k8s',
    about: [
      'Kubernetes, made by kubeadm; the version of this pack is the version of Kubernetes. Apache-2.0.',
      'Another version: rename the folder, and change version here and tag in profile.yaml.',
    ],
    values: kubernetesValues,
  }),
  ...pack({
    name: 'cni-bridge',
    version: '1.0.0',
    layer: 'cni',
    about: [
      'The network of the pods of one host, by the CNI plugins bridge and host-local of the host. Apache-2.0.',
      'Clusters of several hosts need another one in its place, such as Flannel, Calico or Cilium.',
    ],
    kubeManifests: ['manifests/network.yaml'],
    values: `# What the network needs of the content: a shell that copies its configuration. BusyBox is GPL-2.0-only.
# The image has a tag, which may change. A digest does not: NAME@DIGEST, as skopeo inspect docker://NAME:TAG says it.
pack:
  content:
    images:
      - image: ${image}
`,
  }),
  ['packs/cni-bridge-1.0.0/manifests/network.yaml', networkManifest],
  ...pack({
    name: 'notice',
    version: '1.0.0',
    layer: 'addon',
    about: [
      'A manifest that is a template: helm renders it with the values below manifests.notice of this pack.',
      'Packs with a lower install priority come first, so the chart of the pack web finds what this one makes.',
    ],
    kubeManifests: ['manifests/notice.yaml'],
    values: `# manifests.notice are the values of the template manifests/notice.yaml, as .Values in it.
# The namespace is made, and objects without one of their own are put into it.
pack:
  namespace: shop
  spectrocloud.com/install-priority: '10'
manifests:
  notice:
    isShown: true
`,
  }),
  ['packs/notice-1.0.0/manifests/notice.yaml', noticeManifest],
  ...pack({
    name: 'web',
    version: '1.0.0',
    layer: 'addon',
    about: [
      'The application: a chart, here as the folder that helm packs; an archive charts/web-1.0.0.tgz would do too.',
      'charts.web of values.yaml are the values of the chart, which take the place of those in its own values.yaml.',
    ],
    charts: ['charts/web'],
    values: webValues,
  }),
  ['packs/web-1.0.0/charts/web/Chart.yaml', chartFile],
  ['packs/web-1.0.0/charts/web/values.yaml', chartValues],
  ['packs/web-1.0.0/charts/web/templates/web.yaml', chartTemplate],
]

interface PackFiles {
  readonly name: string
  readonly version: string
  readonly layer: string
  readonly about: readonly [string, string]
  readonly charts?: readonly string[]
  readonly kubeManifests?: readonly string[]
  readonly values: string
}

/** pack.json and values.yaml. JSON has no comments, so that the lines about a pack are a field. */
function pack({ about, values, ...described }: PackFiles): readonly ExampleFile[] {
  const folder = `packs/${described.name}-${described.version}`
  const file = {
    description: about,
    ...described,
    displayName: described.name,
    cloudTypes: ['edge-native'],
  }
  return [
    [`${folder}/pack.json`, `${JSON.stringify(file, null, 2)}\n`],
    [`${folder}/values.yaml`, values],
  ]
}

const profile = (
  name: string,
  kubernetes: string,
) => `# The profile: the packs of the cluster, and the variables to which a host gives values. It may be exported from a platform too.
# Packs without values of their own here have those of their folder. Count spec.version up with each release.
metadata:
  name: ${name}
  description: A page that says hello, to begin with
spec:
  version: 1.0.0
  template:
    type: cluster
    cloudType: edge-native
    packs:
      - { name: edge-native-byoi, tag: 1.0.0, layer: os, type: spectro }
      - { name: edge-k8s, tag: ${kubernetes}, layer: k8s, type: spectro }
      - { name: cni-bridge, tag: 1.0.0, layer: cni, type: spectro }
      - { name: notice, tag: 1.0.0, layer: addon, type: spectro }
      - { name: web, tag: 1.0.0, layer: addon, type: spectro }
  variables:
    - name: greeting
      displayName: Greeting
      description: What the page says
      format: string
      defaultValue: hello
      required: true
    - name: token
      displayName: Token
      description: A secret of the application; masked wherever it is shown
      format: string
      isSensitive: true
      required: true
`

const kubernetesValues = `# cluster.config is what kubeadm knows: clusterConfiguration, initConfiguration, kubeletConfiguration, kubeProxyConfiguration.
# Names, addresses, version and sockets are set by the host. The networks stay for the life of a cluster.
cluster:
  config: |
    clusterConfiguration:
      networking:
        podSubnet: 10.244.0.0/16
        serviceSubnet: 10.96.0.0/16
      apiServer:
        extraArgs:
          - {name: profiling, value: "false"}
`

const networkManifest = `# Puts the configuration of the CNI plugins into /etc/cni/net.d of the host, which makes its node Ready.
# 10.244.0.0/24 is the part of podSubnet of the Kubernetes pack that the first and only node gets.
apiVersion: v1
kind: Namespace
metadata:
  name: kube-network
  labels:
    pod-security.kubernetes.io/enforce: privileged
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: network
  namespace: kube-network
data:
  10-bridge.conflist: |
    {
      "cniVersion": "0.4.0",
      "name": "bridge",
      "plugins": [
        {
          "type": "bridge",
          "bridge": "cni0",
          "isGateway": true,
          "ipMasq": true,
          "hairpinMode": true,
          "ipam": {
            "type": "host-local",
            "ranges": [[{ "subnet": "10.244.0.0/24" }]],
            "routes": [{ "dst": "0.0.0.0/0" }]
          }
        },
        { "type": "portmap", "capabilities": { "portMappings": true } }
      ]
    }
---
apiVersion: apps/v1
kind: DaemonSet
metadata:
  name: network
  namespace: kube-network
spec:
  selector:
    matchLabels: { app: network }
  template:
    metadata:
      labels: { app: network }
    spec:
      hostNetwork: true
      priorityClassName: system-node-critical
      terminationGracePeriodSeconds: 1
      # It runs before the node is Ready, since it makes it so.
      tolerations: [{ operator: Exists }]
      containers:
        - name: network
          image: ${image}
          imagePullPolicy: IfNotPresent
          # Moved into place, so that containerd never reads half of it.
          command:
            - /bin/busybox
            - sh
            - -c
            - |
              busybox cp /network/10-bridge.conflist /host/.10-bridge &&
              busybox mv /host/.10-bridge /host/10-bridge.conflist &&
              exec busybox sleep infinity
          volumeMounts:
            - { name: network, mountPath: /network }
            - { name: host, mountPath: /host }
      volumes:
        - name: network
          configMap: { name: network }
        - name: host
          hostPath: { path: /etc/cni/net.d, type: DirectoryOrCreate }
`

const noticeManifest = `# A template, since it has double braces that are no macro: .Values are manifests.notice of the pack.
# .spectro.system.NAME and .spectro.var.NAME are macros, which are replaced before helm reads the text.
{{- if .Values.isShown }}
apiVersion: v1
kind: ConfigMap
metadata:
  name: notice
data:
  notice: 'This is the cluster {{ .spectro.system.cluster.name }}, with Kubernetes {{ .spectro.system.kubernetes.version }}.'
{{- end }}
`

const webValues = `# pack is for the host: the namespace, the order, and the images of the content. BusyBox is GPL-2.0-only.
# charts.web are the values of the chart; .spectro.var.NAME is a variable of the profile, in quotes.
pack:
  namespace: shop
  spectrocloud.com/install-priority: '20'
  content:
    images:
      - image: ${image}
charts:
  web:
    image: ${image}
    replicas: 1
    nodePort: 30080
    readinessPath: /
    greeting: '{{ .spectro.var.greeting }}'
    token: '{{ .spectro.var.token }}'
`

const chartFile = `# The chart of the application, an ordinary one of Helm: https://helm.sh/docs/topics/charts/
# Count version up with each change, so that helm's history says what ran.
apiVersion: v2
name: web
version: 1.0.0
description: A page that says hello
`

const chartValues = `# Defaults of the chart, for those who install it with helm alone.
# On a host, charts.web in the values.yaml of the pack takes their place.
image: ${image}
replicas: 1
nodePort: 30080
readinessPath: /
greeting: hello
token: ''
`

const chartTemplate = `# A web server with the greeting, and the token in a Secret; http://HOST:30080/ of every address of the host.
# BusyBox serves the page without being root, from a volume that is empty at the start.
apiVersion: v1
kind: Secret
metadata:
  name: web
stringData:
  token: {{ .Values.token | quote }}
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
spec:
  replicas: {{ .Values.replicas }}
  selector:
    matchLabels: { app: web }
  template:
    metadata:
      labels: { app: web }
    spec:
      terminationGracePeriodSeconds: 1
      securityContext: { runAsNonRoot: true, runAsUser: 65534, runAsGroup: 65534 }
      containers:
        - name: web
          image: {{ .Values.image }}
          imagePullPolicy: IfNotPresent
          command:
            - /bin/busybox
            - sh
            - -c
            - |
              echo "$GREETING" > /www/index.html &&
              exec busybox httpd -f -p 8080 -h /www
          env:
            - name: GREETING
              value: {{ .Values.greeting | quote }}
            - name: TOKEN
              valueFrom: { secretKeyRef: { name: web, key: token } }
          ports: [{ containerPort: 8080 }]
          readinessProbe:
            httpGet: { path: {{ .Values.readinessPath }}, port: 8080 }
            periodSeconds: 2
          securityContext: { allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: { drop: [ALL] } }
          volumeMounts: [{ name: www, mountPath: /www }]
      volumes: [{ name: www, emptyDir: {} }]
---
apiVersion: v1
kind: Service
metadata:
  name: web
spec:
  type: NodePort
  selector: { app: web }
  ports: [{ port: 80, targetPort: 8080, nodePort: {{ .Values.nodePort }} }]
`
