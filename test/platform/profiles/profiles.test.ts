import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { parse, stringify } from 'yaml'
import { importProfile, smallPack, smallProfile, tarOf, uploadPack } from '../../support/platform-packs.ts'
import { createTestPlatform } from '../../support/test-platform.ts'

const password = 'a long password'
let platform: Awaited<ReturnType<typeof createTestPlatform>>
let admin: Record<string, string>
let viewer: Record<string, string>
let project: Record<string, string>

beforeAll(async () => {
  platform = await createTestPlatform()
  await platform.addUser('root@plant.example', password, ['admin'])
  await platform.addUser('eye@plant.example', password, ['viewer'])
  admin = await platform.signIn('root@plant.example', password)
  viewer = await platform.signIn('eye@plant.example', password)
  const made = await platform.app.inject({
    ...{ method: 'POST', url: '/v1/projects', headers: admin },
    payload: { metadata: { name: 'north' } },
  })
  project = { ...admin, projectuid: made.json<{ uid: string }>().uid }
})
afterAll(() => platform.close())

const get = (url: string, headers = admin) =>
  platform.app.inject({ method: 'GET', url: `/v1/clusterprofiles${url}`, headers })
const setVariables = (uid: string, variables: readonly object[]) =>
  platform.app.inject({
    ...{ method: 'PUT', url: `/v1/clusterprofiles/${uid}/variables`, headers: admin },
    payload: { variables },
  })

async function imported(profile: object, how: Parameters<typeof importProfile>[3] = {}, headers = admin) {
  const reply = await importProfile(platform, JSON.stringify(profile), headers, how)
  if (reply.statusCode !== 201) throw new Error(reply.body)
  return reply.json<{ uid: string }>().uid
}

interface Exported {
  readonly metadata: Readonly<Record<string, unknown>>
  readonly spec: { readonly variables: readonly object[] }
}

const ofPlatform = ['uid', 'creationTimestamp', 'lastModifiedTimestamp']
/** Without uid and times. */
const plain = ({ metadata, ...rest }: Exported) => ({
  ...rest,
  metadata: Object.fromEntries(Object.entries(metadata).filter(([name]) => !ofPlatform.includes(name))),
})

describe('a profile of the fixtures', () => {
  const folder = join(import.meta.dirname, '../../fixtures/definition-forms')
  const forms = readdirSync(folder)
  const files = forms.flatMap((form) =>
    readdirSync(join(folder, form))
      .filter((name) => /\.(json|yaml)$/.test(name) && name !== 'expected.json')
      .map((name) => `${form}/${name}`),
  )

  it('there are many', () => {
    expect(files.length).toBeGreaterThan(30)
  })

  it.each(files)(
    '%s is exported as it was imported, or refused as definition build refuses it',
    async (file) => {
      const text = readFileSync(join(folder, file), 'utf8')
      const [form = ''] = file.split('/')
      const { refused = [] } = JSON.parse(readFileSync(join(folder, form, 'expected.json'), 'utf8')) as {
        refused?: string[]
      }
      // Each alone: fixtures have the same names.
      const type = file.endsWith('yaml') ? 'application/yaml' : 'application/json'
      const reply = await importProfile(platform, text, admin, { type })
      // Presets belong to the command line, and that two profiles are the same shows only with both.
      const ofProfile = refused.filter((each) => !/^(PresetInvalid|ProfileTwice) /.test(each))
      if (ofProfile.length > 0) {
        expect(reply.json()).toMatchObject({
          ...{ code: 'ProfileInvalid' },
          details: { problems: ofProfile.map((each) => ({ code: each.split(' ')[0] })) },
        })
        return
      }
      expect(reply.body).toContain('uid')
      const { uid } = reply.json<{ uid: string }>()
      const original = parse(text) as Exported
      for (const format of ['json', 'yaml']) {
        const exported = await get(`/${uid}/export?format=${format}`)
        const read = (format === 'json' ? exported.json() : parse(exported.body)) as Exported
        expect(plain(read)).toEqual(plain(original))
        expect(read.metadata.uid).toBe(uid)
      }
      const removed = await platform.app.inject({
        ...{ method: 'DELETE', url: `/v1/clusterprofiles/${uid}`, headers: admin },
      })
      expect(removed.statusCode).toBe(204)
    },
  )
})

describe('a profile', () => {
  it('exists once with its name and version in a scope', async () => {
    await imported(smallProfile('once'))
    const again = await importProfile(platform, JSON.stringify(smallProfile('once')), admin)
    expect(again.json()).toMatchObject({ code: 'ProfileExists' })
    expect(again.statusCode).toBe(409)
    const second = await imported(smallProfile('once', '1.1.0'))
    await imported(smallProfile('once'), {}, project)
    expect((await get('', project)).json()).toMatchObject({ listmeta: { count: 1 } })
    const { spec } = (await get(`/${second}`)).json<{ spec: { versions: { version: string }[] } }>()
    expect(spec.versions.map(({ version }) => version)).toEqual(['1.0.0', '1.1.0'])
    expect((await get(`/${second}`, project)).statusCode).toBe(404)
  })

  it('is refused with each misspelt field and its place, as a misspelt isSensitive would show a secret', async () => {
    const { metadata, spec } = smallProfile('misspelt')
    const profile = {
      metadata: { ...metadata, labels: undefined, lables: { hall: '3' } },
      spec: {
        ...spec,
        template: { ...spec.template, packs: [{ name: 'web', layer: 'addon', tga: '1.0.0' }] },
        variables: [{ name: 'PIN', isSensitiv: true, defaultValue: '4711' }],
      },
    }
    const places = ['metadata.lables', 'spec.template.packs[0].tga', 'spec.variables[0].isSensitiv']
    for (const text of [JSON.stringify(profile), stringify(profile)]) {
      const type = text.startsWith('{') ? 'application/json' : 'application/yaml'
      const reply = await importProfile(platform, text, admin, { type })
      expect(reply.json()).toMatchObject({
        code: 'ProfileInvalid',
        details: { problems: places.map((at) => ({ code: 'FieldMisspelt', place: `profile#${at}` })) },
      })
    }
    const list = { spec: { version: '1.0.0', template: spec.template, variabels: [] }, metadata }
    const reply = await importProfile(platform, JSON.stringify(list), admin)
    expect(reply.body).toContain('profile#spec.variabels')
    expect((await get('?filters=metadata.name=misspelt')).json()).toMatchObject({ listmeta: { count: 0 } })
  })

  it('is listed by its name', async () => {
    for (const name of ['order-b', 'order-c', 'order-a']) await imported(smallProfile(name))
    const filters = ['a', 'b', 'c'].map((each) => `metadata.name=order-${each}`).join(' OR ')
    const listed = await get(`?orderBy=metadata.name=1&filters=${encodeURIComponent(filters)}`)
    const { items } = listed.json<{ items: { metadata: { name: string } }[] }>()
    expect(items.map(({ metadata }) => metadata.name)).toEqual(['order-a', 'order-b', 'order-c'])
  })

  it('shows the packs that it means, those of its project before those of the tenant', async () => {
    const upload = async (headers: Record<string, string>) =>
      (await uploadPack(platform, tarOf(smallPack()), headers)).json<{ uid: string }>().uid
    const uid = await imported(smallProfile('meaning'), { publish: true }, project)
    const packUid = async () =>
      (await get(`/${uid}`, project)).json<{ spec: { published: { packs: { packUid: string }[] } } }>().spec
        .published.packs[0]?.packUid
    expect(await packUid()).toBe('')
    const ofTenant = await upload(admin)
    expect(await packUid()).toBe(ofTenant)
    const ofProject = await upload(project)
    expect(await packUid()).toBe(ofProject)
  })

  it('that is published does not change', async () => {
    const uid = await imported(smallProfile('final'), { publish: true })
    const refused = await setVariables(uid, [{ name: 'USER' }])
    expect([refused.statusCode, refused.json<{ code: string }>().code]).toEqual([409, 'ProfilePublished'])
    expect((await get('?filters=status.isPublished=trueANDmetadata.name=final')).json()).toMatchObject({
      items: [{ metadata: { uid }, spec: { published: { packs: [{ name: 'web' }] } } }],
    })
  })

  it.each([
    ['no JSON', '{', 'JsonInvalid'],
    ['nests too deep', `{"metadata":${'{"a":'.repeat(100_000)}1${'}'.repeat(100_000)}}`, 'FieldMissing'],
    ['no profile', '[]', 'FieldInvalid'],
    ['bytes that are no text', Buffer.from([0x7b, 0xff, 0x7d]), 'NotUtf8'],
    ['no YAML', 'a: [', 'YamlInvalid'],
    [
      'a variable without a name',
      JSON.stringify({ ...smallProfile('bad'), spec: { ...smallProfile().spec, variables: [{}] } }),
      'FieldMissing',
    ],
  ])('%s is refused, and nothing of it is kept', async (_, text, code) => {
    const before = readdirSync(join(platform.stateDirectory, 'profiles'))
    const reply = await importProfile(platform, text, admin)
    expect(reply.json<{ code: string }>().code).toBe('ProfileInvalid')
    const { problems } = reply.json<{ details: { problems: { code: string }[] } }>().details
    expect(problems.map((each) => each.code)).toContain(code)
    expect(readdirSync(join(platform.stateDirectory, 'profiles'))).toEqual(before)
    expect(readdirSync(join(platform.stateDirectory, 'profiles/staging'))).toEqual([])
  })

  it('is accepted up to 16 MiB, which a definition may have of it', async () => {
    const profile = smallProfile('large')
    const { packs } = profile.spec.template
    packs.push({ ...packs[0]!, name: 'largest', values: `a: ${'x'.repeat(16 * 1_048_576 - 2_048)}\n` })
    const uid = await imported(profile)
    expect(plain((await get(`/${uid}/export`)).json())).toEqual(plain(profile))
    packs[1]!.values += 'y'.repeat(2_048)
    const refused = await importProfile(platform, JSON.stringify(profile), admin)
    expect(refused.json()).toMatchObject({
      code: 'ProfileInvalid',
      details: {
        problems: [
          {
            code: 'MemberTooLarge',
            place: 'profile#spec.template.packs[1]',
            message: expect.stringMatching(
              /^pack largest has 167\d{5} bytes .* may have 16777216 bytes /,
            ) as string,
          },
        ],
      },
    })
    packs[1]!.values += 'y'.repeat(16 * 1_048_576)
    expect((await importProfile(platform, JSON.stringify(profile), admin)).statusCode).toBe(413)
  })

  it('is replied in pieces, so that slow readers hold little of it', async () => {
    const profile = smallProfile('in-pieces')
    const [pack] = profile.spec.template.packs
    if (pack) pack.values = `a: ${'x'.repeat(1_000_000)}\n`
    profile.spec.template.packs.push({ ...pack!, name: 'second', values: 'b: 2\n' })
    const uid = await imported(profile)
    const pieces: Buffer[] = []
    for await (const piece of platform.rooms.packs.profiles.open(uid, '', true)) pieces.push(piece as Buffer)
    expect(Math.max(...pieces.map(({ length }) => length))).toBeLessThanOrEqual(65_536)
    expect(JSON.parse(Buffer.concat(pieces).toString())).toMatchObject({
      spec: {
        draft: {
          packs: [
            { name: 'web', values: pack?.values },
            { name: 'second', values: 'b: 2\n' },
          ],
        },
      },
    })
    expect((await setVariables(uid, [{ name: 'USER' }])).statusCode).toBe(204)
    expect((await get(`/${uid}/export`)).json()).toMatchObject({
      spec: { template: { packs: [{ values: pack?.values }, {}] }, variables: [{ name: 'USER' }] },
    })
  })

  it('another parameter than publish is refused', async () => {
    const reply = await platform.app.inject({
      ...{ method: 'POST', url: '/v1/clusterprofiles/import?Publish=true', headers: admin },
      payload: smallProfile('typo'),
    })
    expect(reply.statusCode).toBe(400)
  })
})

describe('variables', () => {
  const many = (count: number) =>
    Array.from({ length: count }, (_, at) => ({
      name: `V${at}${'x'.repeat(at === 0 ? 300 : 0)}`,
      defaultValue: 'a',
    }))
  const withVariables = (name: string, variables: readonly object[]) => {
    const { metadata, spec } = smallProfile(name)
    return { metadata, spec: { ...spec, variables } }
  }

  it('have one limit, when they are imported and when they are replaced', async () => {
    const uid = await imported(withVariables('many', many(1_500)))
    const { variables } = (await get(`/${uid}/variables`)).json<{ variables: object[] }>()
    expect(variables).toEqual(many(1_500))
    expect((await setVariables(uid, [...variables, { name: 'ONE_MORE' }])).statusCode).toBe(204)
    const long = [{ name: 'LONG', defaultValue: 'x'.repeat(1_048_576) }]
    for (const refused of [
      await setVariables(uid, long),
      await importProfile(platform, JSON.stringify(withVariables('long', long)), admin),
    ])
      expect(refused.json()).toMatchObject({
        code: 'ProfileInvalid',
        details: { problems: [{ place: 'profile#spec.variables' }] },
        message: expect.stringContaining('1048576 are allowed for both') as string,
      })
    const { metadata, spec } = smallProfile('long')
    const described = { metadata: { ...metadata, annotations: { owner: 'x'.repeat(1_048_576) } }, spec }
    const refused = await importProfile(platform, JSON.stringify(described), admin)
    expect(refused.json()).toMatchObject({ details: { problems: [{ place: 'profile#metadata' }] } })
  })

  it('are not deleted by a body without them', async () => {
    const uid = await imported(smallProfile('kept-variables'))
    const put = (payload: object) =>
      platform.app.inject({
        ...{ method: 'PUT', url: `/v1/clusterprofiles/${uid}/variables`, headers: admin, payload },
      })
    const refused = await put({})
    expect([refused.statusCode, refused.body]).toEqual([400, expect.stringContaining('variables')])
    expect((await get(`/${uid}/variables`)).json<{ variables: object[] }>().variables).toHaveLength(2)
    expect((await put({ variables: [] })).statusCode).toBe(204)
    expect((await get(`/${uid}/variables`)).json()).toEqual({ variables: [] })
  })
})

describe('sensitive values', () => {
  const secret = 'never-to-be-seen'

  it('are in the export alone, for operators, and sealed on the disk', async () => {
    const uid = await imported(smallProfile('secret', '1.0.0', secret))
    const replies = [await get(`/${uid}`), await get(`/${uid}/variables`), await get('')]
    for (const { body } of replies) expect(body).not.toContain(secret)
    expect(replies[0]?.json()).toMatchObject({
      spec: { draft: { packs: [{ values: "password: ********\nuser: '{{ .spectro.var.USER }}'\n" }] } },
    })
    expect(replies[1]?.json()).toEqual({
      variables: [
        { name: 'USER', defaultValue: 'paul' },
        { name: 'PASSWORD', isSensitive: true, defaultValue: '********' },
      ],
    })
    const ofViewer = await get(`/${uid}`, viewer)
    expect(ofViewer.body).not.toContain('"values"')
    expect((await get(`/${uid}/export`, viewer)).statusCode).toBe(403)
    const exported = await get(`/${uid}/export`)
    expect(exported.json<Exported>().spec.variables[1]).toMatchObject({ defaultValue: secret })
    expect(exported.headers.audituid).toBeDefined()
    expect(JSON.stringify(platform.lines)).not.toContain(secret)
    const audits = await platform.app.inject({ method: 'GET', url: '/v1/audits?limit=50', headers: admin })
    expect(audits.body).not.toContain(secret)
    const stored = platform.rooms.state.database.sql
      .prepare('SELECT variables, shown_variables FROM cluster_profile WHERE uid = ?')
      .get(uid)
    expect(Buffer.from(stored?.variables as Uint8Array).includes(secret)).toBe(false)
  })

  it('stay where masks are sent back, and change where values are', async () => {
    const uid = await imported(smallProfile('masks', '1.0.0', secret))
    const { variables } = (await get(`/${uid}/variables`)).json<{ variables: { defaultValue: string }[] }>()
    const first = variables.map((each, index) => (index === 0 ? { ...each, defaultValue: 'paula' } : each))
    expect((await setVariables(uid, first)).statusCode).toBe(204)
    const exported = async () => (await get(`/${uid}/export`)).json<Exported>().spec.variables
    expect(await exported()).toEqual([
      { name: 'USER', defaultValue: 'paula' },
      { name: 'PASSWORD', isSensitive: true, defaultValue: secret },
    ])
    expect(readdirSync(join(platform.stateDirectory, 'profiles'))).not.toContain(uid)
    const changed = { name: 'PASSWORD', isSensitive: true, defaultValue: 'another-secret' }
    expect((await setVariables(uid, [changed])).statusCode).toBe(204)
    expect(await exported()).toEqual([changed])
    expect((await get(`/${uid}`)).body).toContain(`password: ${secret}`)
  })

  it('do not become values that are shown', async () => {
    const uid = await imported(smallProfile('unmasked', '1.0.0', secret))
    for (const variable of [
      { name: 'PASSWORD', defaultValue: '********' },
      { name: 'OTHER', isSensitive: true, defaultValue: '********' },
    ]) {
      const refused = await setVariables(uid, [variable])
      expect([refused.statusCode, refused.json<{ details: { field: string } }>().details.field]).toEqual([
        400,
        'variables[0].defaultValue',
      ])
    }
  })
})

it('a profile in YAML is exported as the values of its YAML', async () => {
  const text = `# a comment\n${stringify(smallProfile('in-yaml'))}`
  const reply = await importProfile(platform, text, admin, { type: 'application/yaml' })
  const { uid } = reply.json<{ uid: string }>()
  const exported = parse((await get(`/${uid}/export?format=yaml`)).body) as Exported
  expect(plain(exported)).toEqual(plain(parse(text) as Exported))
})

it('what the profiles of a scope take is bounded; a deletion makes room', async () => {
  const small = await createTestPlatform({ flags: ['--platform.packs.scopeLimitBytes=200000'] })
  try {
    await small.addUser('root@plant.example', password, ['admin'])
    const headers = await small.signIn('root@plant.example', password)
    const large = (name: string, bytes = 20_000) => {
      const profile = smallProfile(name)
      const metadata = { ...profile.metadata }
      const [pack] = profile.spec.template.packs
      const template = { ...profile.spec.template, packs: [{ ...pack, values: `a: ${'x'.repeat(bytes)}\n` }] }
      return JSON.stringify({ metadata, spec: { ...profile.spec, template } })
    }
    const replies = []
    for (const name of ['one', 'two', 'three', 'four'])
      replies.push(await importProfile(small, large(name), headers))
    const refused = replies.filter(({ statusCode }) => statusCode !== 201)
    expect(replies[0]?.statusCode).toBe(201)
    expect(refused.length).toBeGreaterThan(0)
    for (const reply of refused)
      expect([reply.statusCode, reply.json()]).toMatchObject([
        409,
        {
          code: 'LimitReached',
          message:
            /^the cluster profiles of this scope take \d+ bytes, and \d+ more would be above the 200000/,
        },
      ])
    expect(readdirSync(join(small.stateDirectory, 'profiles', 'staging'))).toEqual([])
    const url = `/v1/clusterprofiles/${replies[0]!.json<{ uid: string }>().uid}`
    const setDefault = (length: number) => {
      const variables = [{ name: 'NOTE', defaultValue: 'x'.repeat(length) }]
      return small.app.inject({ method: 'PUT', url: `${url}/variables`, headers, payload: { variables } })
    }
    const changed = await setDefault(100_000)
    expect([changed.statusCode, changed.json()]).toMatchObject([409, { code: 'LimitReached' }])
    expect((await setDefault(10)).statusCode).toBe(204)
    expect((await small.app.inject({ method: 'DELETE', url, headers })).statusCode).toBe(204)
    expect((await importProfile(small, large('five'), headers)).statusCode).toBe(201)
  } finally {
    await small.close()
  }
})
