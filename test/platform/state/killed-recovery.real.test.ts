import { cpSync, existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeEach, describe, expect, it } from 'vitest'
import { requireFinishedRestore } from '../../../src/backup/unfinished-restore.ts'
import { backupMachine, cutBefore, picture, refusalOf, usersOf } from '../../support/backup-machine.ts'

let home: string
let state: string
const { paths, start, stop, run, preload } = backupMachine()
beforeEach(() => ({ home, state } = paths()))

describe.each(['recover', 'fresh-start'])('%s that is killed', (command) => {
  it('at any step leaves the former state whole, or none that starts; a second one completes it', async () => {
    const running = await start()
    await running.addUser('you@plant.example', 'a long password', ['admin'])
    await stop()
    const machine = join(home, 'machine')
    mkdirSync(machine)
    cpSync(join(home, 'etc'), join(machine, 'etc'), { recursive: true })
    cpSync(state, join(machine, 'state'), { recursive: true, preserveTimestamps: true })
    mkdirSync(join(machine, 'state/packs/0198f000-0000-7000-8000-000000000001'), { recursive: true })
    writeFileSync(join(machine, 'state/packs/0198f000-0000-7000-8000-000000000001/pack'), 'content')
    writeFileSync(join(machine, 'state/secret'), '')
    const former = picture(join(machine, 'state'))
    const node = preload(cutBefore('copyFile', 'link', 'mkdir', 'rename', 'rm', 'writeFile'))
    const outcomes: string[] = []

    const expectNew = async (here: string, step: number) => {
      const folder = join(here, 'state')
      await requireFinishedRestore(folder)
      expect(readdirSync(here).filter((name) => name.startsWith('state.restore-'))).toEqual([])
      // All that there was is in the one folder that was put aside.
      const [aside = '', ...more] = readdirSync(here).filter((name) => name.startsWith('state.before-'))
      expect([picture(join(here, aside)), more], `step ${step}`).toEqual([former, []])
      if (command === 'recover') expect(usersOf(folder), `step ${step}`).toEqual(['you@plant.example'])
      else expect(existsSync(join(folder, 'edgeplatform.db'))).toBe(false)
      await start(folder)
      await stop()
    }
    for (let step = 1; ; step += 1) {
      const here = join(home, `cut-${step}`)
      cpSync(machine, here, { recursive: true, preserveTimestamps: true })
      const cut = await run([command, '--yes'], { from: here, node, step })
      if (cut.exitCode === 0) {
        await expectNew(here, step)
        break
      }
      const folder = join(here, 'state')
      // systemd makes the folder before the daemon starts.
      mkdirSync(folder, { recursive: true })
      const refusal = await refusalOf(folder)
      if (refusal !== '') {
        outcomes.push('refuses')
        expect(refusal).toMatch(/was interrupted: run it again with edgeplatformctl restore \(or recover/)
        await expect(start(folder)).rejects.toThrow(/was interrupted/)
      } else if (picture(folder) === former) {
        outcomes.push('former')
        await expect(start(folder)).rejects.toThrow(/the secret \S+ is damaged/)
        expect(picture(folder), `step ${step}`).toBe(former)
      } else {
        // The last step removes what is left over.
        outcomes.push('new')
        await start(folder)
        await stop()
        continue
      }
      const again = await run([command, '--yes'], { from: here, node })
      expect([again.exitCode, again.stderr], `step ${step}`).toEqual([0, ''])
      await expectNew(here, step)
      rmSync(here, { recursive: true })
    }
    expect(outcomes.join(' ')).toMatch(/^(former ){2,}(refuses ?)+(new ?)*$/)
  })
})
