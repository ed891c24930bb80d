import { expect, it } from 'vitest'
import { AppError } from '../../../src/errors/app-error.ts'
import {
  differences,
  environmentOf,
  exemptionsOf,
  networksOfLinks,
  nothing,
  readConfiguration,
  shownConfiguration,
} from '../../../src/configuration/content.ts'
import { Placement } from '../../../src/configuration/placement.ts'
import { Errors } from 'typebox/schema'
import { selfSignedCertificate } from '../../support/authority-certificates.ts'

const now = Date.now()
const read = (body: object, present = nothing) => readConfiguration(body, present, now)
const packed = (text: string) => Buffer.from(text).toString('base64')
const authority = selfSignedCertificate('authority.example', true)
const other = selfSignedCertificate('other.example', true)

function refusal(body: object, present = nothing): { field: unknown; message: string } {
  try {
    read(body, present)
  } catch (error) {
    if (error instanceof AppError) return { field: error.details?.field, message: error.message }
    throw error
  }
  throw new Error('it was taken')
}

it('authorities are taken once each, from several entries and from one with several', () => {
  const both = packed(authority.cert + other.cert)
  const { certificates, caCerts } = read({ caCerts: [packed(authority.cert), both] })
  expect(certificates).toHaveLength(2)
  expect(caCerts).toEqual([packed(authority.cert), both])
  const input = { revision: 1, environment: '', certificates: [...certificates] }
  expect(Errors(Placement, input)[0]).toBe(true)
})

it.each([
  ['text that is no base64', () => '§', /^caCerts\[1\] is not base64/],
  ['PEM itself', () => authority.cert, /^caCerts\[1\] is PEM; it has to be base64/],
  ['an empty text', () => '', /^caCerts\[1\] is not base64/],
  ['base64 of something else', () => packed('hello'), /^caCerts\[1\] cannot be used: it has no certificate/],
  ['half a certificate', () => packed(authority.cert.slice(0, 200)), /^caCerts\[1\] cannot be used/],
  ['a private key', () => packed(authority.key), /^caCerts\[1\] has a private key/],
  [
    'a certificate with its key',
    () => packed(authority.cert + authority.key),
    /^caCerts\[1\] has a private key/,
  ],
  [
    'a certificate of a server',
    () => packed(selfSignedCertificate('server.example', false).cert),
    /^caCerts\[1\] is not of an authority/,
  ],
  [
    'one that has expired',
    () => packed(selfSignedCertificate('old.example', true, -1).cert),
    /^caCerts\[1\] has expired/,
  ],
])('%s in caCerts is refused with its index', (_what, entry, message) => {
  const { field, message: said } = refusal({ caCerts: [packed(authority.cert), entry()] })
  expect(field).toBe('caCerts[1]')
  expect(said).toMatch(message)
})

it('a password is masked in replies, and a mask that comes back leaves it as it is', () => {
  const present = read({ httpsProxy: 'http://edge:right%20canary@proxy.example:3128', noProxy: 'a.example' })
  const shown = shownConfiguration(present)
  expect(shown).toEqual({ httpsProxy: 'http://edge:********@proxy.example:3128', noProxy: 'a.example' })
  expect(read(shown, present)).toEqual(present)
  expect(JSON.stringify(differences(nothing, present))).not.toContain('canary')
})

it.each([
  'http://edge:********@other.example:3128',
  'http://edge:********@proxy.example:3129',
  'http://mallory:********@proxy.example:3128',
  'https://edge:********@proxy.example:3128',
])('a mask with another proxy, %s, is refused: it would get the password', (httpsProxy) => {
  const present = read({ httpsProxy: 'http://edge:canary@proxy.example:3128' })
  expect(refusal({ httpsProxy }, present)).toMatchObject({ field: 'httpsProxy' })
  expect(refusal({ httpProxy: 'http://edge:********@proxy.example:3128' }, present).field).toBe('httpProxy')
})

it('what was left out or is empty goes', () => {
  const present = read({ httpProxy: 'http://proxy.example:3128', noProxy: 'a.example' })
  expect(read({}, present)).toEqual(nothing)
  expect(read({ httpProxy: '', noProxy: ' ', caCerts: [] }, present)).toEqual(nothing)
})

it('the networks of the host, pods and services, and an address outside of them, need no proxy', () => {
  const ranges = networksOfLinks(['192.0.2.7/24', '192.0.2.8/24', 'fe80::1/64', '2001:db8::7/64'])
  expect(ranges).toEqual(['192.0.2.0/24', '2001:db8::7/64'])
  const cluster = { networks: ['10.244.0.0/16', '10.96.0.0/12'], addresses: ['192.0.2.7', '198.51.100.4'] }
  const all = exemptionsOf({ noProxy: 'a.example,10.96.0.0/12' }, ranges, cluster)
  expect(all).toEqual([
    ...['a.example', '10.96.0.0/12', 'localhost', '127.0.0.0/8', '::1', '192.0.2.0/24', '2001:db8::7/64'],
    ...['10.244.0.0/16', '198.51.100.4', '.svc', '.cluster.local'],
  ])
})

it('the file of the units has each variable in both spellings, and is what the verb takes', () => {
  const wanted = read({ httpProxy: `http://e:a"b%0d'@proxy:3128`.replace('%0d', '') })
  const text = environmentOf(wanted, ['a.example', '*.b.example', '[2001:db8::1]:443'])
  expect(text).toBe(
    [
      'HTTP_PROXY="http://e:a%22b%27@proxy:3128"',
      'http_proxy="http://e:a%22b%27@proxy:3128"',
      'NO_PROXY="a.example,*.b.example,[2001:db8::1]:443"',
      'no_proxy="a.example,*.b.example,[2001:db8::1]:443"',
      '',
    ].join('\n'),
  )
  expect(Errors(Placement, { revision: 1, environment: text, certificates: [] })[0]).toBe(true)
  expect(environmentOf(nothing, ['a.example'])).toBe('')
})
