import { randomUUID } from 'node:crypto'
import { importProfile, smallPack, tarOf, uploadPack } from './platform-packs.ts'
import { playEdgeHost, type PlayedEdgeHost } from './played-edge-host.ts'
import type { createTestPlatform } from './test-platform.ts'

type TestPlatform = Awaited<ReturnType<typeof createTestPlatform>>
type Headers = Readonly<Record<string, string>>

/** The files of a pack of a layer. */
export const layerPack = (name: string, version: string, layer: string) =>
  smallPack(name, version, { 'pack.json': JSON.stringify({ name, version, layer, displayName: name }) })

/** The packs without which no cluster starts. */
export const infrastructurePacks = [
  layerPack('edge-os', '1.0.0', 'os'),
  layerPack('edge-k8s', '1.34.4', 'k8s'),
  layerPack('cni', '1.0.0', 'cni'),
]

/** A profile that a host can run; it uses one more pack, `web`, and three variables. */
export const clusterProfile = (
  name = 'plant',
  version = '1.0.0',
  {
    secret = 'hunter-of-two',
    values = "password: '{{ .spectro.var.PASSWORD }}'\nuser: '{{ .spectro.var.USER }}'\n",
    more = [] as readonly object[],
  } = {},
) => ({
  metadata: { name, description: 'of a test', labels: {}, annotations: {} },
  spec: {
    version,
    template: {
      ...{ type: 'cluster', cloudType: 'edge-native' },
      packs: [
        { name: 'edge-os', layer: 'os', tag: '1.0.0', type: 'spectro', values: 'a: 1\n' },
        { name: 'edge-k8s', layer: 'k8s', tag: '1.34.4', type: 'spectro', values: 'a: 1\n' },
        { name: 'cni', layer: 'cni', tag: '1.0.0', type: 'spectro', values: 'a: 1\n' },
        { name: 'web', layer: 'addon', tag: '1.0.0', type: 'spectro', values },
      ],
    },
    variables: [
      { name: 'USER', defaultValue: 'paul', regex: '^[a-z]+$' },
      { name: 'PASSWORD', isSensitive: true, required: true, immutable: false, defaultValue: secret },
      ...more,
    ],
  },
})

/** Uploads the packs of `clusterProfile`. */
export async function uploadClusterPacks(platform: Pick<TestPlatform, 'app'>, headers: Headers) {
  for (const pack of [...infrastructurePacks, smallPack()]) {
    const reply = await uploadPack(platform, tarOf(pack), headers)
    if (reply.statusCode !== 201) throw new Error(reply.body)
  }
}

/** Imports a profile; gives its uid. */
export async function importedProfile(
  platform: Pick<TestPlatform, 'app'>,
  headers: Headers,
  profile: object = clusterProfile(`c-${randomUUID()}`),
) {
  const reply = await importProfile(platform, JSON.stringify(profile), headers)
  if (reply.statusCode !== 201) throw new Error(reply.body)
  return reply.json<{ uid: string }>().uid
}

/** A host of a scope, logged in. @param admin headers without a project */
export async function joinedHost(
  platform: TestPlatform,
  admin: Headers,
  { projectUid = '', name = `h-${randomUUID()}` } = {},
): Promise<PlayedEdgeHost> {
  const made = await platform.app.inject({
    ...{ method: 'POST', url: '/v1/edgehosts/tokens', headers: admin },
    payload: { metadata: { name: `t-${randomUUID()}` }, spec: { defaultProjectUid: projectUid } },
  })
  const host = playEdgeHost(platform)
  const { status, text } = await host.register(made.json<{ token: string }>().token, name)
  if (status !== 200) throw new Error(text)
  await host.logIn()
  return host
}

/** The body of a creation. */
export const clusterEntity = (
  hostUid: string,
  profileUid: string,
  { name = `c-${randomUUID()}`, variables = [] as readonly object[], cloudConfig = {}, poolConfig = {} } = {},
) => ({
  metadata: { name, labels: { hall: '3' } },
  spec: {
    cloudConfig,
    machinepoolconfig: [{ cloudConfig: { edgeHosts: [{ hostUid }] }, poolConfig }],
    profiles: [{ uid: profileUid, variables }],
  },
})
