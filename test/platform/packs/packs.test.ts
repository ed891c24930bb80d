import { readdirSync, readFileSync, symlinkSync, mkdtempSync, writeFileSync, rmSync } from 'node:fs'
import { execFileSync } from 'node:child_process'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gzipSync, zstdCompressSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { defaultLimits } from '../../../src/archive/limits.ts'
import { planBuild } from '../../../src/definition/build/build-plan.ts'
import { readPlanned } from '../../../src/definition/build/check-plan.ts'
import { importProfile, smallPack, smallProfile, tarOf, uploadPack } from '../../support/platform-packs.ts'
import { examineProgram } from '../../support/programs.ts'
import { rawTar } from '../../support/tar-bytes.ts'
import { createTestPlatform } from '../../support/test-platform.ts'

const password = 'a long password'
let platform: Awaited<ReturnType<typeof createTestPlatform>>
let admin: Record<string, string>
let project: Record<string, string>

beforeAll(async () => {
  platform = await createTestPlatform()
  await platform.addUser('root@plant.example', password, ['admin'])
  admin = await platform.signIn('root@plant.example', password)
  const { uid } = (
    await platform.app.inject({
      ...{ method: 'POST', url: '/v1/projects', headers: admin },
      payload: { metadata: { name: 'north' } },
    })
  ).json<{ uid: string }>()
  project = { ...admin, projectuid: uid }
})
afterAll(() => platform.close())

const get = (url: string, headers = admin) => platform.app.inject({ method: 'GET', url, headers })
const remove = (url: string, headers = admin) => platform.app.inject({ method: 'DELETE', url, headers })
const stateOf = (name: string) => readdirSync(join(platform.stateDirectory, name)).sort()

async function upload(archive: Buffer, headers = admin) {
  const reply = await uploadPack(platform, archive, headers)
  return {
    status: reply.statusCode,
    ...reply.json<{ uid: string; code?: string; details?: { reason?: string } }>(),
  }
}

describe('a pack that is uploaded', () => {
  it('is listed, shown, and kept as it was, packed in any of the ways of tar', async () => {
    const chart = Buffer.from('no chart, and as many bytes as it has')
    const files = smallPack('kept', '1.0.0', {
      'charts/web-1.0.0.tgz': chart,
      'README.md': '# Kept',
      'manifests/one.yaml': 'kind: ConfigMap\n',
      'presets.yaml': 'presets:\n  - name: small\n    remove: [a]\n    add: "b: 1"\n',
    })
    const tar = tarOf(files)
    const first = await upload(tar)
    expect(first.status).toBe(201)
    const { items } = (await get('/v1/packs?filters=spec.name=kept')).json<{
      items: { spec: { digest: string } }[]
    }>()
    expect(items).toMatchObject([
      {
        metadata: { uid: first.uid, name: 'kept' },
        spec: { version: '1.0.0', layer: 'addon', cloudTypes: ['all'], manifests: [{ name: 'one.yaml' }] },
      },
    ])
    const shown = await get(`/v1/packs/${first.uid}`)
    expect(shown.json()).toMatchObject({
      ...{ name: 'kept', displayName: 'The kept', tags: [{ tag: '1.0.0', packUid: first.uid }] },
      packValues: [
        { values: 'pack:\n  namespace: web\n', readme: '# Kept', presets: [{ name: 'small', add: 'b: 1' }] },
      ],
    })
    const folder = platform.rooms.packs.packs.folderOf(first)
    expect(readFileSync(join(folder, 'charts/web-1.0.0.tgz'))).toEqual(chart)
    const digests = [items[0]?.spec.digest]
    for (const archive of [gzipSync(tarOf(files, 'kept-1.0.0')), zstdCompressSync(tar)]) {
      expect(
        (await remove(`/v1/packs/${[...stateOf('packs')].find((name) => name !== 'staging') ?? ''}`))
          .statusCode,
      ).toBe(204)
      expect((await upload(archive)).status).toBe(201)
      const again = (await get('/v1/packs?filters=spec.name=kept')).json<{
        items: { spec: { digest: string } }[]
      }>()
      digests.push(again.items[0]?.spec.digest)
    }
    expect(new Set(digests).size).toBe(1)
  })

  it('exists once with its name and version in a scope', async () => {
    expect((await upload(tarOf(smallPack('once')))).status).toBe(201)
    const before = stateOf('packs')
    expect(await upload(tarOf(smallPack('once')))).toMatchObject({ status: 409, code: 'PackExists' })
    expect(stateOf('packs')).toEqual(before)
    expect((await upload(tarOf(smallPack('once', '1.0.1')))).status).toBe(201)
    expect((await upload(tarOf(smallPack('once')), project)).status).toBe(201)
    expect((await get('/v1/packs?filters=spec.name=once', project)).json()).toMatchObject({
      listmeta: { count: 1 },
    })
  })

  it('belongs to its scope', async () => {
    const { uid } = await upload(tarOf(smallPack('scoped')), project)
    expect((await get(`/v1/packs/${uid}`)).statusCode).toBe(404)
    expect((await remove(`/v1/packs/${uid}`)).statusCode).toBe(404)
    expect((await get(`/v1/packs/${uid}`, project)).statusCode).toBe(200)
    const kept = await platform.app.inject({
      ...{ method: 'DELETE', url: `/v1/projects/${project.projectuid ?? ''}`, headers: admin },
    })
    expect(kept.json()).toMatchObject({
      code: 'ProjectInUse',
      message: expect.stringMatching(/\d packs?/) as string,
    })
  })

  it('is packed into a definition from where it is kept, with the export of a profile', async () => {
    const { uid } = await upload(tarOf(smallPack('web', '1.0.0', { 'charts/web-1.tgz': 'a chart' }), 'web'))
    const made = await importProfile(platform, JSON.stringify(smallProfile('packed')), admin)
    const profile = made.json<{ uid: string }>().uid
    const file = join(platform.stateDirectory, 'exported.json')
    writeFileSync(file, (await get(`/v1/clusterprofiles/${profile}/export`)).body)
    const { packs } = platform.rooms.packs
    const plan = planBuild({ profiles: [file], packs: [packs.folderOf({ uid })], limits: defaultLimits })
    expect(plan.problems).toEqual([])
    expect((await readPlanned({ plan, limits: defaultLimits })).problems).toEqual([])
    expect(plan.members.map(({ name }) => name)).toEqual([
      ...['charts/web-1.tgz', 'pack.json', 'values.yaml'].map((path) => `packs/web-1.0.0/${path}`),
      ...['profile.json', 'variables.json'].map((path) => `profiles/${profile}/${path}`),
    ])
    for (const url of [`/v1/clusterprofiles/${profile}`, `/v1/packs/${uid}`])
      expect((await remove(url)).statusCode).toBe(204)
  })

  it('may be packed on macOS', async () => {
    const files = Object.entries(smallPack('mac', '1.0.0', { 'manifests/a.yaml': 'kind: ConfigMap\n' }))
    const double = Buffer.from([0, 5, 22, 7, 0xff])
    const { uid, status } = await upload(
      rawTar([
        { name: '._mac', content: double },
        { name: '__MACOSX/mac/pack.json', content: double },
        ...files.flatMap(([name, content]) => [
          { name: `mac/${name.replace(/[^/]+$/, '._$&')}`, content: double },
          { name: `mac/${name}`, content },
        ]),
      ]),
    )
    expect(status).toBe(201)
    const stored = platform.rooms.packs.packs.folderOf({ uid })
    expect(readdirSync(stored).sort()).toEqual(['manifests', 'pack.json', 'values.yaml'])
    expect(readdirSync(join(stored, 'manifests'))).toEqual(['a.yaml'])
  })

  it('may have the byte order mark of an editor', async () => {
    const marked = Object.fromEntries(
      Object.entries(smallPack('marked', '1.0.0', { 'README.md': '# Web' })).map(([name, content]) => [
        name,
        `\u{FEFF}${content.toString()}`,
      ]),
    )
    const { uid, status } = await upload(tarOf(marked))
    expect(status).toBe(201)
    expect((await get(`/v1/packs/${uid}`)).json()).toMatchObject({
      ...{ name: 'marked', displayName: 'The marked', cloudTypes: ['all'] },
      packValues: [{ readme: '# Web', values: 'pack:\n  namespace: web\n' }],
    })
  })

  it('is not deleted while a profile means it, and its folder goes with it', async () => {
    const { uid } = await upload(tarOf(smallPack('web')))
    const made = await importProfile(platform, JSON.stringify(smallProfile('user-of-web')), admin)
    const profile = made.json<{ uid: string }>().uid
    const refused = await remove(`/v1/packs/${uid}`)
    expect(refused.json()).toMatchObject({
      code: 'PackInUse',
      message: expect.stringContaining('user-of-web 1.0.0') as string,
    })
    expect((await remove(`/v1/clusterprofiles/${profile}`)).statusCode).toBe(204)
    expect((await remove(`/v1/packs/${uid}`)).statusCode).toBe(204)
    expect(stateOf('packs')).not.toContain(uid)
    expect((await get(`/v1/packs/${uid}`)).statusCode).toBe(404)
  })
})

describe('an archive that is no pack', () => {
  const pack = smallPack('bad')
  const members = Object.entries(pack).map(([name, content]) => ({ name, content }))
  const bomb = () => gzipSync(tarOf({ ...pack, 'charts/zeros.tgz': Buffer.alloc(64 * 1_048_576) }))
  const linked = () => {
    const folder = mkdtempSync(join(tmpdir(), 'linked-'))
    for (const [name, content] of Object.entries(pack)) writeFileSync(join(folder, name), content)
    symlinkSync('/etc/passwd', join(folder, 'README.md'))
    const bytes = execFileSync('tar', ['-C', folder, '-cf', '-', '.'])
    rmSync(folder, { recursive: true })
    return bytes
  }
  it.each<[string, () => Buffer, string, string]>([
    [
      'a path out of it',
      () => rawTar([...members, { name: '../evil', content: 'x' }]),
      'ArchiveInvalid',
      'MemberOutside',
    ],
    [
      'an absolute path',
      () => rawTar([...members, { name: '/etc/evil', content: 'x' }]),
      'ArchiveInvalid',
      'MemberOutside',
    ],
    ['a symbolic link', linked, 'ArchiveInvalid', 'MemberKind'],
    [
      'a hard link',
      () => rawTar([...members, { name: 'a', kind: '1', linkName: 'pack.json' }]),
      'ArchiveInvalid',
      'MemberKind',
    ],
    [
      'a name twice',
      () => rawTar([...members, { name: 'PACK.json', content: '{}' }]),
      'ArchiveInvalid',
      'MemberTwice',
    ],
    ['a bomb', bomb, 'ArchiveTooLarge', 'RatioTooHigh'],
    [
      'a text that is too large',
      () => gzipSync(tarOf({ ...pack, 'big.txt': Buffer.alloc(17 * 1_048_576) })),
      'ArchiveTooLarge',
      'MemberTooLarge',
    ],
    [
      '50,001 files and folders',
      () =>
        gzipSync(
          rawTar([...members, ...Array.from({ length: 50_000 }, (_, at) => ({ name: `${at}/`, kind: '5' }))]),
        ),
      'ArchiveTooLarge',
      'TooManyMembers',
    ],
    ['half of it', () => tarOf(pack).subarray(0, 700), 'ArchiveDamaged', 'Truncated'],
    ['no tar', () => Buffer.from('hello'.repeat(1_000)), 'ArchiveDamaged', 'NotCompressed'],
  ])('%s is refused, and nothing of it is kept', async (_, archive, code, reason) => {
    const before = [stateOf('packs'), stateOf('packs/staging')]
    const refused = await upload(archive())
    expect(refused).toMatchObject({ status: 400, code, details: { reason } })
    expect([stateOf('packs'), stateOf('packs/staging')]).toEqual(before)
  })

  it.each<[string, Record<string, string>, string]>([
    ['no pack.json', { 'values.yaml': '' }, 'MemberMissing'],
    ['a pack.json that is no JSON', { 'pack.json': '{' }, 'JsonInvalid'],
    [
      'a name that is a path',
      { 'pack.json': '{"name":"../a","version":"1","layer":"addon"}' },
      'FieldInvalid',
    ],
    ['an invalid version', { 'pack.json': '{"name":"a","version":"one","layer":"addon"}' }, 'VersionInvalid'],
    [
      'a chart that is not there',
      { 'pack.json': '{"name":"a","version":"1","layer":"addon","charts":["c.tgz"]}' },
      'MemberMissing',
    ],
    ['two packs', { 'a/pack.json': '{}', 'b/pack.json': '{}' }, 'MemberMissing'],
  ])('%s is refused with the problem', async (_, files, code) => {
    expect(await upload(tarOf(files))).toMatchObject({
      ...{ status: 400, code: 'PackInvalid' },
      details: { problems: [{ code }] },
    })
  })

  it('is refused by the program in a process of its own, as it ships', async () => {
    const real = await createTestPlatform({ examineProgram: examineProgram() })
    try {
      await real.addUser('root@plant.example', password, ['admin'])
      const headers = await real.signIn('root@plant.example', password)
      const refused = await uploadPack(real, linked(), headers)
      expect(refused.json()).toMatchObject({ code: 'ArchiveInvalid', details: { reason: 'MemberKind' } })
      expect((await uploadPack(real, tarOf(smallPack()), headers)).statusCode).toBe(201)
      const profile = JSON.stringify(smallProfile())
      expect((await importProfile(real, profile, headers)).statusCode).toBe(201)
    } finally {
      await real.close()
    }
  })

  it('a form without the file is refused', async () => {
    const reply = await platform.app.inject({
      ...{ method: 'POST', url: '/v1/packs', payload: '{}' },
      headers: { ...admin, 'content-type': 'application/json' },
    })
    expect(reply.statusCode).toBe(415)
  })
})

describe('after a restart', () => {
  it('folders that no row names are gone, and so are rows without a folder', async () => {
    const first = await createTestPlatform({ stateDirectory: mkdtempSync(join(tmpdir(), 'state-')) })
    await first.addUser('root@plant.example', password, ['admin'])
    const headers = await first.signIn('root@plant.example', password)
    const uidOf = async (name: string) =>
      (await uploadPack(first, tarOf(smallPack(name)), headers)).json<{ uid: string }>().uid
    const [kept, lost] = [await uidOf('kept'), await uidOf('lost')]
    await first.close()
    const { stateDirectory } = first
    rmSync(join(stateDirectory, 'packs', lost), { recursive: true })
    execFileSync('cp', ['-r', join(stateDirectory, 'packs', kept), join(stateDirectory, 'packs', 'stray')])
    const second = await createTestPlatform({ stateDirectory })
    try {
      expect(readdirSync(join(stateDirectory, 'packs')).sort()).toEqual([kept, 'staging'].sort())
      const again = await second.signIn('root@plant.example', password)
      const listed = await second.app.inject({ method: 'GET', url: '/v1/packs', headers: again })
      expect(
        listed.json<{ items: { metadata: { uid: string } }[] }>().items.map(({ metadata }) => metadata.uid),
      ).toEqual([kept])
    } finally {
      await second.close()
      rmSync(stateDirectory, { recursive: true })
    }
  })
})
