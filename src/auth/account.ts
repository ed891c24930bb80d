import type { HostRole } from '../base/role.ts'
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
