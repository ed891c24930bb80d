import { describe, expect, it } from 'vitest'
import { chooseEndpoint } from '../../../src/platform/clouds/openstack/keystone.ts'
import { refusalOf } from '../../support/refusal-of.ts'

const endpoint = (kind: string, region: string, url: string) => ({
  interface: kind,
  region_id: region,
  region,
  url,
})
const catalogue = (...endpoints: object[]) => [
  { type: 'identity', endpoints: [] },
  { type: 'compute', endpoints },
]
const usual = { interface: 'public' } as const

describe('the endpoint of a service', () => {
  it('is that of the interface, without a slash at its end', () => {
    const found = catalogue(
      endpoint('internal', 'One', 'https://internal.example/v2.1'),
      endpoint('public', 'One', 'https://public.example/v2.1/'),
    )
    expect(chooseEndpoint(found, 'compute', usual)).toBe('https://public.example/v2.1')
    expect(chooseEndpoint(found, 'compute', { interface: 'internal' })).toBe('https://internal.example/v2.1')
    expect(chooseEndpoint(found, 'compute', { interface: 'admin' })).toBeUndefined()
    expect(chooseEndpoint(found, 'network', usual)).toBeUndefined()
  })

  it('is that of the region, which has to be named where there are several', () => {
    const found = catalogue(
      endpoint('public', 'One', 'https://one.example'),
      endpoint('public', 'Two', 'https://two.example'),
    )
    expect(chooseEndpoint(found, 'compute', { ...usual, region: 'Two' })).toBe('https://two.example')
    expect(chooseEndpoint(found, 'compute', { ...usual, region: 'Three' })).toBeUndefined()
    expect(refusalOf(() => chooseEndpoint(found, 'compute', usual))).toMatchObject({
      code: 'CloudUnavailable',
      message: 'the cloud has several regions (openstack region list): set clouds.vendor.region',
    })
  })

  it.each(['http://plain.example/v2.1', 'no url', '', `https://long.example/${'/'.repeat(3_000_000)}x`])(
    'is not "%.40s", since the token is sent there',
    (url) => {
      const found = catalogue(endpoint('public', 'One', url))
      expect(refusalOf(() => chooseEndpoint(found, 'compute', usual))).toMatchObject({
        code: 'CloudUnavailable',
        message: 'the public endpoint of compute in the catalogue of the cloud is no https:// URL',
      })
    },
  )

  it.each([
    undefined,
    null,
    'text',
    {},
    [null, 1, { type: 'compute' }],
    [{ type: 'compute', endpoints: 'none' }],
  ])('is none in a catalogue that is none: %j', (found) => {
    expect(chooseEndpoint(found, 'compute', usual)).toBeUndefined()
  })
})
