import { expect, test } from 'vitest'
import { createRunner } from '../../../src/system/runner.ts'
import { stepProgram } from '../../support/programs.ts'

test('step.cjs refuses an action that it does not know', async () => {
  const result = await createRunner().run(process.execPath, [stepProgram(), 'shutdown'], {
    input: '{}',
    timeoutMs: 30_000,
  })
  expect(result).toEqual({
    exitCode: 1,
    stdout: 'step.cjs does not know the action "shutdown"; this is a defect of edgehostd\n',
    stderr: '',
  })
})
