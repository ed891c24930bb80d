import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeEach, describe, expect, it } from 'vitest'
import { requireFinishedRestore } from '../../../src/backup/unfinished-restore.ts'
import {
  backupMachine,
  cutBefore,
  passphrase,
  picture,
  refusalOf,
  usersOf,
} from '../../support/backup-machine.ts'

let home: string
let state: string
let passphraseFile: string
const { paths, start, stop, restore, makeBackedUp, preload } = backupMachine()
beforeEach(() => ({ home, state, passphraseFile } = paths()))

/** Kills the process right before it puts its second file of the configuration aside. */
const cutPlacing = `
const { promises } = require('node:fs')
const { link } = promises
let left = 2
promises.link = (...args) => {
  left -= 1
  if (left === 0) process.kill(process.pid, 'SIGKILL')
  return link(...args)
}
`

/** Runs the same command meanwhile: when the state of the backup begins to be written, and when it is in its place. */
const meanwhile = `
const { promises } = require('node:fs')
const { spawnSync } = require('node:child_process')
for (const name of ['mkdir', 'link']) {
  const original = promises[name]
  promises[name] = (path, ...args) => {
    if (name === 'link' || path.includes('.restore-')) {
      promises[name] = original
      const { status, stderr } = spawnSync(process.execPath, process.argv.slice(1), { encoding: 'utf8' })
      process.stdout.write(name + ' ' + status + ' ' + stderr)
    }
    return original(path, ...args)
  }
}
`

describe('a restore', () => {
  beforeEach(makeBackedUp)

  describe('that is killed', () => {
    /** The machine as it is before the restore: another platform, with another configuration. */
    let machine: string
    beforeEach(async () => {
      machine = join(home, 'machine')
      mkdirSync(join(machine, 'etc/config.d'), { recursive: true })
      writeFileSync(join(machine, 'etc/config.yaml'), 'platform: {hostName: elsewhere.example}\n')
      const running = await start(join(machine, 'state'))
      await running.addUser('other@plant.example', 'a long password')
      await stop()
    })

    const configOf = (folder: string) => readFileSync(join(folder, 'etc/config.yaml'), 'utf8')
    const isRestored = (folder: string) =>
      configOf(folder).includes('platform.example') && existsSync(join(folder, 'etc/config.d/10-site.yaml'))

    it('at any step leaves a state that starts as it was, or none that starts; and a second one completes it', async () => {
      const node = preload(cutBefore('link', 'rename', 'rm', 'writeFile'))
      const outcomes: string[] = []
      for (let step = 1; ; step += 1) {
        const here = join(home, `cut-${step}`)
        cpSync(machine, here, { recursive: true, preserveTimestamps: true })
        const { exitCode } = await restore({ from: here, node, step })
        if (exitCode === 0) {
          expect(isRestored(here)).toBe(true)
          break
        }
        const state = join(here, 'state')
        // systemd makes the folder before the daemon starts.
        mkdirSync(state, { recursive: true })
        const refusal = await refusalOf(state)
        outcomes.push(refusal === '' ? 'starts' : 'refuses')
        if (refusal === '') {
          const isNew = usersOf(state).includes('you@plant.example')
          expect(isNew, `step ${step}`).toBe(isRestored(here))
          expect(usersOf(state), `step ${step}`).toEqual([
            isNew ? 'you@plant.example' : 'other@plant.example',
          ])
        } else expect(refusal).toMatch(/was interrupted: run it again with edgeplatformctl restore/)

        if (refusal === '') continue

        const again = await restore({ from: here, node })
        expect([again.exitCode, again.stderr], `step ${step}`).toEqual([0, ''])
        await requireFinishedRestore(state)
        expect(usersOf(state)).toEqual(['you@plant.example'])
        expect(isRestored(here)).toBe(true)
        const left = readdirSync(here).filter((name) => name.startsWith('state.restore-'))
        expect([left, readdirSync(join(here, 'etc')).filter((name) => name.endsWith('.tmp'))]).toEqual([
          [],
          [],
        ])
        const former = /^The former state is in (\S+);/m.exec(again.stdout)?.[1] ?? ''
        expect(usersOf(former), `step ${step}`).toEqual(['other@plant.example'])
      }
      // As before at first; then between the steps; restored at the end.
      expect(outcomes.join(' ')).toMatch(/^(starts ){2,}(refuses ?){5,}$/)
    })

    it('and then refused, or fails, is as it was: the daemon does not start until a restore is complete', async () => {
      const state = join(machine, 'state')
      const dropIn = join(machine, 'etc/config.d/10-site.yaml')
      writeFileSync(dropIn, 'log: {level: error}\n')
      expect((await restore({ from: machine, node: preload(cutPlacing) })).exitCode).not.toBe(0)
      expect([configOf(machine), readFileSync(dropIn, 'utf8')]).toEqual([
        expect.stringContaining('platform.example'),
        expect.stringContaining('error'),
      ])
      const interrupted = picture(machine)

      writeFileSync(passphraseFile, `${passphrase}.`)
      expect((await restore({ from: machine })).stderr).toMatch(/passphrase is wrong.*Nothing was changed$/)
      expect(picture(machine)).toBe(interrupted)
      await expect(requireFinishedRestore(state)).rejects.toThrow(/was interrupted/)

      writeFileSync(passphraseFile, passphrase)
      const full = await restore({ from: machine, shell: "trap '' XFSZ; ulimit -f 16" })
      expect([full.exitCode, full.stderr]).toEqual([1, expect.stringMatching(/EFBIG/)])
      await expect(requireFinishedRestore(state)).rejects.toThrow(/was interrupted/)
      const former = readdirSync(machine).filter((name) => name.startsWith('state.'))
      expect(former).toEqual([expect.stringMatching(/^state\.before-/)])
      expect(usersOf(join(machine, former[0] ?? ''))).toEqual(['other@plant.example'])

      // The first restore names its folder by its path.
      const mark = join('state', 'unfinished-restore')
      const node = preload(cutBefore('link', 'rename', 'rm', 'writeFile'))
      for (let step = 1; ; step += 1) {
        const here = join(home, `again-${step}`)
        cpSync(machine, here, { recursive: true })
        writeFileSync(join(here, mark), join(here, former[0] ?? ''))
        const cut = await restore({ from: here, node, step })
        const starts = await requireFinishedRestore(join(here, 'state')).then(
          () => true,
          () => false,
        )
        if (starts)
          expect([
            usersOf(join(here, 'state')),
            readFileSync(join(here, 'etc/config.d/10-site.yaml'), 'utf8'),
          ]).toEqual([['you@plant.example'], expect.stringContaining('warn')])
        expect(usersOf(join(here, former[0] ?? '')), `step ${step}`).toEqual(['other@plant.example'])
        if (cut.exitCode === 0) break
        const complete = await restore({ from: here })
        expect([complete.exitCode, complete.stderr], `step ${step}`).toEqual([0, ''])
        expect(complete.stdout).toContain(starts ? '.before-' : join(here, former[0] ?? ''))
        await requireFinishedRestore(join(here, 'state'))
        rmSync(here, { recursive: true })
      }

      const again = await restore({ from: machine })
      expect([again.exitCode, again.stderr]).toEqual([0, ''])
      expect(again.stdout).toContain(`The former state is in ${join(machine, former[0] ?? '')};`)
      await requireFinishedRestore(state)
      expect(usersOf(state)).toEqual(['you@plant.example'])
      expect(readFileSync(dropIn, 'utf8')).toContain('warn')
      expect(readdirSync(machine).filter((name) => name.startsWith('state.'))).toEqual(former)
    })
  })

  it.each([true, false])('is refused while another one is at work, with a state: %s', async (hasState) => {
    writeFileSync(join(home, 'etc/config.yaml'), 'platform: {hostName: elsewhere.example}\n')
    if (!hasState) rmSync(state, { recursive: true })
    const restored = await restore({ node: preload(meanwhile) })
    expect([restored.exitCode, restored.stderr]).toEqual([0, ''])
    const refusals = restored.stdout.split('\n').filter((line) => /^(mkdir|link) /.test(line))
    expect(refusals).toEqual(
      ['mkdir', 'link'].map(
        (name) => expect.stringMatching(`^${name} 1 .*another restore .*Nothing was changed$`) as string,
      ),
    )
    expect(restored.stdout.includes('The former state is in')).toBe(hasState)
    expect(readFileSync(join(home, 'etc/config.yaml'), 'utf8')).toContain('platform.example')
    await start()
  })

  it('that is refused makes no state folder', async () => {
    rmSync(state, { recursive: true })
    writeFileSync(passphraseFile, `${passphrase}.`)
    expect((await restore()).stderr).toMatch(/the passphrase is wrong/)
    expect(existsSync(state)).toBe(false)
  })
})
