import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, it } from 'vitest'
import { createLastingRuns } from '../../../src/system/lasting/runs.ts'
import { createRunner } from '../../../src/system/runner.ts'
import { keeperProgram } from '../../support/programs.ts'
import { scenarios } from '../../support/lasting-scenarios.ts'

const parent = mkdtempSync(join(tmpdir(), 'edgehostd-lasting-'))
afterAll(() => rmSync(parent, { recursive: true }))

// Each scenario has a folder of its own, so that the waits of ten seconds are concurrent.
describe('a run in a session of its own', () => {
  it.concurrent.each(Object.entries(scenarios))('%s', async (_title, scenario) => {
    const folder = join(mkdtempSync(join(parent, 'scenario-')), 'runs')
    const runs = createLastingRuns({
      runner: createRunner(),
      folder,
      program: keeperProgram(),
      asUnits: false,
    })
    await scenario({ runs, folder })
  })
})
