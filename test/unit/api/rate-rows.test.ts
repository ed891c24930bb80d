import { describe, expect, it } from 'vitest'
import { createRowFinder } from '../../../src/api/rate/rows.ts'

const rate = { requestsPerSecond: 1, burst: 1 }
const paths = ['/v1/a', '/v1/a/:uid/c', '/v1/a/b', '/v1/a/{x}/c/{y}/d', '/v1/a/b/c/e']
const find = createRowFinder(paths.map((path) => ({ path, ...rate })))

describe('the row of a path', () => {
  it.each([
    ['/v1/a', '/v1/a'],
    ['/v1/a?x=/v1/a/b', '/v1/a'],
    ['/v1/a/', '/v1/a'],
    ['/v1/a//c', '/v1/a'],
    ['/v1/a/1', '/v1/a'],
    ['/v1/a/1/c', '/v1/a/:uid/c'],
    ['/v1/a/1/c/2', '/v1/a/:uid/c'],
    ['/v1/a/1/c/2/d', '/v1/a/{x}/c/{y}/d'],
    ['/v1/a/1/c/2/d/e', '/v1/a/{x}/c/{y}/d'],
    // A name and a parameter both match; the longer row counts.
    ['/v1/a/b', '/v1/a/b'],
    ['/v1/a/b/c', '/v1/a/:uid/c'],
    ['/v1/a/b/c/e', '/v1/a/b/c/e'],
    ['/v1/a/b/c/e/d', '/v1/a/{x}/c/{y}/d'],
    ['/v1/%61/1', '/v1/a'],
    ['/v1/a/x%2Fc', '/v1/a'],
    ['/v1/ab', undefined],
    ['/v1', undefined],
    ['/', undefined],
    ['', undefined],
    ['//v1/a', undefined],
    ['/v1/__proto__', undefined],
    ['/v1/a%', undefined],
  ])('%s is in the row %s', (url, row) => {
    expect(find(url)?.path).toBe(row)
  })

  it('is one: two rows that match the same paths are refused', () => {
    const twice = ['/v1/a/:uid', '/v1/a/{name}'].map((path) => ({ path, ...rate }))
    expect(() => createRowFinder(twice)).toThrow('are one')
  })
})
