import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { stripVTControlCharacters } from 'node:util'
import { execa } from 'execa'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { bundleProgram } from '../../support/bundle-program.ts'
import { createCtl, type Ctl } from '../../support/ctl.ts'
import { startDaemonSocket } from '../../support/daemon-socket.ts'
import { exportedProfile } from '../../support/tar-bytes.ts'

let ctl: Ctl
let daemon: Awaited<ReturnType<typeof startDaemonSocket>>
beforeAll(async () => {
  ctl = createCtl()
  bundleProgram('authoring', at('definition.cjs'))
  daemon = await startDaemonSocket(at('daemon.sock'))
  mkdirSync(at('pack'))
  const pack = { name: 'a-pack-with-a-long-name', version: '1.0', layer: 'addon' }
  writeFileSync(at('pack/pack.json'), JSON.stringify(pack))
  const values = 'a: "{{ .spectro.var.nameOfTheShop }}"\nb: "{{ .spectro.var.missing }}"\n'
  const packs = [{ name: pack.name, layer: 'addon', tag: '1.0', uid: 'w', type: 'spectro', values }]
  const variables = [{ name: 'nameOfTheShop', required: true, defaultValue: 'a text of several words' }]
  writeFileSync(at('p.json'), JSON.stringify(exportedProfile('u1', { type: 'add-on', packs }, { variables })))
  await ctl.run([
    'definition',
    'build',
    '--profile',
    at('p.json'),
    '--pack',
    at('pack'),
    '--file',
    at('d.tgz'),
  ])
})
afterAll(async () => {
  await daemon.stop()
  rmSync(ctl.home, { recursive: true })
})

const at = (name: string) => join(ctl.home, name)

/** What a command shows: in a pipe, or on a terminal of so many columns, which script(1) is. */
async function show(command: string, columns?: number, env: Record<string, string> = {}): Promise<string> {
  const line = `'${process.execPath}' '${ctl.program}' ${command}`
  const args =
    columns === undefined
      ? ['-c', `${line} 2>&1`]
      : ['-c', `script -qec "stty cols ${columns}; ${line}" /dev/null`]
  const { stdout } = await execa('bash', ['--norc', ...args], {
    reject: false,
    extendEnv: false,
    cwd: ctl.home,
    env: {
      PATH: '/usr/bin:/bin',
      HOME: ctl.home,
      TERM: 'xterm',
      EDGEHOSTCTL_SOCKET: at('daemon.sock'),
      ...env,
    },
    stdin: 'ignore',
  })
  return stripVTControlCharacters(stdout).replaceAll('\r', '')
}

const wordsOf = (text: string) => text.split(/\s+/).filter((word) => word !== '')

describe.each([
  'status',
  'host show',
  'sessions list',
  'audit list',
  'audit verify',
  'definition inspect d.tgz',
  'definition validate d.tgz',
  'help',
  'help audit list',
])('%s', (command) => {
  it.each([40, 60, 80, 100])('fits %i columns without a break inside a word that fits', async (columns) => {
    const whole = new Set(wordsOf(await show(command)))
    const text = await show(command, columns)
    expect(text.length).toBeGreaterThan(100)
    for (const line of text.split('\n')) expect(line.length).toBeLessThanOrEqual(columns)
    // What is longer than a line, as a hash or a place in an archive, is broken; a fingerprint between bytes.
    const long = [...whole].filter((word) => word.length > columns - 2 || /^([0-9A-F]{2}:){31}/.test(word))
    for (const word of wordsOf(text)) {
      if (!long.some((each) => each.includes(word))) expect(whole, `${word} in\n${text}`).toContain(word)
    }
  })
})

it('COLUMNS comes before what the terminal says, and does not reach a pipe', async () => {
  const narrow = await show('audit list --limit=1', 120, { COLUMNS: '40' })
  for (const line of narrow.split('\n')) expect(line.length).toBeLessThanOrEqual(40)
  expect(await show('audit list', undefined, { COLUMNS: '40' })).toBe(await show('audit list'))
})
