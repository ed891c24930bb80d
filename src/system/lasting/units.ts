import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { mostMemoryMiB } from '../bounded-memory.ts'
import type { CommandRunner } from '../runner.ts'
import type { Place } from './place.ts'

const timeoutMs = 30_000
/**
 * Keepers as transient units, outside the sandbox of the daemon and with full rights on the host. systemd refuses a second
 * unit of the same name. Neither systemd-run(1) nor systemctl(1) needs the system bus for this: as root they use systemd's
 * own socket.
 * @param kernelBoot the kernel's id of this boot
 * @param prefix of the names of the units
 * @param transientFolder where systemd keeps the file of each transient unit as long as it knows the unit, systemd.unit(5)
 */
export function createUnits(
  runner: CommandRunner,
  kernelBoot: () => Promise<string>,
  prefix: string,
  transientFolder = '/run/systemd/transient',
): Place {
  const unitOf = (name: string) => `${prefix}${name}.service`
  // The present boot lasts longer than this process.
  let bootId: string | undefined
  return {
    async launch({ name, command, timeoutMs: longest }) {
      const options = [
        `--unit=${unitOf(name)}`,
        `--description=edgehostd: ${name}`,
        '--collect',
        '--quiet',
        // systemd-run returns once the keeper was executed.
        '--service-type=exec',
        '--property=SyslogIdentifier=edgehostd',
        // SIGTERM goes to the keeper alone, which passes it on; processes that remain after its end are killed.
        '--property=KillMode=mixed',
        '--property=TimeoutStopSec=20',
        // A command and what it starts may read what is not trusted.
        `--property=MemoryMax=${mostMemoryMiB}M`,
        // When the OOM killer ends the command, its keeper records that.
        '--property=OOMPolicy=continue',
        // The keeper enforces the time limit; this one ends a keeper that hangs.
        `--property=RuntimeMaxSec=${Math.ceil(longest / 1_000) + 60}`,
      ]
      // systemd expands $NAME in command lines, systemd.service(5).
      const escaped = command.map((argument) => argument.replaceAll('$', '$$$$'))
      const started = await runner.run('systemd-run', [...options, '--', ...escaped], { timeoutMs })
      if (started.exitCode !== 0) throw new Error(started.stderr.trim() || 'systemd-run failed')
    },
    async findKeeper({ name }) {
      // Most questions are about a unit that is gone, and need no program then.
      if (!existsSync(join(transientFolder, unitOf(name)))) return undefined
      const properties = ['ActiveState', 'MainPID', 'Job']
      const { exitCode, stdout, stderr } = await runner.run(
        'systemctl',
        ['show', `--property=${properties.join(',')}`, unitOf(name)],
        { timeoutMs },
      )
      if (exitCode !== 0) throw new Error(stderr.trim() || 'systemctl show failed')
      const value = (property: string) => new RegExp(`^${property}=(.*)$`, 'm').exec(stdout)?.[1] ?? ''
      const isIdle = ['inactive', 'failed'].includes(value('ActiveState')) && !Number(value('Job'))
      return isIdle ? undefined : Number(value('MainPID'))
    },
    async bootId() {
      if (bootId !== undefined) return bootId
      // In a container the kernel's id of the boot can be that of the machine; the start time of systemd is the container's own.
      const args = ['show', '--property=UserspaceTimestampMonotonic', '--value']
      const begin = await runner.run('systemctl', args, { timeoutMs })
      if (begin.exitCode !== 0) throw new Error(begin.stderr.trim() || 'systemctl show failed')
      return (bootId = `${await kernelBoot()} ${begin.stdout.trim()}`)
    },
    async isEnding() {
      const state = await runner.run('systemctl', ['is-system-running'], { timeoutMs })
      return state.stdout.trim() === 'stopping'
    },
    advice: (name) => `see: journalctl -u ${unitOf(name)}`,
  }
}
