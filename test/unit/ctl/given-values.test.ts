import { describe, expect, it } from 'vitest'
import { readGiven, type KnownProfile } from '../../../src/ctl/given-values.ts'

const profiles: readonly KnownProfile[] = [
  { uid: 'u1', name: 'infra', variables: [{ name: 'replicas' }, { name: 'site' }] },
  { uid: 'u2', name: 'shop', variables: [{ name: 'site' }, { name: 'password', isSensitive: true }] },
]
const read = (
  set: readonly string[],
  setFile: readonly string[] = [],
  known: typeof profiles | undefined = profiles,
) => readGiven({ set, setFile }, known, (file) => `content of ${file}`)

describe('values of a command line', () => {
  it.each([
    [
      'of the only profile that has the name',
      'replicas=3',
      { name: 'replicas', profileUid: 'u1', value: '3' },
    ],
    ['with = and / in it', 'replicas=a=/b', { name: 'replicas', profileUid: 'u1', value: 'a=/b' }],
    ['empty', 'replicas=', { name: 'replicas', profileUid: 'u1', value: '' }],
    ['of a profile by its name', 'shop/site=x', { name: 'site', profileUid: 'u2', value: 'x' }],
    ['of a profile by its uid', 'u1/site=x', { name: 'site', profileUid: 'u1', value: 'x' }],
  ])('a value %s', (_what, text, expected) => {
    expect(read([text])).toEqual([expected])
  })

  it('a sensitive value comes from a file, and is refused on the command line without being shown', () => {
    expect(read([], ['password=/run/secret'])).toEqual([
      { name: 'password', profileUid: 'u2', value: 'content of /run/secret' },
    ])
    expect(() => read(['password=hunter2'])).toThrow(/password is sensitive.*--set-file password=FILE/)
    expect(() => read(['password=hunter2'])).not.toThrow(/hunter2/)
  })

  it.each([
    ['a text without a name', ['hunter2'], '--set needs NAME=VALUE'],
    ['an empty name', ['=hunter2'], '--set needs NAME=VALUE'],
    ['an unknown name', ['replica=2'], 'no variable replica; did you mean replicas?'],
    ['a name far from all', ['zzzzzz=2'], 'no variable zzzzzz; there are: replicas, site, password'],
    ['an unknown profile', ['infar/site=2'], 'no profile infar; did you mean infra?'],
    ['a name of several profiles', ['site=2'], 'write one of: infra/site, shop/site'],
    ['a name that is set twice', ['replicas=2', 'replicas=3'], 'replicas is set twice'],
  ])('%s is refused', (_what, set, message) => {
    expect(() => read(set)).toThrow(message)
    expect(() => read(set)).not.toThrow(/hunter2/)
  })

  it('where the profiles are not known, any value may be sensitive, and only the host judges the names', () => {
    const unknown = (set: readonly string[], setFile: readonly string[] = []) =>
      readGiven({ set, setFile }, undefined, (file) => `content of ${file}`)
    expect(unknown([], ['any=a', 'u9/other=b'])).toEqual([
      { name: 'any', value: 'content of a' },
      { name: 'other', profileUid: 'u9', value: 'content of b' },
    ])
    expect(() => unknown(['any=hunter2'])).toThrow(/any may be sensitive.*--set-file any=FILE/)
    expect(() => unknown(['any=hunter2'])).not.toThrow(/hunter2/)
  })

  it('profiles of one name are told apart by their uids', () => {
    const twins = ['u1', 'u2'].map((uid) => ({ uid, name: 'shop', variables: [{ name: 'a' }] }))
    expect(() => read(['a=1'], [], twins)).toThrow('write one of: u1/a, u2/a')
  })
})
