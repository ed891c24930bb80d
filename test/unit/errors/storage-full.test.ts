import { writeFile } from 'node:fs/promises'
import { expect, it } from 'vitest'
import { emptyHeld, openPart } from '../../../src/content/uploads/part.ts'
import { AppError } from '../../../src/errors/app-error.ts'
import { refuseFull, refuseFullOf, storageFull } from '../../../src/errors/system-reason.ts'

const refusalOf = async (work: Promise<unknown>) => {
  const error: unknown = await work.then(
    () => undefined,
    (reason: unknown) => reason,
  )
  if (error instanceof AppError) return error
  throw new Error('nothing was refused')
}

it('a full disk names the file that could not be written, where that is known', async () => {
  const plain = await refusalOf(writeFile('/dev/full', 'x').catch(refuseFull))
  const named = await refusalOf(writeFile('/dev/full', 'x').catch(refuseFullOf('/dev/full')))
  expect([plain, named].map(({ code }) => code)).toEqual(['StorageFull', 'StorageFull'])
  expect(named.message).toBe('the disk of /dev/full is full; make room (see: df) and try again')
  const opened = Object.assign(new Error('no'), { code: 'ENOSPC', path: '/var/lib/x\u001b' })
  expect(storageFull(undefined, opened).message).toContain('the disk of /var/lib/x\\u001b is full')
})

it('a part of an upload on a full disk names itself', async () => {
  const part = await openPart({ file: '/dev/full', held: emptyHeld(), onWritten: () => undefined })
  const work = async () => {
    await part.write(Buffer.alloc(4_194_304))
    await part.write(Buffer.alloc(4_194_304))
    await part.finish()
  }
  expect((await refusalOf(work())).message).toContain('the disk of /dev/full is full')
})
