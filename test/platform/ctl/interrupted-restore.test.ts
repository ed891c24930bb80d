import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { beforeEach, describe, expect, it } from 'vitest'
import { requireFinishedRestore } from '../../../src/backup/unfinished-restore.ts'
import { backupMachine } from '../../support/backup-machine.ts'

let home: string
const { paths, start, stop, restore, makeBackedUp, preload } = backupMachine()
beforeEach(() => ({ home } = paths()))

/** Kills the process right before its STEPth change of the file system. */
const cutProgram = `
const fs = require('node:fs')
// The restore after a killed one may be in the same second.
Date.now = () => 1_790_000_000_000
let left = Number(process.env.STEP)
function cutBefore(object, name) {
  const original = object[name]
  object[name] = (...args) => {
    left -= 1
    if (left === 0) process.kill(process.pid, 'SIGKILL')
    return original(...args)
  }
}
for (const name of ['link', 'rename', 'rm', 'writeFile']) cutBefore(fs.promises, name)
cutBefore(fs, 'renameSync')
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

    const usersOf = (folder: string) => {
      const sql = new DatabaseSync(join(folder, 'edgeplatform.db'), { readOnly: true })
      const users = sql.prepare('SELECT email FROM user').all()
      sql.close()
      return users.map(({ email }) => email)
    }
    const configOf = (folder: string) => readFileSync(join(folder, 'etc/config.yaml'), 'utf8')
    const isRestored = (folder: string) =>
      configOf(folder).includes('platform.example') && existsSync(join(folder, 'etc/config.d/10-site.yaml'))

    it('at any step leaves a state that starts as it was, or none that starts; and a second one completes it', async () => {
      const node = preload(cutProgram)
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
        const refusal = await requireFinishedRestore(state).then(
          () => '',
          (error: unknown) => (error as Error).message,
        )
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
    }, 180_000)
  })
})
