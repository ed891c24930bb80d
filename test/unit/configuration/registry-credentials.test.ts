import { expect, it } from 'vitest'
import { readRegistryCredentials, shownCredentials } from '../../../src/configuration/registry-credentials.ts'
import type { RegistryCredentials } from '../../../src/configuration/schemas.ts'

const domain = 'registry.example:5000'
const present = {
  domain,
  username: 'edge',
  password: 'secret',
  certificates: [],
  isInsecure: false,
}
const read = (sent: RegistryCredentials, before?: typeof present) =>
  readRegistryCredentials(sent, before, Date.now())

it.each<[string, RegistryCredentials, object | undefined]>([
  ['nothing', {}, undefined],
  ['empty values', { domain: '', password: '', insecure: false, certificates: [] }, undefined],
  ['a registry without a login', { domain }, { username: '', password: '' }],
  ['a login', { domain, username: 'edge', password: 'p"\\s' }, { username: 'edge', password: 'p"\\s' }],
  [
    'a password in base64',
    { domain, username: 'edge', password: 'c2VjcmV0', encodedPassword: true },
    { password: 'secret' },
  ],
  ['an address', { domain: '192.0.2.7', insecure: true }, { domain: '192.0.2.7', isInsecure: true }],
])('%s is read', (_what, sent, expected) => {
  if (expected === undefined) expect(read(sent)).toBeUndefined()
  else expect(read(sent)).toMatchObject(expected)
})

it('a mask stands for the present password of the same registry and user, and of no other', () => {
  const sent = { domain, username: 'edge', password: '********', encodedPassword: true }
  expect(read(sent, present)).toEqual(present)
  expect(() => read(sent)).toThrow(/^registryCredentials\.password is a mask/)
  expect(() => read({ ...sent, username: 'other' }, present)).toThrow(
    /^registryCredentials\.password is a mask/,
  )
  expect(() => read({ ...sent, domain: 'evil.example' }, present)).toThrow(
    /^registryCredentials\.password is a mask/,
  )
})

it.each<[Record<string, unknown>, string]>([
  [{ username: 'edge', password: 'canary' }, 'domain is missing'],
  [{ domain: 'https://registry.example' }, 'domain has to be a name'],
  [{ domain: 'registry.example/plant' }, 'domain has to be a name'],
  [{ domain: '../../etc' }, 'domain has to be a name'],
  [{ domain: 'a..b' }, 'domain has to be a name'],
  [{ domain: '_default' }, 'domain has to be a name'],
  [{ domain: 'registry.example:0' }, 'domain has to be a name'],
  [{ domain: 'registry.example:70000' }, 'domain has to be a name'],
  [{ domain: 'x'.repeat(300) }, 'domain has to be a name'],
  [{ domain, password: 'canary' }, 'username is missing'],
  [{ domain, username: 'edge' }, 'password is missing'],
  [{ domain, username: 'a:b', password: 'canary' }, 'username has a colon'],
  [{ domain, username: 'edge', password: 'canary\n' }, 'password has a control character'],
  [{ domain, username: 'edge', password: 'x'.repeat(2_000) }, 'password is longer'],
  [{ domain, username: 'edge', password: 'canary!', encodedPassword: true }, 'password is not base64'],
  [{ domain, repositoryName: 'plant' }, 'repositoryName cannot be applied'],
  [{ domain, certificates: ['x'] }, 'certificates[0] is not base64 of PEM'],
  [{ domain, mirror: 'x' }, 'mirror is not a field of registry credentials'],
])('%j is refused, without the password', (sent, reason) => {
  let message = ''
  try {
    read(sent)
  } catch (error) {
    ;({ message } = error as Error)
  }
  expect(message).toContain(`registryCredentials.${reason}`)
  expect(message).not.toContain('canary')
})

it('what is shown has a mask, and no login where there is none', () => {
  expect(shownCredentials(undefined)).toBeUndefined()
  expect(shownCredentials(present)).toEqual({
    domain,
    insecure: false,
    username: 'edge',
    password: '********',
  })
  expect(shownCredentials({ ...present, username: '', password: '' })).toEqual({ domain, insecure: false })
})
