import { mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs'
import { statfs, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { execa, execaSync } from 'execa'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { uploadDefinition, uploadPath } from '../../support/definition-upload.ts'
import { examineProgram } from '../../support/programs.ts'
import { createTestEdge, type ErrorReply, type TestEdge } from '../../support/test-edge.ts'
import { manyFiles, unpackingArchive } from '../../support/unpacking-archive.ts'

const MiB = 2 ** 20

const archives = mkdtempSync(join(tmpdir(), 'edgehostd-archives-'))
afterAll(() => rmSync(archives, { recursive: true }))
const place = async (name: string, content: Buffer) => {
  await writeFile(join(archives, name), content)
  return join(archives, name)
}

let folder: string
let edge: TestEdge | undefined
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'edgehostd-reserve-'))
})
afterEach(async () => {
  await edge?.stop()
  edge = undefined
  execaSync('umount', [folder])
  rmSync(folder, { recursive: true })
})

/** An edge whose state is on a disk of its own, and the reply that `curl` gets for an archive. */
async function begin(mountOptions: string, reserveBytes: number) {
  execaSync('mount', ['-t', 'tmpfs', '-o', mountOptions, 'edgehostd-test', folder])
  const host = await createTestEdge({
    examineProgram: examineProgram(),
    stateDirectory: folder,
    definitions: { upload: { limitBytes: 100_000_000, reserveBytes, maximum: 2 } },
  })
  edge = host
  const token = (await host.login('alice')).access
  const { port } = await host.daemon.rooms.api.listen(0)
  const ca = join(folder, 'tls', 'certificate.pem')
  const url = `https://localhost:${port}${uploadPath}`
  return {
    takeSmall: () => uploadDefinition(host, token),
    async send(archive: string) {
      const args = [
        '--silent',
        '--show-error',
        '--form',
        `uploadFile=@${archive}`,
        '--write-out',
        ' %{http_code}',
      ]
      const { stdout } = await execa('curl', [...args, '-H', `Authorization: ${token}`, '--cacert', ca, url])
      const body = JSON.parse(stdout.slice(0, -4)) as ErrorReply & { details?: object }
      return { status: Number(stdout.slice(-3)), body }
    },
  }
}

/** The lowest free space of a disk, in bytes and inodes, during some work. */
async function watchDisk<Result>(
  work: Promise<Result>,
): Promise<{ result: Result; bytes: number; inodes: number }> {
  const least = { bytes: Infinity, inodes: Infinity }
  const state = { isDone: false }
  const watching = (async () => {
    while (!state.isDone) {
      const { bavail, bsize, ffree } = await statfs(folder)
      least.bytes = Math.min(least.bytes, bavail * bsize)
      least.inodes = Math.min(least.inodes, ffree)
      // The daemon is in this process.
      await delay(1)
    }
  })()
  const result = await work.finally(() => (state.isDone = true))
  await watching
  return { result, ...least }
}

const staged = () => readdirSync(join(folder, 'definitions', 'staging'))

// Only root may mount.
describe.skipIf(process.getuid?.() !== 0)('an archive of some MB that unpacks to 420 MB', () => {
  let archive = ''
  beforeAll(async () => {
    archive = await place('large.tar.zst', await unpackingArchive(100))
    expect(statSync(archive).size).toBeLessThan(2_800_000)
  })

  it('an archive that needs the reserve is a 507, does not touch the reserve, and leaves nothing', async () => {
    const reserveBytes = 64 * MiB
    const { send, takeSmall } = await begin('size=128m', reserveBytes)
    const { result, bytes } = await watchDisk(send(archive))
    expect(result).toMatchObject({
      status: 507,
      body: { code: 'StorageFull', details: { missingBytes: expect.any(Number) as number } },
    })
    expect(bytes).toBeGreaterThanOrEqual(reserveBytes)
    expect(bytes).toBeLessThan(reserveBytes + 16 * MiB)
    expect(staged()).toEqual([])
    await takeSmall()
  })

  it('an archive takes no more of a large disk than the limit of its texts', async () => {
    const { send } = await begin('size=1g', 64 * MiB)
    const { result, bytes } = await watchDisk(send(archive))
    expect(result).toMatchObject({ status: 400 })
    expect(1_024 * MiB - bytes).toBeLessThan((256 + 16) * MiB)
    expect(staged()).toEqual([])
  })
})

describe.skipIf(process.getuid?.() !== 0)('an archive of 20,000 files', () => {
  it('an archive of too many files for the inodes is a 507 and leaves nothing', async () => {
    const archive = await place('many.tar.zst', await manyFiles(20_000))
    const { send } = await begin('size=512m,nr_inodes=10000', 64 * MiB)
    const { result, inodes } = await watchDisk(send(archive))
    expect(result.body.message).toContain('inode')
    expect(result).toMatchObject({ status: 507, body: { code: 'StorageFull' } })
    expect(inodes).toBeGreaterThan(200)
    expect(staged()).toEqual([])
  })
})
