import { mkdir, readdir, rename, rm, utimes, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { BundledDefinition } from '../../../src/definition/slots/preparations.ts'
import { AppError } from '../../../src/errors/app-error.ts'
import type { ClusterConfigArchiveDetails, ClusterProfileDetail } from '../../../src/definition/schemas.ts'
import { uploadErrors } from '../../../src/upload/codes.ts'
import { definitionArchive } from '../../support/definition-archives.ts'
import { uploadDefinition } from '../../support/definition-upload.ts'
import { createTestEdge, type TestEdge } from '../../support/test-edge.ts'
import { noise } from '../../support/random.ts'

const archivePath = '/v1/edge-mgmt/clusters/archive'
const noon = Date.UTC(2026, 5, 1, 12)
const hours = (count: number) => noon + count * 3_600_000

let edge: TestEdge
let token: string
let made: BundledDefinition[]
let running: readonly ClusterProfileDetail[] | undefined
const options = () => ({ running: () => running })
beforeEach(async () => {
  running = undefined
  made = []
  edge = await createTestEdge(options())
  token = (await edge.login('alice')).access
})
afterEach(() => edge.stop())

/** A pack that takes a while to examine, in pieces between which the event loop turns. */
const files = { 'packs/web-shop-1.0/charts/a.tgz': noise(6_000_000) }
/** The examination has begun, and is far from its end. */
const begun = () => expect.poll(onDisk, { interval: 1 }).toHaveLength(2)

/** A published bundle, as the room of the content reports it. Its blob has the version in it. */
async function bundle(
  uid: string,
  publishedAt: number,
  content = definitionArchive({ version: uid }),
): Promise<BundledDefinition> {
  const folder = join(edge.stateDirectory, 'blobs')
  await mkdir(folder, { recursive: true })
  await writeFile(join(folder, uid), content)
  const blob = { file: join(folder, uid), sizeBytes: content.length }
  made.push({ bundleUid: uid, name: `bundle ${uid}`, publishedAt, ...blob })
  return made.at(-1)!
}
const prepare = (
  { bundleUid: uid, name, publishedAt, file, sizeBytes }: BundledDefinition,
  signal = new AbortController().signal,
) => edge.definition.examineBundled({ file, sizeBytes, bundle: { uid, name, publishedAt }, signal })
/** Reports a bundle as the newest, with the older ones of this test. */
const changed = (newest?: BundledDefinition) => {
  const older = made.filter(({ publishedAt }) => newest && publishedAt < newest.publishedAt)
  return edge.definition.bundlesChanged(newest ? [newest, ...older.reverse()] : [])
}
/** As the room of the content does it: examined, published, placed, reported. */
async function publish(each: BundledDefinition) {
  const prepared = await prepare(each)
  await prepared.place()
  await changed(each)
}

const embeddedFile = () => join(edge.stateDirectory, 'embedded.tgz')
/** The installer's file, with its version. */
async function install(version: string, at: number, content = definitionArchive({ version })) {
  await writeFile(embeddedFile(), content)
  await utimes(embeddedFile(), at / 1_000, at / 1_000)
}

const details = async (slot: string) =>
  (await edge.get(`${archivePath}/${slot}/details`, token)).json<ClusterConfigArchiveDetails>()
const versionIn = async (slot: string) => (await details(slot)).clusterProfileDetails[0]?.profileVersion
/** The versions in the slots embedded and update. */
const slots = async () => [await versionIn('embedded'), await versionIn('update')]
const audits = () =>
  edge.database.sql
    .prepare("SELECT message FROM audit WHERE kind = 'definition' ORDER BY seq")
    .all()
    .map(({ message }) => message)
const discardUpdate = () =>
  edge.app.inject({ method: 'DELETE', url: `${archivePath}/update`, headers: { authorization: token } })
const onDisk = async () => {
  const folder = join(edge.stateDirectory, 'definitions')
  return [await readdir(folder), await readdir(join(folder, 'staging'))].flat().sort()
}
const warnings = () => edge.lines.filter(({ level }) => Number(level) >= 40)

/** Stops the daemon and starts it on the same state. */
async function restart() {
  const { stateDirectory, host } = edge
  await edge.daemon.stop()
  edge = await createTestEdge({ ...options(), host, stateDirectory })
  token = (await edge.login('alice')).access
}

describe('the slot embedded, with a content bundle', () => {
  it('a published bundle fills it, named as the bundle, with the hash of the archive', async () => {
    const first = await bundle('1.0.0', noon)
    await publish(first)
    const shown = await details('embedded')
    expect(shown).toMatchObject({ fileName: 'bundle 1.0.0', sizeBytes: first.sizeBytes, problems: [] })
    expect((await edge.definition.archiveOf(shown.archiveUploadPath)).file).toBe(first.file)
    expect(shown.sha256).toMatch(/^[0-9a-f]{64}$/)
    expect(await slots()).toEqual(['1.0.0', undefined])
    expect(await onDisk()).toEqual([shown.uid, 'staging'].sort())
    expect(audits()).toEqual([
      'Accept the embedded definition factory 1.0.0 of the content bundle bundle 1.0.0',
    ])
  })

  it('nothing of the archive is copied, and a definition is examined once', async () => {
    const first = await bundle('1.0.0', noon)
    const prepared = await prepare(first)
    // The blob moves into the store when its bundle is published; only the report says where to.
    const moved = { ...first, file: `${first.file}.moved` }
    await rename(first.file, moved.file)
    await prepared.place()
    const { uid } = await details('embedded')
    await changed(moved)
    expect((await details('embedded')).uid).toBe(uid)
    expect((await readdir(join(edge.stateDirectory, 'definitions', String(uid)))).sort()).toEqual([
      'details.json',
      'profiles.json',
    ])
    expect(warnings()).toEqual([])
  })

  it('a report before `place` uses the same examination', async () => {
    const first = await bundle('1.0.0', noon)
    const prepared = await prepare(first)
    await rm(first.file)
    // The daemon needs the file only to examine it.
    await changed(first)
    const { uid } = await details('embedded')
    expect(uid).toBeDefined()
    await prepared.place()
    await prepared.place()
    expect((await details('embedded')).uid).toBe(uid)
    expect(await onDisk()).toEqual([uid, 'staging'].sort())
  })

  it.each([
    ['file, bundle', -1],
    ['bundle, file', 1],
  ])('the newer one counts, whatever came first: %s', async (_what, fileHours) => {
    const newer = fileHours > 0 ? '9.0.0' : '1.0.0'
    const first = await bundle('1.0.0', noon)
    await install('9.0.0', hours(fileHours))
    expect(await slots()).toEqual(['9.0.0', undefined])
    await publish(first)
    expect(await slots()).toEqual([newer, undefined])
    await restart()
    expect(await slots()).toEqual([newer, undefined])
    await changed(first)
    expect(await slots()).toEqual([newer, undefined])
    expect(await onDisk()).toHaveLength(2)
    await rm(embeddedFile())
    await changed(first)
    expect(await slots()).toEqual(['1.0.0', undefined])
    await install('9.0.0', hours(fileHours))
    expect(await slots()).toEqual([newer, undefined])
    await changed()
    expect(await slots()).toEqual(['9.0.0', undefined])
    await rm(embeddedFile())
    expect(await slots()).toEqual([undefined, undefined])
    expect(audits().at(-1)).toBe('Remove the embedded definition, whose file was removed')
  })

  it('when the newest bundle is removed, the next one counts, then none', async () => {
    const [one, two] = [await bundle('1.0.0', noon), await bundle('2.0.0', hours(1))]
    await publish(one)
    await publish(two)
    expect(await slots()).toEqual(['2.0.0', undefined])
    await changed(one)
    expect(await slots()).toEqual(['1.0.0', undefined])
    await changed()
    expect(await slots()).toEqual([undefined, undefined])
    expect(audits().at(-1)).toBe('Remove the embedded definition, whose content bundle was removed')
    expect(await onDisk()).toEqual(['staging'])
  })

  it('a bundle that is placed after a newer one changes nothing', async () => {
    const [one, two] = [await bundle('1.0.0', noon), await bundle('2.0.0', hours(1))]
    const late = await prepare(one)
    await publish(two)
    await late.place()
    expect(await slots()).toEqual(['2.0.0', undefined])
    expect(await onDisk()).toHaveLength(2)
  })

  it('a report during an examination is not lost, and of many reports the last one holds', async () => {
    const large = await bundle('large', noon, definitionArchive({ version: '9.0.0', files }))
    const all = await Promise.all([1, 2, 3].map((each) => bundle(`${each}.0.0`, hours(each))))
    const first = changed(large)
    await begun()
    await Promise.all([...all.map(changed), changed(all[1])])
    await first
    // A request for the details would bring the slot up to date by itself.
    const held = edge.database.sql.prepare("SELECT file_name FROM definition WHERE slot = 'embedded'").get()
    expect(held).toEqual({ file_name: 'bundle 2.0.0' })
    expect(await slots()).toEqual(['2.0.0', undefined])
    expect(await onDisk()).toHaveLength(2)
  })

  it('before the bundles are known, and without the disk that they are on, the slot stays as it is', async () => {
    await publish(await bundle('1.0.0', noon))
    const { uid } = await details('embedded')
    await rm(join(edge.stateDirectory, 'blobs'), { recursive: true })
    await restart()
    edge.definition.background?.()
    expect((await details('embedded')).uid).toBe(uid)
    // An older file does not take the slot, a newer one does.
    await install('8.0.0', hours(-1))
    expect((await details('embedded')).uid).toBe(uid)
    await install('9.0.0', hours(1))
    expect(await slots()).toEqual(['9.0.0', undefined])
    expect(warnings()).toEqual([])
  })

  it('what another version of the daemon examined stays until the bundles are known, and is then examined again', async () => {
    const first = await bundle('1.0.0', noon)
    await publish(first)
    const { uid } = await details('embedded')
    edge.database.sql.exec("UPDATE definition SET source = replace(source, '1.2.3', '1.2.2')")
    expect((await details('embedded')).uid).not.toBe(uid)
    edge.database.sql.exec("UPDATE definition SET source = replace(source, '1.2.3', '1.2.2')")
    await restart()
    const { uid: held } = await details('embedded')
    expect(held).toBe((await details('embedded')).uid)
    // The blob is damaged, and has been moved away.
    await rename(first.file, `${first.file}.away`)
    await changed(first)
    expect((await details('embedded')).uid).toBe(held)
    await rename(`${first.file}.away`, first.file)
    await changed(first)
    expect((await details('embedded')).uid).not.toBe(held)
  })

  it('a crash between publication and placing is healed at the next start', async () => {
    const first = await bundle('1.0.0', noon)
    await prepare(first)
    await restart()
    expect(await onDisk()).toEqual(['staging'])
    await changed(first)
    expect(await slots()).toEqual(['1.0.0', undefined])
    expect(await onDisk()).toHaveLength(2)
  })

  it('a bundle whose blob is missing leaves the slot to the file, and has it again when the blob is back', async () => {
    const first = await bundle('1.0.0', noon)
    await rename(first.file, `${first.file}.away`)
    await install('9.0.0', hours(-1))
    await changed(first)
    expect(await slots()).toEqual(['9.0.0', undefined])
    expect(warnings()).toMatchObject([{ code: 'ENOENT', file: first.file }])
    await rename(`${first.file}.away`, first.file)
    expect(await slots()).toEqual(['1.0.0', undefined])
  })
})

describe('a definition of a bundle that cannot be used', () => {
  const refused = (error: unknown) => error as AppError

  it('it is refused before the bundle is published, with all its problems, and nothing of it is left', async () => {
    const bad = await bundle('1.0.0', noon, definitionArchive({ values: 'a: [\n' }))
    const error = await prepare(bad).catch(refused)
    expect(error).toMatchObject({ code: 'DefinitionInvalid', status: 400 })
    expect((error as AppError).message).toMatch(/^the definition in the bundle: profiles\/u1\/profile\.json/)
    expect((error as AppError).details).toMatchObject({ problems: [{ code: 'YamlInvalid' }] })
    expect(await onDisk()).toEqual(['staging'])
  })

  it('a blob that is no archive is refused', async () => {
    const error = await prepare(await bundle('1.0.0', noon, Buffer.from('hello'))).catch(refused)
    expect(error).toMatchObject({ code: 'ArchiveDamaged', status: 400 })
  })

  it.each([false, true])(
    'an upload that is given up ends the examination with its reason (before it begins: %s)',
    async (isEarly) => {
      const large = await bundle('1.0.0', noon, definitionArchive({ files }))
      const stop = new AbortController()
      const reason = new AppError(uploadErrors.TooManyUploads, 'given up')
      if (isEarly) stop.abort(reason)
      const examined = prepare(large, stop.signal).catch(refused)
      if (!isEarly) await begun()
      stop.abort(reason)
      expect(await examined).toMatchObject({ code: 'TooManyUploads' })
      expect(await onDisk()).toEqual(['staging'])
    },
  )

  it('a discarded one leaves nothing and changes no slot', async () => {
    const prepared = await prepare(await bundle('1.0.0', noon))
    expect(await onDisk()).toHaveLength(2)
    await prepared.discard()
    await prepared.place()
    expect(await onDisk()).toEqual(['staging'])
    expect(await slots()).toEqual([undefined, undefined])
  })

  it('a published one that is refused now leaves the slot to the file, and the other way round; the journal warns once', async () => {
    const bad = await bundle('1.0.0', noon, definitionArchive({ values: 'a: [\n' }))
    await install('9.0.0', hours(-1))
    await changed(bad)
    expect(await slots()).toEqual(['9.0.0', undefined])
    await changed(bad)
    expect(await slots()).toEqual(['9.0.0', undefined])
    expect(warnings()).toMatchObject([{ code: 'DefinitionInvalid', file: bad.file }])
    const good = await bundle('2.0.0', hours(1))
    await publish(good)
    await install('', hours(2), definitionArchive().subarray(0, 200))
    expect(await slots()).toEqual(['2.0.0', undefined])
    expect(warnings()).toMatchObject([{ file: bad.file }, { code: 'ArchiveDamaged', file: embeddedFile() }])
    await changed(bad)
    expect(await slots()).toEqual([undefined, undefined])
    const { problems = [] } = await details('embedded')
    expect(problems.map(({ code }) => code).sort()).toEqual(['ArchiveDamaged', 'YamlInvalid'])
    expect(audits().at(-1)).toMatch(/^Accept/)
  })

  it('a stop of the daemon ends the examination with NotReady and is no warning', async () => {
    const large = await bundle('1.0.0', noon, definitionArchive({ files }))
    const reported = changed(large)
    await begun()
    await edge.definition.stop?.()
    await reported
    expect(await prepare(large).catch(refused)).toMatchObject({ code: 'NotReady' })
    expect(await onDisk()).toEqual(['staging'])
    expect(warnings()).toEqual([])
  })
})

describe('the slot update, with a content bundle', () => {
  /** A cluster of the definition in the slot embedded. */
  const createCluster = async () => {
    running = (await details('embedded')).clusterProfileDetails
  }
  beforeEach(async () => {
    await publish(await bundle('1.0.0', noon))
    await createCluster()
  })

  it('while there is a cluster, a bundle puts its definition there, with its changes; embedded stays', async () => {
    await publish(await bundle('2.0.0', hours(1)))
    expect(await slots()).toEqual(['1.0.0', '2.0.0'])
    const shown = await details('update')
    expect(shown.diff?.profiles).toMatchObject([{ fromVersion: '1.0.0', toVersion: '2.0.0' }])
    expect(shown.fileName).toBe('bundle 2.0.0')
    expect(audits().at(-1)).toBe('Accept the update factory 1.0.0 of the content bundle bundle 2.0.0')
    expect(await onDisk()).toHaveLength(3)
  })

  it('the bundle from which the cluster was made is not an update of it', async () => {
    const one = await bundle('1.0.0', noon)
    await restart()
    await changed(one)
    expect(await slots()).toEqual(['1.0.0', undefined])
  })

  it('a file that was newer than the bundle keeps the bundle from being an update, also when the file goes', async () => {
    running = undefined
    const two = await bundle('2.0.0', hours(1))
    await install('9.0.0', hours(2))
    await publish(two)
    await createCluster()
    await rm(embeddedFile())
    await restart()
    await changed(two)
    expect(await slots()).toEqual([undefined, undefined])
    // Without the cluster the bundle counts again.
    running = undefined
    expect(await slots()).toEqual(['2.0.0', undefined])
  })

  it('a discarded update does not come back at the next start, but a newer bundle is one', async () => {
    const two = await bundle('2.0.0', hours(1))
    await publish(two)
    expect((await discardUpdate()).statusCode).toBe(204)
    await changed(two)
    await restart()
    await changed(two)
    expect(await slots()).toEqual(['1.0.0', undefined])
    await publish(await bundle('3.0.0', hours(2)))
    expect(await slots()).toEqual(['1.0.0', '3.0.0'])
  })

  it('a later upload replaces it for good; the next bundle replaces the upload', async () => {
    const two = await bundle('2.0.0', hours(1))
    await publish(two)
    await uploadDefinition(edge, token, { version: '7.0.0' })
    await restart()
    await changed(two)
    expect(await versionIn('update')).toBe('7.0.0')
    // The upload does not go with a bundle.
    await changed(await bundle('1.0.0', noon))
    expect(await versionIn('update')).toBe('7.0.0')
    await publish(await bundle('3.0.0', hours(2)))
    expect(await versionIn('update')).toBe('3.0.0')
  })

  it('it goes with its bundle; an older bundle does not become the update, the same one does when its disk is back', async () => {
    const [one, two] = [await bundle('1.0.0', noon), await bundle('2.0.0', hours(1))]
    await publish(two)
    await changed(one)
    expect(await slots()).toEqual(['1.0.0', undefined])
    expect(audits().at(-1)).toBe('Remove the update, whose content bundle was removed')
    await restart()
    await changed(one)
    expect(await slots()).toEqual(['1.0.0', undefined])
    await changed(two)
    expect(await slots()).toEqual(['1.0.0', '2.0.0'])
  })

  it('before the bundles are known it stays', async () => {
    await publish(await bundle('2.0.0', hours(1)))
    await restart()
    edge.definition.background?.()
    expect(await slots()).toEqual(['1.0.0', '2.0.0'])
  })

  it('a crash after the publication, before it is in the slot, is healed at the next start', async () => {
    const two = await bundle('2.0.0', hours(1))
    await prepare(two)
    await restart()
    await changed(two)
    expect(await slots()).toEqual(['1.0.0', '2.0.0'])
  })

  it('a crash before it is noted as offered examines nothing again, and a discarded one stays away', async () => {
    const two = await bundle('2.0.0', hours(1))
    await publish(two)
    const { uid } = await details('update')
    edge.database.sql.exec(`UPDATE definition_offered SET published_at = ${noon}`)
    await restart()
    await changed(two)
    expect((await details('update')).uid).toBe(uid)
    await discardUpdate()
    await changed(two)
    expect(await slots()).toEqual(['1.0.0', undefined])
  })

  it('without the cluster the newest bundle has the slot embedded', async () => {
    const two = await bundle('2.0.0', hours(1))
    await publish(two)
    running = undefined
    expect(await versionIn('embedded')).toBe('2.0.0')
  })
})
