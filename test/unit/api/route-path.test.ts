import { describe, expect, it } from 'vitest'
import { cpuNow } from '../../support/cpu-time.ts'
import { matcherOf, slashEncoderOf } from '../../../src/api/route-table.ts'

describe('the pattern of a route', () => {
  it.each([
    ['/v1/ping', '/v1/ping', true],
    ['/v1/ping', '/v1/ping/', false],
    ['/v1/a.b', '/v1/aXb', false],
    ['/v1/things/:uid', '/v1/things/7', true],
    ['/v1/things/:uid', '/v1/things/7/8', false],
    ['/v1/things/:uid', '/v1/things/', false],
    ['/v2/:name/blobs/:digest', '/v2/a%2Fb/blobs/x', true],
    ['/files/*', '/files/a/b', true],
    ['/files/*', '/file', false],
  ])('the pattern %s matches the path %s: %s', (pattern, path, fits) => {
    expect(matcherOf(pattern).test(path)).toBe(fits)
  })

  it.each(['/v1/:hour(^\\d+$)', '/v1/:uid?', '/v1/a::b'])('the pattern %s is refused', (pattern) => {
    expect(() => matcherOf(pattern)).toThrow(`the route ${pattern} has a parameter of a form`)
  })
})

describe('a parameter that may hold slashes', () => {
  it.each([
    ['/v2/:name/blobs/:digest', '/v2/a/blobs/x', '/v2/a/blobs/x'],
    ['/v2/:name/blobs/:digest', '/v2/a/b/c/blobs/x', '/v2/a%2Fb%2Fc/blobs/x'],
    // The last place where the rest fits, since that has no slashes.
    ['/v2/:name/blobs/:digest', '/v2/a/blobs/b/blobs/x', '/v2/a%2Fblobs%2Fb/blobs/x'],
    ['/v2/:name/blobs/:digest', '/v2/a/b/blobs/x/y', '/v2/a/b/blobs/x/y'],
    ['/v2/:name/blobs/:digest', '/v2/blobs/x', '/v2/blobs/x'],
    ['/v2/:name/tags/list', '/v2/a/b/tags/list', '/v2/a%2Fb/tags/list'],
    ['/v2/:name', '/v2/a/b', '/v2/a%2Fb'],
  ])('with the pattern %s the path %s is encoded as %s', (pattern, path, read) => {
    expect(slashEncoderOf(pattern, 'name')?.(path)).toBe(read)
  })

  it('a parameter is not mistaken for one whose name begins with its name', () => {
    expect(slashEncoderOf('/v2/:names/blobs', 'name')).toBeUndefined()
  })

  it('a parameter with slashes is found fast in a path of the maximum length', () => {
    const encode = slashEncoderOf('/v2/:name/blobs/:digest', 'name')
    const began = cpuNow()
    encode?.(`/v2/${'/blobs/'.repeat(2_300)}`)
    expect(cpuNow() - began).toBeLessThan(500)
  })
})
