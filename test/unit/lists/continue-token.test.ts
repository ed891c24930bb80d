import { createHmac } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { createContinueTokens } from '../../../src/lists/continue-token.ts'
import { memoryThings, ask, tokens } from '../../support/list-data.ts'
import { parseListQuery } from '../../../src/lists/query.ts'

const key = Buffer.alloc(32, 1)
const position = { values: ['näme "x"', -5, 1_700_000_000_000], offset: 50 }
const token = tokens.make('query', position)
const [body = '', code = ''] = token.split('.')

describe('a continue token', () => {
  it('a continue token contains the end of a page, and needs no escape in a URL', () => {
    expect(tokens.parse('query', token)).toEqual(position)
    expect(token).toMatch(/^[\w.-]+$/)
  })

  it('a continue token may contain any text', () => {
    const values = ['\0', '\u{10ffff}', '', '__proto__', "'; DROP TABLE thing; --", 0]
    expect(tokens.parse('q', tokens.make('q', { values, offset: 0 }))?.values).toEqual(values)
  })

  it('a continue token is valid only for its query and under its key', () => {
    expect(tokens.parse('another', token)).toBeUndefined()
    expect(createContinueTokens(Buffer.alloc(32, 2)).parse('query', token)).toBeUndefined()
  })

  it('a continue token is refused when any one character is changed', () => {
    for (let index = 0; index < token.length; index += 1) {
      for (const letter of ['A', 'B', '_', '.', '=']) {
        if (token[index] === letter) continue
        const changed = `${token.slice(0, index)}${letter}${token.slice(index + 1)}`
        expect(tokens.parse('query', changed), `${index}: ${letter}`).toBeUndefined()
      }
    }
  })

  it.each([
    ['nothing', ''],
    ['a dot', '.'],
    ['no code', `${body}.`],
    ['no position', `.${code}`],
    ['a third part', `${token}.x`],
    ['a code that is cut off', token.slice(0, -2)],
    ['another spelling of the same bytes', `${body}=.${code}`],
    [
      'a plain signature of its position',
      `${body}.${createHmac('sha256', key).update(Buffer.from(body, 'base64url')).digest('base64url')}`,
    ],
    ['5,000 characters', `${'A'.repeat(5_000)}.${code}`],
  ])('a continue token is refused when it is or has %s', (_what, bad) => {
    expect(tokens.parse('query', bad)).toBeUndefined()
  })

  it('a continue token of five texts of 256 bytes stays within its limit, and a longer text makes none', () => {
    const longest = (length: number) => ({
      values: Array.from({ length: 5 }, () => 'x'.repeat(length)),
      offset: 2 ** 53 - 1,
    })
    expect(tokens.make('query', longest(256)).length).toBeLessThan(4_096)
    expect(() => tokens.make('query', longest(2_000))).toThrow(
      expect.objectContaining({ code: 'BadRequest', details: { field: 'orderBy' } }),
    )
  })
})

describe('continue', () => {
  const given = ask({ filters: 'spec.kind=aANDspec.size=1', orderBy: 'spec.size=1' })
  const next = given.tokenAfter([1, 7], 50)
  const refusal = expect.objectContaining({ code: 'BadRequest', details: { field: 'continue' } })

  it('a continue token continues behind the last item; offset is ignored', () => {
    const query = ask({
      filters: 'spec.kind=aANDspec.size=1',
      orderBy: 'spec.size=1',
      continue: next,
      offset: 3,
    })
    expect(query).toMatchObject({ after: [1, 7], offset: 50 })
  })

  it('a continue token continues with another limit, other fields, and the same query in another spelling', () => {
    const query = ask({
      filters: 'spec.kind="a"ANDspec.size=1',
      orderBy: 'spec.size=1,metadata.seq=1',
      continue: next,
      limit: 2,
      fields: 'metadata',
    })
    expect(query.after).toEqual([1, 7])
  })

  it.each([
    ['another filter', { filters: 'spec.kind=b', orderBy: 'spec.size=1' }],
    ['no filter', { orderBy: 'spec.size=1' }],
    ['the conditions joined by OR', { filters: 'spec.kind=aORspec.size=1', orderBy: 'spec.size=1' }],
    ['another order', { filters: 'spec.kind=aANDspec.size=1', orderBy: 'spec.size=-1' }],
    ['no order', { filters: 'spec.kind=aANDspec.size=1' }],
  ])('a continue token with %s is refused with 400 and its name', (_what, parameters) => {
    expect(() => ask({ ...parameters, continue: next })).toThrow(refusal)
  })

  it('a continue token is refused with 400 on another resource, or with other parameters that choose the items', () => {
    const plain = ask()
    const other = { ...memoryThings, name: 'others' }
    const token = plain.tokenAfter([1, 2], 3)
    expect(parseListQuery({ continue: token }, memoryThings, { tokens }).after).toEqual([1, 2])
    expect(() => parseListQuery({ continue: token }, other, { tokens })).toThrow(refusal)
    expect(() => parseListQuery({ continue: token }, memoryThings, { tokens, bound: ['today'] })).toThrow(
      refusal,
    )
  })

  it('an empty continue token is ignored', () => {
    expect(ask({ continue: '', filters: '', orderBy: '', fields: '' })).toMatchObject({
      offset: 0,
      limit: 50,
      filter: [],
    })
    expect(ask({ continue: '' }).after).toBeUndefined()
  })
})
