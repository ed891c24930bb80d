import { copyFileSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { execa } from 'execa'
import { createCtl, type Ctl } from './ctl.ts'
import type { Ended, Given } from './in-process.ts'
import { startDaemonSocket } from './daemon-socket.ts'
import { authoringProgram } from './programs.ts'
import { exportedProfile } from './tar-bytes.ts'

/** A shell with `edgehostctl`, which uses a daemon on a socket. */
export interface CtlShell {
  readonly ctl: Ctl
  /** Paths of the requests to the daemon. */
  readonly asked: string[]
  /** A file of the folder that scripts run in. */
  at(name: string): string
  /** Runs a command of edgehostctl within this process; its words are separated by blanks, and names of files are those of the folder. */
  command(words: string, given?: Partial<Given>): Promise<Ended>
  /** Runs a script of bash, without a terminal. */
  run(
    script: string,
    env?: Readonly<Record<string, string>>,
  ): Promise<{ exitCode?: number | undefined; stdout: string; stderr: string }>
  stop(): Promise<void>
}

export async function createCtlShell(): Promise<CtlShell> {
  const ctl = createCtl()
  const at = (name: string) => join(ctl.home, name)
  const daemon = await startDaemonSocket(at('daemon.sock'))
  return {
    ctl,
    asked: daemon.asked,
    at,
    command: (words, { env, ...given } = {}) =>
      ctl.run(
        words.split(/ +/).map((word) => (/^\w+\.(json|tgz|yaml)$|^pack$/.test(word) ? at(word) : word)),
        '',
        { env: { EDGEHOSTCTL_SOCKET: at('daemon.sock'), TERM: 'xterm', ...env }, ...given },
      ),
    run: (script, env = {}) =>
      execa('setsid', ['--wait', 'bash', '--norc', '-c', script], {
        reject: false,
        extendEnv: false,
        cwd: ctl.home,
        env: {
          PATH: '/usr/bin:/bin',
          HOME: ctl.home,
          TERM: 'xterm',
          // The shell of script(1), which gets the function too.
          SHELL: '/bin/bash',
          EDGEHOSTCTL_SOCKET: at('daemon.sock'),
          BASH_ENV: '',
          'BASH_FUNC_edgehostctl%%': `() { '${process.execPath}' '${ctl.program}' "$@"; }`,
          ...env,
        },
        stdin: 'ignore',
        timeout: 20_000,
      }),
    async stop() {
      await daemon.stop()
      rmSync(ctl.home, { recursive: true })
    },
  }
}

/** Puts the program of definitions beside edgehostctl, a profile `p.json` and its `pack`, and `d.tgz` built of them. */
export async function buildDefinition({ ctl, at }: CtlShell): Promise<void> {
  copyFileSync(authoringProgram(), at('definition.cjs'))
  mkdirSync(at('pack'))
  const pack = { name: 'a-pack-with-a-long-name', version: '1.0', layer: 'addon' }
  writeFileSync(at('pack/pack.json'), JSON.stringify(pack))
  const values = 'a: "{{ .spectro.var.nameOfTheShop }}"\nb: "{{ .spectro.var.missing }}"\n'
  const packs = [{ name: pack.name, layer: 'addon', tag: '1.0', uid: 'w', type: 'spectro', values }]
  const variables = [{ name: 'nameOfTheShop', required: true, defaultValue: 'a text of several words' }]
  writeFileSync(at('p.json'), JSON.stringify(exportedProfile('u1', { type: 'add-on', packs }, { variables })))
  const built = await ctl.run([
    ...['definition', 'build', '--profile', at('p.json'), '--pack', at('pack'), '--file', at('d.tgz')],
  ])
  // The archive is there: one of its variables is not, which the tests show.
  if (built.exitCode !== 1) throw new Error(built.stderr)
}
