import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createTestPlatform } from '../support/test-platform.ts'
import { readDocument } from '../support/api-document.ts'

const text = readFileSync(join(import.meta.dirname, '../../docs/platform-openapi.json'), 'utf8')
const { operations } = readDocument(text)

let platform: Awaited<ReturnType<typeof createTestPlatform>>
beforeAll(async () => {
  platform = await createTestPlatform()
})
afterAll(() => platform.close())

describe('the document of the platform API', () => {
  it('is what the platform answers', async () => {
    const reply = await platform.app.inject('/openapi.json')
    expect([reply.statusCode, reply.json()]).toEqual([200, JSON.parse(text)])
  })

  it('has every declared route, and no other', () => {
    const documented = operations.map(({ method, path }) => `${method} ${path}`)
    const declared = platform.rooms.api.table.routes
      .filter(({ method }) => method !== 'HEAD')
      .map(({ method, url }) => `${method} ${url.replaceAll(/:([A-Za-z]+)/g, '{$1}')}`)
    expect(documented.sort()).toEqual(declared.sort())
  })
})
