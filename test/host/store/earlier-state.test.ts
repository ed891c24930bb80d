import { readdirSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { contentClient, imageLayout, noReserve } from '../../support/content-uploads.ts'
import { earlierState } from '../../support/earlier-state.ts'
import { contentProgram, examineProgram } from '../../support/programs.ts'
import { createTestEdge, renewalPath, type TestEdge } from '../../support/test-edge.ts'

interface Known {
  readonly madeAt: number
  readonly stateDirectory: string
  readonly shown: Readonly<Record<string, object>>
  readonly upload: string
  readonly audits: number
  readonly sessions: readonly { readonly access: string; readonly refresh: string }[]
}

const earlier = earlierState<Known>('host-of-c80bc925')
let edge: TestEdge
beforeEach(() => {
  // No installation moves its state folder; a test has one of its own.
  const sql = new DatabaseSync(join(earlier.stateDirectory(), 'edgehostd.db'))
  sql
    .prepare('UPDATE cluster SET folder = replace(folder, ?, ?)')
    .run(earlier.known().stateDirectory, earlier.stateDirectory())
  sql.close()
})
afterEach(() => edge.stop())

const open = async () =>
  (edge = await createTestEdge({
    ...{ stateDirectory: earlier.stateDirectory(), content: noReserve },
    ...{ examineProgram: examineProgram(), contentProgram: contentProgram() },
  }))

/** Without what is of the disk, and the name of the machine. */
const comparable = (name: string, value: unknown) =>
  ['lastActivityAt', 'fileSystem'].includes(name) || (name === 'host' && typeof value === 'string')
    ? undefined
    : value

it('a state of a host of c80bc925 opens with all that was in it: sessions, trail, content, definitions, and its cluster', async () => {
  await open()
  const { shown, sessions, audits, stateDirectory } = earlier.known()
  const [bob, bobby] = sessions
  expect((await edge.get('/v1/users/current', bob?.access)).statusCode).toBe(200)
  expect((await edge.post(renewalPath, { refreshToken: bobby?.refresh })).statusCode).toBe(200)
  const { access } = await edge.login('alice')
  for (const [url, before] of Object.entries(shown)) {
    const reply = await edge.get(url, access)
    expect(reply.statusCode, url).toBe(200)
    const here = JSON.parse(
      JSON.stringify(before, comparable).replaceAll(stateDirectory, earlier.stateDirectory()),
    ) as object
    expect(reply.json(), url).toMatchObject(here)
  }
  const trail = '/v1/edge-mgmt/edgehosts/current/audits'
  expect(
    (await edge.get(`${trail}?limit=1`, access)).json<{ listmeta: { count: number } }>().listmeta.count,
  ).toBeGreaterThanOrEqual(audits)
  expect((await edge.get(`${trail}/verify`, access)).json()).toMatchObject({ isIntact: true })
  expect(edge.lines.filter(({ level }) => Number(level) >= 40)).toEqual([])
  expect(readdirSync(earlier.stateDirectory()).filter((name) => /corrupt|suspect|aside/.test(name))).toEqual(
    [],
  )

  // What was begun is completed, and what is stored is changed.
  const client = contentClient(edge, access)
  expect(
    await client.sendAll(earlier.known().upload, imageLayout(['a layer that is not sent'], 'app:2')),
  ).toBeGreaterThan(0)
  expect((await client.publish(earlier.known().upload)).statusCode).toBe(201)
  const cluster = await edge.get('/v1/edge-mgmt/cluster', access)
  const same = await edge.app.inject({
    ...{ method: 'PUT', url: '/v1/edge-mgmt/cluster', payload: cluster.json<object>() },
    headers: { authorization: access, 'if-match': cluster.headers.etag },
  })
  expect([same.statusCode, same.headers.etag]).toEqual([204, cluster.headers.etag])
  const discarded = await edge.app.inject({
    ...{ method: 'DELETE', url: '/v1/edge-mgmt/clusters/archive/update' },
    headers: { authorization: access },
  })
  expect(discarded.statusCode).toBe(204)
})
