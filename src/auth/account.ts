import type { Role } from '../base/role.ts'
/** An operating-system account at a moment. */
export interface Account {
  /** As NSS returns it, which may differ from what was typed. */
  readonly name: string
  readonly role: Role
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
