import { expect, it } from 'vitest'
import { createExaminations } from '../../../src/platform/examinations.ts'
import { CommandFailed, type CommandRunner } from '../../../src/system/runner.ts'
import { captureLog } from '../../support/https-server.ts'

const { log } = captureLog()
const never = new AbortController().signal
const common = { folder: '/nowhere', limits: {}, reserveBytes: 0 }

const examine = (run: CommandRunner['run']) => {
  const examinations = createExaminations({ runner: { run }, program: '/nowhere/examine.cjs', log })
  return {
    ...examinations,
    ofPack: () => examinations.pack({ ...common, file: '/nowhere/archive', uid: 'u' }, never),
    ofProfile: () => examinations.profile(common, Buffer.from('{}'), never),
  }
}
const killed = { exitCode: undefined, stdout: '', stderr: '' }

it.each<[string, CommandRunner['run'], string]>([
  ['more memory than it may', async () => killed, 'MemoryLimit'],
  ['longer than it may', () => Promise.reject(new CommandFailed('node', 'timed-out', '')), 'TimeLimit'],
  [
    'a longer answer than it may',
    () => Promise.reject(new CommandFailed('node', 'output-too-large', '')),
    'TooLarge',
  ],
])('an examination that takes %s refuses what was sent', async (_, run, reason) => {
  const { ofPack, ofProfile } = examine(run)
  await expect(ofPack()).rejects.toMatchObject({ kind: { code: 'ArchiveTooLarge' }, details: { reason } })
  await expect(ofProfile()).rejects.toMatchObject({ kind: { code: 'ProfileInvalid' }, details: { reason } })
})

it('one examination runs at a time, eight wait, and a stop ends all of them', async () => {
  let running = 0
  let most = 0
  const { ofPack, stop } = examine(async (_program, _args, { signal }) => {
    most = Math.max(most, (running += 1))
    await new Promise((resolve) => signal?.addEventListener('abort', resolve))
    running -= 1
    throw new CommandFailed('node', 'ended', '')
  })
  const all = Array.from({ length: 9 }, () => ofPack().catch((error: unknown) => error))
  expect(await all[8]).toMatchObject({
    kind: { code: 'NotReady' },
    message: expect.stringContaining('too many') as string,
  })
  await stop()
  for (const each of await Promise.all(all)) expect(each).toMatchObject({ kind: { code: 'NotReady' } })
  expect([most, running]).toEqual([1, 0])
})
