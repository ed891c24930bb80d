import type { ReasonName } from './reasons.ts'

/** Something that happened to the cluster or to this host for it. */
export interface ClusterEvent {
  /** Rises by at least one with each event. */
  readonly id: number
  /** Milliseconds since 1970. */
  readonly at: number
  /** One of `reasons.ts`, which says its type and its severity; a stored event of an older version may have another one. */
  readonly reason: string
  readonly message: string
  readonly severity: 'Normal' | 'Warning'
  readonly clusterUid: string
  /** What it is about, for example a pack. */
  readonly object?: { readonly kind: string; readonly name: string; readonly namespace?: string }
  /** Key of the step that it comes from. */
  readonly step?: string
}

export interface NewClusterEvent extends Omit<ClusterEvent, 'id' | 'at' | 'severity'> {
  readonly reason: ReasonName
}

/** The events of the cluster. They stay when the cluster is deleted, within the retention. */
export interface EventLog {
  /**
   * Stores an event, and what it makes of its condition, in the open transaction if there is one; an equal event (reason, message,
   * object, step) as the last is not stored again. Readers of `follow` get it. A disk that cannot be written is logged, not thrown.
   */
  add(event: NewClusterEvent): void
  /**
   * Passes on the stored events after `since` and then new ones as they come, until the signal.
   * @param onEvent awaited, so that a slow reader gets stored events at its own pace
   */
  follow(
    since: number,
    onEvent: (event: ClusterEvent) => Promise<void> | void,
    signal: AbortSignal,
  ): Promise<void>
}
