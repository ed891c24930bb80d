import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { carryValues, withDefinition } from '../../../../src/cluster/desired/edits.ts'
import type { ClusterConfiguration } from '../../../../src/cluster/schemas.ts'
import type { ClusterProfileDetail, Variable } from '../../../../src/definition/schemas.ts'
import { by, createChangingCluster, secret, signal, withReplicas } from '../../../support/changing-cluster.ts'

const profile = (profileUid: string, variables: readonly Variable[], profileName = 'shop') =>
  ({ profileUid, profileName, packs: [], variables }) as unknown as ClusterProfileDetail
const named = (...names: readonly string[]) => names.map((name) => ({ name }))

describe('values that were given before', () => {
  const given = [
    { name: 'a', profileUid: 'u1', value: '1' },
    { name: 'b', value: '2' },
    { name: 'gone', profileUid: 'u1', value: '3' },
    { name: 'gone-too', value: '4' },
  ]
  const before = [profile('u1', named('a', 'b', 'gone', 'gone-too'))]

  it.each<[string, readonly ClusterProfileDetail[], readonly string[]]>([
    ['stay with the same profile', [profile('u1', named('b', 'a'))], ['u1/a=1', '/b=2']],
    ['follow their profile by its name to a new uid', [profile('u2', named('a', 'b'))], ['u2/a=1', '/b=2']],
    [
      'follow the uid where a profile has another name, or another one has the old name',
      [profile('u3', named('a')), profile('u1', named('a', 'b'), 'renamed')],
      ['u1/a=1', '/b=2'],
    ],
    ['go with their profile', [profile('u9', named('a'), 'other')], []],
    [
      'without a profile stay while any profile declares them',
      [profile('u9', named('b'), 'other')],
      ['/b=2'],
    ],
    ['go where nothing is left', [], []],
  ])('%s', (_fact, after, expected) => {
    const spelled = carryValues(given, before, after).map(
      ({ name = '', profileUid = '', value = '' }) => `${profileUid}/${name}=${value}`,
    )
    expect(spelled).toEqual(expected)
  })

  it('stay whatever the new default is, also where they are empty or equal to the old one', () => {
    const old = [{ name: 'a', defaultValue: 'old' }] as Variable[]
    const next = [{ name: 'a', defaultValue: 'new' }] as Variable[]
    for (const value of ['old', 'mine', ''])
      expect(
        carryValues([{ name: 'a', profileUid: 'u1', value }], [profile('u1', old)], [profile('u2', next)]),
      ).toEqual([{ name: 'a', profileUid: 'u2', value }])
  })

  it('of a profile that was not in the definition before go, unless the next one has its uid', () => {
    const stray = [{ name: 'a', profileUid: 'u7', value: '1' }]
    expect(carryValues(stray, before, [profile('u2', named('a'))])).toEqual([])
    expect(carryValues(stray, before, [profile('u7', named('a'), 'x')])).toEqual(stray)
  })
})

describe('another definition for a cluster that runs', () => {
  const declared = [{ name: 'replicas' }, { name: 'password', isSensitive: true }] as Variable[]

  /** A cluster whose values name their profile, and its next definition, in which the profile has a new uid. */
  async function world() {
    const cluster = createChangingCluster()
    const { folder } = cluster.store.current()!
    writeFileSync(join(folder, 'details.json'), JSON.stringify([profile('p1', declared)]))
    const details = join(folder, 'next.json')
    writeFileSync(details, JSON.stringify([profile('p2', [...declared, ...named('site')])]))
    const withProfile = (document: ClusterConfiguration) => ({
      ...document,
      spec: {
        ...document.spec,
        profileVariables: [
          { name: 'replicas', profileUid: 'p1', value: '5' },
          { name: 'password', profileUid: 'p1', value: secret },
        ],
      },
    })
    await cluster.write(withProfile)
    cluster.activate()
    const next = cluster.store.current()!.folder
    writeFileSync(join(next, 'details.json'), readFileSync(join(folder, 'details.json')))
    const edit = withDefinition({ archiveOf: async () => ({ file: '', details, definition: {} as never }) })
    const write = {
      ...{ ifMatch: undefined, by },
      edit: edit({ spec: { archiveUploadPath: '/definitions/2' } }),
    }
    return { ...cluster, update: () => cluster.change.write(write, signal), write }
  }

  it('keeps the values of a profile that has a new uid, also the sensitive ones, which are not typed again', async () => {
    const { update, requests, shown, revisions } = await world()
    expect(await update()).toMatchObject({ revision: 3 })
    expect(requests.at(-1)).toMatchObject({
      archiveUploadPath: '/definitions/2',
      variables: [
        { name: 'replicas', profileUid: 'p2', value: '5' },
        { name: 'password', profileUid: 'p2', value: secret },
      ],
    })
    expect(shown().spec?.profileVariables).toEqual([
      { name: 'replicas', profileUid: 'p2', value: '5' },
      { name: 'password', profileUid: 'p2', value: '********' },
    ])
    expect(JSON.stringify(revisions.newest()?.posted)).not.toContain(secret)
  })

  const missing = 'variable site is required'
  it('is held by a required variable without a value, the cluster runs on, and a value lets it go', async () => {
    const { update, found, revisions, store, events, change, write, shown } = await world()
    const active = store.current()!.generation
    found.variables.push({ profileUid: 'p2', name: 'site', value: '', isSensitive: false, missing })
    found.problems.push({ code: 'VariableInvalid', severity: 'error', message: missing })
    expect(await change.tryWrite(write, signal)).toMatchObject({ isPossible: false, isHeld: true, plan: [] })
    expect(await update()).toMatchObject({ revision: 3 })
    expect(revisions.newest()).toMatchObject({ generation: 3, outcome: 'held' })
    expect(revisions.newest()?.reason).toContain(missing)
    expect(store.current()).toMatchObject({ generation: active, deleteRequestedAt: null })
    expect(events.at(-1)).toMatch(/^UpdateHeld: .*variable site is required/)
    expect(shown().spec?.archiveUploadPath).toBe('/definitions/2')

    found.variables.length = 0
    found.problems.length = 0
    const edit = async (document: ClusterConfiguration) => ({
      ...document,
      spec: {
        ...document.spec,
        profileVariables: [
          ...(document.spec?.profileVariables ?? []),
          { name: 'site', profileUid: 'p2', value: 'press-hall' },
        ],
      },
    })
    expect(await change.write({ ifMatch: undefined, by, edit }, signal)).toMatchObject({ revision: 4 })
    expect(revisions.newest()).toMatchObject({ generation: 4, outcome: 'waiting' })
    expect(revisions.newest()?.plain?.spec?.profileVariables?.map(({ value }) => value)).toEqual([
      ...['5', secret, 'press-hall'],
    ])
  })

  it('is refused, and not held, where more is wrong than values that are missing', async () => {
    const { update, found, revisions } = await world()
    found.variables.push({ profileUid: 'p2', name: 'site', value: '', isSensitive: false, missing })
    found.problems.push({ code: 'VariableInvalid', severity: 'error', message: missing })
    found.problems.push({ code: 'ImageMissing', severity: 'error', message: 'no image' })
    await expect(update()).rejects.toMatchObject({ code: 'PreflightFailed' })
    expect(revisions.newest()?.generation).toBe(2)
  })

  it('a value whose place is masked and that is not stored is refused, and nothing changes', async () => {
    const { change, revisions } = await world()
    const edit = async (document: ClusterConfiguration) => ({
      ...withReplicas('6')(document),
      spec: {
        ...document.spec,
        profileVariables: [{ name: 'password', profileUid: 'p9', value: '********' }],
      },
    })
    await expect(change.write({ ifMatch: undefined, by, edit }, signal)).rejects.toMatchObject({
      ...{ code: 'BadRequest', details: { field: 'spec.profileVariables[0].value' } },
    })
    expect(revisions.newest()?.generation).toBe(2)
  })
})
