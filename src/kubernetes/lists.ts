import { KubernetesError, type KubernetesObject, type ListOptions, type Resource } from './client.ts'
import { isRecord } from '../base/json.ts'
import { isObject, withoutManagers } from './fields.ts'
import { apiVersionOf, collectionPath, metadataType, selectors } from './paths.ts'
import type { Requests } from './request.ts'

/** Objects as they were at one moment. */
export interface Listed {
  readonly objects: readonly KubernetesObject[]
  /** From here a watch continues. */
  readonly resourceVersion: string
}

export interface ListLimits {
  readonly pageSize: number
  /** Of objects in all pages: a larger list is refused, and not held in memory. */
  readonly mostObjects: number
}

// JSON.parse takes 9 ms and more for the 1 MB of 250 pods, and meanwhile the daemon does nothing else.
const listLimits: ListLimits = { pageSize: 250, mostObjects: 50_000 }

/** For `pick`: an object as it is. */
export const keepAll = (object: KubernetesObject): KubernetesObject => object

// A list of many pages begins anew when the API server has forgotten the moment of its first page, after five minutes.
const mostBeginnings = 3

/**
 * Reads all pages of a list. A page whose bytes are too many is asked for again with half as many objects, for example of Secrets.
 * @throws KubernetesError
 */
export async function listAll(
  requests: Pick<Requests, 'ask'>,
  resource: Resource,
  options: ListOptions,
  limits: ListLimits = listLimits,
): Promise<Listed> {
  for (let beginning = 1; ; beginning += 1) {
    try {
      return await readPages(requests, resource, options, limits)
    } catch (error) {
      if (!isExpired(error) || beginning === mostBeginnings) throw error
    }
  }
}

/** Whether the resource version of a request has expired. */
const isExpired = (error: unknown): boolean => error instanceof KubernetesError && error.status === 410

async function readPages(
  { ask }: Pick<Requests, 'ask'>,
  resource: Resource,
  options: ListOptions,
  { pageSize, mostObjects }: ListLimits,
): Promise<Listed> {
  const { namespace, pick = keepAll, signal } = options
  const objects: KubernetesObject[] = []
  let limit = pageSize
  let token = ''
  for (;;) {
    const query = new URLSearchParams({
      ...selectors(options),
      limit: String(limit),
      ...(token === '' ? {} : { continue: token }),
    })
    const path = `${collectionPath(resource, namespace)}?${query.toString()}`
    const accept = metadataType(options, 'list')
    const reply = await ask({ method: 'GET', path, ...accept, signal }).catch((error: unknown) => {
      if (!(error instanceof KubernetesError) || error.reason !== 'TooLarge' || limit === 1) throw error
      limit = Math.ceil(limit / 2)
    })
    if (reply === undefined) continue
    const page = readPage(reply, resource)
    for (const object of page.objects) objects.push(pick(withoutManagers(object)))
    if (objects.length > mostObjects)
      throw new KubernetesError(200, 'TooLarge', `there are more than ${mostObjects} ${resource.plural}`)
    if (page.token === '') return { objects, resourceVersion: page.resourceVersion }
    token = page.token
  }
}

interface Page extends Listed {
  /** Of the next page; empty in the last. */
  readonly token: string
}

function readPage(reply: unknown, resource: Resource): Page {
  const { items, metadata } = isRecord(reply) ? reply : {}
  // The items of a list have no type of their own.
  const type = { apiVersion: apiVersionOf(resource), kind: resource.kind }
  // A list of the metadata of no object has null.
  const listed: readonly unknown[] = items === null ? [] : Array.isArray(items) ? items : [undefined]
  const objects = listed.map((item): unknown => ({ ...type, ...(isRecord(item) ? item : {}) }))
  if (!objects.every(isObject) || !isRecord(metadata) || typeof metadata.resourceVersion !== 'string')
    throw new KubernetesError(200, 'InvalidReply', `the reply is not a list of ${resource.plural}`)
  const { resourceVersion, continue: next } = metadata
  return { objects, resourceVersion, token: typeof next === 'string' ? next : '' }
}
