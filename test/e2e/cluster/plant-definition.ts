import { cp, mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { output } from '../host/process.ts'
import type { KubernetesKit } from '../../support/kubernetes-kit.ts'

/** Uid of the only profile. */
export const profileUid = '5f0c2a9be1d4'
export const sensitiveValue = 'canary token 0907'

/** The variables of the profile, as they are posted. */
export const plantVariables = [
  { name: 'greeting', profileUid, value: 'good morning' },
  { name: 'token', profileUid, value: sensitiveValue },
]

/** Changes of the definition, for a test of what goes wrong. */
export interface PlantWish {
  readonly version?: string
  /** Further text of the values of the pack `web`, below `charts.web`. */
  readonly webValues?: string
  /** Replaces `templates/web.yaml` of its chart. */
  readonly webTemplate?: string
  /** Variables of the profile beside the usual ones. */
  readonly variables?: readonly object[]
  /** Makes other packs of the usual ones. */
  readonly packs?: (usual: readonly PlantPack[]) => readonly PlantPack[]
  /** Further arguments of the API server, by their names. */
  readonly apiArguments?: Readonly<Record<string, string>>
  /** A further line of `clusterConfiguration` of the Kubernetes pack. */
  readonly clusterConfiguration?: string
}

/** A pack of the definition; its files are written to a folder. */
export interface PlantPack {
  readonly name: string
  readonly layer: string
  readonly version: string
  readonly values: string
  readonly manifests?: Readonly<Record<string, string>>
  readonly charts?: readonly string[]
}

// What a kubelet needs on the hosts of the tests (see ground.ts): cgroup v1 is allowed, swap too, and the file system has no device.
const kubernetesValues = (
  apiArguments: Readonly<Record<string, string>>,
  clusterConfiguration?: string,
) => `cluster:
  config: |
    clusterConfiguration:${clusterConfiguration === undefined ? '' : `\n      ${clusterConfiguration}`}
      apiServer:
        extraArgs:
${Object.entries({ profiling: 'false', ...apiArguments })
  .map(([name, value]) =>
    // A field of v1beta4 needs its form of arguments.
    clusterConfiguration === undefined
      ? `          ${name}: ${JSON.stringify(value)}\n`
      : `        - {name: ${name}, value: ${JSON.stringify(value)}}\n`,
  )
  .join('')}      networking:
        podSubnet: 10.244.0.0/16
        serviceSubnet: 10.96.0.0/16
    initConfiguration:
      nodeRegistration:
        ignorePreflightErrors: [SystemVerification]
    kubeletConfiguration:
      failCgroupV1: false
      failSwapOn: false
      localStorageCapacityIsolation: false
    kubeProxyConfiguration:
      conntrack: {maxPerCore: 0}
`

// Not YAML before it is rendered; the macro is one with a pipe.
const greetingManifest = `{{- if .Values.isOn }}
apiVersion: v1
kind: ConfigMap
metadata: {name: {{ .Values.name }}}
data:
  minor: "{{ .spectro.system.kubernetes.version | substr 0 4 }}"
  cluster: "{{ .spectro.system.cluster.name }}"
  text: '{{ .spectro.var.greeting }}'
{{- else }}
apiVersion: v1
kind: ConfigMap
metadata: {name: off}
{{- end }}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: {{ .Values.name }}}
spec:
  replicas: {{ .Values.replicas }}
  selector: {matchLabels: {app: {{ .Values.name }}}}
  template:
    metadata: {labels: {app: {{ .Values.name }}}}
    spec:
      terminationGracePeriodSeconds: 1
      containers:
      - name: sleep
        image: docker.io/library/busybox:1
        imagePullPolicy: IfNotPresent
        args: [sleep, infinity]
`

const greetingValues = `pack:
  namespace: greeting
  spectrocloud.com/install-priority: "10"
  namespaceLabels: {greeting: "tier=front,made=here"}
  content:
    images: [{image: docker.io/library/busybox:1}]
manifests:
  greeting: {isOn: true, name: hello, replicas: 1}
`

/** The template of the chart `web`. */
export const webTemplate = `apiVersion: v1
kind: Secret
metadata: {name: web}
stringData: {token: {{ .Values.token | quote }}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: {{ .Values.replicas }}
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      terminationGracePeriodSeconds: 1
      containers:
      - name: web
        image: {{ .Values.image }}
        imagePullPolicy: IfNotPresent
        command: [/bin/busybox, sh, -c, 'echo "$GREETING" > /greeting; exec busybox httpd -f -p 80 -h /']
        env: [{name: GREETING, value: {{ .Values.greeting | quote }}}]
        readinessProbe: {httpGet: {path: /greeting, port: 80}, periodSeconds: 1}
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {app: web}, ports: [{port: 80}], clusterIP: 10.96.0.80}
`

/** Address of the Service `web`. */
export const webAddress = '10.96.0.80'

/** Writes the profile and packs of a small plant: an OS, Kubernetes, a network, a templated manifest and a chart. */
export async function writePlant(
  folder: string,
  { version, networkManifest }: KubernetesKit,
  wish: PlantWish = {},
): Promise<{ profile: string; packs: string }> {
  const {
    version: release = '1.0.0',
    webValues = '',
    webTemplate: template = webTemplate,
    variables = [],
    apiArguments = {},
    clusterConfiguration,
  } = wish
  const usual: readonly PlantPack[] = [
    { name: 'edge-native-byoi', layer: 'os', version: '1.0.0', values: 'pack: {}\n' },
    { name: 'edge-k8s', layer: 'k8s', version, values: kubernetesValues(apiArguments, clusterConfiguration) },
    {
      ...{ name: 'cni-plain', layer: 'cni', version: '1.0.0', manifests: { network: '' } },
      values: 'pack:\n  content:\n    images: [{image: docker.io/edge/network:1}]\n',
    },
    {
      ...{ name: 'greeting', layer: 'addon', version: '1.0.0', values: greetingValues },
      manifests: { greeting: greetingManifest },
    },
    {
      ...{ name: 'web', layer: 'addon', version: '1.0.0', charts: ['web'] },
      values: `pack:
  namespace: shop
  spectrocloud.com/install-priority: "20"
  content:
    images: [{image: docker.io/library/busybox:1}]
charts:
  web:
    replicas: 1
    image: docker.io/library/busybox:1
    greeting: '{{ .spectro.var.greeting }}'
    token: '{{ .spectro.var.token }}'
${webValues}`,
    },
  ]
  const packs = wish.packs?.(usual) ?? usual
  for (const pack of packs) await writePack(join(folder, 'packs', `${pack.name}-${pack.version}`), pack)
  await cp(networkManifest, join(folder, 'packs/cni-plain-1.0.0/manifests/network.yaml'))
  if (packs.some(({ name }) => name === 'web'))
    await writeChart(join(folder, 'packs/web-1.0.0/charts'), template)

  const profile = {
    metadata: { name: 'plant', uid: profileUid },
    spec: {
      version: release,
      template: {
        type: 'cluster',
        cloudType: 'edge-native',
        packs: packs.map(({ name, layer, version: tag, values }) => ({
          ...{ name, layer, tag, uid: name, type: 'spectro', values },
        })),
      },
      variables: [
        { name: 'greeting', displayName: 'Greeting', format: 'string', required: true },
        { name: 'token', displayName: 'Token', format: 'string', required: true, isSensitive: true },
        ...variables,
      ],
    },
  }
  await writeFile(join(folder, 'profile.json'), JSON.stringify(profile, undefined, 2))
  return { profile: join(folder, 'profile.json'), packs: join(folder, 'packs') }
}

async function writePack(
  folder: string,
  { name, layer, version, values, manifests = {}, charts = [] }: PlantPack,
): Promise<void> {
  await mkdir(join(folder, 'manifests'), { recursive: true })
  const described = {
    ...{ name, version, layer, displayName: name, cloudTypes: ['edge-native'], addonType: 'app services' },
    kubeManifests: Object.keys(manifests).map((each) => `manifests/${each}.yaml`),
    charts: charts.map((each) => `charts/${each}-1.0.0.tgz`),
  }
  await writeFile(join(folder, 'pack.json'), JSON.stringify(described, undefined, 2))
  await writeFile(join(folder, 'values.yaml'), values)
  for (const [each, text] of Object.entries(manifests)) {
    await writeFile(join(folder, 'manifests', `${each}.yaml`), text)
  }
}

async function writeChart(folder: string, template: string): Promise<void> {
  const source = join(folder, 'web')
  await mkdir(join(source, 'templates'), { recursive: true })
  await writeFile(join(source, 'Chart.yaml'), 'apiVersion: v2\nname: web\nversion: 1.0.0\n')
  await writeFile(join(source, 'values.yaml'), 'replicas: 2\n')
  await writeFile(join(source, 'templates/web.yaml'), template)
  // Always the same bytes, so that another definition has the same chart: helm packs the times of the files too.
  await output('tar', [
    ...['--create', '--gzip', '--file', join(folder, 'web-1.0.0.tgz'), '--directory', folder],
    ...['--sort=name', '--mtime=@0', '--owner=0', '--group=0', '--numeric-owner', '--mode=u=rwX,go=rX'],
    'web',
  ])
}
