import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { CommandRunner } from '../../../src/system/runner.ts'
import { createUnits } from '../../../src/system/lasting/runs.ts'

let folder: string
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'edgehostd-units-'))
})
afterEach(() => rm(folder, { recursive: true }))

function unitsWith(stdout: string) {
  const asked: string[] = []
  const runner: CommandRunner = {
    run(program, args) {
      asked.push([program, ...args].join(' '))
      return Promise.resolve({ exitCode: 0, stdout, stderr: '' })
    },
  }
  return { asked, units: createUnits(runner, () => Promise.resolve('kernel'), 'test-', folder) }
}
const run = { name: 'one', lock: '/nowhere/lock' }

describe('keepers as units', () => {
  it('a unit that systemd has no file of has no keeper, and no program is asked for it', async () => {
    const { asked, units } = unitsWith('')
    expect(await units.findKeeper(run)).toBeUndefined()
    expect(asked).toEqual([])
  })

  it('of a unit that systemd has a file of, systemctl says whether its keeper runs', async () => {
    await writeFile(join(folder, 'test-one.service'), '')
    const ended = unitsWith('ActiveState=failed\nMainPID=0\nJob=\n')
    expect(await ended.units.findKeeper(run)).toBeUndefined()
    expect(ended.asked).toEqual(['systemctl show --property=ActiveState,MainPID,Job test-one.service'])
    const { units } = unitsWith('ActiveState=active\nMainPID=17\nJob=\n')
    expect(await units.findKeeper(run)).toBe(17)
  })

  it('the memory of a unit, and of all that its command starts, is bounded', async () => {
    const { asked, units } = unitsWith('')
    await units.launch({ ...run, command: ['keeper'], timeoutMs: 1_000 })
    expect(asked[0]).toContain(' --property=MemoryMax=2048M ')
  })

  it('the id of the boot is asked for once', async () => {
    const { asked, units } = unitsWith('123\n')
    expect(await units.bootId()).toBe('kernel 123')
    expect(await units.bootId()).toBe('kernel 123')
    expect(asked).toEqual(['systemctl show --property=UserspaceTimestampMonotonic --value'])
  })
})
