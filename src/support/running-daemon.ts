import { readFile } from 'node:fs/promises'
import type { CommandRunner } from '../system/runner.ts'

/** Arguments and environment of the running daemon. */
export interface Launch {
  /** Arguments without Node and the program. */
  readonly args: readonly string[]
  readonly environment: Readonly<Record<string, string | undefined>>
}

/** Finds the launch of the running daemon, so that its effective configuration can be read; undefined where none runs. */
export async function findLaunch(runner: CommandRunner): Promise<Launch | undefined> {
  try {
    const { stdout } = await runner.run(
      'systemctl',
      ['show', 'edgehostd.service', '--property=MainPID', '--value'],
      { timeoutMs: 10_000 },
    )
    const pid = Number(stdout)
    if (!(pid > 0)) return undefined
    const read = async (name: string) =>
      (await readFile(`/proc/${pid}/${name}`, 'utf8')).split('\0').slice(0, -1)
    const words = await read('cmdline')
    const variables = (await read('environ')).map((each) => {
      const end = each.indexOf('=')
      return [each.slice(0, end), each.slice(end + 1)]
    })
    const script = words.findIndex((word) => word.endsWith('.cjs'))
    return {
      args: words.slice(script + 1),
      environment: Object.fromEntries(variables) as Record<string, string>,
    }
  } catch {
    return undefined
  }
}
