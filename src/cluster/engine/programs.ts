import { createHash, randomBytes } from 'node:crypto'
import { createReadStream } from 'node:fs'
import {
  access,
  chmod,
  constants,
  link,
  lstat,
  mkdir,
  open,
  readFile,
  readdir,
  readlink,
  rename,
  rm,
  symlink,
} from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { createLock } from '../../base/lock.ts'
import type { FoundProgram, ProgramFile, ContentAccess } from '../../content/store/find.ts'
import { replaceFile, syncFolder } from '../../system/files.ts'
import { createBoundedRunner } from '../../system/bounded-memory.ts'
import { CommandFailed, type CommandRunner } from '../../system/runner.ts'
import { StepFailed } from '../loop/step.ts'
import type { kubernetesPrograms, tools } from '../needs/needs.ts'
import { readNote } from './notes.ts'
import { currentProgram, type ClusterPaths } from './paths.ts'

export type ProgramName = (typeof kubernetesPrograms)[number] | (typeof tools)[number]

interface ProgramsOptions {
  /** Folder of the programs of the cluster. */
  readonly folder: string
  /** Folder of the host whose programs are used where it has them. */
  readonly hostFolder: string | undefined
  readonly content: Pick<ContentAccess, 'findProgram' | 'programVersions'>
  readonly architecture: string
  readonly runner: CommandRunner
}

/** Source of a program. */
type ProgramSource =
  | { readonly kind: 'host'; readonly path: string }
  | { readonly kind: 'content'; readonly version: string; readonly found: FoundProgram }
  | { readonly kind: 'missing'; readonly code: ProgramProblem; readonly reason: string }

type ProgramProblem = 'ProgramMissing' | 'ProgramDamaged' | 'ProgramOfAnotherVersion' | 'ProgramUnusable'

/** The programs of the cluster, by version side by side: `<folder>/<name>/<version>`, and `current` a link to the one in use. */
export interface Programs {
  /**
   * Finds the source of a program; changes nothing.
   * @param version without `v`; undefined for the newest
   */
  find(name: ProgramName, version?: string): Promise<ProgramSource>
  /**
   * Puts a program into its folder, unless it is there. It may be called before there is a cluster.
   * @returns the path of the program
   * @throws StepFailed where it is not to be had
   */
  place(name: ProgramName, version?: string): Promise<string>
  /** Places a program and makes it the current one. @returns its name, for operators */
  use(name: ProgramName, version?: string): Promise<string>
  /** Path by which the program in use is started, whatever its version. */
  current(name: ProgramName): string
  hasCurrent(name: ProgramName): Promise<boolean>
}

const versionTimeoutMs = 20_000
const versionArguments: Readonly<Partial<Record<ProgramName, readonly string[]>>> = {
  kubeadm: ['version', '-o', 'short'],
  kubelet: ['--version'],
  kubectl: ['version', '--client'],
}

export function createPrograms(options: ProgramsOptions): Programs {
  const { folder, hostFolder, content, architecture } = options
  const runner = createBoundedRunner(options.runner)
  const inTurn = createLock()

  async function find(name: ProgramName, version?: string): Promise<ProgramSource> {
    const path = hostFolder && join(hostFolder, name)
    if (path !== undefined && (await isProgram(path))) return judgeHostProgram(name, path, version)
    const versions =
      version === undefined ? await content.programVersions(name, architecture) : [version, `v${version}`]
    let damaged: FoundProgram | undefined
    for (const each of versions) {
      const found = await content.findProgram({ name, version: each, architecture })
      if (found?.isWhole) return { kind: 'content', version: each, found }
      damaged ??= found
    }
    const what = version === undefined ? name : `${name} ${version}`
    if (damaged)
      return {
        kind: 'missing',
        code: 'ProgramDamaged',
        reason: `the program ${what} of the bundle ${damaged.bundle.name} is damaged; upload that bundle again`,
      }
    return {
      kind: 'missing',
      code: 'ProgramMissing',
      reason: `no bundle of this host has the program ${what} for ${architecture}; upload a bundle made with: edgehostctl content build --programs ${name}=${version ?? 'VERSION'}:DIR`,
    }
  }

  /** A program of Kubernetes has to be of the version of the cluster. */
  async function judgeHostProgram(name: ProgramName, path: string, version?: string): Promise<ProgramSource> {
    const args = versionArguments[name]
    if (version === undefined || args === undefined) return { kind: 'host', path }
    const asked = await runner.run(path, args, { timeoutMs: versionTimeoutMs }).catch((error: unknown) => {
      if (error instanceof CommandFailed) return error
      throw error
    })
    if (asked instanceof CommandFailed)
      return {
        kind: 'missing',
        code: 'ProgramUnusable',
        reason: `the version of ${path} cannot be asked for: ${asked.message}`,
      }
    const [, own] = /\bv?(\d+\.\d+\.\d+\S*)/.exec(asked.stdout) ?? []
    if (own === version) return { kind: 'host', path }
    return {
      kind: 'missing',
      code: 'ProgramOfAnotherVersion',
      reason: `${path} is of version ${own ?? 'unknown'}, and the cluster needs ${version}; install that version, or remove cluster.programs.directory from the configuration`,
    }
  }

  async function placeNow(name: ProgramName, version?: string): Promise<{ path: string; version: string }> {
    const source = await find(name, version)
    if (source.kind === 'missing') throw new StepFailed(source.reason)
    if (source.kind === 'host') return { path: source.path, version: `of ${dirname(source.path)}` }
    const { found } = source
    const target = join(folder, name, source.version)
    const program = found.files.find(({ title }) => basename(title) === name)
    if (!program)
      throw new StepFailed(
        `the program ${name} ${source.version} of the bundle ${found.bundle.name} has no file ${name}; build the bundle again`,
      )
    if ((await readDigest(target)) !== found.digest) await layOut(found, target)
    return { path: join(target, program.title), version: source.version }
  }

  return {
    find,
    place: (name, version) => inTurn(async () => (await placeNow(name, version)).path),
    use: (name, version) =>
      inTurn(async () => {
        const placed = await placeNow(name, version)
        await mkdir(join(folder, name), { recursive: true, mode: 0o700 })
        await pointTo(join(folder, name, 'current'), dirname(placed.path))
        return `${name} ${placed.version}`
      }),
    current: (name) => currentProgram(folder, name),
    hasCurrent: (name) => isProgram(currentProgram(folder, name)),
  }
}

const isProgram = (path: string) =>
  access(path, constants.X_OK).then(
    () => true,
    () => false,
  )

// Written last, so a folder with this file has all files of the program.
const digestFile = '.digest'

const readDigest = (folder: string) => readFile(join(folder, digestFile), 'utf8').catch(() => undefined)

const stagingName = /(^|\.)[0-9a-f]{16}\.tmp$/

/** Removes leftovers of a killed layout; layouts are made one after the other. */
async function removeStaging(folder: string): Promise<void> {
  for (const name of await readdir(folder).catch(() => []))
    if (stagingName.test(name)) await rm(join(folder, name), { recursive: true, force: true })
}

/** Lays out the files of a program beside their folder, and then renames it into place. */
async function layOut({ bundle, digest, files }: FoundProgram, target: string): Promise<void> {
  await removeStaging(dirname(target))
  const staging = join(dirname(target), `.${randomBytes(8).toString('hex')}.tmp`)
  try {
    for (const file of files) {
      const path = join(staging, file.title)
      await mkdir(dirname(path), { recursive: true, mode: 0o755 })
      if (!(await placeFile(file, path)))
        throw new StepFailed(
          `the file ${file.title} in the bundle ${bundle.name} is damaged; upload that bundle again`,
        )
    }
    await replaceFile(join(staging, digestFile), digest, 0o644)
    // A running program keeps its file.
    await rm(target, { recursive: true, force: true })
    await rename(staging, target)
    await syncFolder(dirname(target))
  } catch (error) {
    await rm(staging, { recursive: true, force: true })
    throw error
  }
}

/**
 * Gives a file of the content a second name, so that it takes no more of the disk, or copies it to another file system. It stays when its
 * bundle is deleted.
 * @returns false where the file is damaged
 */
async function placeFile(file: ProgramFile, target: string): Promise<boolean> {
  try {
    await link(file.path, target)
    await chmod(target, file.mode)
    return true
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    // A damaged blob was moved out of the store.
    if (code === 'ENOENT') return false
    if (code !== 'EXDEV' && code !== 'EMLINK' && code !== 'EPERM') throw error
    return copyChecked(file, target)
  }
}

/** @returns whether the content has its digest */
async function copyChecked({ path, digest, mode }: ProgramFile, target: string): Promise<boolean> {
  const hash = createHash('sha256')
  const file = await open(target, 'wx', 0o700)
  try {
    for await (const chunk of createReadStream(path, { highWaterMark: 262_144 }) as AsyncIterable<Buffer>) {
      hash.update(chunk)
      await file.writeFile(chunk)
    }
    await file.chmod(mode)
    await file.sync()
  } finally {
    await file.close()
  }
  return `sha256:${hash.digest('hex')}` === digest
}

/** Makes a link, or changes where one leads, in one step. */
export async function pointTo(link: string, target: string): Promise<void> {
  const present = await lstat(link).catch(() => undefined)
  if (present?.isSymbolicLink() && (await readlink(link)) === target) return
  const made = `${link}.${randomBytes(8).toString('hex')}.tmp`
  await symlink(target, made)
  await rename(made, link)
  await syncFolder(dirname(link))
}

/** Folders of the programs of the next version of Kubernetes, which are laid out and not in use. */
interface NextPrograms {
  readonly version: string
  readonly folders: Readonly<Record<(typeof kubernetesPrograms)[number], string>>
}

/** @throws StepFailed where programs of this version are not laid out */
export async function readNextPrograms(
  { next }: Pick<ClusterPaths, 'next'>,
  version: string,
): Promise<NextPrograms> {
  const noted = await readNote<NextPrograms>(next.programs)
  if (noted !== undefined && noted !== 'damaged' && noted.version === version) return noted
  throw new StepFailed(
    `${next.programs} does not name the programs of Kubernetes ${version}; apply the change again: edgehostctl cluster apply`,
  )
}
