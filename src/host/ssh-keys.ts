// Public keys of OpenSSH for accounts of this host, in a file of edgehostd beside the administrator's. The file has a section for each owner: the
// settings of the cluster, and the account itself (`PATCH /v1/users/current`). It is written with the rights of the account, so that whatever its
// owner puts in the way, as a link, leads no further than the account itself may go.

import { mkdir, lstat, rm, stat } from 'node:fs/promises'
import { join, basename, dirname } from 'node:path'
import type { CommandRunner } from '../system/runner.ts'
import { replaceFile, syncFolder } from '../system/files.ts'
import { readRegularFile, textFileBytes } from '../system/regular-file.ts'
import { isOwnText, ownMark } from './files.ts'

/** An account of this host. */
export interface HostAccount {
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
export async function asAccount<T>(
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

export interface KeysPlace {
  readonly account: HostAccount
  readonly path: string
  /** Its folder, where that has to be made. */
  readonly missingFolder?: string
}

/** The file of an administrator, which edgehostd leaves alone whatever it contains. */
const administratorsFile = 'authorized_keys'

/**
 * The first file that sshd reads for the account and that edgehostd may have.
 * @param isNoted whether a file was placed earlier
 * @param otherwise what else may be done than to make the account or its home, a clause
 */
export async function findKeysPlace(
  runner: CommandRunner,
  name: string,
  isNoted: (path: string, account: HostAccount) => boolean,
  otherwise = '',
): Promise<KeysPlace | { readonly problem: string }> {
  const account = await findAccount(runner, name)
  if (!account)
    return {
      problem: `this host has no account ${name}; make it${otherwise}`,
    }
  const files = await readKeyFiles(runner, account)
  const { home } = account
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
        problem: `the home ${home} of the account ${name} is not there; make it (mkhomedir_helper ${name})${otherwise}`,
      }
    const taken: string[] = []
    for (const path of candidates) {
      const problem = await problemOf(path, account, isNoted(path, account))
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
  return (typeof text === 'string' && hasSection(text)) || (isUnreadable && isNoted)
    ? undefined
    : `${path} is not a file of edgehostd and is not overwritten; move its keys to ${administratorsFile} and remove it`
}

/** Who has set keys. */
export type KeysOwner = 'cluster' | 'account'

/** First line of a section. In files from before there were others, all sections are of the cluster. */
const marks: Readonly<Record<KeysOwner, string>> = {
  cluster: ownMark,
  account: '# Set by this account itself over the API of edgehostd (PATCH /v1/users/current).',
}

/** Whether a file begins with a section of edgehostd. */
const hasSection = (text: string): boolean => isOwnText(text) || text.startsWith(`${marks.account}\n`)

/** The keys of each owner in a file, as in sshd(8), "AUTHORIZED_KEYS FILE FORMAT". Pure. */
export function sectionsOf(text: string): Partial<Record<KeysOwner, readonly string[]>> {
  const found: Partial<Record<KeysOwner, string[]>> = {}
  let keys: string[] | undefined
  if (!hasSection(text)) return found
  for (const line of text.split('\n')) {
    const owner = (['cluster', 'account'] as const).find((each) => marks[each] === line)
    if (owner !== undefined) found[owner] = keys = []
    else if (line !== '') keys?.push(line)
  }
  return found
}

/** The text of the file. Pure. */
export const textOfSections = (sections: Partial<Record<KeysOwner, readonly string[]>>): string =>
  (['cluster', 'account'] as const)
    .flatMap((owner) => {
      const keys = sections[owner]
      return keys === undefined || keys.length === 0 ? [] : [marks[owner], ...keys]
    })
    .map((line) => `${line}\n`)
    .join('')

/** Whether the file has exactly these keys of an owner, in the way in which it is written; with the rights of the account. */
export async function areKeysPlaced(
  { path, account }: KeysPlace,
  owner: KeysOwner,
  keys: readonly string[],
): Promise<boolean> {
  const found = await lstat(path).catch(() => undefined)
  if (!found?.isFile() || found.uid !== account.uid || (found.mode & 0o777) !== 0o600) return false
  const text = await textOf(path).catch(() => '')
  return text === textOfSections({ ...sectionsOf(text), [owner]: keys })
}

/** Gives an owner these keys in the file, and leaves keys of others; without any key there is no file. With the rights of the account. */
export async function placeKeys(
  { path }: Pick<KeysPlace, 'path'>,
  owner: KeysOwner,
  keys: readonly string[],
): Promise<void> {
  // What the account itself has made unreadable is replaced.
  const present = await textOf(path).catch((error: unknown) => {
    const { code = '' } = error as NodeJS.ErrnoException
    if (['ENOENT', 'ENOTDIR', 'EACCES'].includes(code)) return undefined
    throw error
  })
  const text = textOfSections({ ...sectionsOf(present ?? ''), [owner]: keys })
  if (text === '') {
    if (present === undefined) return
    await rm(path, { force: true })
    await syncFolder(dirname(path))
    return
  }
  await mkdir(dirname(path), { recursive: true, mode: 0o700 })
  await replaceFile(path, text, 0o600)
}

/** The text of a file of keys; a link in its place is not followed. */
export async function textOf(path: string): Promise<string> {
  if (!(await lstat(path)).isFile())
    throw Object.assign(new Error(`${path} is not a regular file`), { code: 'FileRefused' })
  return (await readRegularFile(path, textFileBytes)).bytes.toString('utf8')
}
