import { lstat, mkdir, rm, rmdir, stat } from 'node:fs/promises'
import { basename, dirname } from 'node:path'
import { replaceFile, syncFolder } from '../../../system/files.ts'
import { readRegularFile, textFileBytes } from '../../../system/regular-file.ts'
import type { CommandRunner } from '../../../system/runner.ts'
import type { SettingObserved } from '../../observed.ts'
import { StepFailed } from '../../step.ts'
import { findAccount, readKeyFiles, type HostAccount } from './account.ts'
import { asAccount } from './as-account.ts'
import { readNote, removeNote, writeNote, type NotePlace } from './note.ts'
import { isOwnText, ownMark } from './own-text.ts'

/** What the step notes. */
export interface KeysNote {
  readonly placed: readonly PlacedKeys[]
}

interface PlacedKeys extends HostAccount {
  readonly path: string
  /** The folder that was made for it. */
  readonly madeFolder?: string
}

export interface KeysWork extends NotePlace {
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

export const noKeys: KeysNote = { placed: [] }
/** The file of an administrator, which edgehostd leaves alone whatever it contains. */
const administratorsFile = 'authorized_keys'

/** Looks whether this host has the keys; with the rights of root. It changes nothing. */
export async function observeSshKeys(work: KeysWork): Promise<SettingObserved> {
  const { runner, account, keys } = work
  const { placed } = await readNote(work, noKeys)
  const isPlaced = placed.length > 0
  if (keys.length === 0) return { isApplied: !isPlaced, isDue: isPlaced, isPlaced, problem: '' }
  const found = await findPlace(runner, account, placed)
  if ('problem' in found) return { isApplied: false, isDue: false, isPlaced, problem: found.problem }
  const { path } = found
  const isOnly = placed.length === 1 && placed[0]?.path === path && placed[0].uid === found.account.uid
  const isApplied = isOnly && (await asAccount(found.account, () => isAsWanted(found, keys)))
  return { isApplied, isDue: !isApplied, isPlaced, problem: '' }
}

/**
 * Gives the keys a file of their own, beside that of an administrator, or takes away what was placed where there are none.
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
    ...{ ...found.account, path: found.path },
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

/** The first file that sshd reads for the account and that edgehostd may have. @param placed what was placed before */
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
export const keysText = (keys: readonly string[]): string => `${[ownMark, ...keys].join('\n')}\n`

async function isAsWanted({ path, account }: KeysPlace, keys: readonly string[]): Promise<boolean> {
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
    // What is no regular file is not the one that was placed.
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
