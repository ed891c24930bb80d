import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createTestPlatform } from '../support/test-platform.ts'
import { errorTable } from '../../src/edgeplatformd/declarations.ts'
import { commandTable } from '../../src/edgeplatformctl/nouns.ts'
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

  it('has every declared route but those of the pages, and no other', () => {
    const isPage = (url: string) => url === '/' || url.startsWith('/console/')
    const documented = operations.map(({ method, path }) => `${method} ${path}`)
    const declared = platform.rooms.api.table.routes
      .filter(({ method, url }) => method !== 'HEAD' && !isPage(url))
      .map(({ method, url }) => `${method} ${url.replaceAll(/:([A-Za-z]+)/g, '{$1}')}`)
    expect(documented.sort()).toEqual(declared.sort())
  })
})

it('the errors advise what there is on the platform: its commands, its paths and its documents', () => {
  const names = commandTable.commands.map(({ name }) => name)
  const commands: string[] = []
  for (const { code, meaning, action } of Object.values(errorTable)) {
    const said = `${code}: ${meaning} ${action}`
    expect(said).not.toMatch(/edgehostctl|edgehostd|edge-mgmt|5080|docs\/(api|operations|errors)\.md/)
    commands.push(...[...said.matchAll(/edgeplatformctl ([a-z -]+)/g)].map(([, command = '']) => command))
    const paths = [...said.matchAll(/\/v1\/[a-zA-Z/{}-]+/g)].map(([path]) => path)
    expect(operations.map(({ path }) => path)).toEqual(expect.arrayContaining(paths))
  }
  expect(commands.length).toBeGreaterThan(5)
  for (const command of commands)
    expect(
      names.some((name) => `${command} `.startsWith(`${name} `)),
      command,
    ).toBe(true)
})
