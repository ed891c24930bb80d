import { createHash } from 'node:crypto'
import { readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { Problem } from '../../../src/definition/definition.ts'
import type { ClusterConfigArchiveDetails, ClusterProfileDetail } from '../../../src/definition/schemas.ts'
import { definitionArchive, type ArchiveWish } from '../../support/definition-archives.ts'
import { uploadDefinition, uploadFile, uploadPath } from '../../support/definition-upload.ts'
import { examineProgram } from '../../support/programs.ts'
import { compressions, exportedProfile, rawTar, type RawMember } from '../../support/tar-bytes.ts'
import { createTestEdge, type ErrorReply, type TestEdge } from '../../support/test-edge.ts'
import { form, type Part } from '../../support/upload-server.ts'
import { noise } from '../../support/random.ts'

const archivePath = '/v1/edge-mgmt/clusters/archive'

let edge: TestEdge
let token: string
let running: readonly ClusterProfileDetail[] | undefined
beforeEach(async () => {
  running = undefined
  edge = await createTestEdge({ running: () => running })
  token = (await edge.login('alice')).access
})
afterEach(() => edge.stop())

const upload = (content: Buffer, ...more: Part[]) => uploadFile(edge, token, content, ...more)
const uploaded = (wish?: ArchiveWish) => uploadDefinition(edge, token, wish)
const details = async (slot: string) =>
  (await edge.get(`${archivePath}/${slot}/details`, token)).json<ClusterConfigArchiveDetails>()
/** Names in the folder of definitions, and in its staging folder. */
const onDisk = async () => {
  const folder = join(edge.stateDirectory, 'definitions')
  return [await readdir(folder), await readdir(join(folder, 'staging'))].flat().sort()
}

describe('slots', () => {
  it.each(['embedded', 'overridden', 'update'])(
    'the slot %s is empty at first: 200 and no profiles',
    async (slot) => {
      const reply = await edge.get(`${archivePath}/${slot}/details`, token)
      expect(reply.statusCode).toBe(200)
      expect(reply.json()).toEqual({ archiveUploadPath: '', problems: [], clusterProfileDetails: [] })
    },
  )

  it('an upload fills the slot overridden; its details show profiles, packs, variables and the uploaded file', async () => {
    const variables = [
      { name: 'pw', isSensitive: true, defaultValue: 'hunter2' },
      { name: 'size', format: 'number', defaultValue: '3' },
    ]
    const values = 'pw: "{{ .spectro.var.pw }}"\nsize: {{ .spectro.var.size }}\n'
    const { uid, uploadPath: handle, message } = await uploaded({ variables, values })
    expect(message).toBe('definition factory 1.0.0 is in the slot overridden')
    const shown = await details('overridden')
    expect(shown).toMatchObject({ uid, archiveUploadPath: handle, fileName: 'factory.tgz', problems: [] })
    expect(shown.sha256).toMatch(/^[0-9a-f]{64}$/)
    const [profile] = shown.clusterProfileDetails
    expect(profile).toMatchObject({ profileUid: 'u1', profileName: 'profile u1', profileVersion: '1.0.0' })
    expect(profile?.packs).toMatchObject([{ name: 'web-shop', version: '1.0', values }])
    expect(profile?.variables).toMatchObject([
      { name: 'pw', defaultValue: '********', value: '********' },
      { defaultValue: '3', value: '3' },
    ])
    expect(JSON.stringify(shown)).not.toContain('hunter2')
    expect((await details('embedded')).clusterProfileDetails).toEqual([])
  })

  it('other rooms get the archive of an upload by its handle; a handle of a replaced one is refused', async () => {
    const first = await uploaded()
    const { file, definition } = await edge.definition.archiveOf(first.uploadPath)
    const archive = await readFile(file)
    expect(createHash('sha256').update(archive).digest('hex')).toBe(definition.sha256)
    await uploaded({ version: '1.0.1' })
    await expect(edge.definition.archiveOf(first.uploadPath)).rejects.toMatchObject({
      code: 'BadRequest',
      message: expect.stringContaining('archiveUploadPath names no definition of this host') as string,
    })
  })

  it('the details have the same ETag until something changes', async () => {
    const ask = (known?: string) =>
      edge.app.inject({
        method: 'GET',
        url: `${archivePath}/overridden/details`,
        headers: { authorization: token, ...(known === undefined ? {} : { 'if-none-match': known }) },
      })
    const tags: unknown[] = []
    for (const version of ['', '1.0.0', '1.0.1']) {
      if (version) await uploaded({ version })
      const reply = await ask(String(tags.at(-1)))
      expect(reply.statusCode, version).toBe(200)
      expect(reply.headers['content-length']).toBe(String(reply.rawPayload.length))
      const { etag } = reply.headers
      tags.push(etag)
      const again = await ask(`"other", W/${String(etag)}`)
      expect([again.statusCode, again.headers.etag, again.body]).toEqual([304, etag, ''])
    }
    expect(new Set(tags).size).toBe(3)
  })

  it('details of megabytes are complete, also if the definition is removed while they are read', async () => {
    const values = `pw: 1\n${'# a line of values\n'.repeat(100_000)}`
    await uploaded({ values })
    const whole = await details('overridden')
    expect(whole.clusterProfileDetails[0]?.packs[0]?.values).toBe(values)
    const request = () => edge.get(`${archivePath}/overridden/details`, token)
    const replies = await Promise.all([request(), request(), uploaded({ version: '2.0.0' }), request()])
    for (const reply of replies) {
      if (!('statusCode' in reply)) continue
      expect(reply.statusCode).toBe(200)
      expect(['1.0.0', '2.0.0']).toContain(
        reply.json<ClusterConfigArchiveDetails>().clusterProfileDetails[0]?.profileVersion,
      )
    }
  })

  it('details whose files were deleted are a 500', async () => {
    const { uploadPath: folder } = await uploaded()
    await rm(folder, { recursive: true })
    const reply = await edge.get(`${archivePath}/overridden/details`, token)
    expect([reply.statusCode, reply.json<ErrorReply>().code]).toEqual([500, 'Internal'])
  })

  it('the next upload replaces the one before, of which nothing stays on the disk', async () => {
    const first = await uploaded()
    const second = await uploaded({ version: '2.0.0', compress: 'zstd' })
    expect((await details('overridden')).uid).toBe(second.uid)
    expect(await onDisk()).toEqual([second.uid, 'staging'].sort())
    expect(first.uid).not.toBe(second.uid)
  })

  it('while there is a cluster an upload waits in the slot update, with its changes, and can be discarded', async () => {
    await uploaded({ version: '1.0.0' })
    running = (await details('overridden')).clusterProfileDetails
    const { uid } = await uploaded({ version: '1.1.0', variables: [{ name: 'size', defaultValue: '3' }] })
    const shown = await details('update')
    expect(shown).toMatchObject({ uid, clusterProfileDetails: [{ profileVersion: '1.1.0' }] })
    expect(shown.diff?.profiles).toMatchObject([
      {
        profileUid: 'u1',
        fromVersion: '1.0.0',
        toVersion: '1.1.0',
        variables: [{ name: 'size', change: 'added' }],
      },
    ])
    expect((await details('overridden')).clusterProfileDetails).toMatchObject([{ profileVersion: '1.0.0' }])
    const reject = async () => {
      const headers = { authorization: token }
      return edge.app.inject({ method: 'DELETE', url: `${archivePath}/update`, headers })
    }
    const rejected = await reject()
    expect([rejected.statusCode, rejected.body]).toEqual([204, ''])
    expect((await details('update')).clusterProfileDetails).toEqual([])
    expect((await reject()).statusCode).toBe(204)
  })

  it('slots are there after a restart; folders in no slot and unfinished uploads are removed', async () => {
    const { uid } = await uploaded()
    const { stateDirectory, host } = edge
    await writeFile(join(stateDirectory, 'definitions', 'staging', 'half'), 'x')
    await writeFile(join(stateDirectory, 'definitions', 'f00'), 'x')
    await edge.daemon.stop()
    edge = await createTestEdge({ host, stateDirectory })
    expect(await onDisk()).toEqual([uid, 'staging'].sort())
    expect((await details('overridden')).uid).toBe(uid)
  })
})

describe('an archive of the existing layout', () => {
  it('an archive of the existing layout is accepted, with a warning for each pack that is not in it', async () => {
    const profile = exportedProfile('u1', {
      type: 'add-on',
      packs: [
        { name: 'web-shop', layer: 'addon', tag: '1.0', uid: 'web', type: 'spectro', values: 'a: 1\n' },
      ],
    })
    const members = {
      'spc/app/profiles/u1/web.json': JSON.stringify(profile),
      'spc/app/profiles/u1/variables.json': '{"variables":[{"name":"size","defaultValue":"3"}]}',
    }
    const archive = rawTar(Object.entries(members).map(([name, content]) => ({ name, content })))
    const reply = await upload(compressions.gzip(archive))
    expect(reply.statusCode, reply.body).toBe(201)
    const { problems, clusterProfileDetails } = await details('overridden')
    expect(problems?.map(({ code }) => code).sort()).toEqual([
      'PackElsewhere',
      'SumsMissing',
      'VariableUnused',
    ])
    expect(clusterProfileDetails).toMatchObject([{ profileUid: 'u1', variables: [{ name: 'size' }] }])
  })
})

describe('what is refused', () => {
  const refusals: [string, () => Buffer, string][] = [
    ['a file that is not an archive', () => Buffer.from('hello'), 'ArchiveDamaged'],
    ['an empty file', () => Buffer.alloc(0), 'ArchiveDamaged'],
    ['a truncated archive', () => definitionArchive().subarray(0, 300), 'ArchiveDamaged'],
    ['a member outside', () => archiveOf([{ name: '../x', content: 'x' }]), 'ArchiveInvalid'],
    ['a link', () => archiveOf([{ name: 'x', kind: '2', linkName: '/etc/shadow' }]), 'ArchiveInvalid'],
    ['a tar of something else', () => archiveOf([{ name: 'x', content: 'x' }]), 'ArchiveInvalid'],
    ['endless zeros', () => compressions.zstd(rawTar([{ name: 'x', content: zeros }])), 'ArchiveTooLarge'],
    ['content that cannot be deployed', () => definitionArchive({ values: 'a: [\n' }), 'DefinitionInvalid'],
    [
      'a definition without a pack of its profile',
      () => definitionArchive({ files: withoutPack }),
      'DefinitionInvalid',
    ],
  ]
  const zeros = Buffer.alloc(64 * 2 ** 20)
  const archiveOf = (members: readonly RawMember[]) => compressions.gzip(rawTar(members))
  const withoutPack = {
    'packs/web-shop-1.0/pack.json': '{"name":"web-shop","version":"2.0","layer":"addon"}',
  }

  it.each(refusals)('%s is a 400 with a code, and the slot is unchanged', async (_what, content, code) => {
    const { uid } = await uploaded()
    const before = await details('overridden')
    const reply = await upload(content())
    expect(reply.statusCode, reply.body).toBe(400)
    expect(reply.json<ErrorReply>().code).toBe(code)
    expect(await details('overridden')).toEqual(before)
    expect(await onDisk()).toEqual([uid, 'staging'].sort())
  })

  it('all problems of the content are reported at once, with code and place', async () => {
    const variables = [
      { name: 'a', format: 'colour' },
      { name: 'b', regex: '(' },
    ]
    const reply = await upload(definitionArchive({ variables, values: 'x: "{{ .spectro.var.c }}"\n' }))
    const { details: told } = reply.json<{ details: { count: number; problems: Problem[] } }>()
    expect(told.count).toBe(3)
    expect(told.problems.map(({ code }) => code).sort()).toEqual([
      'VariableFormatUnknown',
      'VariablePatternInvalid',
      'VariableUndeclared',
    ])
    for (const { place } of told.problems) expect(place).toMatch(/^profiles\/u1\/profile\.json#/)
  })

  it('uploads beyond those that are written and checked at one time wait for their turn', async () => {
    const { type, body } = form({ name: 'uploadFile', fileName: 'a.tgz', content: definitionArchive() })
    const headers = { authorization: token, 'content-type': type }
    const replies = await Promise.all(
      Array.from({ length: 4 }, () =>
        edge.app.inject({ method: 'POST', url: uploadPath, payload: body, headers }),
      ),
    )
    expect(replies.map(({ statusCode }) => statusCode)).toEqual([201, 201, 201, 201])
    expect(await onDisk()).toHaveLength(2)
  })
})

describe('a check that costs too much', () => {
  it.each([
    ['memory', { seconds: 60, memoryMiB: 1 }],
    ['time', { seconds: 0.001, memoryMiB: 256 }],
  ])(
    'a check that takes too much %s is ended; the archive is refused and nothing is left',
    async (_what, check) => {
      const strict = await createTestEdge({ examineProgram: examineProgram(), definitions: { check } })
      const { type, body } = form({ name: 'uploadFile', fileName: 'a.tgz', content: definitionArchive() })
      const { access } = await strict.login('alice')
      const headers = { authorization: access, 'content-type': type }
      const reply = await strict.app.inject({ method: 'POST', url: uploadPath, payload: body, headers })
      expect(reply.statusCode, reply.body).toBe(400)
      expect(reply.json<ErrorReply>().code).toBe('ArchiveTooLarge')
      expect(await readdir(join(strict.stateDirectory, 'definitions'))).toEqual(['staging'])
      await strict.stop()
    },
  )
})

describe('the slot embedded', () => {
  const embeddedFile = () => join(edge.stateDirectory, 'embedded.tgz')

  it('the slot embedded follows its file: placed, replaced, damaged and removed', async () => {
    await writeFile(embeddedFile(), definitionArchive())
    const first = await details('embedded')
    expect(first).toMatchObject({
      fileName: 'embedded.tgz',
      clusterProfileDetails: [{ profileVersion: '1.0.0' }],
    })
    expect((await details('embedded')).uid).toBe(first.uid)
    await writeFile(embeddedFile(), definitionArchive({ version: '3.0.0' }))
    expect(await details('embedded')).toMatchObject({ clusterProfileDetails: [{ profileVersion: '3.0.0' }] })
    await writeFile(embeddedFile(), definitionArchive().subarray(0, 200))
    expect(await details('embedded')).toMatchObject({
      archiveUploadPath: '',
      clusterProfileDetails: [],
      problems: [{ code: 'ArchiveDamaged', severity: 'error', place: embeddedFile() }],
    })
    await rm(embeddedFile())
    expect(await details('embedded')).toMatchObject({ clusterProfileDetails: [], problems: [] })
    expect(await onDisk()).toEqual(['staging'])
  })

  it('the slot embedded says why its file cannot be used, and the journal warns once', async () => {
    await writeFile(embeddedFile(), definitionArchive({ values: 'a: [\n' }))
    const { problems } = await details('embedded')
    expect(problems).toMatchObject([{ code: 'YamlInvalid', severity: 'error' }])
    await details('embedded')
    const warnings = edge.lines.filter(({ msg }) =>
      String(msg).startsWith('the embedded definition cannot be used'),
    )
    expect(warnings).toHaveLength(1)
  })

  it('a stop of the daemon ends the examination of the embedded file without a warning, and requests are a 503', async () => {
    const files = { 'packs/web-shop-1.0/charts/a.tgz': noise(6_000_000) }
    await writeFile(embeddedFile(), definitionArchive({ files }))
    edge.definition.background?.()
    await expect.poll(onDisk, { interval: 1 }).toHaveLength(2)
    const ask = () => edge.get(`${archivePath}/embedded/details`, token)
    const waiting = ask()
    await edge.definition.stop?.()
    for (const reply of [await waiting, await ask()]) {
      expect(reply.statusCode).toBe(503)
      expect(reply.json()).toMatchObject({ code: 'NotReady' })
      expect(reply.headers['retry-after']).toBe('30')
    }
    expect(await onDisk()).toEqual(['staging'])
    const said = edge.lines.filter(({ level, code }) => Number(level) >= 40 && code !== 'NotReady')
    expect(said).toEqual([])
  })
})
