import type { HostAccount } from './account.ts'

/**
 * Does work with the rights of an account: what is in a home, its links too, belongs to the account and not to root. The process may do
 * nothing else meanwhile, since all of it has these rights.
 */
export async function asAccount<T>(
  { uid, gid }: Pick<HostAccount, 'uid' | 'gid'>,
  work: () => Promise<T>,
): Promise<T> {
  const { geteuid, getegid, getgroups, seteuid, setegid, setgroups } = process
  if (!geteuid || !getegid || !getgroups || !seteuid || !setegid || !setgroups)
    throw new Error('this system has no accounts')
  const before = { uid: geteuid(), gid: getegid(), groups: getgroups() }
  if (before.uid === uid) return work()
  setgroups([gid])
  setegid(gid)
  seteuid(uid)
  try {
    return await work()
  } finally {
    seteuid(before.uid)
    setegid(before.gid)
    setgroups(before.groups)
  }
}
