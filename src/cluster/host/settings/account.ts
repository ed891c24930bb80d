import { mkdir } from 'node:fs/promises'
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

/** The files that sshd reads for an account; those that it reads by default where it is not installed or cannot say. */
export async function readKeyFiles(runner: CommandRunner, account: HostAccount): Promise<readonly string[]> {
  const files = (await askSshd(runner, account.name)) ?? usualFiles
  return files === 'none' ? [] : keyFilesOf(files, account)
}

/**
 * `AuthorizedKeysFile` as it is for an account. -T needs host keys and the folder of a running sshd; -G, of OpenSSH 9.3 and later, neither.
 * @returns undefined where sshd is not installed or does not say it
 */
async function askSshd(runner: CommandRunner, name: string): Promise<string | undefined> {
  const who = ['-C', `user=${name},host=localhost,addr=127.0.0.1`]
  const ask = async (option: string) => {
    const { exitCode, stdout, stderr } = await runner
      .run('sshd', [option, ...who], { timeoutMs: 10_000 })
      .catch(() => ({ exitCode: 1, stdout: '', stderr: '' }))
    return {
      files: exitCode === 0 ? /^authorizedkeysfile (.+)$/im.exec(stdout)?.[1] : undefined,
      missing: missingFolderIn(stderr),
    }
  }
  const first = await ask('-T')
  if (first.files !== undefined) return first.files
  const second = await ask('-G')
  if (second.files !== undefined || first.missing === undefined) return second.files
  // As the unit of sshd makes it at its start; it is in memory, and stays: sshd may be started at any moment.
  await mkdir(first.missing, { recursive: true, mode: 0o755 })
  return (await ask('-T')).files
}

/**
 * The folder without which sshd says nothing, as while its service is stopped: `Missing privilege separation directory: /run/sshd`.
 * @returns undefined for another text, and for a folder that is not in memory
 */
export const missingFolderIn = (stderr: string): string | undefined =>
  /^Missing privilege separation directory: ((?:\/var)?\/run\/[\w.-]+)\r?$/m.exec(stderr)?.[1]

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
