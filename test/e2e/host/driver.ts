import { mkdtempSync, rmSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'vitest'
import { bundleProgram } from '../../support/bundle-program.ts'
import { bootEdgehostd, type Edgehostd } from './edgehostd.ts'
import { eventually } from './eventually.ts'

// A driver takes the daemon's place, in a unit with the daemon's own sandbox: test/support/lasting-driver.
const state = '/var/lib/driver'
const keeper = '/usr/lib/edgehostd/keeper.cjs'

export async function bootDriver(lower: 'machine' | 'minbase'): Promise<Edgehostd> {
  const folder = mkdtempSync(join(tmpdir(), 'edgehostd-driver-'))
  const bundle = join(folder, 'driver.cjs')
  try {
    bundleProgram('../test/support/lasting-driver', bundle)
    const host = await bootEdgehostd({ lower, wire: false })
    await host.write('/usr/lib/edgehostd/driver.cjs', await readFile(bundle))
    return host
  } finally {
    rmSync(folder, { recursive: true })
  }
}

/** Writes a unit that differs from edgehostd.service only in its program. */
export async function writeUnit(
  host: Edgehostd,
  unit: string,
  verb: string,
  name = '',
  script = '',
): Promise<void> {
  const own = (await host.read('/lib/systemd/system/edgehostd.service'))
    .split('\n')
    .filter((line) => !/^(Type|NotifyAccess|ExecStart|ExecReload|WatchdogSec|Requires|After)=/.test(line))
    .map((line) => line.replace(/^((State|Runtime|Cache|Configuration)Directory)=edgehostd$/, `$1=${unit}`))
    .map((line) => line.replace(/^StateDirectory=.*/, 'StateDirectory=driver'))
  const program = `/usr/lib/edgehostd/node /usr/lib/edgehostd/driver.cjs ${keeper} ${state}/runs units`
  const command = script && `/bin/sh -c "${script}"`
  const exec = `ExecStart=${program} ${verb} ${name} ${command}`
  await host.write(
    `/etc/systemd/system/${unit}.service`,
    own.join('\n').replace('[Service]\n', `[Service]\nType=exec\n${exec}\n`),
  )
  await host.output(['systemctl', 'daemon-reload'])
}

export const seenLines = async (host: Edgehostd, name: string) =>
  (await host.read(`${state}/${name}.seen`).catch(() => ''))
    .split('\n')
    .filter(Boolean)
    .map((line) => line.replace(/^\d+ /, ''))
export const endOf = async (host: Edgehostd, name: string) =>
  JSON.parse(await host.read(`${state}/${name}.end`)) as unknown
export const atLeast = (host: Edgehostd, name: string, count: number) =>
  eventually(async () => expect((await seenLines(host, name)).length).toBeGreaterThanOrEqual(count), 40_000)
const mainPid = async (host: Edgehostd, unit: string) =>
  Number(await host.output(['systemctl', 'show', '--property=MainPID', '--value', unit]))

/** Uses the kill of the shell: a minimal host has no other. */
export const killProcess = (host: Edgehostd, pid: number) => host.sh('kill -KILL "$1"', String(pid))

/** Kills the process that uses the run, and waits for its successor. */
export async function killUser(host: Edgehostd, unit: string): Promise<void> {
  const pid = await mainPid(host, unit)
  expect(pid).toBeGreaterThan(0)
  await killProcess(host, pid)
  await eventually(async () => expect([0, pid]).not.toContain(await mainPid(host, unit)))
}

export const numbered = (count: number) => Array.from({ length: count }, (_, index) => `line ${index + 1}`)
/** Part of the unit file, so without characters that systemd expands: 40 lines in 20 s. */
export const twentySeconds = 'i=0; while [ $$((i += 1)) -le 40 ]; do echo line $$i; sleep 0.5; done; exit 7'

export async function outlivesTwoKills(host: Edgehostd, name: string): Promise<void> {
  await writeUnit(host, name, 'watch', name, twentySeconds)
  await host.output(['systemctl', 'start', name])
  await atLeast(host, name, 5)
  await killUser(host, name)
  await atLeast(host, name, 20)
  await killUser(host, name)
  await eventually(async () => {
    expect(await endOf(host, name)).toMatchObject({ kind: 'exited', exitCode: 7, leftOutBytes: 0 })
  }, 40_000)
  expect(await seenLines(host, name)).toEqual(numbered(40))
}

/** The state of a run, as another process of root reads it. */
export async function find(host: Edgehostd, name: string): Promise<unknown> {
  const driver = [
    '/usr/lib/edgehostd/node',
    '/usr/lib/edgehostd/driver.cjs',
    keeper,
    `${state}/runs`,
    'units',
  ]
  return JSON.parse(await host.output([...driver, 'find', name])) as unknown
}
