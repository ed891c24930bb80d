import { Ajv } from 'ajv'
import type { TSchema } from 'typebox'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { createDeclaringServer, declareRooms } from '../../build/declaring-server.ts'
import { createValidatorCompiler } from '../../src/api/compilers.ts'
import { formatDocument } from '../../src/definition/format/format.ts'
import { configSchema } from '../../src/edgehostd/declarations.ts'

afterEach(() => vi.restoreAllMocks())

interface Declared {
  readonly name: string
  readonly schema: Record<string, unknown>
}

async function declaredRoutes(): Promise<Declared[]> {
  const app = createDeclaringServer()
  const declared: Declared[] = []
  app.addHook('onRoute', ({ method, url, schema }) => {
    if (method !== 'HEAD') declared.push({ name: `${String(method)} ${url}`, schema: { ...schema } })
  })
  await declareRooms(app)
  return declared
}

/** Patterns at any depth that have no keyword `accepts` beside them. */
function patternsWithoutWords(node: unknown): unknown[] {
  if (typeof node !== 'object' || node === null) return []
  const { pattern, accepts } = node as { pattern?: unknown; accepts?: unknown }
  const own = typeof pattern === 'string' && typeof accepts !== 'string' ? [pattern] : []
  return [...own, ...Object.values(node).flatMap(patternsWithoutWords)]
}

it('the configuration and the files of a definition describe in words what each of their patterns accepts', () => {
  expect(patternsWithoutWords([configSchema, formatDocument])).toEqual([])
})

describe('the schemas of every route', async () => {
  const routes = await declaredRoutes()

  it.each(routes)('$name follows JSON Schema', ({ schema }) => {
    const ajv = new Ajv({ strict: false })
    const replies = Object.values(schema.response ?? {})
    const parts = [schema.body, schema.querystring, schema.params, ...replies].filter(Boolean)
    expect(parts.filter((part) => ajv.validateSchema(part as object) !== true)).toEqual([])
  })

  it.each(routes)('$name has a name, a summary, a room and a reply', ({ schema }) => {
    expect(schema).toMatchObject({
      operationId: expect.stringMatching(/^[a-z][A-Za-z]+$/),
      summary: expect.stringMatching(/\S/),
      tags: [expect.any(String)],
      response: expect.anything(),
    })
  })

  it.each(routes)('$name describes in words what each of its patterns accepts', ({ schema }) => {
    const { body, querystring, params, headers } = schema
    expect(patternsWithoutWords([body, querystring, params, headers])).toEqual([])
  })

  // The parts of a form are not validated by its schema.
  const parsed = routes.filter(({ schema }) => !String(schema.consumes).startsWith('multipart/'))
  it.each(parsed)('$name has no format in its request that the daemon does not know', ({ name, schema }) => {
    const warn = vi.spyOn(console, 'warn').mockReturnValue()
    const compile = createValidatorCompiler()
    for (const httpPart of ['body', 'querystring', 'params', 'headers'])
      if (schema[httpPart] !== undefined)
        void compile({ schema: schema[httpPart] as TSchema, httpPart, method: '', url: name })({})
    expect(warn.mock.calls).toEqual([])
  })

  it('each operation has a name of its own', () => {
    const names = routes.map(({ schema }) => schema.operationId)
    expect(new Set(names).size).toBe(names.length)
  })
})
