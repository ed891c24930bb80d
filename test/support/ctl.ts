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
