import { mkdir, readFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import { isThere, replaceFile } from '../system/files.ts'
import { createRunner, type CommandRunner } from '../system/runner.ts'
import { VerbRefused } from '../verbs/verb.ts'
import { hostsWith } from './rules.ts'

const hostsFile = '/etc/hosts'
const nameFile = '/etc/hostname'
const present = '/proc/sys/kernel/hostname'
/** cloud-init gives a host its former name at each boot, unless its configuration keeps the present one. */
const cloudFolder = '/etc/cloud'
const cloudFile = `${cloudFolder}/cloud.cfg.d/99-edgehostd-hostname.cfg`
const cloudText =
  '# Written by edgehostd, where the name of this host was set.\npreserve_hostname: true\nmanage_etc_hosts: false\n'

const read = (path: string) => readFile(path, 'utf8')

/**
 * The work of the verb `set-host-name`. Each step may have been done before. The name resolves before the host has it, since programs such as sudo wait
 * for the name of their own host.
 * @throws VerbRefused
 */
export async function placeHostName({ hostName }: { readonly hostName: string }): Promise<void> {
  const runner = createRunner()
  const before = (await read(present)).trim()
  const hosts = await read(hostsFile).catch(orNothing)
  const next = hostsWith(hosts, before, hostName)
  if (next !== hosts) await replaceFile(hostsFile, next, 0o644)
  if ((await isThere(cloudFolder)) && (await read(cloudFile).catch(orNothing)) !== cloudText) {
    await mkdir(dirname(cloudFile), { recursive: true, mode: 0o755 })
    await replaceFile(cloudFile, cloudText, 0o644)
  }
  if (!(await askHostnamed(runner, hostName))) {
    await replaceFile(nameFile, `${hostName}\n`, 0o644)
    const { exitCode, stderr } = await runner.run('hostname', [hostName], { timeoutMs: 10_000 })
    if (exitCode !== 0)
      throw new VerbRefused(
        `${nameFile} has the name, but hostname failed: ${stderr.trim()}; reboot the host`,
      )
  }
  const now = (await read(present)).trim()
  const stored = (await read(nameFile).catch(orNothing)).trim()
  if (now !== hostName || stored !== hostName)
    throw new VerbRefused(
      `the name of this host is ${now}, and in ${nameFile} ${stored || 'none'}, after it was set; see journalctl -u systemd-hostnamed`,
    )
}

/** Asks systemd-hostnamed, which tells others of it. @returns whether it has done it; without a system bus it cannot be asked */
async function askHostnamed(runner: CommandRunner, hostName: string): Promise<boolean> {
  if (!(await isThere('/run/dbus/system_bus_socket'))) return false
  const { exitCode } = await runner.run('hostnamectl', ['set-hostname', '--', hostName], {
    timeoutMs: 30_000,
  })
  return exitCode === 0
}

function orNothing(error: unknown): string {
  if ((error as NodeJS.ErrnoException).code === 'ENOENT') return ''
  throw error
}
