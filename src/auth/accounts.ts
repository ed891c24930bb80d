import { createHmac } from 'node:crypto'
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
  type ShadowEntry,
} from './account-files.ts'

/** An operating-system account at a moment. */
export interface Account {
  /** As NSS returns it, which may differ from what was typed. */
  readonly name: string
  readonly role: 'admin' | 'viewer'
  /** False when a directory that may add groups did not answer. */
  readonly isRoleKnown: boolean
  readonly source: 'local' | 'directory'
  readonly locked: boolean
  /** Milliseconds since 1970 from which the account is expired. */
  readonly expiresAt: number | undefined
  /** Whether its shell is in /etc/shells. */
  readonly hasLoginShell: boolean
  /** Changes with uid and password, so that a session can tell whether the account is still the same. */
  readonly mark: string
}

/** Reads accounts through NSS. */
export interface Accounts {
  /** Whether the account is in the local files, which takes no child process to read. */
  isLocal(name: string): boolean
  /** @returns nothing when there is no such account */
  read(name: string): Promise<Account | undefined>
}

export interface AccountsOptions {
  readonly runner: CommandRunner
  readonly adminGroups: readonly string[]
  /** Key of the marks; a mark must not be a password hash that can be attacked. */
  readonly markKey: Buffer
  /** Folder of passwd, shadow and group. */
  readonly etc?: string
}

const timeoutMs = 10_000
const dayMs = 86_400_000

/**
 * Accounts of the local files are read directly, which costs no child process; all others, and memberships that a
 * directory may add, are asked of NSS with getent(1) and id(1).
 */
export function createAccounts({ runner, adminGroups, markKey, etc = '/etc' }: AccountsOptions): Accounts {
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

  async function ask(program: string, ...args: string[]): Promise<string | undefined> {
    const result = await runner.run(program, args, { timeoutMs })
    return result.exitCode === 0 ? result.stdout : undefined
  }

  // `id` and group ids, not names: names from a directory may hold spaces or differ in case.
  async function isAdminByNss(name: string): Promise<boolean> {
    const [ids, groups] = await Promise.all([ask('id', '-G', '--', name), askGroups()])
    const adminIds = gidsOf(groups, adminGroups)
    return (ids ?? '')
      .trim()
      .split(/\s+/)
      .some((id) => adminIds.includes(Number(id)))
  }
  // getent exits with 2 when one of several keys is unknown, and still prints the others.
  const askGroups = async () =>
    (await runner.run('getent', ['group', '--', ...adminGroups], { timeoutMs })).stdout

  return {
    isLocal: (name) => findPasswd(read('passwd') ?? '', name) !== undefined,

    async read(name) {
      const passwd = read('passwd') ?? ''
      const shadow = read('shadow')
      const group = read('group') ?? ''
      const nsswitch = read('nsswitch.conf') ?? ''
      const shells = read('shells')
      const local = findPasswd(passwd, name)
      const entry =
        local ??
        (isLocalOnlyFile(nsswitch)
          ? undefined
          : parsePasswdLine((await ask('getent', 'passwd', '--', name)) ?? ''))
      // getent takes for a uid what strtoul(3) does; PAM has let in an account of that very name.
      if (!entry || (/^\s*[+-]?\d+$/.test(name) && entry.name !== name)) return undefined
      const secret = local
        ? shadow === undefined
          ? undefined
          : findShadow(shadow, entry.name)
        : findShadow((await ask('getent', 'shadow', '--', entry.name)) ?? '', entry.name)
      const isAdminByFiles =
        entry.uid === 0 || groupsOf(group, entry.name, entry.gid).some((each) => adminGroups.includes(each))
      const asksDirectory = !isAdminByFiles && (!local || !isLocalOnly(nsswitch, 'group'))
      // A directory that is silent must not lock a local operator out, nor make an administrator of anyone.
      const byDirectory = asksDirectory
        ? await isAdminByNss(entry.name).catch((error: unknown) => {
            if (local && error instanceof CommandFailed) return undefined
            throw error
          })
        : false
      const isAdmin = isAdminByFiles || byDirectory === true
      return {
        name: entry.name,
        role: isAdmin ? 'admin' : 'viewer',
        isRoleKnown: byDirectory !== undefined,
        source: local ? 'local' : 'directory',
        locked: secret !== undefined && isLockedHash(secret.hash),
        expiresAt: secret?.expireDay === undefined ? undefined : secret.expireDay * dayMs,
        hasLoginShell: parseShells(shells).includes(entry.shell),
        mark: markOf(entry.uid, secret),
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
