import { createHmac, type KeyObject } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { CommandFailed, type CommandRunner } from '../system/runner.ts'
import {
  findPasswd,
  findShadow,
  gidsOf,
  groupsOf,
  isLocalOnly,
  isLockedHash,
  parsePasswdLine,
  parseShells,
  type PasswdEntry,
  type ShadowEntry,
} from './account-files.ts'
import { createNssQuestions, type NssQuestions } from './nss.ts'

/** An operating-system account at a moment. */
export interface Account {
  /** As NSS returns it, which may differ from what was typed. */
  readonly name: string
  readonly role: 'admin' | 'viewer'
  /** False when a directory that may add groups did not answer. */
  readonly isRoleKnown: boolean
  readonly source: 'local' | 'directory'
  /** Whether the local files make an administrator of it, or only a directory. */
  readonly roleSource: 'local' | 'directory'
  readonly locked: boolean
  /** Milliseconds since 1970 from which the account is expired. */
  readonly expiresAt: number | undefined
  /** Whether its shell is in /etc/shells, or need not be. */
  readonly hasLoginShell: boolean
  /** Changes with uid and password, so that a session can tell whether the account is still the same. */
  readonly mark: string
}

/** Reads accounts through NSS. */
export interface Accounts {
  /** Whether the account is in the local files, which takes no child process to read. */
  isLocal(name: string): boolean
  /**
   * What the local files alone say, without a child process; the role is not known where a directory may add groups.
   * @returns nothing when it is not in them
   */
  readLocal(name: string): Account | undefined
  /**
   * Takes 10 s at most where a directory is silent.
   * @returns nothing when there is no such account
   * @throws CommandFailed when NSS has not answered
   */
  read(name: string): Promise<Account | undefined>
}

export interface AccountsOptions {
  readonly runner: CommandRunner
  readonly adminGroups: readonly string[]
  /** Takes every shell for one of a login. */
  readonly allowAnyShell?: boolean
  /** Key of the marks; a mark must not be a password hash that can be attacked. */
  readonly markKey: KeyObject
  /** Folder of passwd, shadow and group. */
  readonly etc?: string
}

const timeoutMs = 10_000
const dayMs = 86_400_000

/**
 * Accounts of the local files are read directly, which costs no child process; all others, and memberships that a
 * directory may add, are asked of NSS with getent(1) and id(1).
 */
export function createAccounts({
  runner,
  adminGroups,
  allowAnyShell = false,
  markKey,
  etc = '/etc',
}: AccountsOptions): Accounts {
  // A file that cannot be read says nothing about its accounts; only one that is not there does. Without root
  // there is no shadow.
  // In one go: each of these files is a few kilobytes, and a turn through the thread pool costs more than all five.
  const read = (file: string) => {
    try {
      return readFileSync(join(etc, file), 'utf8')
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException
      if (code === 'ENOENT' && file !== 'passwd') return undefined
      if (code === 'EACCES' && file === 'shadow') return undefined
      throw error
    }
  }

  const readFiles = () => ({
    passwd: read('passwd') ?? '',
    shadow: read('shadow'),
    group: read('group') ?? '',
    nsswitch: read('nsswitch.conf') ?? '',
    shells: read('shells'),
  })
  type Files = ReturnType<typeof readFiles>

  /** The account with the role that the local files give it. */
  function describe(
    entry: PasswdEntry,
    secret: ShadowEntry | undefined,
    source: Account['source'],
    { group, nsswitch, shells }: Files,
  ): Account {
    const isAdmin =
      entry.uid === 0 || groupsOf(group, entry.name, entry.gid).some((each) => adminGroups.includes(each))
    return {
      name: entry.name,
      role: isAdmin ? 'admin' : 'viewer',
      isRoleKnown: isAdmin || (source === 'local' && isLocalOnly(nsswitch, 'group')),
      source,
      roleSource: 'local',
      locked: secret !== undefined && isLockedHash(secret.hash),
      expiresAt: secret?.expireDay === undefined ? undefined : secret.expireDay * dayMs,
      hasLoginShell: allowAnyShell || parseShells(shells).includes(entry.shell),
      mark: markOf(entry.uid, secret),
    }
  }

  function inFiles(files: Files, name: string): Account | undefined {
    const entry = findPasswd(files.passwd, name)
    if (!entry) return undefined
    const secret = files.shadow === undefined ? undefined : findShadow(files.shadow, entry.name)
    return describe(entry, secret, 'local', files)
  }

  async function inDirectory(files: Files, name: string, nss: NssQuestions): Promise<Account | undefined> {
    if (isLocalOnlyFile(files.nsswitch)) return undefined
    const entry = parsePasswdLine(await nss.lines('passwd', [name]))
    // getent takes for a uid what strtoul(3) does; PAM has let in an account of that very name.
    if (!entry || (/^\s*[+-]?\d+$/.test(name) && entry.name !== name)) return undefined
    const secret = findShadow(await nss.lines('shadow', [entry.name]), entry.name)
    return describe(entry, secret, 'directory', files)
  }

  async function isAdminByNss(name: string, nss: NssQuestions): Promise<boolean> {
    const [ids, groups] = await Promise.all([nss.groupIds(name), nss.lines('group', adminGroups)])
    const adminIds = gidsOf(groups, adminGroups)
    return ids.some((id) => adminIds.includes(id))
  }

  return {
    isLocal: (name) => findPasswd(read('passwd') ?? '', name) !== undefined,
    readLocal: (name) => inFiles(readFiles(), name),

    async read(name) {
      const files = readFiles()
      const local = inFiles(files, name)
      if (local?.isRoleKnown) return local
      const nss = createNssQuestions(runner, timeoutMs)
      const account = local ?? (await inDirectory(files, name, nss))
      if (!account || account.isRoleKnown) return account
      try {
        const isAdmin = await isAdminByNss(account.name, nss)
        const role = isAdmin ? ({ role: 'admin', roleSource: 'directory' } as const) : {}
        return { ...account, ...role, isRoleKnown: true }
      } catch (error) {
        // A directory that is silent must not lock a local operator out, nor make an administrator of anyone.
        if (local && error instanceof CommandFailed) return local
        throw error
      }
    },
  }

  function markOf(uid: number, secret: ShadowEntry | undefined): string {
    return createHmac('sha256', markKey)
      .update(`${uid}:${secret?.hash ?? ''}`)
      .digest('base64url')
      .slice(0, 22)
  }
}

// systemd's own NSS module knows accounts that are in no file, so only plain files end the search.
const isLocalOnlyFile = (nsswitch: string) =>
  isLocalOnly(nsswitch, 'passwd') && !/^\s*passwd\s*:.*\bsystemd\b/m.test(nsswitch)
