// Pure readers of the local account files: passwd(5), group(5), shadow(5), nsswitch.conf(5), shells(5).

export interface PasswdEntry {
  readonly name: string
  readonly uid: number
  readonly gid: number
  readonly shell: string
}

export interface ShadowEntry {
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

/** The login shells; the fallback is that of getusershell(3). */
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
