import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { withDefinition, setValues } from '../../../../src/cluster/desired/edits.ts'
import type { Revision } from '../../../../src/cluster/desired/revisions.ts'
import type { ClusterConfiguration } from '../../../../src/cluster/schemas.ts'

describe('values that are set', () => {
  it.each([
    ['replaces the only value of the name, and keeps its profile', { name: 'a', value: '2' }, 'u1/a=2 b=x'],
    ['replaces that of its profile', { name: 'a', profileUid: 'u1', value: '2' }, 'u1/a=2 b=x'],
    ['replaces one without a profile', { name: 'b', profileUid: 'u2', value: 'y' }, 'u1/a=1 b=y'],
    ['adds one of another profile', { name: 'a', profileUid: 'u2', value: '2' }, 'u1/a=1 b=x u2/a=2'],
    ['adds a new name', { name: 'c', value: '3' }, 'u1/a=1 b=x c=3'],
    ['empties a value, which takes the default', { name: 'b' }, 'u1/a=1 b='],
  ])('%s', (_fact, given, expected) => {
    const present = [
      { name: 'a', profileUid: 'u1', value: '1' },
      { name: 'b', value: 'x' },
    ]
    const text = setValues(present, [given])
      .map(({ name = '', profileUid, value = '' }) => `${profileUid ? `${profileUid}/` : ''}${name}=${value}`)
      .join(' ')
    expect(text).toBe(expected)
  })

  it('a name that several profiles have is not guessed', () => {
    const present = ['u1', 'u2'].map((profileUid) => ({ name: 'a', profileUid, value: '1' }))
    expect(setValues(present, [{ name: 'a', value: '2' }])).toEqual([...present, { name: 'a', value: '2' }])
  })
})

describe('a change of the definition', () => {
  const profile = (profileUid: string, ...names: string[]) => ({
    ...{ profileUid, profileName: 'shop', packs: [], variables: names.map((name) => ({ name })) },
  })
  function world() {
    const folder = mkdtempSync(join(tmpdir(), 'edgehostd-edits-'))
    onTestFinished(() => rmSync(folder, { recursive: true }))
    mkdirSync(join(folder, '1'))
    writeFileSync(join(folder, '1', 'details.json'), JSON.stringify([profile('u1', 'a', 'gone')]))
    writeFileSync(join(folder, 'next.json'), JSON.stringify([profile('u2', 'a', 'new')]))
    const archiveOf = async () => ({ file: '', details: join(folder, 'next.json'), definition: {} as never })
    const shown: ClusterConfiguration = {
      metadata: { name: 'edge-1' },
      spec: {
        archiveUploadPath: '/definitions/1',
        scheduleAt: '2031-05-01T02:00:00.000Z',
        profileVariables: [
          { name: 'a', profileUid: 'u1', value: '1' },
          { name: 'gone', profileUid: 'u1', value: 'x' },
        ],
      },
    }
    const revision = { folder: join(folder, '1'), posted: shown, plain: shown } as Revision
    return (spec: NonNullable<ClusterConfiguration['spec']>) =>
      withDefinition({ archiveOf })({ spec })(shown, revision)
  }

  it('carries values over, sets others beside them, and begins when the request says', async () => {
    const edit = world()
    const time = '2032-05-01T02:00:00Z'
    const profileVariables = [
      { name: 'new', profileUid: 'u2', value: 'n' },
      { name: 'a', value: '2' },
    ]
    expect(
      (await edit({ archiveUploadPath: '/definitions/2', profileVariables, scheduleAt: time })).spec,
    ).toEqual({
      ...{ archiveUploadPath: '/definitions/2', scheduleAt: time },
      profileVariables: [
        { name: 'a', profileUid: 'u2', value: '2' },
        { name: 'new', profileUid: 'u2', value: 'n' },
      ],
    })
  })

  it('with the present definition sets values alone; the time of what waits stays unless it is given', async () => {
    const edit = world()
    const set = (more: object) =>
      edit({
        ...{ archiveUploadPath: '/definitions/1', profileVariables: [{ name: 'a', value: '2' }] },
        ...more,
      })
    expect((await set({})).spec).toEqual({
      ...{ archiveUploadPath: '/definitions/1', scheduleAt: '2031-05-01T02:00:00.000Z' },
      profileVariables: [
        { name: 'a', profileUid: 'u1', value: '2' },
        { name: 'gone', profileUid: 'u1', value: 'x' },
      ],
    })
    expect((await set({ scheduleAt: '' })).spec?.scheduleAt).toBe('')
  })

  it('a request without a definition is refused with its field', async () => {
    await expect(world()({ profileVariables: [] })).rejects.toMatchObject({
      code: 'BadRequest',
      details: { field: 'spec.archiveUploadPath' },
    })
  })
})
