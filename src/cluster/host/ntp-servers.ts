import { mkdir, rm, rmdir } from 'node:fs/promises'
import { dirname, join, posix } from 'node:path'
import { type HostFiles, ownMark, passRefused } from '../../host/files.ts'
import { replaceFile, syncFolder } from '../../system/files.ts'
import { isServiceRunning } from '../../host/services.ts'
import { createHash } from 'node:crypto'
import { FileRefused } from '../../system/regular-file.ts'
import type { CommandRunner } from '../../system/runner.ts'
import type { SettingObserved } from '../loop/observed.ts'
import { StepFailed } from '../loop/step.ts'

/** Note of the files that the step program has placed, JSON, and its path. */
export interface NotePlace {
  readonly files: HostFiles
  /** The folder that stands for the root of this host. */
  readonly root: string
  /** Absolute, as on the host itself. */
  readonly note: string
}

/** Whose servers a file has. */
export interface TimeOwner {
  /** Without its ending. Of the files of the folder the last one has the last word. */
  readonly fileName: string
  /** The first line of the file. */
  readonly mark: string
}

const ofCluster: TimeOwner = { fileName: 'zz-edgehostd-cluster', mark: ownMark }

/** Reads a note. @returns `empty` where there is none, and where it cannot be read: then the host itself is observed */
export async function readNote<Note extends object>(
  { files, note }: Pick<NotePlace, 'files' | 'note'>,
  empty: Note,
): Promise<Note> {
  const text = await files.text(note)
  if (text === undefined) return empty
  try {
    const found: unknown = JSON.parse(text)
    const isObject = found !== null && typeof found === 'object' && !Array.isArray(found)
    return isObject ? { ...empty, ...found } : empty
  } catch {
    return empty
  }
}

export async function writeNote({ root, note }: NotePlace, content: object): Promise<void> {
  await mkdir(dirname(join(root, note)), { recursive: true, mode: 0o700 })
  await replaceFile(join(root, note), JSON.stringify(content), 0o600)
}

export const removeNote = ({ root, note }: NotePlace): Promise<void> => rm(join(root, note), { force: true })

/** Source of the servers of this host's time service. */
interface TimePlace {
  /** Its unit. */
  readonly unit: string
  /** The file that edgehostd may place. */
  readonly path: string
  readonly form: 'timesyncd' | 'chrony'
  /** Way in which the service reads a change: a restart, or its sources again. */
  readonly reading: 'restart' | 'sources'
}

/** @property problem why no file can be placed, and the remedy; a clause */
type FoundTimePlace = TimePlace | { readonly problem: string }

const timesyncd = 'systemd-timesyncd.service'
/** Names of the unit of chrony, and its file, in Debian and elsewhere. */
const chronyUnits = ['chrony.service', 'chronyd.service']
const chronyFiles = ['/etc/chrony/chrony.conf', '/etc/chrony.conf']
const otherUnits = ['ntpsec.service', 'ntp.service', 'ntpd.service', 'openntpd.service']

/** Paths on hosts as Debian makes them. */
const usualPlaces = ({ fileName }: TimeOwner): readonly TimePlace[] => [
  {
    unit: timesyncd,
    form: 'timesyncd',
    reading: 'restart',
    path: `/etc/systemd/timesyncd.conf.d/${fileName}.conf`,
  },
  {
    unit: 'chrony.service',
    form: 'chrony',
    reading: 'sources',
    path: `/etc/chrony/sources.d/${fileName}.sources`,
  },
]

/** Finds the time service that runs, and the place for servers; it changes nothing. */
export async function findTimePlace(files: HostFiles, owner: TimeOwner = ofCluster): Promise<FoundTimePlace> {
  const { fileName } = owner
  const isRunning = (unit: string) => isServiceRunning(files, unit)
  if (await isRunning(timesyncd))
    return {
      unit: timesyncd,
      form: 'timesyncd',
      reading: 'restart',
      path: `/etc/systemd/timesyncd.conf.d/${fileName}.conf`,
    }
  for (const unit of chronyUnits) if (await isRunning(unit)) return chronyPlace(files, unit, owner)
  for (const unit of otherUnits)
    if (await isRunning(unit))
      return {
        problem: `the time service of this host, ${unit}, has no folder for further servers; use systemd-timesyncd or chrony, or set its servers by hand`,
      }
  return {
    problem:
      'no time service runs on this host; enable systemd-timesyncd (timedatectl set-ntp true) or install chrony',
  }
}

async function chronyPlace(files: HostFiles, unit: string, { fileName }: TimeOwner): Promise<FoundTimePlace> {
  for (const file of chronyFiles) {
    const text = await passRefused(files).files.text(file)
    if (text === undefined) continue
    const sources = foldersOf(text, 'sourcedir')
    if (sources !== undefined)
      return { unit, form: 'chrony', reading: 'sources', path: posix.join(sources, `${fileName}.sources`) }
    const folder = foldersOf(text, 'confdir')
    if (folder !== undefined)
      return { unit, form: 'chrony', reading: 'restart', path: posix.join(folder, `${fileName}.conf`) }
    return {
      problem: `${file} names no folder for further servers; add the line "sourcedir /etc/chrony/sources.d" and restart ${unit}`,
    }
  }
  return { problem: `${unit} runs without ${chronyFiles.join(' and ')}, so its servers cannot be changed` }
}

/** The first folder of a directive of chrony.conf(5) that outlives a start of the host. */
function foldersOf(text: string, directive: 'sourcedir' | 'confdir'): string | undefined {
  const folders = [...text.matchAll(new RegExp(`^[ \\t]*${directive}[ \\t]+(.+)$`, 'gim'))].flatMap(
    ([, places = '']) => places.trim().split(/\s+/),
  )
  return folders.find((folder) => folder.startsWith('/etc/'))
}

/** The text of the file. */
export function timeText(
  { form }: Pick<TimePlace, 'form'>,
  servers: readonly string[],
  { mark } = ofCluster,
): string {
  const lines =
    form === 'timesyncd'
      ? // The empty value resets the servers of earlier files, timesyncd.conf(5).
        ['[Time]', 'NTP=', `NTP=${servers.join(' ')}`]
      : // Sources of an administrator stay, and are used where none of these answers, chrony.conf(5).
        servers.map((server) => `server ${server} iburst prefer`)
  return `${[mark, ...lines].join('\n')}\n`
}

/** Note of the step, so that its files are found again whatever becomes of the time service. */
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

/** The placed file, also where its note is lost: the files of the distributions say so themselves. */
async function readPlaced(
  { files, note: file }: Pick<NotePlace, 'files' | 'note'>,
  owner: TimeOwner,
): Promise<NtpNote> {
  const note = await readNote({ files, note: file }, nothing)
  const missing = usualPlaces(owner).filter(({ path }) => !note.placed.some((each) => each.path === path))
  const found: Placed[] = []
  for (const each of missing) if (isOwn(await textOf(files, each.path), owner)) found.push(each)
  return { ...note, placed: [...note.placed, ...found] }
}

/** The text of a file; null for anything else, as a folder. */
const textOf = (files: HostFiles, path: string): Promise<string | null | undefined> =>
  files.text(path).catch((error: unknown) => {
    if (error instanceof FileRefused) return null
    throw error
  })
const isOwn = (text: string | null | undefined, { mark }: TimeOwner): boolean =>
  typeof text === 'string' && text.startsWith(`${mark}\n`)

/** Observes whether this host has the servers; within the sandbox of the daemon. */
export async function observeNtpServers(
  at: Pick<NotePlace, 'files' | 'note'>,
  servers: readonly string[],
  owner: TimeOwner = ofCluster,
): Promise<SettingObserved> {
  const { files } = at
  const { placed, read } = await readPlaced(at, owner)
  const isPlaced = placed.length > 0
  if (servers.length === 0) return { isApplied: !isPlaced, isDue: isPlaced, isPlaced, problem: '' }
  const place = await findTimePlace(files, owner)
  if ('problem' in place) return { isApplied: false, isDue: false, isPlaced, problem: place.problem }
  const present = await textOf(files, place.path)
  if (present !== undefined && !isOwn(present, owner))
    return { isApplied: false, isDue: false, isPlaced, problem: notOwn(place.path) }
  const text = timeText(place, servers, owner)
  const isApplied =
    present === text && read === sumOf(text) && placed.length === 1 && placed[0]?.path === place.path
  return { isApplied, isDue: !isApplied, isPlaced, problem: '' }
}

interface NtpWork extends NotePlace {
  readonly runner: CommandRunner
  readonly print: (line: string) => void
}

/**
 * Gives this host the servers, or takes away placed ones where there are none. Files of an administrator stay.
 * @throws StepFailed
 */
export async function placeNtpServers(
  work: NtpWork,
  servers: readonly string[],
  owner: TimeOwner = ofCluster,
): Promise<void> {
  const { files, root, runner, print } = work
  const { placed } = await readPlaced(work, owner)
  const place = servers.length === 0 ? undefined : await findTimePlace(files, owner)
  if (place && 'problem' in place) throw new StepFailed(place.problem)
  const text = place && timeText(place, servers, owner)
  const present = place && (await textOf(files, place.path))
  if (place && present !== undefined && !isOwn(present, owner)) throw new StepFailed(notOwn(place.path))

  const old = placed.filter(({ path }) => path !== place?.path)
  const folder = place && dirname(join(root, place.path))
  const before = placed.find(({ path }) => path === place?.path)
  const isFolderMade =
    folder !== undefined && (await mkdir(folder, { recursive: true, mode: 0o755 })) !== undefined
  const now = place && {
    path: place.path,
    unit: place.unit,
    reading: place.reading,
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
    if (isOwn(await textOf(files, each.path), owner)) {
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
