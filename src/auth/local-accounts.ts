import { createHmac, type KeyObject } from 'node:crypto'
import { statSync, type Stats } from 'node:fs'
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

export interface LocalAccountsOptions {
  readonly adminGroups: readonly string[]
  /** Takes every shell for one of a login. */
  readonly allowAnyShell?: boolean
  /** Key of the marks; a mark must not be a password hash that can be attacked. */
  readonly markKey: KeyObject
  /** Folder of passwd, shadow and group. */
  readonly etc?: string
}

/** Texts of the local account files; nothing for one that is not there, or may not be read. */
export interface AccountTexts {
  readonly passwd: string
  readonly shadow: string | undefined
  readonly group: string
  readonly nsswitch: string
  readonly shells: string | undefined
}

/** The accounts of the local files, read without a child process. */
export interface LocalAccounts {
  has(name: string): boolean
  /**
   * @returns nothing when it is not in the files
   * @throws when a file cannot be read: that says nothing about its accounts
   */
  find(name: string): Account | undefined
  /** As they are now. */
  texts(): AccountTexts
  /** The account with the role that the local files give it, also one of a directory. */
  describe(entry: PasswdEntry, secret: ShadowEntry | undefined, source: Account['source']): Account
}

interface Look {
  readonly versions: string
  readonly texts: AccountTexts
  readonly accounts: Map<string, Account>
}

const dayMs = 86_400_000
// Kernels before 6.13 tell two changes apart only when some milliseconds are between them, old file systems two seconds.
const unsettledMs = 3_000
const names = ['passwd', 'shadow', 'group', 'nsswitch.conf', 'shells'] as const

export function createLocalAccounts(options: LocalAccountsOptions): LocalAccounts {
  const { adminGroups, allowAnyShell = false, markKey, etc = '/etc' } = options
  // A login asks twice, and each round of the watch for every session; the files change a few times a year. Only a look
  // after which every change is sure to change the versions stands here.
  let seen: Look | undefined

  // In one go: each is a few kilobytes, and a turn through the thread pool costs more than all five.
  function look(): Look {
    // Before they are read: what changes in between is read again next time.
    const found = names.map((name) => statSync(join(etc, name), { throwIfNoEntry: false }))
    const versions = found.map(versionOf).join(' ')
    if (seen?.versions === versions) return seen
    // By the clock that the times of files come from.
    const now = Date.now()
    const texts = {
      passwd: readText(etc, 'passwd') ?? '',
      shadow: readText(etc, 'shadow'),
      group: readText(etc, 'group') ?? '',
      nsswitch: readText(etc, 'nsswitch.conf') ?? '',
      shells: readText(etc, 'shells'),
    }
    const fresh = { versions, texts, accounts: new Map<string, Account>() }
    const isSettled = found.every((stats) => stats === undefined || now - stats.ctimeMs > unsettledMs)
    seen = isSettled ? fresh : undefined
    return fresh
  }

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
    has: (name) => findPasswd(look().texts.passwd, name) !== undefined,

    find(name) {
      const { texts, accounts } = look()
      const known = accounts.get(name)
      if (known) return known
      const entry = findPasswd(texts.passwd, name)
      if (!entry) return undefined
      const secret = texts.shadow === undefined ? undefined : findShadow(texts.shadow, entry.name)
      const account = describe(entry, secret, 'local', texts)
      accounts.set(name, account)
      return account
    },

    texts: () => look().texts,
    describe: (entry, secret, source) => describe(entry, secret, source, look().texts),
  }
}

/** Changes with every change of a file: those that replace it give it another inode, those within it a new time. */
const versionOf = (stats: Stats | undefined): string =>
  stats ? `${stats.ino}:${stats.size}:${stats.mtimeMs}:${stats.ctimeMs}` : ''

// A hundred thousand accounts with room to spare.
const accountFileBytes = 16_777_216

// Only a file that is not there says something about its accounts. Without root there is no shadow.
function readText(etc: string, name: (typeof names)[number]): string | undefined {
  try {
    return readRegularFileSync(join(etc, name), accountFileBytes).bytes.toString()
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ENOENT' && name !== 'passwd') return undefined
    if (code === 'EACCES' && name === 'shadow') return undefined
    throw error
  }
}
