import { createHmac, type KeyObject } from 'node:crypto'
import { join } from 'node:path'
import { readRegularFileSync } from '../system/regular-file.ts'
import {
  findPasswd,
  findShadow,
  groupsOf,
  isLocalOnly,
  isLockedHash,
  parseShells,
  type PasswdEntry,
  type ShadowEntry,
} from './account-files.ts'
import type { Account } from './account.ts'

export interface AccountFilesOptions {
  readonly adminGroups: readonly string[]
  /** Accepts every shell as a login shell. */
  readonly allowAnyShell?: boolean
  /** Key of the marks; a mark must not reveal a password hash that can be attacked. */
  readonly markKey: KeyObject
  /** Folder of passwd, shadow and group. */
  readonly etc?: string
}

/** Texts of the local account files; undefined for a file that is missing, or that may not be read. */
export interface AccountTexts {
  readonly passwd: string
  readonly shadow: string | undefined
  readonly group: string
  readonly nsswitch: string
  readonly shells: string | undefined
}

/** The local accounts at one moment. */
export interface LocalAccounts {
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
