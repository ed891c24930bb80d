import type { HostRole } from '../base/role.ts'
import { CommandFailed, type CommandRunner } from '../system/runner.ts'
import { createHmac, type KeyObject } from 'node:crypto'
import { join } from 'node:path'
import { readRegularFileSync } from '../system/regular-file.ts'

/** An operating-system account at one moment. */
export interface Account {
  /** The name that NSS returns, which may differ from what was typed. */
  readonly name: string
  readonly role: HostRole
  /** False when a directory that may add groups did not answer. */
  readonly isRoleKnown: boolean
  readonly source: 'local' | 'directory'
  /** Whether the local files make the account an administrator, or only a directory does. */
  readonly roleSource: 'local' | 'directory'
  readonly locked: boolean
  /** Milliseconds since 1970 from which the account is expired. */
  readonly expiresAt: number | undefined
  /** Whether its shell is in /etc/shells, or the configuration allows any shell. */
  readonly hasLoginShell: boolean
  /** Changes with uid and password, so that a session can detect that its account was replaced. */
  readonly mark: string
}

// Pure readers of the local account files: passwd(5), group(5), shadow(5), nsswitch.conf(5), shells(5).

interface PasswdEntry {
  readonly name: string
  readonly uid: number
  readonly gid: number
  readonly shell: string
}

interface ShadowEntry {
  readonly hash: string
  /** Day since 1970 from which the account is expired, or undefined. */
  readonly expireDay: number | undefined
}

/** One line of passwd(5), also as `getent passwd` prints it. */
export function parsePasswdLine(line: string): PasswdEntry | undefined {
  const [name, , uid, gid, , , shell] = line.trimEnd().split(':')
  if (!name || uid === undefined || gid === undefined || !/^\d+$/.test(uid) || !/^\d+$/.test(gid))
    return undefined
  // passwd(5): an empty shell field means /bin/sh.
  return { name, uid: Number(uid), gid: Number(gid), shell: shell || '/bin/sh' }
}

/** The entry of one user; names are compared exactly. */
export function findPasswd(text: string, name: string): PasswdEntry | undefined {
  const line = findLine(text, name)
  return line === undefined ? undefined : parsePasswdLine(line)
}

/** The entry of one user in shadow(5) form. */
export function findShadow(text: string, name: string): ShadowEntry | undefined {
  const fields = findLine(text, name)?.split(':')
  if (!fields) return undefined
  const [, hash = '', changed, , maximum, , inactive, expire] = fields
  const days = [numberOf(expire), unusedDay(numberOf(changed), numberOf(maximum), numberOf(inactive))]
  const known = days.filter((day) => day !== undefined)
  return { hash, expireDay: known.length > 0 ? Math.min(...known) : undefined }
}

const numberOf = (field: string | undefined) => (field ? Number(field) : undefined)

/** The day from which PAM treats an account as expired because its password was not changed in time, see shadow(5). */
function unusedDay(changed?: number, maximum?: number, inactive?: number): number | undefined {
  // Day 0 asks for a new password at the next login; -1 disables the check.
  if (!changed || maximum === undefined || inactive === undefined) return undefined
  return maximum < 0 || inactive < 0 ? undefined : changed + maximum + inactive + 1
}

/** Names of the groups in group(5) text that have this user as a member or as the user's primary group. */
export function groupsOf(text: string, name: string, primaryGid: number): string[] {
  return text.split('\n').flatMap((line) => {
    const [group, , gid, members = ''] = line.split(':')
    if (!group || gid === undefined) return []
    return Number(gid) === primaryGid || members.split(',').includes(name) ? [group] : []
  })
}

/** Group ids of the named groups in group(5) text. */
export function gidsOf(text: string, names: readonly string[]): number[] {
  return text.split('\n').flatMap((line) => {
    const [group, , gid] = line.split(':')
    return group && gid && names.includes(group) ? [Number(gid)] : []
  })
}

/**
 * Whether nsswitch.conf(5) uses only the local files for this database; systemd's own modules only add accounts that
 * are not in the files.
 */
export function isLocalOnly(nsswitch: string, database: 'passwd' | 'group'): boolean {
  const line = nsswitch.split('\n').find((each) => new RegExp(`^\\s*${database}\\s*:`).test(each))
  const sources = (line ?? `${database}: files`)
    .replace(/#.*/, '')
    .replace(/^[^:]*:/, '')
    .replace(/\[[^\]]*\]/g, ' ')
    .trim()
    .split(/\s+/)
  return sources.every((source) => ['files', 'compat', 'systemd', 'mymachines'].includes(source))
}

/** The login shells; the fallback is getusershell(3)'s. */
export function parseShells(text: string | undefined): string[] {
  if (text === undefined) return ['/bin/sh', '/bin/csh']
  return text
    .split('\n')
    .map((line) => line.replace(/#.*/, '').trim())
    .filter((line) => line.startsWith('/'))
}

/** Whether a password was locked with `passwd -l`. A `*` is not a lock: directories print it for every account. */
export const isLockedHash = (hash: string) => hash.startsWith('!')

function findLine(text: string, name: string): string | undefined {
  // A colon would match into the next field.
  if (name.includes(':')) return undefined
  const start = text.startsWith(`${name}:`) ? 0 : text.indexOf(`\n${name}:`) + 1
  if (start === 0 && !text.startsWith(`${name}:`)) return undefined
  const end = text.indexOf('\n', start)
  return text.slice(start, end === -1 ? undefined : end)
}

/** NSS queries about one account. They throw CommandFailed when NSS does not answer. */
interface NssQuestions {
  /** The lines of these keys, in the format of the local files; empty for unknown keys. */
  lines(database: 'passwd' | 'shadow' | 'group', keys: readonly string[]): Promise<string>
  /** Ids of all groups of a user. */
  groupIds(userName: string): Promise<number[]>
}

/** @param timeoutMs for all queries together */
function createNssQuestions(runner: CommandRunner, timeoutMs: number): NssQuestions {
  const until = performance.now() + timeoutMs

  async function ask(program: string, args: readonly string[], answers: readonly number[]): Promise<string> {
    const leftMs = Math.max(1, Math.ceil(until - performance.now()))
    const { exitCode, stdout } = await runner.run(program, args, { timeoutMs: leftMs })
    if (exitCode !== undefined && answers.includes(exitCode)) return stdout
    // A program that failed or was killed has not reported the account as missing.
    const how = exitCode === undefined ? 'by a signal' : `exit code ${exitCode}`
    throw new CommandFailed(program, 'ended', how)
  }

  return {
    // getent(1) exits with 2 when one of the keys is unknown, and still prints the others.
    lines: (database, keys) => ask('getent', [database, '--', ...keys], [0, 2]),

    // id(1) exits with 1 both for a deleted user and for groups that it could not read. Ids, because group names from a
    // directory may contain spaces or differ in case.
    groupIds: async (userName) =>
      (await ask('id', ['-G', '--', userName], [0])).trim().split(/\s+/).map(Number),
  }
}

interface AccountFilesOptions {
  readonly adminGroups: readonly string[]
  /** Accepts every shell as a login shell. */
  readonly allowAnyShell?: boolean
  /** Key of the marks; a mark must not reveal a password hash that can be attacked. */
  readonly markKey: KeyObject
  /** Folder of passwd, shadow and group. */
  readonly etc?: string
}

/** Texts of the local account files; undefined for a file that is missing, or that may not be read. */
interface AccountTexts {
  readonly passwd: string
  readonly shadow: string | undefined
  readonly group: string
  readonly nsswitch: string
  readonly shells: string | undefined
}

/** The local accounts at one moment. */
interface LocalAccounts {
  readonly texts: AccountTexts
  /** @returns undefined when the account is not in the files */
  find(name: string): Account | undefined
  /** The account with the role that the local files give it; also for an account of a directory. */
  describe(entry: PasswdEntry, secret: ShadowEntry | undefined, source: Account['source']): Account
}

/** Reads the local account files, without a child process. */
export interface AccountFiles {
  has(name: string): boolean
  /**
   * Reads the current files, for one answer only; do not keep the result.
   * @throws when a file cannot be read, which does not mean that its accounts are missing
   */
  read(): LocalAccounts
}

const dayMs = 86_400_000

export function createAccountFiles(options: AccountFilesOptions): AccountFiles {
  const { adminGroups, allowAnyShell = false, markKey, etc = '/etc' } = options

  const readPasswd = () => readText(etc, 'passwd') ?? ''

  function describe(
    entry: PasswdEntry,
    secret: ShadowEntry | undefined,
    source: Account['source'],
    { group, nsswitch, shells }: AccountTexts,
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

  function markOf(uid: number, secret: ShadowEntry | undefined): string {
    return createHmac('sha256', markKey)
      .update(`${uid}:${secret?.hash ?? ''}`)
      .digest('base64url')
      .slice(0, 22)
  }

  return {
    has: (name) => findPasswd(readPasswd(), name) !== undefined,

    read() {
      const texts = {
        passwd: readPasswd(),
        shadow: readText(etc, 'shadow'),
        group: readText(etc, 'group') ?? '',
        nsswitch: readText(etc, 'nsswitch.conf') ?? '',
        shells: readText(etc, 'shells'),
      }
      return {
        texts,
        find(name) {
          const entry = findPasswd(texts.passwd, name)
          if (!entry) return undefined
          const secret = texts.shadow === undefined ? undefined : findShadow(texts.shadow, entry.name)
          return describe(entry, secret, 'local', texts)
        },
        describe: (entry, secret, source) => describe(entry, secret, source, texts),
      }
    },
  }
}

// Enough for more than a hundred thousand accounts.
const accountFileBytes = 16_777_216

// Files other than passwd may be missing. A file that cannot be read may have accounts. Only root can read shadow.
function readText(etc: string, name: string): string | undefined {
  try {
    return readRegularFileSync(join(etc, name), accountFileBytes).bytes.toString()
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ENOENT' && name !== 'passwd') return undefined
    if (code === 'EACCES' && name === 'shadow') return undefined
    throw error
  }
}

/** Reads accounts through NSS. */
export interface Accounts {
  /** Whether the account is in the local files; false when they cannot be read. Does not query NSS. */
  isLocal(name: string): boolean
  /**
   * Reads the accounts of the local files, without a child process; a role is unknown where a directory may add groups.
   * @throws when a file cannot be read
   */
  readLocal(): Pick<LocalAccounts, 'find'>
  /**
   * Takes at most 10 s when a directory does not answer.
   * @returns undefined when there is no such account
   * @throws CommandFailed when NSS does not answer
   */
  read(name: string): Promise<Account | undefined>
}

interface AccountsOptions extends AccountFilesOptions {
  readonly runner: CommandRunner
}

const timeoutMs = 10_000

/**
 * Accounts of the local files are read directly, which needs no child process. Other accounts, and memberships that a
 * directory may add, are queried from NSS with getent(1) and id(1).
 */
export function createAccounts({ runner, ...options }: AccountsOptions): Accounts {
  const { adminGroups } = options
  const files = createAccountFiles(options)

  async function inDirectory(name: string, nss: NssQuestions): Promise<Account | undefined> {
    if (isLocalOnlyFile(files.read().texts.nsswitch)) return undefined
    const entry = parsePasswdLine(await nss.lines('passwd', [name]))
    // getent treats text as a uid where strtoul(3) does; PAM has authenticated an account of exactly that name.
    if (!entry || (/^\s*[+-]?\d+$/.test(name) && entry.name !== name)) return undefined
    const secret = findShadow(await nss.lines('shadow', [entry.name]), entry.name)
    return files.read().describe(entry, secret, 'directory')
  }

  async function isAdminByNss(name: string, nss: NssQuestions): Promise<boolean> {
    const [ids, groups] = await Promise.all([nss.groupIds(name), nss.lines('group', adminGroups)])
    const adminIds = gidsOf(groups, adminGroups)
    return ids.some((id) => adminIds.includes(id))
  }

  return {
    isLocal(name) {
      try {
        return files.has(name)
      } catch {
        return false
      }
    },
    readLocal: files.read,

    async read(name) {
      const local = files.read().find(name)
      if (local?.isRoleKnown) return local
      const nss = createNssQuestions(runner, timeoutMs)
      const account = local ?? (await inDirectory(name, nss))
      if (!account || account.isRoleKnown) return account
      try {
        const isAdmin = await isAdminByNss(account.name, nss)
        const role = isAdmin ? ({ role: 'admin', roleSource: 'directory' } as const) : {}
        return { ...account, ...role, isRoleKnown: true }
      } catch (error) {
        // A directory that does not answer must neither lock a local operator out nor make an account an administrator.
        if (local && error instanceof CommandFailed) return local
        throw error
      }
    },
  }
}

// systemd's own NSS module has accounts that are in no file, so the lookup ends only with plain files.
const isLocalOnlyFile = (nsswitch: string) =>
  isLocalOnly(nsswitch, 'passwd') && !/^\s*passwd\s*:.*\bsystemd\b/m.test(nsswitch)
