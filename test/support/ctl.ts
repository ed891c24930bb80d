import { copyFileSync, mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { execa } from 'execa'
import { runInProcess, type Ended, type Given } from './in-process.ts'
import { ctlProgram } from './programs.ts'

/** edgehostctl, bundled as it ships and without a terminal. */
export interface Ctl {
  readonly home: string
  /** Its file, for a test that starts the process itself. */
  readonly program: string
  /** Within this process. @param given more than its home and its input */
  run(args: readonly string[], input?: string, given?: Partial<Given>): Promise<Ended>
  /** As a process of its own, for what belongs to one. */
  runProcess(args: readonly string[], input?: string): Promise<Ended>
}

/** @param built the program; by default edgehostctl */
export function createCtl(built = ctlProgram()): Ctl {
  const home = mkdtempSync(join(tmpdir(), 'edgehostctl-'))
  const program = join(home, basename(built))
  copyFileSync(built, program)
  return {
    home,
    program,
    run: (args, input = '', { env = {}, ...given } = {}) =>
      runInProcess(program, args, { env: { PATH: '/usr/bin:/bin', HOME: home, ...env }, input, ...given }),
    async runProcess(args, input = '') {
      // setsid: otherwise edgehostctl would ask on the terminal that runs the tests.
      const { exitCode, stdout, stderr } = await execa(
        'setsid',
        ['--wait', process.execPath, program, ...args],
        {
          reject: false,
          stripFinalNewline: false,
          extendEnv: false,
          env: { PATH: '/usr/bin:/bin', HOME: home },
          input,
          timeout: 20_000,
        },
      )
      return { exitCode, stdout, stderr }
    },
  }
}

/** A command line over the local socket, for the tests of a file. @param of is asked with each command: both are made before the first test */
export function overSocket(of: () => { readonly ctl: Ctl; readonly socket: string }) {
  const run = (...args: readonly string[]) => {
    const { ctl, socket } = of()
    return ctl.run(['--socket', socket, ...args])
  }
  /** A command that has to succeed; gives its standard output. */
  async function ok(...args: readonly string[]): Promise<string> {
    const { exitCode, stdout, stderr } = await run(...args)
    if (exitCode !== 0) throw new Error(`${args.join(' ')} ended with ${exitCode}: ${stderr}`)
    return stdout
  }
  const json = async <T>(...args: readonly string[]) => JSON.parse(await ok(...args, '-o', 'json')) as T
  return { run, ok, json }
}
