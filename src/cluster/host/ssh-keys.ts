import { mkdir, lstat, rm, rmdir, stat } from 'node:fs/promises'
import { join, basename, dirname } from 'node:path'
import type { CommandRunner } from '../../system/runner.ts'
import { replaceFile, syncFolder } from '../../system/files.ts'
import { readRegularFile, textFileBytes } from '../../system/regular-file.ts'
import type { SettingObserved } from '../loop/observed.ts'
import { StepFailed } from '../loop/step.ts'
import { readNote, removeNote, writeNote, type NotePlace, isOwnText, ownMark } from './ntp-servers.ts'

/** An account of this host. */
interface HostAccount {
  readonly name: string
  readonly uid: number
  readonly gid: number
  readonly home: string
}

/** Finds an account, local or of a directory. @returns undefined where this host has none of this name */
async function findAccount(runner: CommandRunner, name: string): Promise<HostAccount | undefined> {
  const { exitCode, stdout } = await runner.run('getent', ['passwd', '--', name], { timeoutMs: 10_000 })
  const found = exitCode === 0 ? parseAccount(stdout) : undefined
  // A number is taken for a user id.
  return found?.name === name ? found : undefined
}

/** Parses a line of passwd(5). */
function parseAccount(line: string): HostAccount | undefined {
  const [name = '', , uid = '', gid = '', , home = ''] = line.split('\n')[0]?.split(':') ?? []
  if (name === '' || !/^\d+$/.test(uid) || !/^\d+$/.test(gid) || !home.startsWith('/')) return undefined
  return { name, uid: Number(uid), gid: Number(gid), home }
}

/** Default of sshd, sshd_config(5). */
const usualFiles = '.ssh/authorized_keys .ssh/authorized_keys2'

/** The files that sshd reads for an account; its default where it is not installed or cannot say. */
export async function readKeyFiles(runner: CommandRunner, account: HostAccount): Promise<readonly string[]> {
  const files = (await askSshd(runner, account.name)) ?? usualFiles
  return files === 'none' ? [] : keyFilesOf(files, account)
}

/**
 * `AuthorizedKeysFile` for an account. -T needs host keys and the folder of a running sshd; -G, of OpenSSH 9.3 and later, neither.
 * @returns undefined where sshd is not installed or does not say it
 */
async function askSshd(runner: CommandRunner, name: string): Promise<string | undefined> {
  const who = ['-C', `user=${name},host=localhost,addr=127.0.0.1`]
  const ask = async (option: string) => {
    const { exitCode, stdout, stderr } = await runner
      .run('sshd', [option, ...who], { timeoutMs: 10_000 })
      .catch(() => ({ exitCode: 1, stdout: '', stderr: '' }))
    return {
      files: exitCode === 0 ? /^authorizedkeysfile (.+)$/im.exec(stdout)?.[1] : undefined,
      missing: missingFolderIn(stderr),
    }
  }
  const first = await ask('-T')
  if (first.files !== undefined) return first.files
  const second = await ask('-G')
  if (second.files !== undefined || first.missing === undefined) return second.files
  // As the unit of sshd makes it at its start; it is in memory, and stays: sshd may be started at any moment.
  await mkdir(first.missing, { recursive: true, mode: 0o755 })
  return (await ask('-T')).files
}

/**
 * The folder without which sshd says nothing, as while its service is stopped: `Missing privilege separation directory: /run/sshd`.
 * @returns undefined for another text, and for a folder that is not in memory
 */
export const missingFolderIn = (stderr: string): string | undefined =>
  /^Missing privilege separation directory: ((?:\/var)?\/run\/[\w.-]+)\r?$/m.exec(stderr)?.[1]

/** Paths of `AuthorizedKeysFile` of sshd_config(5) for an account. */
const keyFilesOf = (files: string, { name, uid, home }: HostAccount): readonly string[] =>
  files
    .trim()
    .split(/\s+/)
    .map((file) => {
      const words: Readonly<Record<string, string>> = { '%%': '%', '%h': home, '%u': name, '%U': String(uid) }
      const path = file.replace(/%./g, (token) => words[token] ?? token)
      return path.startsWith('/') ? path : join(home, path)
    })

/**
 * Does work with the rights of an account: files in a home, its links too, belong to the account and not to root. The process may do
 * nothing else meanwhile, since all of it has these rights.
 */
async function asAccount<T>(
  { uid, gid }: Pick<HostAccount, 'uid' | 'gid'>,
  work: () => Promise<T>,
): Promise<T> {
  const { geteuid, getegid, getgroups, seteuid, setegid, setgroups } = process
  if (!geteuid || !getegid || !getgroups || !seteuid || !setegid || !setgroups)
    throw new Error('this system has no accounts')
  const before = { uid: geteuid(), gid: getegid(), groups: getgroups() }
  if (before.uid === uid) return work()
  setgroups([gid])
  setegid(gid)
  seteuid(uid)
  try {
    return await work()
  } finally {
    seteuid(before.uid)
    setegid(before.gid)
    setgroups(before.groups)
  }
}

/** Note of the step. */
interface KeysNote {
  readonly placed: readonly PlacedKeys[]
}

interface PlacedKeys extends HostAccount {
  readonly path: string
  /** The folder that was made for it. */
  readonly madeFolder?: string
}

interface KeysWork extends NotePlace {
  readonly runner: CommandRunner
  /** Name of the account that the keys are for. */
  readonly account: string
  readonly keys: readonly string[]
}

interface KeysPlace {
  readonly account: HostAccount
  readonly path: string
  /** Its folder, where that has to be made. */
  readonly missingFolder?: string
}

const noKeys: KeysNote = { placed: [] }
/** The file of an administrator, which edgehostd leaves alone whatever it contains. */
const administratorsFile = 'authorized_keys'

/** Observes whether this host has the keys; with the rights of root. It changes nothing. */
export async function observeSshKeys(work: KeysWork): Promise<SettingObserved> {
  const { runner, account, keys } = work
  const { placed } = await readNote(work, noKeys)
  const isPlaced = placed.length > 0
  if (keys.length === 0) return { isApplied: !isPlaced, isDue: isPlaced, isPlaced, problem: '' }
  const found = await findPlace(runner, account, placed)
  if ('problem' in found) return { isApplied: false, isDue: false, isPlaced, problem: found.problem }
  const { path } = found
  const isOnly = placed.length === 1 && placed[0]?.path === path && placed[0].uid === found.account.uid
  const isApplied = isOnly && (await asAccount(found.account, () => isAsDesired(found, keys)))
  return { isApplied, isDue: !isApplied, isPlaced, problem: '' }
}

/**
 * Gives the keys a file of their own, beside the administrator's, or removes placed ones where there are none.
 * @throws StepFailed
 */
export async function placeSshKeys(work: KeysWork, print: (line: string) => void): Promise<void> {
  const { runner, account, keys } = work
  const { placed } = await readNote(work, noKeys)
  const found = keys.length === 0 ? undefined : await findPlace(runner, account, placed)
  if (found && 'problem' in found) throw new StepFailed(found.problem)
  const isSame = (each: PlacedKeys) => each.path === found?.path && each.uid === found.account.uid
  const old = placed.filter((each) => !isSame(each))
  // A folder that was made for another file of the account stays known as long as one is in it.
  const madeFolder =
    found?.missingFolder ??
    placed.find(
      ({ uid, madeFolder: made }) =>
        uid === found?.account.uid && made !== undefined && made === dirname(found.path),
    )?.madeFolder
  const now: PlacedKeys | undefined = found && {
    ...found.account,
    path: found.path,
    ...(madeFolder === undefined ? {} : { madeFolder }),
  }
  // Noted before it is placed: whatever cuts this off, the file is known.
  await writeNote(work, { placed: [...old, ...(now ? [now] : [])] })
  if (found) {
    await asAccount(found.account, () => place(found, keys))
    print(`${found.path} has ${keys.length} key${keys.length === 1 ? '' : 's'} for the account ${account}`)
  }
  for (const each of old) if (await asAccount(each, () => takeAway(each))) print(`taken away: ${each.path}`)
  if (now) await writeNote(work, { placed: [now] })
  else await removeNote(work)
}

/** The first file that sshd reads for the account and that edgehostd may have. @param placed earlier placed files */
async function findPlace(
  runner: CommandRunner,
  name: string,
  placed: readonly PlacedKeys[],
): Promise<KeysPlace | { readonly problem: string }> {
  const account = await findAccount(runner, name)
  if (!account)
    return {
      problem: `this host has no account ${name}; make it, or name another one in cluster.sshAccount of the configuration`,
    }
  const files = await readKeyFiles(runner, account)
  const { home } = account
  const isNoted = (path: string) => placed.some((each) => each.path === path && each.uid === account.uid)
  const candidates = files.filter(
    (path) => path.startsWith(`${home === '/' ? '' : home}/`) && basename(path) !== administratorsFile,
  )
  if (candidates.length === 0)
    return {
      problem: `sshd reads no file of the home of ${name} but those of an administrator (${files.join(', ') || 'none'}); add .ssh/authorized_keys2 to AuthorizedKeysFile of sshd_config(5)`,
    }
  return asAccount(account, async () => {
    if (
      !(await stat(home).then(
        (found) => found.isDirectory(),
        () => false,
      ))
    )
      return {
        problem: `the home ${home} of the account ${name} is not there; make it (mkhomedir_helper ${name}), or name another account in cluster.sshAccount of the configuration`,
      }
    const taken: string[] = []
    for (const path of candidates) {
      const problem = await problemOf(path, account, isNoted(path))
      if (problem === undefined) {
        const missingFolder = (await lstat(dirname(path)).catch(() => undefined))
          ? {}
          : { missingFolder: dirname(path) }
        return { account, path, ...missingFolder }
      }
      taken.push(problem)
    }
    return { problem: taken.join('; ') }
  })
}

/** Why a file cannot be placed; undefined where it can. sshd ignores keys where others may write, StrictModes of sshd_config(5). */
async function problemOf(path: string, { uid }: HostAccount, isNoted: boolean): Promise<string | undefined> {
  const folder = dirname(path)
  const found = await lstat(folder).catch(() => undefined)
  if (found && !found.isDirectory()) return `${folder} is not a folder; keys are not placed beyond a link`
  if (found && ![0, uid].includes(found.uid)) return `${folder} belongs to another account`
  if (found && (found.mode & 0o022) !== 0)
    return `others may write to ${folder}, so sshd ignores its keys; take that right away (chmod go-w ${folder})`
  const file = await lstat(path).catch(() => undefined)
  if (!file) return undefined
  if (!file.isFile()) return `${path} is not a regular file and is not replaced`
  const text = await textOf(path).catch((error: unknown) => error as NodeJS.ErrnoException)
  // Its owner or mode was changed: sshd, which reads it with the rights of the account, has nothing of it either.
  const isUnreadable = typeof text !== 'string' && text.code === 'EACCES'
  return (typeof text === 'string' && isOwnText(text)) || (isUnreadable && isNoted)
    ? undefined
    : `${path} is not a file of edgehostd and is not overwritten; move its keys to ${administratorsFile} and remove it`
}

/** The text of the file: a key each line, as in sshd(8), "AUTHORIZED_KEYS FILE FORMAT". */
const keysText = (keys: readonly string[]): string => `${[ownMark, ...keys].join('\n')}\n`

async function isAsDesired({ path, account }: KeysPlace, keys: readonly string[]): Promise<boolean> {
  const found = await lstat(path).catch(() => undefined)
  if (!found?.isFile() || found.uid !== account.uid || (found.mode & 0o777) !== 0o600) return false
  return (await textOf(path).catch(() => '')) === keysText(keys)
}

/** With the rights of the account. */
async function place({ path }: KeysPlace, keys: readonly string[]): Promise<void> {
  await mkdir(dirname(path), { recursive: true, mode: 0o700 })
  await replaceFile(path, keysText(keys), 0o600)
}

/** With the rights of the account. @returns whether there was one */
async function takeAway({ path, madeFolder }: PlacedKeys): Promise<boolean> {
  const text = await textOf(path).catch((error: unknown) => {
    const { code = '', message } = error as NodeJS.ErrnoException
    // Anything but a regular file is not the placed one.
    if (['ENOENT', 'ENOTDIR', 'FileRefused'].includes(code)) return undefined
    throw new StepFailed(`${path} cannot be read (${code || message}); remove it by hand`)
  })
  if (text === undefined || !isOwnText(text)) return false
  await rm(path, { force: true })
  await syncFolder(dirname(path))
  // Others may have used it since.
  if (madeFolder !== undefined) await rmdir(madeFolder).catch(() => undefined)
  return true
}

const textOf = async (path: string) => (await readRegularFile(path, textFileBytes)).bytes.toString('utf8')
