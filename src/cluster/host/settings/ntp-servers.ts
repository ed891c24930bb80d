import { createHash } from 'node:crypto'
import { mkdir, rm, rmdir } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { HostFiles } from '../../../host/files.ts'
import { isServiceRunning } from '../../../host/services.ts'
import { replaceFile, syncFolder } from '../../../system/files.ts'
import { FileRefused } from '../../../system/regular-file.ts'
import type { CommandRunner } from '../../../system/runner.ts'
import type { SettingObserved } from '../../observed.ts'
import { StepFailed } from '../../step.ts'
import { readNote, removeNote, writeNote, type NotePlace } from './note.ts'
import { isOwnText } from './own-text.ts'
import { findTimePlace, timeText, usualPlaces, type TimePlace } from './time-service.ts'

/** What the step notes, so that what it has placed is found again whatever becomes of the time service. */
interface NtpNote {
  readonly placed: readonly Placed[]
  /** SHA-256 of the text that the service has read, hex; empty from before a change until the service has read it. */
  readonly read: string
}

interface Placed extends Pick<TimePlace, 'path' | 'unit' | 'reading'> {
  /** The folder that was made for it. */
  readonly madeFolder?: string
}

const nothing: NtpNote = { placed: [], read: '' }

/** What was placed, also where the note of it is lost: the files of the distributions say so themselves. */
async function readPlaced({ files, note: file }: Pick<NotePlace, 'files' | 'note'>): Promise<NtpNote> {
  const note = await readNote({ files, note: file }, nothing)
  const missing = usualPlaces.filter(({ path }) => !note.placed.some((each) => each.path === path))
  const found: Placed[] = []
  for (const each of missing) if (isOwn(await textOf(files, each.path))) found.push(each)
  return { ...note, placed: [...note.placed, ...found] }
}

/** The text of a file; null for anything else, as a folder. */
const textOf = (files: HostFiles, path: string): Promise<string | null | undefined> =>
  files.text(path).catch((error: unknown) => {
    if (error instanceof FileRefused) return null
    throw error
  })
const isOwn = (text: string | null | undefined): boolean => typeof text === 'string' && isOwnText(text)

/** Looks whether this host has the servers; within the sandbox of the daemon. */
export async function observeNtpServers(
  at: Pick<NotePlace, 'files' | 'note'>,
  servers: readonly string[],
): Promise<SettingObserved> {
  const { files } = at
  const { placed, read } = await readPlaced(at)
  const isPlaced = placed.length > 0
  if (servers.length === 0) return { isApplied: !isPlaced, isDue: isPlaced, isPlaced, problem: '' }
  const place = await findTimePlace(files)
  if ('problem' in place) return { isApplied: false, isDue: false, isPlaced, problem: place.problem }
  const present = await textOf(files, place.path)
  if (present !== undefined && !isOwn(present))
    return { isApplied: false, isDue: false, isPlaced, problem: notOwn(place.path) }
  const text = timeText(place, servers)
  const isApplied =
    present === text && read === sumOf(text) && placed.length === 1 && placed[0]?.path === place.path
  return { isApplied, isDue: !isApplied, isPlaced, problem: '' }
}

export interface NtpWork extends NotePlace {
  readonly runner: CommandRunner
  readonly print: (line: string) => void
}

/**
 * Gives this host the servers, or takes away what was placed where there are none. What an administrator has written stays.
 * @throws StepFailed
 */
export async function placeNtpServers(work: NtpWork, servers: readonly string[]): Promise<void> {
  const { files, root, runner, print } = work
  const { placed } = await readPlaced(work)
  const place = servers.length === 0 ? undefined : await findTimePlace(files)
  if (place && 'problem' in place) throw new StepFailed(place.problem)
  const text = place && timeText(place, servers)
  const present = place && (await textOf(files, place.path))
  if (place && present !== undefined && !isOwn(present)) throw new StepFailed(notOwn(place.path))

  const old = placed.filter(({ path }) => path !== place?.path)
  const folder = place && dirname(join(root, place.path))
  const before = placed.find(({ path }) => path === place?.path)
  const isFolderMade =
    folder !== undefined && (await mkdir(folder, { recursive: true, mode: 0o755 })) !== undefined
  const now = place && {
    ...{ path: place.path, unit: place.unit, reading: place.reading },
    ...(isFolderMade
      ? { madeFolder: folder }
      : before?.madeFolder === undefined
        ? {}
        : { madeFolder: before.madeFolder }),
  }
  // Noted before it is placed: whatever cuts this off, the file is known.
  await writeNote(work, { placed: [...old, ...(now ? [now] : [])], read: '' })
  if (now && text !== undefined) {
    if (present !== text) await replaceFile(join(root, now.path), text, 0o644)
    await readAgain(runner, now)
    print(`${now.unit} takes the time from ${servers.join(', ')}`)
  }
  for (const each of old) {
    if (isOwn(await textOf(files, each.path))) {
      await rm(join(root, each.path), { force: true })
      await syncFolder(dirname(join(root, each.path)))
      print(`taken away: ${each.path}`)
    }
    // Others may have used it since.
    if (each.madeFolder !== undefined) await rmdir(each.madeFolder).catch(() => undefined)
    if (await isServiceRunning(files, each.unit)) await readAgain(runner, each)
  }
  if (now && text !== undefined) await writeNote(work, { placed: [now], read: sumOf(text) })
  else await removeNote(work)
}

async function readAgain(
  runner: CommandRunner,
  { unit, reading }: Pick<TimePlace, 'unit' | 'reading'>,
): Promise<void> {
  const [program, args] =
    reading === 'sources'
      ? (['chronyc', ['reload', 'sources']] as const)
      : (['systemctl', ['try-restart', unit]] as const)
  const { exitCode, stdout, stderr } = await runner.run(program, args, { timeoutMs: 60_000 })
  if (exitCode === 0) return
  // Before chrony 4.0 there is no such command.
  if (reading === 'sources') return readAgain(runner, { unit, reading: 'restart' })
  const said = (stderr.trim() || stdout.trim()).split('\n')[0] ?? ''
  throw new StepFailed(`${unit} could not be restarted (${said}); see: systemctl status ${unit}`)
}

const notOwn = (path: string) =>
  `${path} is not a file of edgehostd and is not overwritten; rename or remove it`

const sumOf = (text: string) => createHash('sha256').update(text).digest('hex')
