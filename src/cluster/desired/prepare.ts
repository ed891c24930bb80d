import { chmod, copyFile, constants, mkdir, readFile, rename, rm, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { ArchiveLimits } from '../../archive/limits.ts'
import { refuse } from '../../archive/refusal.ts'
import { createLock } from '../../base/lock.ts'
import type { ContentAccess } from '../../content/store/find.ts'
import { replacedDefinition } from '../../definition/codes.ts'
import type { DefinitionSettings } from '../../definition/config.ts'
import type { Definitions } from '../../definition/definitions.ts'
import type { ClusterProfileDetail } from '../../definition/schemas.ts'
import { AppError } from '../../errors/app-error.ts'
import { generalErrors } from '../../errors/codes.ts'
import { stoppingError } from '../../errors/stopping.ts'
import { refuseFull } from '../../errors/system-reason.ts'
import { runWorker } from '../../program/run-worker.ts'
import { syncFolder, syncTree } from '../../system/files.ts'
import type { Logger } from '../../system/log.ts'
import { CommandFailed, type CommandRunner } from '../../system/runner.ts'
import { createDiskRoom } from '../../upload/disk-room.ts'
import { openStaging } from '../../upload/staging.ts'
import { preparedFiles, type Prepare, type Prepared, type PrepareRequest } from './prepared.ts'
import type { PreparedContent, PrepareFinding, PrepareOrder } from '../prepare/protocol.ts'

export interface PrepareOptions {
  /** Folder of the cluster room, `<state>/cluster`. */
  readonly folder: string
  readonly definitions: Pick<Definitions, 'archiveOf'>
  readonly content: Pick<ContentAccess, 'findChart'>
  /** Path of helm; undefined if neither the content nor this host has it, which is a problem where a pack needs it. */
  readonly helm: () => Promise<string | undefined>
  /** Limits of the archive, and of the preparation: as for the examination of a definition. */
  readonly limits: Partial<ArchiveLimits>
  readonly check: DefinitionSettings['check']
  /** Space that stays free on the disk. */
  readonly reserveBytes: number
  readonly runner: CommandRunner
  /** Path of `prepare.cjs`. */
  readonly program: string
  /** Aborted when a stop of the daemon begins. */
  readonly stopping: AbortSignal
  readonly log: Logger
}

// Findings; the files of the packs are on the disk.
const maxOutputBytes = 33_554_432
// As for the examination of the same texts.
const semiSpaceMiB = 4

/** Opens the preparation of clusters, and removes leftovers of a killed daemon. */
export async function createPrepare(options: PrepareOptions): Promise<Prepare> {
  const { folder, definitions, content, limits, reserveBytes, runner, program, stopping, log } = options
  const staging = await openStaging(join(folder, 'staging'))
  const inTurn = createLock()
  const { seconds, memoryMiB } = options.check
  // As `stopping`, with the refusal as its reason.
  const stopped = new AbortController()
  const stop = () => stopped.abort(stoppingError())
  if (stopping.aborted) stop()
  else stopping.addEventListener('abort', stop, { once: true })

  async function run(order: PrepareOrder, signal: AbortSignal) {
    return runWorker<PrepareFinding>(
      { runner, program, log },
      {
        memoryMiB,
        semiSpaceMiB,
        maxOutputBytes,
        timeoutMs: seconds * 1_000,
        signal,
        input: `${JSON.stringify(order)}\n`,
        tooMuch: () => refuse('MemoryLimit', undefined, `needs more than ${memoryMiB} MiB to be prepared`),
      },
    ).catch((error: unknown) => {
      if (!(error instanceof CommandFailed) || error.reason !== 'timed-out') throw error
      throw refuse('TimeLimit', undefined, `takes longer than ${seconds} s to prepare`)
    })
  }

  /** Runs the program, a second time if it needs charts of the content. */
  async function prepareContent(
    order: Omit<PrepareOrder, 'charts'>,
    signal: AbortSignal,
  ): Promise<PreparedContent & Pick<Prepared, 'chartDigests'>> {
    const first = await run({ ...order, charts: undefined }, signal)
    if ('prepared' in first) return { ...first.prepared, chartDigests: [] }
    const charts: Record<string, string | null> = {}
    const chartDigests: string[] = []
    for (const chart of first.needsCharts) {
      const found = await content.findChart(chart)
      charts[chart] = found?.path ?? null
      if (found) chartDigests.push(found.digest)
    }
    const second = await run({ ...order, charts }, signal)
    if ('prepared' in second) return { ...second.prepared, chartDigests }
    throw new Error('prepare.cjs answered a different order')
  }

  async function prepare(request: PrepareRequest, signal: AbortSignal): Promise<Prepared> {
    signal.throwIfAborted()
    const { archiveUploadPath, source, ...rest } = request
    const { file, details, definition } = source ?? (await definitions.archiveOf(archiveUploadPath))
    const target = join(folder, request.uid, String(request.generation))
    const staged = await staging.stage()
    try {
      await createDiskRoom({ folder: staged.folder, reserveBytes }).take(
        (await stat(file).catch(refuseGone)).size,
      )
      const copyTo = async (from: string, name: string) => {
        const to = join(staged.folder, name)
        await copyFile(from, to, constants.COPYFILE_FICLONE).catch(refuseFull).catch(refuseGone)
        await chmod(to, 0o600)
        return to
      }
      await copyTo(file, preparedFiles.definition)
      const shown = await copyTo(details, preparedFiles.details)
      const { sha256, name, version } = definition
      const found = await prepareContent(
        {
          folder: staged.folder,
          target,
          sha256,
          request: rest,
          helm: await options.helm(),
          limits,
          reserveBytes,
        },
        signal,
      )
      return {
        ...found,
        definition: { name, version, sha256 },
        profiles: JSON.parse(await readFile(shown, 'utf8')) as ClusterProfileDetail[],
        async keep() {
          await syncTree(staged.folder)
          await mkdir(dirname(target), { recursive: true, mode: 0o700 })
          // Leftover of a daemon that was killed between this and the acceptance.
          await rm(target, { recursive: true, force: true })
          await rename(staged.folder, target)
          await syncFolder(dirname(target))
          await syncFolder(folder)
        },
        discard: () => staging.removeStaged(staged),
      }
    } catch (error) {
      await staging.removeStaged(staged)
      throw error
    }
  }

  return {
    prepare: (request, signal) =>
      inTurn(() => prepare(request, AbortSignal.any([stopped.signal, signal])).catch(namePlace(folder))),
  }
}

/** For `catch`: a full disk is reported with the folder on it. */
const namePlace = (folder: string) => (error: unknown) => {
  if (!(error instanceof AppError) || error.kind !== generalErrors.StorageFull) throw error
  const { message, details, cause } = error
  throw new AppError(generalErrors.StorageFull, `the cluster cannot be prepared in ${folder}: ${message}`, {
    ...(details ? { details } : {}),
    cause,
  })
}

/** The definition was replaced or removed since its handle was looked up. */
function refuseGone(error: unknown): never {
  if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
  throw replacedDefinition()
}
