import { copyFile, mkdir, readdir, rename, rm, rmdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { replaceFile } from '../../system/files.ts'
import { StepFailed } from '../step.ts'
import { readNote } from './note.ts'
import { cniFolders, type ClusterPaths } from './paths.ts'

/** Without it no pod has a network. */
const needed = 'loopback'

/**
 * Puts the CNI plugins of Debian into the folder in which the networks of Kubernetes install theirs, and where containerd looks for both:
 * containerd 1 knows one folder only. They are copies: a network that brings the same plugin writes over its name, through a link into the
 * package of Debian. Plugins that are there already stay. What was there before is recorded once, for `restoreCniFolder`.
 */
export async function fillCniFolder(
  paths: Pick<ClusterPaths, 'cniRecord'>,
  print: (line: string) => void,
  folders: { readonly programs: string; readonly debian: string } = cniFolders,
): Promise<void> {
  const { programs, debian } = folders
  const present = await list(programs)
  // A damaged record stays: a new one would count what the cluster has brought as the host's own.
  if ((await readRecord(paths)) === undefined)
    await replaceFile(
      paths.cniRecord,
      JSON.stringify({ exists: present !== undefined, names: present ?? [] }),
      0o600,
    )
  await mkdir(programs, { recursive: true })
  const offered = (await list(debian)) ?? []
  // The folder itself may be a link to that of Debian.
  const missing = offered.filter((name) => !present?.includes(name))
  for (const name of missing) {
    const target = join(programs, name)
    if (!(await stat(join(debian, name))).isFile()) continue
    await copyFile(join(debian, name), `${target}.edgehostd.tmp`)
    await rename(`${target}.edgehostd.tmp`, target)
  }
  if (missing.length > 0) print(`[cni] ${missing.length} CNI plugins of ${debian} are in ${programs}`)
  if (!((await list(programs)) ?? []).includes(needed))
    throw new StepFailed(
      `neither ${programs} nor ${debian} has the CNI plugin ${needed}; install the package containernetworking-plugins`,
    )
}

/** Removes the plugins that came since `fillCniFolder`; without a record that can be read nothing: the record of the host decides. */
export async function restoreCniFolder(
  paths: Pick<ClusterPaths, 'cniRecord'>,
  { programs }: { readonly programs: string } = cniFolders,
): Promise<void> {
  const record = await readRecord(paths)
  if (!record || record === 'damaged') return
  const came = ((await list(programs)) ?? []).filter((name) => !record.names.includes(name))
  for (const name of came) await rm(join(programs, name), { recursive: true, force: true })
  // Its parent too, if that was made with it.
  if (!record.exists)
    for (const folder of [programs, join(programs, '..')]) await rmdir(folder).catch(() => undefined)
  await rm(paths.cniRecord, { force: true })
}

interface CniRecord {
  readonly exists: boolean
  readonly names: readonly string[]
}

const list = (folder: string) => readdir(folder).catch(() => undefined)

async function readRecord({ cniRecord }: Pick<ClusterPaths, 'cniRecord'>) {
  const record = await readNote<CniRecord>(cniRecord)
  if (record === undefined || record === 'damaged') return record
  return Array.isArray(record.names) ? record : 'damaged'
}
