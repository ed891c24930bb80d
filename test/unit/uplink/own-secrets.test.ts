import { expect, it } from 'vitest'
import { createOwnSecrets, maskSecrets, secretsOfKubeconfig } from '../../../src/uplink/cause.ts'

const key = 'LS0tLS1CRUdJTiBSU0EgUFJJVkFURSBLRVktLS0tLQpNSUlFcEFJQkFBS0NBUUVB'

it.each([
  ['', ''],
  ['nothing of it', 'nothing of it'],
  ['is T0KEN, T0KEN', 'is (secret), (secret)'],
  ['T0KENT0KEN', '(secret)'],
  ['T0KE', 'T0KE'],
  [`key ${key} end`, 'key (secret) end'],
  [`it ends: ${key.slice(0, 20)}`, 'it ends: (secret)'],
  [`...${key.slice(10, 40)}...`, '...(secret)...'],
  [key.slice(0, 15), key.slice(0, 15)],
])('of %j is shown %j', (text, masked) => {
  expect(maskSecrets(text, ['T0KEN', '', key])).toBe(masked)
})

it('secrets that are in the word for a secret do not make a text longer', () => {
  expect(maskSecrets('x'.repeat(10), ['x', '(', 's', 'e', 'c', 'r', 't', ')'])).toBe('(secret)')
})

it('keeps the last eight of a kind, and those of other kinds', () => {
  const secrets = createOwnSecrets()
  secrets.add('registrationToken', 'r')
  for (const number of [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 9, 2]) secrets.add('sessionToken', `${number}`)
  expect(secrets.all().toSorted().join('')).toBe('23456789r')
})

it('finds what is secret in a kubeconfig, in YAML and in JSON', () => {
  const yaml = `users:
- name: admin
  user:
    client-certificate-data: Y2VydA==
    client-key-data: ${key}
    token: "abc.def"
    tokenFile: /run/token
    password: 'hunter2'
`
  expect(secretsOfKubeconfig(yaml)).toEqual([key, 'abc.def', 'hunter2'])
  const user = { 'client-key-data': key, 'client-certificate-data': 'Y2VydA==', token: 'abc.def' }
  expect(secretsOfKubeconfig(JSON.stringify({ users: [{ user }] }))).toEqual([key, 'abc.def'])
  expect(secretsOfKubeconfig('')).toEqual([])
})
