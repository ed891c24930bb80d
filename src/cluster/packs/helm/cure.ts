/** A revision of a release, as `helm history --output json` gives it. */
export interface Revision {
  readonly revision: number
  /** For example `deployed`, `failed`, `superseded`, `pending-install`, `uninstalling`. */
  readonly status: string
  /** What was done, for example `Rollback to 2`, or what the caller of helm has set. */
  readonly description?: string
}

/** What unblocks a release that an interrupted helm left behind. */
export type Cure = { readonly kind: 'uninstall' } | { readonly kind: 'rollback'; readonly revision: number }

/** Whether the first installation of a release has failed, and none of its upgrades since has succeeded. */
export const wasNeverDeployed = (history: readonly Revision[]): boolean =>
  history.some(({ revision }) => revision === 1) &&
  history.every(({ status }) => status === 'failed' || status.startsWith('pending-'))

/**
 * What has to be done before helm takes a release again: it refuses one whose last revision is pending, and cannot say whether the helm
 * that made it so still lives. Only one helm of this project runs at a time.
 * @param history in any order; empty where there is no release
 * @returns undefined where helm takes the release as it is, also one that failed
 */
export function cureOf(history: readonly Revision[]): Cure | undefined {
  const newestFirst = history.toSorted((a, b) => b.revision - a.revision)
  const [last, ...before] = newestFirst
  if (last?.status === 'pending-install' || last?.status === 'uninstalling') return { kind: 'uninstall' }
  if (last?.status !== 'pending-upgrade' && last?.status !== 'pending-rollback') return undefined
  // helm sets the former revision to superseded before it sets the new one to deployed, and may have been cut off in between. Where
  // nothing was ever deployed, a rollback to the last failed one unblocks the release, and its data stays.
  for (const status of ['deployed', 'superseded', 'failed']) {
    const found = before.find((revision) => revision.status === status)
    if (found) return { kind: 'rollback', revision: found.revision }
  }
  return { kind: 'uninstall' }
}
