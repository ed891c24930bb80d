import { rmdir } from 'node:fs/promises'
import { dirname } from 'node:path'
import type { CommandRunner } from '../../system/runner.ts'
import {
  areKeysPlaced,
  asAccount,
  findKeysPlace,
  placeKeys,
  sectionsOf,
  textOf,
  type HostAccount,
} from '../../host/ssh-keys.ts'
import type { SettingObserved } from '../loop/observed.ts'
import { StepFailed } from '../loop/step.ts'
import { readNote, removeNote, writeNote, type NotePlace } from './ntp-servers.ts'

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

const noKeys: KeysNote = { placed: [] }
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
  const isApplied = isOnly && (await asAccount(found.account, () => areKeysPlaced(found, 'cluster', keys)))
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
    await asAccount(found.account, () => placeKeys(found, 'cluster', keys))
    print(`${found.path} has ${keys.length} key${keys.length === 1 ? '' : 's'} for the account ${account}`)
  }
  for (const each of old) if (await asAccount(each, () => takeAway(each))) print(`taken away: ${each.path}`)
  if (now) await writeNote(work, { placed: [now] })
  else await removeNote(work)
}

/** The place of the keys of the cluster. @param placed earlier placed files */
const findPlace = (runner: CommandRunner, name: string, placed: readonly PlacedKeys[]) =>
  findKeysPlace(
    runner,
    name,
    (path, { uid }) => placed.some((each) => each.path === path && each.uid === uid),
    ', or name another one in cluster.sshAccount of the configuration',
  )

/** With the rights of the account. @returns whether there was one */
async function takeAway({ path, madeFolder }: PlacedKeys): Promise<boolean> {
  const text = await textOf(path).catch((error: unknown) => {
    const { code = '', message } = error as NodeJS.ErrnoException
    // Anything but a regular file is not the placed one.
    if (['ENOENT', 'ENOTDIR', 'FileRefused'].includes(code)) return undefined
    throw new StepFailed(`${path} cannot be read (${code || message}); remove it by hand`)
  })
  if (text === undefined || sectionsOf(text).cluster === undefined) return false
  await placeKeys({ path }, 'cluster', [])
  // Others may have used it since.
  if (madeFolder !== undefined) await rmdir(madeFolder).catch(() => undefined)
  return true
}
