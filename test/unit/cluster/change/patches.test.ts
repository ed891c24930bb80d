import { describe, expect, it, vi } from 'vitest'
import {
  applyJsonPatch,
  applyConfigurationPart,
  applyMergePatch,
} from '../../../../src/cluster/desired/patches.ts'
import { refusalOf } from '../../../support/refusal-of.ts'

describe('a merge patch', () => {
  // The table of RFC 7396, appendix A.
  it.each([
    [{ a: 'b' }, { a: 'c' }, { a: 'c' }],
    [{ a: 'b' }, { b: 'c' }, { a: 'b', b: 'c' }],
    [{ a: 'b' }, { a: null }, {}],
    [{ a: 'b', b: 'c' }, { a: null }, { b: 'c' }],
    [{ a: ['b'] }, { a: 'c' }, { a: 'c' }],
    [{ a: 'c' }, { a: ['b'] }, { a: ['b'] }],
    [{ a: { b: 'c' } }, { a: { b: 'd', c: null } }, { a: { b: 'd' } }],
    [{ a: [{ b: 'c' }] }, { a: [1] }, { a: [1] }],
    [
      ['a', 'b'],
      ['c', 'd'],
      ['c', 'd'],
    ],
    [{ a: 'b' }, ['c'], ['c']],
    [{ a: 'foo' }, null, null],
    [{ a: 'foo' }, 'bar', 'bar'],
    [{ e: null }, { a: 1 }, { e: null, a: 1 }],
    [[1, 2], { a: 'b', c: null }, { a: 'b' }],
    [{}, { a: { bb: { ccc: null } } }, { a: { bb: {} } }],
  ])('%j with %j is %j', (document, patch, expected) => {
    expect(applyMergePatch(document, patch)).toEqual(expected)
  })

  it('a patch changes no prototype, and one that is nested too deeply is refused', () => {
    const patch = JSON.parse('{"a":{"__proto__":{"admin":true}}}') as unknown
    const merged = applyMergePatch({ a: {} }, patch) as { a: { admin?: boolean } }
    expect([merged.a.admin, ({} as { admin?: boolean }).admin]).toEqual([undefined, undefined])
    const deep = JSON.parse(`${'{"a":'.repeat(20_000)}1${'}'.repeat(20_000)}`) as unknown
    expect(refusalOf(() => applyMergePatch({}, deep)).message).toContain('nested')
  })
})

describe('a part of a configuration', () => {
  const variables = [
    { name: 'replicas', value: '1' },
    { name: 'password', value: '********' },
    { name: 'site', profileUid: 'p1', value: 'a' },
    { name: 'site', profileUid: 'p2', value: 'b' },
  ]
  const pool = {
    name: 'cp',
    taints: [{ key: 'a' }, { key: 'b' }],
    hosts: [{ hostUid: 'edge-1', hostName: 'line-1' }],
  }
  const configuration = {
    metadata: { name: 'edge-1' },
    spec: {
      profileVariables: variables,
      cloudConfig: { spec: { clusterConfig: { ntpServers: ['a', 'b'] }, machinePoolConfig: [pool] } },
    },
  }
  const pools = (...machinePoolConfig: readonly unknown[]) => ({
    spec: { cloudConfig: { spec: { machinePoolConfig } } },
  })
  const partOf = (part: object) => applyConfigurationPart(configuration, part) as typeof configuration
  const values = (...profileVariables: readonly unknown[]) =>
    partOf({ spec: { profileVariables } }).spec.profileVariables

  it('with one variable sets it, and all others stay', () => {
    expect(values({ name: 'replicas', value: '2' })).toEqual([
      { name: 'replicas', value: '2' },
      ...variables.slice(1),
    ])
    expect(values()).toEqual(variables)
  })

  it('knows a variable by its profile where several have the name, and adds one that is not there', () => {
    const [, , first, second] = variables
    expect(values({ name: 'site', profileUid: 'p2', value: 'c' }).slice(2)).toEqual([
      first,
      { ...second, value: 'c' },
    ])
    expect(values({ name: 'replicas', profileUid: 'p1', value: '2' })[0]).toEqual({
      ...{ name: 'replicas', profileUid: 'p1', value: '2' },
    })
    for (const added of [
      { name: 'port', value: '1' },
      { name: 'site', value: 'c' },
    ])
      expect(values(added)).toEqual([...variables, added])
  })

  it('null takes a member away, also the whole list and the value of one entry', () => {
    expect(values({ name: 'replicas', value: null })[0]).toEqual({ name: 'replicas' })
    expect(partOf({ spec: { profileVariables: null } }).spec).not.toHaveProperty('profileVariables')
  })

  it('merges the pools by their name and the hosts by their id; an entry without one is the only one', () => {
    const labels = { additionalLabels: { a: 'b' } }
    for (const given of [{ name: 'cp', ...labels }, labels])
      expect(partOf(pools(given)).spec.cloudConfig.spec.machinePoolConfig).toEqual([{ ...pool, ...labels }])
    for (const id of [{ hostUid: 'edge-1' }, { hostID: 'edge-1' }, {}]) {
      const [merged] = partOf(pools({ hosts: [{ ...id, nicName: 'eth1' }] })).spec.cloudConfig.spec
        .machinePoolConfig
      expect(merged?.hosts).toEqual([{ ...pool.hosts[0], ...id, nicName: 'eth1' }])
    }
    const other = { name: 'other', hosts: [] }
    expect(partOf(pools(other)).spec.cloudConfig.spec.machinePoolConfig).toEqual([pool, other])
  })

  it('replaces every other list, and an entry of a merge patch is the whole list', () => {
    expect(partOf(pools({ taints: [{ key: 'a' }] })).spec.cloudConfig.spec.machinePoolConfig).toEqual([
      { ...pool, taints: [{ key: 'a' }] },
    ])
    const servers = { spec: { cloudConfig: { spec: { clusterConfig: { ntpServers: ['c'] } } } } }
    expect(partOf(servers).spec.cloudConfig.spec.clusterConfig).toEqual({ ntpServers: ['c'] })
    const patch = { spec: { profileVariables: [{ name: 'replicas', value: '2' }] } }
    expect(applyMergePatch(configuration, patch)).toMatchObject(patch)
  })

  it('what is no list or no entry is left for the schema to refuse, and no member of a prototype is a list', () => {
    expect(values(5)).toEqual([...variables, 5])
    expect(partOf({ spec: { profileVariables: 5 } }).spec.profileVariables).toBe(5)
    const odd = { constructor: [1], spec: { toString: [2] } }
    expect(partOf(odd)).toMatchObject(odd)
  })
})

describe('a JSON patch', () => {
  const document = { a: { b: ['x', 'y'], 'c/d': 1, '~': 2 }, n: null }
  // After the examples of RFC 6902, appendix A.
  it.each([
    [[{ op: 'add', path: '/z', value: 1 }], { ...document, z: 1 }],
    [[{ op: 'add', path: '/a/b/1', value: 'w' }], { ...document, a: { ...document.a, b: ['x', 'w', 'y'] } }],
    [[{ op: 'add', path: '/a/b/-', value: 'w' }], { ...document, a: { ...document.a, b: ['x', 'y', 'w'] } }],
    [[{ op: 'remove', path: '/a/b/0' }], { ...document, a: { ...document.a, b: ['y'] } }],
    [[{ op: 'replace', path: '/a/c~1d', value: 5 }], { ...document, a: { ...document.a, 'c/d': 5 } }],
    [[{ op: 'replace', path: '/a/~0', value: 5 }], { ...document, a: { ...document.a, '~': 5 } }],
    [[{ op: 'replace', path: '', value: { q: 1 } }], { q: 1 }],
    [[{ op: 'move', from: '/a', path: '/n' }], { n: document.a }],
    [[{ op: 'copy', from: '/a/b/0', path: '/n' }], { ...document, n: 'x' }],
    [
      [
        { op: 'test', path: '/n', value: null },
        { op: 'remove', path: '/n' },
      ],
      { a: document.a },
    ],
    [[{ op: 'move', from: '/a/b/0', path: '/a/b/1' }], { ...document, a: { ...document.a, b: ['y', 'x'] } }],
    [[], document],
  ])('%j', (operations, expected) => {
    const before = structuredClone(document)
    expect(applyJsonPatch(document, operations)).toEqual(expected)
    expect(document).toEqual(before)
  })

  it.each([
    [{ op: 'add' }, '[0].path is missing'],
    [{ op: 'add', path: 'a', value: 1 }, '[0].path must be a JSON Pointer'],
    [{ op: 'add', path: '/~2', value: 1 }, '[0].path must be a JSON Pointer'],
    [{ op: 'add', path: '/q/r', value: 1 }, '[0].path leads to nothing'],
    [{ op: 'add', path: '/a/b/3', value: 1 }, '[0].path is no place in the list'],
    [{ op: 'add', path: '/a/b/01', value: 1 }, '[0].path is no place in the list'],
    [{ op: 'add', path: '/a/b/length', value: 1 }, '[0].path is no place in the list'],
    [{ op: 'add', path: '/z' }, '[0].value is missing'],
    [{ op: 'replace', path: '/a/b/length', value: 9 }, '[0].path leads to nothing'],
    [{ op: 'replace', path: '/q', value: 1 }, '[0].path leads to nothing'],
    [{ op: 'remove', path: '/a/b/-' }, '[0].path leads to nothing'],
    [{ op: 'remove', path: '' }, 'cannot be taken away'],
    [{ op: 'move', from: '/a', path: '/a/x' }, '[0].path is inside of what is moved'],
    [{ op: 'move', path: '/a/x' }, '[0].from is missing'],
    [{ op: 'test', path: '/n', value: 0 }, '[0] does not hold'],
    [{ op: 'spoil', path: '/n' }, '[0].op must be one of'],
    [{ op: 'add', path: '/__proto__', value: { admin: true } }, '[0].path leads to nothing'],
    [{ op: 'add', path: '/__proto__/admin', value: true }, '[0].path leads to nothing'],
    [{ op: 'add', path: '/constructor/prototype/admin', value: true }, '[0].path leads to nothing'],
    ['remove', '[0] must be an operation'],
  ])('%j is refused with its place and reason', (operation, reason) => {
    const before = structuredClone(document)
    expect(refusalOf(() => applyJsonPatch(document, [operation])).message).toContain(reason)
    expect(document).toEqual(before)
    expect(({} as { admin?: boolean }).admin).toBeUndefined()
  })

  it('copies of copies are refused before they fill the memory, by their size or by their depth', () => {
    const wide = Array.from({ length: 200 }, (_, index) => ({ op: 'copy', from: '/a', path: `/a/k${index}` }))
    expect(refusalOf(() => applyJsonPatch({ a: { text: 'x'.repeat(100) } }, wide)).message).toMatch(
      /large|nested/,
    )
    const long = Array.from({ length: 40 }, () => ({ op: 'copy', from: '', path: '/a' }))
    expect(refusalOf(() => applyJsonPatch({ a: 1 }, long)).message).toContain('nested')
    const flat = Array.from({ length: 900 }, (_, index) => ({ op: 'copy', from: '/a', path: `/b${index}` }))
    expect(refusalOf(() => applyJsonPatch({ a: 'x'.repeat(2_000) }, flat)).message).toContain('too large')
  })

  it('many small copies in a large document take no more work than what they copy', () => {
    const large = Object.fromEntries(Array.from({ length: 20_000 }, (_, index) => [`k${index}`, 1]))
    const copies = Array.from({ length: 1_000 }, (_, index) => ({
      op: 'copy',
      from: '/a',
      path: `/b${index}`,
    }))
    const entries = vi.spyOn(Object, 'entries')
    expect(applyJsonPatch({ a: 'x', large }, copies)).toMatchObject({ b999: 'x' })
    // To look at the whole document for each of them, with 60,000 members, made the watchdog end the daemon.
    const looks = entries.mock.calls.filter(([value]) => Object.keys(value).length === 20_000)
    expect(looks).toHaveLength(1)
  })

  it('what other operations nest too deeply is refused too', () => {
    const nest = Array.from({ length: 40 }, () => [
      { op: 'add', path: '/b', value: {} },
      { op: 'move', from: '/a', path: '/b/a' },
      { op: 'move', from: '/b', path: '/a' },
    ]).flat()
    expect(refusalOf(() => applyJsonPatch({ a: 1 }, nest)).message).toContain('nested')
  })

  it('what is no list of operations, or has too many, is refused', () => {
    expect(refusalOf(() => applyJsonPatch({}, {}, 'clusterConfigPatches')).message).toContain(
      'clusterConfigPatches',
    )
    expect(
      refusalOf(() =>
        applyJsonPatch(
          {},
          Array.from({ length: 1_001 }, () => ({})),
        ),
      ).message,
    ).toContain('1000')
  })
})
