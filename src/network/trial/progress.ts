import { existsSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { revertReasons, type NetworkChange } from '../schemas.ts'
import type { Progress } from './store.ts'

/** The folders in which `network-trial` writes the progress of a change; see its head. */
export interface TrialFolders {
  /** Gone after a boot. */
  readonly runtime: string
  /** In the state folder. */
  readonly state: string
}

/** The uid of the open change. */
export const openUid = ({ runtime }: Pick<TrialFolders, 'runtime'>): string | undefined =>
  textOf(join(runtime, 'trial', 'uid'))?.trim()

/**
 * Progress of a change, as the program has written it.
 * @returns undefined where neither an open change of this uid nor a result is there: the host was started again, and the change is taken back
 */
export function progressOf(folders: TrialFolders, uid: string): Progress | undefined {
  const open = openProgress(folders, uid)
  if (open) return open
  for (const folder of [folders.runtime, folders.state]) {
    const result = textOf(join(folder, 'ended', uid))
    if (result !== undefined) return parseResult(result)
  }
  // It is decided, and could not be written to its places yet; the next boot or start of the daemon tries again.
  if (textOf(join(folders.state, 'commit', 'uid'))?.trim() === uid)
    return { lost: [], reason: undefined, endedAt: undefined, state: 'confirming' }
  // The change may have ended between the two looks.
  return openProgress(folders, uid)
}

function openProgress(folders: TrialFolders, uid: string): Progress | undefined {
  if (openUid(folders) !== uid) return undefined
  const trial = join(folders.runtime, 'trial')
  const has = (name: string) => existsSync(join(trial, name))
  const lost = (textOf(join(trial, 'lost')) ?? '').split('\n').filter(Boolean)
  const appliedAt = has('applied') ? Math.round(timeOf(join(trial, 'applied'))) : undefined
  const common = {
    lost,
    reason: undefined,
    endedAt: undefined,
    ...(appliedAt === undefined ? {} : { appliedAt }),
  }
  if (has('reverting')) return { ...common, state: 'reverting', ...reasonOf(textOf(join(trial, 'reason'))) }
  if (has('confirming')) return { ...common, state: 'confirming' }
  return { ...common, state: appliedAt === undefined ? 'applying' : 'trial' }
}

/** A result: state, reason, time in milliseconds and message, a line each. */
function parseResult(text: string): Progress {
  const [state, reason, at, ...message] = text.split('\n')
  return {
    state: state as NetworkChange['state'],
    ...(state === 'confirmed' ? {} : reasonOf(reason)),
    endedAt: Number(at),
    message: message.join('\n').trim(),
  }
}

function reasonOf(text: string | undefined): Pick<Progress, 'reason'> {
  const reason = revertReasons.find((each) => each === text?.trim())
  return reason ? { reason } : {}
}

function textOf(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return undefined
  }
}

const timeOf = (path: string) => {
  try {
    return statSync(path).mtimeMs
  } catch {
    return 0
  }
}
