import { expect, it } from 'vitest'
import { AppError } from '../../../src/errors/app-error.ts'
import { generalErrors } from '../../../src/errors/codes.ts'
import { createExaminations, mostWaiting } from '../../../src/platform/examinations.ts'
import { CommandFailed, type CommandRunner } from '../../../src/system/runner.ts'
import { captureLog } from '../../support/https-server.ts'

const { log } = captureLog()
const never = { projectUid: '', name: 'anna', signal: new AbortController().signal }
const common = { folder: '/nowhere', limits: {}, reserveBytes: 0 }

const examine = (run: CommandRunner['run']) => {
  const examinations = createExaminations({ runner: { run }, program: '/nowhere/examine.cjs', log })
  return {
    ...examinations,
    ofPack: (uid = 'u', name = 'anna', projectUid = '') =>
      examinations.pack({ ...common, file: '/nowhere/archive', uid }, { ...never, name, projectUid }),
    ofProfile: () => examinations.profile({ ...common, isNew: true }, Buffer.from('{}'), never),
  }
}
const killed = {
  ...{ exitCode: undefined, stdout: '' },
  stderr: 'FATAL ERROR: Reached heap limit Allocation failed - JavaScript heap out of memory',
}

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

it('one examination runs at a time, a bounded number waits, and a stop ends all of them', async () => {
  let running = 0
  let most = 0
  const { ofPack, stop } = examine(async (_program, _args, { signal }) => {
    most = Math.max(most, (running += 1))
    await new Promise((resolve) => signal?.addEventListener('abort', resolve))
    running -= 1
    throw new CommandFailed('node', 'ended', '')
  })
  const all = Array.from({ length: mostWaiting + 2 }, () => ofPack().catch((error: unknown) => error))
  expect(await all[mostWaiting + 1]).toMatchObject({
    kind: { code: 'NotReady' },
    message: expect.stringContaining('too many') as string,
  })
  await stop()
  for (const each of await Promise.all(all)) expect(each).toMatchObject({ kind: { code: 'NotReady' } })
  expect([most, running]).toEqual([1, 0])
})

it('what waits and is not wanted any more gives its place to others, and what runs is ended', async () => {
  let started = 0
  const examinations = createExaminations({
    runner: {
      async run(_program, _args, { signal }) {
        started += 1
        await new Promise((resolve) => signal?.addEventListener('abort', resolve))
        throw new CommandFailed('node', 'ended', '')
      },
    },
    ...{ program: '/nowhere/examine.cjs', log },
  })
  const order = { ...common, file: '/nowhere/archive', uid: 'u' }
  const gone = new AppError(generalErrors.BadRequest, 'gone')
  const all = Array.from({ length: 17 }, () => {
    const controller = new AbortController()
    const result = examinations
      .pack(order, { ...never, signal: controller.signal })
      .catch((error: unknown) => error)
    return { controller, result }
  })
  const [first, ...waiting] = all
  for (const { controller } of waiting) controller.abort(gone)
  for (const { result } of waiting) expect(await result).toBe(gone)
  expect(started).toBe(1)

  const next = examinations.pack(order, never).catch((error: unknown) => error)
  first?.controller.abort(gone)
  expect(await first?.result).toBe(gone)
  await expect.poll(() => started).toBe(2)
  await examinations.stop()
  expect(await next).toMatchObject({ kind: { code: 'NotReady' } })
})

/** Examinations that wait until they may begin, and the uids of their packs in order. */
function recorded() {
  const { promise: first, resolve: begin } = Promise.withResolvers<undefined>()
  const examined: string[] = []
  const { ofPack } = examine(async (_program, _args, { input }) => {
    await first
    let order = ''
    for await (const line of input as AsyncIterable<string>) order += line
    const { pack } = JSON.parse(order) as { pack: { uid: string } }
    examined.push(pack.uid)
    return { exitCode: 0, stdout: JSON.stringify({ pack }), stderr: '' }
  })
  return { begin, examined, ofPack }
}

it('many users of one project do not keep another project waiting', async () => {
  const { begin, examined, ofPack } = recorded()
  const all = ['anna', 'ben', 'carl', 'dora'].map((name) => ofPack(`south ${name}`, name, 'south'))
  all.push(ofPack('north', 'eve', 'north'))
  begin(undefined)
  await Promise.all(all)
  expect(examined.slice(0, 2)).toEqual(['south anna', 'north'])
})

it('many requests of one asker do not keep others waiting', async () => {
  const { begin, examined, ofPack } = recorded()
  const numbers = Array.from({ length: mostWaiting + 1 }, (_, at) =>
    ofPack(`anna ${at}`).catch((error: unknown) => error),
  )
  // The queue is full: the last one of anna gives way.
  const others = [ofPack('ben 0', 'ben'), ofPack('ben 1', 'ben')]
  begin(undefined)
  await Promise.all(others)
  // The turn that began at once counts too.
  expect(examined.slice(0, 4)).toEqual(['anna 0', 'ben 0', 'anna 1', 'ben 1'])
  const refused = (await Promise.all(numbers)).flatMap((each, at) => (each instanceof Error ? [at] : []))
  expect(refused).toEqual([mostWaiting - 1, mostWaiting])
})
