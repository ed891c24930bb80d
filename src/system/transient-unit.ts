import { randomUUID } from 'node:crypto'
import { existsSync } from 'node:fs'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { CommandFailed, type CommandResult, type CommandRunner, type RunOptions } from './runner.ts'

export interface TransientUnitOptions {
  readonly runner: CommandRunner
  /** The unit's runtime folder, on a tmpfs, readable by root alone. */
  readonly runtimeDirectory: string
  /** Path of the socket that exists while the system bus runs. */
  readonly busSocket?: string
  /** Purpose of the units, as `systemctl status` shows it. */
  readonly description?: string
  /** Further properties of the units, for example `MemoryMax=256M`; see systemd.exec(5) and systemd.resource-control(5). */
  readonly properties?: readonly string[]
}

/**
 * A runner whose programs run outside the daemon's sandbox, as transient units of systemd with full rights on the host:
 * for example to write /etc/shadow. A secret is passed by standard input, never on the command line.
 *
 * systemd-run(1) needs the system bus to pass standard input through and to wait for the end, and a minimal Debian has
 * no system bus. Without one, input and output are files of the runtime folder, and systemd-run waits for the start job of
 * a oneshot unit; for this it uses systemd's own socket.
 */
export function createTransientUnitRunner(options: TransientUnitOptions): CommandRunner {
  const { runner, runtimeDirectory, busSocket = '/run/dbus/system_bus_socket' } = options
  const { description = 'one privileged step', properties = [] } = options
  // The unit must end even if the daemon is killed while it waits. Which property limits its time depends on its type.
  const unitOptions = (
    unit: string,
    { timeoutMs }: RunOptions,
    limit: 'RuntimeMaxSec' | 'TimeoutStartSec',
  ) => [
    `--unit=${unit}`,
    '--collect',
    '--quiet',
    `--description=edgehostd: ${description}`,
    // The unit gets the manager's environment, and its output is parsed.
    '--setenv=LC_ALL=C',
    '--property=SyslogIdentifier=edgehostd',
    `--property=${limit}=${Math.ceil(timeoutMs / 1_000)}`,
    ...properties.map((property) => `--property=${property}`),
  ]
  return {
    async run(program, args, runOptions) {
      const unit = `edgehostd-step-${randomUUID()}.service`
      // systemd expands $NAME in command lines, systemd.service(5); a user name may hold one.
      const command = ['--', program, ...args.map((argument) => argument.replaceAll('$', '$$$$'))]
      try {
        return existsSync(busSocket)
          ? await runner.run(
              'systemd-run',
              ['--pipe', '--wait', ...unitOptions(unit, runOptions, 'RuntimeMaxSec'), ...command],
              runOptions,
            )
          : await runByFiles(
              runner,
              runtimeDirectory,
              unitOptions(unit, runOptions, 'TimeoutStartSec'),
              command,
              runOptions,
            )
      } catch (error) {
        // systemd-run has ended before its unit, which is still running.
        if (error instanceof CommandFailed && error.reason !== 'not-started') await stopUnit(runner, unit)
        throw error
      }
    },
  }
}

const stopMs = 5_000

/** Ends a unit that may have ended by itself; one that cannot be ended in time is left to its own limit. */
async function stopUnit(runner: CommandRunner, unit: string): Promise<void> {
  await runner.run('systemctl', ['stop', unit], { timeoutMs: stopMs }).catch(() => undefined)
}

async function runByFiles(
  runner: CommandRunner,
  runtimeDirectory: string,
  unitOptions: readonly string[],
  command: readonly string[],
  { input = '', ...runOptions }: RunOptions,
): Promise<CommandResult> {
  const folder = await mkdtemp(join(runtimeDirectory, 'step-'))
  const file = (name: string) => join(folder, name)
  try {
    await writeFile(file('input'), input, { mode: 0o600 })
    const streams = [
      '--service-type=oneshot',
      `--property=StandardInput=file:${file('input')}`,
      `--property=StandardOutput=truncate:${file('output')}`,
      `--property=StandardError=truncate:${file('errors')}`,
    ]
    const started = await runner.run('systemd-run', [...unitOptions, ...streams, ...command], runOptions)
    const [stdout, stderr] = await Promise.all([read(file('output')), read(file('errors'))])
    // If the unit wrote no errors, systemd-run says why it could not be started.
    return { ...started, stdout, stderr: stderr || started.stderr }
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

const read = (path: string) => readFile(path, 'utf8').catch(() => '')
