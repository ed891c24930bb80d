import { copyFile, link, mkdir, readdir, rename, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { ClusterProfileDetail } from '../../definition/schemas.ts'
import { syncFolder, syncTree } from '../../system/files.ts'
import type { ClusterRecord } from '../cluster-store.ts'
import { preparedFiles } from '../prepare/prepared.ts'
import { readProfiles, readWantedOf } from '../read-generation.ts'
import type { NewRevision, Revision } from '../revisions/revision.ts'
import type { Wanted } from '../wanted.ts'

/** The Kubernetes that stays, and the last good revision, of which all else comes. */
export interface WayBackParts {
  readonly good: Revision
  readonly kept: Revision
}

/**
 * The revision that brought the Kubernetes that runs, or is being restored: the active one, or the last before it that was begun; pure.
 * @param revisions the newest first
 * @returns undefined where none that is kept has that version
 */
export function broughtBy(
  revisions: readonly Revision[],
  { generation }: Pick<ClusterRecord, 'generation'>,
  version: string,
): Revision | undefined {
  const having = revisions.filter(({ summary }) => summary.kubernetes.version === version)
  return having.find((each) => each.generation === generation) ?? having.find(wasBegun)
}

const wasBegun = ({ outcome, endedAt }: Revision) =>
  outcome !== 'waiting' && outcome !== 'held' && endedAt !== null

/** What is wanted of the good revision, with the Kubernetes of another; pure. */
export const withKubernetes = (good: Wanted, { kubernetes }: Pick<Wanted, 'kubernetes'>): Wanted => ({
  ...good,
  kubernetes,
})

/** The profiles of the good revision, with the Kubernetes pack as it runs, for the API; pure. */
export function withKubernetesPack(
  good: readonly ClusterProfileDetail[],
  kept: readonly ClusterProfileDetail[],
): ClusterProfileDetail[] {
  const isKubernetes = ({ layer }: { readonly layer: string }) => layer === 'k8s'
  const [running] = kept.flatMap(({ packs }) => packs.filter(isKubernetes))
  return good.map((profile) => ({
    ...profile,
    packs: profile.packs.map((pack) => (running && isKubernetes(pack) ? running : pack)),
  }))
}

/**
 * Makes a revision of the packs, values and settings of the good one and of the Kubernetes of the other, with a folder as any other has, so
 * that all that reads revisions sees one that is whole. Its folder is there, whole, or not at all.
 * @param order.generation its number
 * @throws Error with a reason for operators where a folder of the two cannot be read; the system's error where it cannot be written
 */
export async function makeWayBack(
  record: Pick<ClusterRecord, 'uid' | 'name'>,
  { good, kept, generation, at }: WayBackParts & { readonly generation: number; readonly at: number },
): Promise<NewRevision> {
  const folder = join(dirname(good.folder), String(generation))
  const [ofGood, ofKept] = await Promise.all([readWantedOf(record, good), readWantedOf(record, kept)])
  const wanted = { ...withKubernetes(ofGood, ofKept), generation, folder }
  const profiles = withKubernetesPack(await readProfiles(good), await readProfiles(kept))
  const staging = `${folder}.tmp`
  // What a daemon left that was killed.
  for (const each of [staging, folder]) await rm(each, { recursive: true, force: true })
  const own: readonly string[] = [preparedFiles.wanted, preparedFiles.details]
  await linkTree(good.folder, staging, own)
  await writeFile(join(staging, preparedFiles.wanted), JSON.stringify(wanted), { mode: 0o600 })
  await writeFile(join(staging, preparedFiles.details), JSON.stringify(profiles), { mode: 0o600 })
  await syncTree(staging)
  await rename(staging, folder)
  await syncFolder(dirname(folder))
  return {
    ...{ generation, at, by: '', origin: 'goingBack', folder, outcome: 'applying', scheduleAt: null },
    ...{ posted: good.posted, plain: good.plain, mark: good.mark },
    // The configuration of Kubernetes may contain values of the other one.
    sensitive: [...new Set([...good.sensitive, ...kept.sensitive])],
    summary: {
      ...good.summary,
      ...{ kubernetes: kept.summary.kubernetes, kubernetesOf: kept.summary.kubernetesOf ?? kept.generation },
      // Which of them Kubernetes needs is not known: the next write lets go of the others.
      content: [...new Set([...(good.summary.content ?? []), ...(kept.summary.content ?? [])])],
    },
  }
}

/** Gives the files of a folder, which are never changed, second names in another one: that takes no room. */
async function linkTree(from: string, to: string, leftOut: readonly string[] = []): Promise<void> {
  await mkdir(to, { mode: 0o700 })
  for (const entry of await readdir(from, { withFileTypes: true })) {
    if (leftOut.includes(entry.name)) continue
    const [source, target] = [join(from, entry.name), join(to, entry.name)]
    if (entry.isDirectory()) await linkTree(source, target)
    else await link(source, target).catch(() => copyFile(source, target))
  }
}
