import { expect, it, onTestFinished } from 'vitest'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { HostActions, ResetPlan, StopAccepted } from '../../../src/power/schemas.ts'
import { busyboxBundle, putBundle } from '../../support/content-bundles.ts'
import { noReserve } from '../../support/content-uploads.ts'
import { uploadDefinition } from '../../support/definition-upload.ts'
import { createTestEdge, type ErrorReply, type TestEdgeOptions } from '../../support/test-edge.ts'

const actions = '/v1/edge-mgmt/edgehosts/current/actions'
const path = `${actions}/reset`
const bundleUid = '0198c1f0-6f0e-4c3a-9d52-2f6d7c1b0a44'

async function start(options: TestEdgeOptions = {}) {
  const edge = await createTestEdge({ content: noReserve, ...options })
  onTestFinished(() => edge.stop())
  await putBundle(edge.stateDirectory, bundleUid, busyboxBundle)
  let { access } = await edge.login('alice')
  await uploadDefinition(edge, access)
  const ask = (query: string, payload: object = {}) =>
    edge.app.inject({ method: 'POST', url: path + query, headers: { authorization: access }, payload })
  const tick = () => edge.daemon.rooms.power.jobs?.find(({ name }) => name === 'reset of the host')?.run()
  const plan = (await ask('?dryRun=true')).json<ResetPlan>()
  return {
    edge,
    ask,
    tick,
    plan,
    async logIn() {
      access = (await edge.login('alice')).access
      return access
    },
    async shown() {
      const { access: token } = await edge.login('bob')
      return (await edge.get(actions, token)).json<HostActions>().reset
    },
    phases: async () => {
      const seen: string[] = []
      for (let turn = 0; turn < 20; turn += 1) {
        const row = edge.database.sql.prepare('SELECT phase FROM host_reset').get() as {
          phase: string | null
        }
        if (row.phase === null) break
        if (seen.at(-1) !== row.phase) seen.push(row.phase)
        await tick()
      }
      return seen
    },
    bundles: async () =>
      (await edge.get('/v1/edge-mgmt/content/bundles', access)).json<{ items: object[] }>().items,
    definitions: () =>
      edge.database.sql
        .prepare('SELECT slot FROM definition')
        .all()
        .map(({ slot }) => slot),
  }
}

it('a dry run lists all that goes and what stays, and changes nothing', async () => {
  const { edge, plan, bundles, definitions } = await start()
  expect(plan.removes.map(({ phase }) => phase)).toEqual(['cluster', 'definitions', 'content', 'sessions'])
  const items = new Map(plan.removes.map(({ phase, items: each }) => [phase, each]))
  expect(items.get('cluster')).toEqual([])
  expect(items.get('definitions')).toEqual([
    expect.stringMatching(/^the definition .* in the slot overridden$/),
  ])
  expect(items.get('content')).toEqual([expect.stringContaining(bundleUid)])
  expect(items.get('sessions')).toEqual([expect.stringMatching(/^a session of alice from /)])
  expect(plan.stays).toContain('the audit trail')
  expect(plan.stays).toContain('accounts of the operating system')
  expect(plan.problems).toEqual([])
  expect(await bundles()).toHaveLength(1)
  expect(definitions()).toEqual(['overridden'])
  expect(edge.database.sql.prepare('SELECT * FROM host_reset').all()).toEqual([])
})

it.each([
  ['no name', {}, /^hostName is missing/],
  ['another name', { hostName: 'other' }, /^hostName is not the name of this host/],
])('a reset with %s is refused', async (_what, body, message) => {
  const { ask, bundles } = await start()
  const reply = (await ask('', body)).json<ErrorReply>()
  expect(reply).toMatchObject({ code: 'BadRequest', details: { field: 'hostName' } })
  expect(reply.message).toMatch(message)
  expect(await bundles()).toHaveLength(1)
})

it.each(['?dryrun=true', '?keep=definitions', '?wipe=accounts', '?wipe=network,'])(
  'the query %s is refused',
  async (query) => {
    const { ask, plan } = await start()
    expect((await ask(query, { hostName: plan.hostName })).statusCode).toBe(400)
  },
)

it('a reset ends the sessions, removes definitions and content phase by phase, and leaves the trail', async () => {
  const { edge, ask, plan, phases, shown, logIn, bundles, definitions } = await start()
  const records = () => Number(edge.database.sql.prepare('SELECT count(*) AS n FROM audit').get()?.n)
  const before = records()
  const reply = await ask('', { hostName: plan.hostName })
  expect(reply.statusCode, reply.body).toBe(202)
  expect(reply.headers.location).toBe(actions)
  const { uid } = reply.json<StopAccepted>()
  await expect.poll(() => edge.sessions.list()).toEqual([])
  await logIn()
  expect((await ask('', { hostName: plan.hostName })).json<ErrorReply>()).toMatchObject({
    code: 'ResetUnderWay',
    details: { uid },
  })
  expect(await phases()).toEqual(['cluster', 'definitions', 'content', 'sessions'])
  expect(edge.sessions.list()).toEqual([])
  const done = await shown()
  expect(done).toMatchObject({ uid, by: 'alice', endTimestamp: expect.any(String) as string })
  expect(done).not.toHaveProperty('phase')
  await logIn()
  expect(await bundles()).toEqual([])
  expect(definitions()).toEqual([])
  expect(records()).toBeGreaterThan(before)
  expect(edge.host.accounts.has('alice')).toBe(true)
})

it('with keep=content the bundles stay', async () => {
  const { ask, plan, phases, logIn, bundles, definitions } = await start()
  expect((await ask('?keep=content', { hostName: plan.hostName })).statusCode).toBe(202)
  expect(await phases()).toEqual(['cluster', 'definitions', 'sessions'])
  await logIn()
  expect(await bundles()).toHaveLength(1)
  expect(definitions()).toEqual([])
})

it('a host that a platform manages is reset with force alone, and its dry run says so', async () => {
  const { ask, plan, edge } = await start({ mode: 'connected' })
  expect(plan.problems).toEqual([expect.stringMatching(/^the platform .* manages this host/)])
  expect(plan.stays).toContain('the link to the platform')
  expect((await ask('', { hostName: plan.hostName })).json<ErrorReply>()).toMatchObject({
    code: 'PlatformLinked',
  })
  expect(edge.sessions.list()).toHaveLength(1)
  expect((await ask('?force=true', { hostName: plan.hostName })).statusCode).toBe(202)
})

it('wipe=identity removes id, key and certificate last, and the daemon is started anew', async () => {
  const { edge, ask, plan, phases } = await start()
  edge.host.ends.set('systemctl', { exitCode: 0 })
  const key = join(edge.stateDirectory, 'tls/key.pem')
  expect(existsSync(key)).toBe(true)
  expect((await ask('?wipe=identity', { hostName: plan.hostName })).statusCode).toBe(202)
  expect(await phases()).toEqual(['cluster', 'definitions', 'content', 'sessions', 'identity'])
  expect(existsSync(key)).toBe(false)
  expect(edge.database.sql.prepare('SELECT * FROM host').all()).toEqual([])
  expect(edge.host.calls.filter(({ program }) => program === 'systemctl').map(({ args }) => args)).toEqual([
    ['restart', '--no-block', 'edgehostd.service'],
  ])
})

it('wipe=network comes last, by its verb, and needs no restart of the daemon', async () => {
  const { edge, ask, plan, phases, logIn } = await start()
  const chosen = await edge.app.inject({
    ...{ method: 'PUT', url: '/v1/edge-mgmt/network/management-interface', payload: { name: 'br1' } },
    headers: { authorization: await logIn() },
  })
  expect(chosen.statusCode).toBe(204)
  const tried = (await ask('?dryRun=true&wipe=network', {})).json<ResetPlan>()
  expect(tried.removes.at(-1)).toMatchObject({
    phase: 'network',
    items: ['the choice of br1 as the management interface'],
  })
  expect(tried.stays).not.toContain('the network of the host')
  expect(plan.stays).toContain('the network of the host')
  expect((await ask('?wipe=network', { hostName: plan.hostName })).statusCode).toBe(202)
  expect((await phases()).at(-1)).toBe('network')
  expect(edge.network.calls).toEqual(['wipe'])
  expect(edge.database.sql.prepare('SELECT name FROM management_link').all()).toEqual([])
  expect(edge.host.calls.filter(({ program }) => program === 'systemctl')).toEqual([])
})
