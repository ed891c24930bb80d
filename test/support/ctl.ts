import { copyFileSync, mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { execa } from 'execa'
import { ctlProgram } from './programs.ts'

/** edgehostctl as a process of its own, bundled as it ships and without a terminal. */
export interface Ctl {
  readonly home: string
  /** Its file, for a test that starts the process itself. */
  readonly program: string
  run(
    args: readonly string[],
    input?: string,
  ): Promise<{ exitCode: number | undefined; stdout: string; stderr: string }>
}

/** @param built the program; by default edgehostctl */
export function createCtl(built = ctlProgram()): Ctl {
  const home = mkdtempSync(join(tmpdir(), 'edgehostctl-'))
  const program = join(home, basename(built))
  copyFileSync(built, program)
  return {
    home,
    program,
    async run(args, input = '') {
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
