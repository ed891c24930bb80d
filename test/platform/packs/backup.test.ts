import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { makeBackup } from '../../../src/backup/make-backup.ts'
import { packMembers } from '../../../src/backup/members.ts'
import { BackupRefused } from '../../../src/backup/refused.ts'
import { migrations } from '../../../src/edgeplatformd/migrations.ts'
import { newestSchema } from '../../../src/store/structure.ts'
import { restoreBackup } from '../../../src/backup/restore-backup.ts'
import { captureLog } from '../../support/https-server.ts'
import { importProfile, smallPack, smallProfile, tarOf, uploadPack } from '../../support/platform-packs.ts'
import { createTestPlatform } from '../../support/test-platform.ts'

const password = 'a long password'
async function readAll(pieces: AsyncIterable<Buffer>): Promise<number> {
  let bytes = 0
  for await (const piece of pieces) bytes += piece.length
  return bytes
}

let home: string
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'backup-of-packs-'))
})
afterEach(() => {
  rmSync(home, { recursive: true })
})

it('a backup of a running platform brings its packs and its profiles, secrets included, to another one', async () => {
  const from = await createTestPlatform({ stateDirectory: join(home, 'from') })
  await from.addUser('root@plant.example', password, ['admin'])
  const headers = await from.signIn('root@plant.example', password)
  // A name like those of unfinished files, which a backup leaves out elsewhere.
  const odd = 'charts/.web.0123456789abcdef.tmp'
  const files = smallPack('web', '1.0.0', {
    [odd]: 'kept',
    'charts/web-1.tgz': Buffer.alloc(3_000_000, 'chart'),
  })
  const pack = (await uploadPack(from, gzipSync(tarOf(files)), headers)).json<{ uid: string }>()
  const profile = (await importProfile(from, JSON.stringify(smallProfile()), headers)).json<{ uid: string }>()
  const exportOf = async (platform: typeof from, own: Record<string, string>) =>
    (
      await platform.app.inject({ url: `/v1/clusterprofiles/${profile.uid}/export`, headers: own })
    ).json<object>()
  const exported = await exportOf(from, headers)
  // As while an upload arrives.
  const arriving = join(home, 'from/packs/staging/half')
  mkdirSync(arriving)
  writeFileSync(join(arriving, 'archive'), 'half of it')

  const file = join(home, 'platform.backup')
  const passphrase = 'correct horse battery staple'
  const common = {
    file,
    passphrase,
    configFile: join(home, 'config.yaml'),
    now: Date.now(),
    onBegin: () => undefined,
  }
  await makeBackup({ ...common, stateDirectory: join(home, 'from'), namedFiles: [], programVersion: '1.2.3' })
  await from.close()
  const { log } = captureLog()
  const folder = join(home, 'to')
  const later = { ...migrations, first: newestSchema(migrations) + 1 }
  await expect(restoreBackup({ ...common, stateDirectory: folder, migrations: later, log })).rejects.toThrow(
    `the database of the backup has schema ${newestSchema(migrations)}, this program upgrades those from ${later.first} on`,
  )
  await restoreBackup({ ...common, stateDirectory: folder, migrations, log })

  expect(() => readFileSync(join(home, 'to/packs/staging/half/archive'))).toThrow('ENOENT')
  const to = await createTestPlatform({ stateDirectory: join(home, 'to') })
  try {
    const again = await to.signIn('root@plant.example', password)
    expect(await exportOf(to, again)).toEqual(exported)
    const folder = to.rooms.packs.packs.folderOf(pack)
    for (const [path, content] of Object.entries(files))
      expect(readFileSync(join(folder, path))).toEqual(Buffer.from(content as string))
  } finally {
    await to.close()
  }
})

it('a file that is deleted while a backup is made ends it with a message', async () => {
  const file = join(home, 'packs/deleted')
  const members = packMembers([
    { place: 'state', path: 'packs/deleted', mode: 0o600, from: { file, sizeBytes: 1 } },
  ])
  await expect(readAll(members)).rejects.toThrow(BackupRefused)
})
