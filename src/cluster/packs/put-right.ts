import {
  type KubernetesObject,
  type KubernetesClient,
  KubernetesError,
  type Resource,
} from '../../kubernetes/client.ts'
import { exactDigitsOf, isRecord } from '../../base/json.ts'
import { fieldAt, textAt } from '../../kubernetes/fields.ts'
import { entryOf } from '../../kubernetes/inventory.ts'

// Fields that the API server itself writes with each change.
const written = new Set(['metadata.resourceVersion', 'metadata.generation', 'metadata.managedFields'])

/**
 * Names of the fields in which two forms of an object differ, without their values, which may be secret. Pure.
 * @returns for example `spec.replicas`, `data.a`, `spec.template.spec.containers[web].image`; empty where they are equal
 */
export function differences(one: KubernetesObject, other: KubernetesObject): readonly string[] {
  const found: string[] = []
  compare(one, other, '', found)
  return found
}

function compare(one: unknown, other: unknown, path: string, found: string[]): void {
  if (written.has(path)) return
  if (isRecord(one) && isRecord(other)) {
    for (const name of new Set([...Object.keys(one), ...Object.keys(other)]))
      compare(one[name], other[name], path === '' ? name : `${path}.${name}`, found)
  } else if (Array.isArray(one) && Array.isArray(other) && one.length === other.length) {
    const others: readonly unknown[] = other
    for (const [index, item] of (one as readonly unknown[]).entries())
      compare(item, others[index], `${path}[${nameIn(item) ?? index}]`, found)
  } else if (one !== other && !isSameNumber(one, other)) found.push(path)
}

/** Numbers beyond 2^53, each of which is an object of its own. */
function isSameNumber(one: unknown, other: unknown): boolean {
  const digits = exactDigitsOf(one)
  return digits !== undefined && digits === exactDigitsOf(other)
}

const nameIn = (item: unknown) => (isRecord(item) && typeof item.name === 'string' ? item.name : undefined)

/**
 * Whether a HorizontalPodAutoscaler decides how many replicas an object has, as kubernetes.io/docs/tasks/run-application, "Horizontal Pod
 * Autoscaling", says.
 */
async function isAutoscaled(
  client: Pick<KubernetesClient, 'resourceOf' | 'list'>,
  { kind, metadata: { name, namespace } }: KubernetesObject,
  signal: AbortSignal,
): Promise<boolean> {
  const resource = await client.resourceOf('autoscaling/v2', 'HorizontalPodAutoscaler', signal)
  if (!resource || namespace === undefined) return false
  const found = await client.list(resource, { namespace, signal })
  return found.some((each) => {
    const target = fieldAt(each, ['spec', 'scaleTargetRef'])
    return textAt(target, ['kind']) === kind && textAt(target, ['name']) === name
  })
}

/** An object with as many replicas as another form of it has. */
function withReplicasOf(desired: KubernetesObject, { spec }: KubernetesObject): KubernetesObject {
  if (!isRecord(desired.spec) || !isRecord(spec)) return desired
  return { ...desired, spec: { ...desired.spec, replicas: spec.replicas } }
}

/** Calls of a correction to the API server. */
export type PutRightClient = Pick<KubernetesClient, 'resourceOf' | 'get' | 'list' | 'wouldApply' | 'apply'>

const shownFields = 5
const replicas = 'spec.replicas'

/**
 * Puts an object right where it differs from the desired one. Fields that the desired one does not set, and so belong to other field
 * managers, are left alone; so are replicas that an autoscaler decides.
 * @param given the desired object, with its namespace, as it is applied
 * @returns the difference, as the end of a sentence; undefined for none
 * @throws KubernetesError
 */
export async function putRight(
  client: PutRightClient,
  given: KubernetesObject,
  signal: AbortSignal,
): Promise<string | undefined> {
  let desired = given
  const { apiVersion, kind } = desired
  const resource = await client.resourceOf(apiVersion, kind, signal)
  // Its definition was deleted, and is put right before it.
  if (!resource)
    throw new KubernetesError(404, 'NotFound', `the API server has no kind ${kind} in ${apiVersion}`)
  const found = await client.get(resource, entryOf(desired), signal)
  // It is observed again when it is gone.
  if (found?.metadata.deletionTimestamp !== undefined) return undefined
  if (!found) {
    // A Job may be set to be removed when it has ended.
    if (kind === 'Job') return undefined
    await refuseEndingKind(client, resource, signal)
    await client.apply(resource, desired, signal)
    return 'it was deleted, and is made again'
  }
  let fields = differences(found, await client.wouldApply(resource, desired, signal))
  if (fields.includes(replicas) && (await isAutoscaled(client, found, signal))) {
    // As many as it has: an omitted field that no other manager sets would get its default.
    desired = withReplicasOf(desired, found)
    fields = fields.filter((field) => field !== replicas)
  }
  if (fields.length === 0) return undefined
  await client.apply(resource, desired, signal)
  const more = fields.length - shownFields
  return `changed by hand or by another program, and put right: ${fields.slice(0, shownFields).join(', ')}${more > 0 ? `, and ${more} more` : ''}`
}

/**
 * The API server deletes the objects of a kind before its definition. One that is made again in between may slip in, and then holds up the end
 * of the definition by a minute.
 */
async function refuseEndingKind(
  client: PutRightClient,
  { group, plural, kind }: Resource,
  signal: AbortSignal,
): Promise<void> {
  const definitions = await client.resourceOf('apiextensions.k8s.io/v1', 'CustomResourceDefinition', signal)
  if (!definitions || group === '') return
  const found = await client.get(definitions, { name: `${plural}.${group}` }, signal)
  if (found?.metadata.deletionTimestamp !== undefined)
    throw new KubernetesError(404, 'NotFound', `the definition of the kind ${kind} is being deleted`)
}
