import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { ClusterProfileDetail } from '../definition/schemas.ts'
import type { ClusterRecord } from './cluster-store.ts'
import { preparedFiles } from './prepare/prepared.ts'
import type { Revision } from './revisions/revision.ts'
import type { Wanted, WantedSettings } from './wanted.ts'

/** Reads what is wanted from the folder of the cluster. @throws Error with a reason for operators */
export async function readWanted(
  record: Pick<ClusterRecord, 'uid' | 'name' | 'generation' | 'folder' | 'summary' | 'deleteRequestedAt'>,
): Promise<Wanted> {
  const file = join(record.folder, preparedFiles.wanted)
  try {
    const wanted = JSON.parse(await readFile(file, 'utf8')) as Wanted
    // A cluster that was created by 0.1.0 or before has none.
    return { ...wanted, settings: (wanted as Partial<Wanted>).settings ?? noSettings }
  } catch (error) {
    const { uid, name, generation, folder, summary, deleteRequestedAt } = record
    // A deletion needs no more than this.
    if (deleteRequestedAt !== null)
      return {
        ...{ uid, name, generation, folder, node: summary.node, packs: [] },
        kubernetes: { ...summary.kubernetes, config: '', stages: [] },
        settings: noSettings,
      }
    throw new Error(
      `${file} cannot be read (${(error as Error).message}); delete the cluster and create it again`,
      { cause: error },
    )
  }
}

/** Reads what a revision of the cluster wants. @throws Error with a reason for operators */
export const readWantedOf = (
  { uid, name }: Pick<ClusterRecord, 'uid' | 'name'>,
  { generation, folder, summary }: Pick<Revision, 'generation' | 'folder' | 'summary'>,
): Promise<Wanted> => readWanted({ uid, name, generation, folder, summary, deleteRequestedAt: null })

const noSettings: WantedSettings = { ntpServers: [], sshKeys: [] }

/** Reads the profiles of a revision of the cluster, with sensitive values masked. */
export const readProfiles = async ({ folder }: Pick<ClusterRecord, 'folder'>) =>
  JSON.parse(await readFile(join(folder, preparedFiles.details), 'utf8')) as ClusterProfileDetail[]
