import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { createSupportArchive } from '../../../src/diagnosis/support-archive.ts'
import { writeArchive } from '../../../src/support/collect.ts'
import type { CommandResult } from '../../../src/system/runner.ts'
import { createVerbs } from '../../../src/verbs/call.ts'
import { captureLog } from '../../support/https-server.ts'

const caller = { role: 'admin' } as const

function start(settings = { keptHours: 24, limitBytes: 1_048_576 }) {
  const stateDirectory = mkdtempSync(join(tmpdir(), 'edgehostd-archive-'))
  onTestFinished(() => rmSync(stateDirectory, { recursive: true }))
  const clock = { now: Date.parse('2026-01-31T08:00:00Z') }
  const runs: { file: string; end: (result: Partial<CommandResult>) => void }[] = []
  const verbs = createVerbs({
    program: '/verb.cjs',
    place: {
      stateDirectory,
      pam: { program: '/pamtester', service: 'edgehostd' },
      support: { program: '/support.cjs', socket: '/run/edgehostd/api.sock' },
      platformProgram: '/platform.cjs',
    },
    outside: () => ({
      run: (_program, args) =>
        new Promise((resolve) => {
          const file = args.find((each) => each.startsWith('--file='))?.slice(7) ?? ''
          runs.push({
            file,
            end: (result) =>
              resolve({ exitCode: 0, stdout: '{"file":"","files":[]}', stderr: '', ...result }),
          })
        }),
    }),
  })
  const create = () =>
    createSupportArchive({
      verbs,
      stateDirectory,
      settings,
      hostName: () => 'press 3',
      clock: { now: () => clock.now, monotonic: () => clock.now },
      log: captureLog().log,
    })
  return { create, clock, runs, folder: join(stateDirectory, 'support') }
}

/** Generates an archive with this content, and waits for its end. */
async function generate(
  { runs }: Pick<ReturnType<typeof start>, 'runs'>,
  archive: ReturnType<typeof createSupportArchive>,
  text: string,
) {
  const { uid } = await archive.generate(caller)
  await expect.poll(() => runs.at(-1)?.file.includes(uid)).toBe(true)
  const run = runs.at(-1)
  writeFileSync(run?.file ?? '', text)
  run?.end({})
  await expect.poll(() => archive.status().status).toBe('Completed')
  return uid
}

it('before the first archive, and while it is made, there is nothing to download; then it is the whole file', async () => {
  const ground = start()
  const archive = ground.create()
  await archive.prepare()
  expect(archive.status()).toMatchObject({ status: 'Unknown' })
  await expect(archive.open()).rejects.toMatchObject({ code: 'NotFound' })
  const { uid } = await archive.generate(caller)
  expect(archive.status()).toMatchObject({ status: 'InProgress', uid })
  expect(await archive.generate(caller)).toEqual({ uid, isNew: false })
  await expect(archive.open()).rejects.toMatchObject({ code: 'NotFound' })
  await expect.poll(() => ground.runs.length).toBe(1)
  writeFileSync(ground.runs[0]?.file ?? '', 'tar')
  ground.runs[0]?.end({})
  await expect.poll(() => archive.status().status).toBe('Completed')
  const { file, sizeBytes, name } = await archive.open()
  await file.close()
  expect([sizeBytes, name]).toEqual([3, 'edgehostd-support-press-3-20260131T080000Z.tar'])
})

it('the next archive removes the one before, and one that is too old is removed', async () => {
  const ground = start()
  const archive = ground.create()
  const first = await generate(ground, archive, 'first')
  const second = await generate(ground, archive, 'second')
  expect(second).not.toBe(first)
  expect(readdirSync(ground.folder).sort()).toEqual([`${second}.tar`, 'archive.json'].sort())
  ground.clock.now += 23 * 3_600_000
  await archive.removeOld()
  expect(existsSync(join(ground.folder, `${second}.tar`))).toBe(true)
  ground.clock.now += 3_600_000
  await archive.removeOld()
  expect(readdirSync(ground.folder)).toEqual([])
  expect(archive.status().status).toBe('Unknown')
})

it('an archive outlives a restart, one that was being made does not, and leftovers are removed', async () => {
  const ground = start()
  const uid = await generate(ground, ground.create(), 'whole')
  mkdirSync(join(ground.folder, 'left'))
  const later = ground.create()
  await later.prepare()
  expect(later.status()).toMatchObject({ status: 'Completed', uid })
  expect(existsSync(join(ground.folder, 'left'))).toBe(false)
  await later.generate(caller)
  await expect.poll(() => ground.runs.length).toBe(2)
  const last = ground.create()
  await last.prepare()
  expect(last.status()).toMatchObject({
    status: 'Failed',
    msg: expect.stringContaining('generate it again') as string,
  })
})

it('a failure of the program is the message of the status, and the next archive can be made', async () => {
  const ground = start()
  const archive = ground.create()
  await archive.generate(caller)
  await expect.poll(() => ground.runs.length).toBe(1)
  ground.runs[0]?.end({
    exitCode: 1,
    stdout: '',
    stderr: 'edgehostctl: the archive would be larger than 9 bytes\n',
  })
  await expect.poll(() => archive.status().status).toBe('Failed')
  expect(archive.status().msg).toBe('the archive could not be made: the archive would be larger than 9 bytes')
  await expect(archive.open()).rejects.toMatchObject({ code: 'NotFound' })
  await generate(ground, archive, 'second')
})

it('without room on the disk nothing is begun', async () => {
  const archive = start({ keptHours: 1, limitBytes: 2 ** 50 }).create()
  await expect(archive.generate(caller)).rejects.toMatchObject({ code: 'StorageFull' })
  expect(archive.status().status).toBe('Unknown')
})

it('an archive whose name ends with .tar is a plain one, and a larger one than its limit leaves no file', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'edgehostd-tar-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  async function* members() {
    yield { name: 'a/one.txt', content: Buffer.from('one\n') }
    yield { name: 'a/two.txt', content: Buffer.alloc(1_000) }
  }
  const file = join(folder, 'x.tar')
  await writeArchive(file, members(), { madeAt: 0 }, () => undefined)
  expect(execFileSync('tar', ['-tf', file], { encoding: 'utf8' })).toBe('a/one.txt\na/two.txt\n')
  const large = join(folder, 'y.tar')
  await expect(
    writeArchive(large, members(), { madeAt: 0, limitBytes: 1_000 }, () => undefined),
  ).rejects.toThrow('larger than 1000 bytes')
  expect(readdirSync(folder)).toEqual(['x.tar'])
})
