import { CommandFailed, type CommandRunner } from '../system/runner.ts'
import type { Account } from './account.ts'
import { findShadow, gidsOf, isLocalOnly, parsePasswdLine } from './account-files.ts'
import { createAccountFiles, type AccountFilesOptions, type LocalAccounts } from './local-accounts.ts'
import { createNssQuestions, type NssQuestions } from './nss.ts'

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

export interface AccountsOptions extends AccountFilesOptions {
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
