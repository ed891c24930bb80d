import { expect } from 'vitest'
import { eventually } from '../host/eventually.ts'
import type { ClusterClient } from './cluster-client.ts'

// What Kubernetes itself writes all the time.
const restless = /^(events|leases|nodes|componentstatuses)(\.|$)/

/** The versions of all objects of a cluster but of those that Kubernetes itself writes all the time, by `Kind namespace/name`. */
export async function readVersions({ kubectl }: ClusterClient): Promise<ReadonlyMap<string, string>> {
  const kinds = (await kubectl('api-resources', '--verbs=list', '--output=name')).split('\n').filter(Boolean)
  const lines = await kubectl(
    ...['get', kinds.filter((each) => !restless.test(each)).join(','), '--all-namespaces', '--output'],
    'jsonpath={range .items[*]}{.kind} {.metadata.namespace}/{.metadata.name} {.metadata.resourceVersion}{"\\n"}{end}',
  )
  return new Map(
    lines
      .split('\n')
      .filter(Boolean)
      .map((line) => [line.slice(0, line.lastIndexOf(' ')), line.slice(line.lastIndexOf(' ') + 1)]),
  )
}

/** Names of the entries in which two maps differ, sorted. */
export function differing(
  before: ReadonlyMap<string, string>,
  after: ReadonlyMap<string, string>,
): readonly string[] {
  const names = new Set([...before.keys(), ...after.keys()])
  return [...names].filter((name) => before.get(name) !== after.get(name)).sort()
}

interface Pod {
  readonly metadata: {
    readonly namespace: string
    readonly name: string
    readonly deletionTimestamp?: string
  }
  readonly status: {
    readonly containerStatuses?: readonly { readonly containerID?: string; readonly restartCount: number }[]
  }
}

/**
 * The containers of all pods and how often they were started again, by `namespace/pod`; waits for pods that are going away: a Deployment is
 * available before those of its old ReplicaSet are gone.
 */
export const readContainers = ({ kubectl }: ClusterClient): Promise<ReadonlyMap<string, string>> =>
  eventually(async () => {
    const { items } = JSON.parse(await kubectl('get', 'pods', '--all-namespaces', '--output=json')) as {
      readonly items: readonly Pod[]
    }
    const going = items.filter(({ metadata }) => metadata.deletionTimestamp !== undefined)
    expect(going.map(({ metadata }) => metadata.name)).toEqual([])
    return new Map(
      items.map(({ metadata: { namespace, name }, status: { containerStatuses = [] } }) => [
        `${namespace}/${name}`,
        containerStatuses.map(({ containerID, restartCount }) => `${containerID} ${restartCount}`).join(' '),
      ]),
    )
  }, 60_000)

/** How many objects were applied since the API server was started; no component of Kubernetes applies any. */
export async function readApplications({ kubectl }: ClusterClient): Promise<number> {
  const counters = (await kubectl('get', '--raw', '/metrics')).matchAll(
    /^apiserver_request_total\{(.*verb="APPLY".*)\} (\S+)$/gm,
  )
  let sum = 0
  for (const [, labels = '', value] of counters) if (labels.includes('dry_run=""')) sum += Number(value)
  return sum
}

/** A field of an object, as kubectl gives it; empty where there is no such object. */
export const readField = (
  { kubectl }: ClusterClient,
  namespace: string,
  name: string,
  path: string,
): Promise<string> =>
  kubectl('-n', namespace, 'get', name, '--ignore-not-found', '--output', `jsonpath={${path}}`)
