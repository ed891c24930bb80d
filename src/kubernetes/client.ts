// `src/kubernetes` is a library that knows no cluster room: a client (`client.ts` is its contract, `create-client.ts` makes it, ADR 24), and what
// is built on it.
//
// - **A request** (`request.ts`, `connection.ts`) has one time limit and a bounded reply, and throws `KubernetesError`. The kubeconfig is read at
//   the first request, and again when the API server refuses the certificate or cannot be reached.
// - **A watch** (`watch.ts`) is a picture of all objects of a kind. It continues from its last bookmark after the network or the API server was
//   away, and begins with a new list after a refusal that says that its place is gone. `problem()` says why the picture may be old.
// - **Readiness** (`readiness.ts`) is the kstatus result of one object, without I/O.
// - **A set** (`apply-set.ts`) is the objects of a pack. Each gets the label `edgehostd/pack`, and is in the inventory of the caller before
//   it is in the cluster, so that a restart loses none. Definitions come first, webhook configurations last (`work-off.ts`); what passes by
//   itself (`work-off.ts`) is tried again behind the others until nothing has moved for two minutes. What is in the inventory and not in
//   the set any more is deleted, unless another pack has its label on it by now.

/** A Kubernetes object as JSON, with the fields that all have. */
export interface KubernetesObject {
  readonly apiVersion: string
  readonly kind: string
  readonly metadata: ObjectMetadata
  readonly [field: string]: unknown
}

export interface ObjectMetadata {
  readonly name: string
  readonly namespace?: string
  readonly uid?: string
  readonly resourceVersion?: string
  readonly generation?: number
  readonly labels?: Readonly<Record<string, string>>
  readonly annotations?: Readonly<Record<string, string>>
  readonly creationTimestamp?: string
  readonly deletionTimestamp?: string
  readonly [field: string]: unknown
}

/** Names a kind of objects in paths of the API. */
export interface Resource {
  /** Empty for the core group. */
  readonly group: string
  readonly version: string
  /** Plural, for example `deployments`. */
  readonly plural: string
  readonly kind: string
  readonly isNamespaced: boolean
}

export interface ObjectReference {
  readonly name: string
  /** Of a namespaced object. */
  readonly namespace?: string
}

export interface ListOptions {
  readonly namespace?: string
  readonly labelSelector?: string
  readonly fieldSelector?: string
  /** The API server gives only the metadata of each object. */
  readonly isMetadataOnly?: boolean
  /** Kept part of each object, for a list that may be long; all of it if absent. `metadata.managedFields` is never kept. */
  readonly pick?: (object: KubernetesObject) => KubernetesObject
  readonly signal?: AbortSignal
}

/** The API server refused a request, or could not be reached. */
export class KubernetesError extends Error {
  override readonly name = 'KubernetesError'
  /** HTTP status; 0 where there was no reply. */
  readonly status: number
  /**
   * `reason` of the Status, for example `NotFound`, `Conflict`; or `Unreachable`, `Timeout`, `Aborted` by the signal, `InvalidReply`,
   * `TooLarge`, `BadRequest`.
   */
  readonly reason: string
  /** Reasons of the causes in the details of the Status, for example `NamespaceTerminating`. */
  readonly causes: readonly string[]

  constructor(status: number, reason: string, message: string, causes: readonly string[] = []) {
    super(message)
    this.status = status
    this.reason = reason
    this.causes = causes
  }
}

/** Calls of this project to an API server. Every method throws KubernetesError; each request has a time limit and a bounded reply. */
export interface KubernetesClient {
  /** Whether the API server says that it is ready; false also where it cannot be reached: `version` says why. */
  isReady(signal?: AbortSignal): Promise<boolean>
  /** Version of the API server, for example `v1.34.4`. */
  version(signal?: AbortSignal): Promise<string>
  /** Finds the resource of a kind; asked once, and again for a kind that is not known yet. @returns undefined where there is none */
  resourceOf(apiVersion: string, kind: string, signal?: AbortSignal): Promise<Resource | undefined>
  /** All resources that have a namespace and can be listed. */
  namespacedResources(signal?: AbortSignal): Promise<readonly Resource[]>
  /** @returns undefined where there is no such object */
  get(
    resource: Resource,
    object: ObjectReference,
    signal?: AbortSignal,
  ): Promise<KubernetesObject | undefined>
  /** All pages. */
  list(resource: Resource, options?: ListOptions): Promise<readonly KubernetesObject[]>
  /** Server-side apply with the field manager `edgehostd`, forced. @returns the object as stored, without `metadata.managedFields` */
  apply(resource: Resource, object: KubernetesObject, signal?: AbortSignal): Promise<KubernetesObject>
  /** Dry run of `apply` on an existing object. */
  wouldApply(resource: Resource, object: KubernetesObject, signal?: AbortSignal): Promise<KubernetesObject>
  /** Evicts a pod; one that is not there is no error. A PodDisruptionBudget that does not allow it is an error with the status 429. */
  evict(pod: ObjectReference, signal?: AbortSignal): Promise<void>
  /** The last lines of a container of a pod, as text. @throws KubernetesError with the status 400 where it has no such instance */
  logs(pod: ObjectReference, options: LogsOptions): Promise<string>
  /** Deletes in the background; an object that is not there is no error. */
  remove(resource: Resource, object: ObjectReference, signal?: AbortSignal): Promise<void>
  /**
   * Keeps a picture of all objects: lists once, then watches with bookmarks; lists again after 410 and with back-off after errors.
   * @param onChange called after each list, and after changes, once for those that arrive together
   * @returns the picture; it ends with the signal
   */
  watch(resource: Resource, options: WatchOptions): WatchedObjects
  /** Closes all connections. */
  close(): void
}

/** Which lines of a container are read; kubernetes.io/docs/reference/kubernetes-api/workload-resources/pod-v1, "read log". */
export interface LogsOptions {
  readonly container: string
  /** Of the instance before its last start. */
  readonly isPrevious: boolean
  readonly tailLines: number
  /** Of these lines the first so many bytes. */
  readonly limitBytes: number
  readonly signal?: AbortSignal
}

export interface WatchOptions extends Omit<ListOptions, 'signal'> {
  /** Approximate duration of a watch, seconds; each end costs a request. */
  readonly watchSeconds?: number
  readonly onChange: () => void
  readonly signal: AbortSignal
}

export interface WatchedObjects {
  /** Undefined until the first list. */
  current(): readonly KubernetesObject[] | undefined
  /** Why the picture may be old; undefined while the watch runs. */
  problem(): string | undefined
}
