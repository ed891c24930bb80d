import { join } from 'node:path'
import type { CommandRunner } from '../../../system/runner.ts'

/** An account of this host. */
export interface HostAccount {
  readonly name: string
  readonly uid: number
  readonly gid: number
  readonly home: string
}

/** Finds an account, local or of a directory. @returns undefined where this host has none of this name */
export async function findAccount(runner: CommandRunner, name: string): Promise<HostAccount | undefined> {
  const { exitCode, stdout } = await runner.run('getent', ['passwd', '--', name], { timeoutMs: 10_000 })
  const found = exitCode === 0 ? parseAccount(stdout) : undefined
  // A number is taken for a user id.
  return found?.name === name ? found : undefined
}

/** Parses a line of passwd(5). */
export function parseAccount(line: string): HostAccount | undefined {
  const [name = '', , uid = '', gid = '', , home = ''] = line.split('\n')[0]?.split(':') ?? []
  if (name === '' || !/^\d+$/.test(uid) || !/^\d+$/.test(gid) || !home.startsWith('/')) return undefined
  return { name, uid: Number(uid), gid: Number(gid), home }
}

/** What sshd reads where nothing is configured, sshd_config(5). */
const usualFiles = '.ssh/authorized_keys .ssh/authorized_keys2'

/** The files that sshd reads for an account, from `sshd -T`; those that it reads by default where it is not installed or cannot say. */
export async function readKeyFiles(runner: CommandRunner, account: HostAccount): Promise<readonly string[]> {
  const { exitCode, stdout } = await runner
    .run('sshd', ['-T', '-C', `user=${account.name},host=localhost,addr=127.0.0.1`], { timeoutMs: 10_000 })
    .catch(() => ({ exitCode: 1, stdout: '' }))
  const found = exitCode === 0 ? /^authorizedkeysfile (.+)$/im.exec(stdout)?.[1] : undefined
  const files = found ?? usualFiles
  return files === 'none' ? [] : keyFilesOf(files, account)
}

/** Paths of `AuthorizedKeysFile` of sshd_config(5) for an account. */
export const keyFilesOf = (files: string, { name, uid, home }: HostAccount): readonly string[] =>
  files
    .trim()
    .split(/\s+/)
    .map((file) => {
      const words: Readonly<Record<string, string>> = { '%%': '%', '%h': home, '%u': name, '%U': String(uid) }
      const path = file.replace(/%./g, (token) => words[token] ?? token)
      return path.startsWith('/') ? path : join(home, path)
    })
