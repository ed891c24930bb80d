import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'vitest'
import { kit, noKit, type KubernetesKit, type KitVersion } from '../../support/kubernetes-kit.ts'
import { bootEdgehostd, type Edgehostd, type EdgehostdOptions } from '../host/edgehostd.ts'
import type { Reply } from '../host/http.ts'
import { clusterGround } from '../host/ground.ts'
import { writeContent, writeDefinition, type BundleWish } from './plant-files.ts'
import { plantVariables, type PlantWish } from './plant-definition.ts'

export const password = 'cluster canary 0907'
export const chief = 'chief'

export const plantSettings = `content:
  reserve: {percent: 0, leastBytes: 1000000}
# A test of many clusters lasts longer than a token does by default.
auth:
  tokens: {accessMinutes: 1440}
`

/** A booted host with the content and the definition of a cluster. */
export interface ClusterHost {
  readonly host: Edgehostd
  readonly kit: KubernetesKit
  /** Of an administrator. */
  readonly token: string
  /** `archiveUploadPath` of the definition. */
  readonly definition: string
  /** Body of POST …/cluster. */
  configuration(change?: ConfigurationChange): object
}

export interface ConfigurationChange {
  readonly definition?: string
  readonly name?: string
  readonly variables?: readonly object[]
  readonly clusterConfig?: object
  readonly pool?: object
}

export interface ClusterHostOptions extends Pick<EdgehostdOptions, 'deb' | 'lower' | 'nspawn'> {
  readonly version?: KitVersion
  readonly definition?: PlantWish
  readonly content?: BundleWish
}

/** Boots it; takes about 20 s. */
export async function bootClusterHost({
  version = '1.34.4',
  definition: wish,
  content,
  lower = 'machine',
  ...options
}: Partial<ClusterHostOptions> = {}): Promise<ClusterHost> {
  const found = await kit(version)
  if (!found) throw new Error(noKit)
  const host = await bootEdgehostd({ ...options, lower, ground: clusterGround })
  try {
    await host.addUser({ name: chief, password, groups: ['sudo'] })
    await host.configure('plant', plantSettings)
    const { token } = await host.openSession(chief, password)
    const definition = await uploadDefinition(host, token, found, wish)
    await uploadContent(host, token, found, content)
    return {
      ...{ host, kit: found, token, definition },
      configuration: (change) => configurationOf(definition, change),
    }
  } catch (error) {
    await host.unplug()
    throw error
  }
}

/**
 * Makes a definition, which has to be accepted.
 * @param slot where it has to land: with a cluster, in that for updates
 * @returns its `archiveUploadPath`
 */
export async function uploadDefinition(
  host: Edgehostd,
  token: string,
  from: KubernetesKit,
  wish?: PlantWish,
  slot: 'overridden' | 'update' = 'overridden',
): Promise<string> {
  const archive = join(host.folder, 'definition.tgz')
  await writeDefinition(from, archive, wish)
  const path = '/v1/edge-mgmt/edgehosts/current/actions/upload-clusterconfig'
  const reply = await host.http('POST', path, { token, form: [`uploadFile=@${archive}`] })
  expect(reply, reply.text).toMatchObject({ status: 201 })
  const details = await host.http('GET', `/v1/edge-mgmt/clusters/archive/${slot}/details`, { token })
  expect(details, details.text).toMatchObject({ status: 200 })
  return details.json.archiveUploadPath as string
}

/** Makes a bundle and uploads it, which has to be accepted. @returns its uid */
export async function uploadContent(
  host: Edgehostd,
  token: string,
  from: KubernetesKit,
  wish?: BundleWish,
): Promise<string> {
  const file = join(host.folder, 'content.tar')
  await writeContent(from, file, wish)
  const path = '/v1/edge-mgmt/edgehosts/current/actions/upload-content'
  const form = [`uploadFile=@${file}`]
  const reply = await host.http('POST', path, { token, form, timeoutMs: 300_000 })
  expect(reply, reply.text || reply.failure).toMatchObject({ status: 201 })
  await rm(file)
  return reply.json.uid as string
}

export type VersionWish = Pick<ClusterHostOptions, 'definition'>

/** Uploads content and a definition of another version of Kubernetes, and wants it. @returns the reply to the change */
export async function changeVersion(
  plant: Pick<ClusterHost, 'host' | 'token'>,
  version: KitVersion,
  wish?: VersionWish,
): Promise<Reply> {
  const from = await kit(version)
  if (!from) throw new Error(noKit)
  await uploadContent(plant.host, plant.token, from)
  return wantVersion(plant, version, wish)
}

/** As `changeVersion`, on a host that has the content. */
export async function wantVersion(
  { host, token }: Pick<ClusterHost, 'host' | 'token'>,
  version: KitVersion,
  { definition }: VersionWish = {},
): Promise<Reply> {
  const from = await kit(version)
  if (!from) throw new Error(noKit)
  const archive = join(host.folder, 'definition.tgz')
  await writeDefinition(from, archive, definition)
  const form = [`uploadFile=@${archive}`]
  const uploaded = await host.http('POST', '/v1/edge-mgmt/edgehosts/current/actions/upload-clusterconfig', {
    ...{ token, form },
  })
  expect(uploaded, uploaded.text).toMatchObject({ status: 201 })
  const details = await host.http('GET', '/v1/edge-mgmt/clusters/archive/update/details', { token })
  expect(details, details.text).toMatchObject({ status: 200 })
  const body = { spec: { archiveUploadPath: details.json.archiveUploadPath as string } }
  return host.http('PUT', '/v1/edge-mgmt/cluster/profiles', { token, body, timeoutMs: 120_000 })
}

/** Body of POST …/cluster. @param uploaded `archiveUploadPath` of its definition */
export const configurationOf = (
  uploaded: string,
  {
    definition: archiveUploadPath = uploaded,
    name = 'plant',
    variables = plantVariables,
    clusterConfig = {},
    pool = {},
  }: ConfigurationChange = {},
) => ({
  metadata: { name },
  spec: {
    archiveUploadPath,
    cloudConfig: {
      spec: {
        clusterConfig,
        machinePoolConfig: [
          {
            ...{ name: 'control', isControlPlane: true, useControlPlaneAsWorker: true, size: 1, hosts: [{}] },
            ...pool,
          },
        ],
      },
    },
    profileVariables: variables,
  },
})
