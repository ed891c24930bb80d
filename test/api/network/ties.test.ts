import { PassThrough } from 'node:stream'
import { expect, it, onTestFinished } from 'vitest'
import type { NetworkChangeAccepted, NetworkDryRun } from '../../../src/network/schemas.ts'
import type { ResetPlan } from '../../../src/power/schemas.ts'
import { createTestEdge, type ErrorReply, type TestEdgeOptions } from '../../support/test-edge.ts'

const root = '/v1/edge-mgmt'
const network = `${root}/network`
const write = `${network}/interfaces/eth0/config`
const actions = `${root}/edgehosts/current/actions`
const body = { type: 'static', ip: '192.0.2.21', subnet: '255.255.255.0', gateway: '192.0.2.1' }

async function start(options: TestEdgeOptions = {}) {
  const edge = await createTestEdge(options)
  onTestFinished(() => edge.stop())
  let { access } = await edge.login('alice')
  const ask = (method: 'GET' | 'POST' | 'PUT' | 'DELETE', url: string, payload?: object) =>
    edge.app.inject({
      method,
      url,
      headers: { authorization: access },
      ...(payload === undefined ? {} : { payload }),
    })
  return {
    edge,
    ask,
    async logIn() {
      access = (await edge.login('alice')).access
    },
    /** Begins a change, and has it applied. */
    async tryChange(query = '') {
      const reply = await ask('PUT', write + query, body)
      expect(reply.statusCode, reply.body).toBe(202)
      edge.network.applied()
      return reply.json<NetworkChangeAccepted>().uid ?? ''
    },
    async reset(query = '?force=true') {
      const { hostName } = (await ask('POST', `${actions}/reset?dryRun=true`, {})).json<ResetPlan>()
      return ask('POST', `${actions}/reset${query}`, { hostName })
    },
    /** An upload whose body does not end. */
    async upload() {
      const payload = new PassThrough()
      payload.write('--x\r\ncontent-disposition: form-data; name="file"; filename="a.tgz"\r\n\r\nabc')
      const reply = edge.app.inject({
        method: 'POST',
        url: `${actions}/upload-clusterconfig`,
        headers: { authorization: access, 'content-type': 'multipart/form-data; boundary=x' },
        payload,
      })
      await expect.poll(() => edge.daemon.rooms.definition.busy?.()).toHaveLength(1)
      return async () => {
        payload.end('\r\n--x--\r\n')
        await reply
        await expect.poll(() => edge.daemon.rooms.definition.busy?.()).toEqual([])
      }
    },
  }
}

const busyWith = (reason: string, more: object = {}) => ({
  code: 'Busy',
  details: { reasons: [{ reason, message: expect.any(String) as string, ...more }] },
})

it('a change of the network waits for an upload, its dry run says so, and it is made afterwards', async () => {
  const { ask, upload, tryChange } = await start()
  const end = await upload()
  expect((await ask('PUT', write, body)).json<ErrorReply>()).toMatchObject({
    ...busyWith('Upload'),
    message: expect.stringContaining('an upload of definitions') as string,
  })
  const { warnings, problems } = (await ask('PUT', `${write}?dryRun=true`, body)).json<NetworkDryRun>()
  expect(problems).toEqual([])
  expect(warnings).toContain('refused as long as this host is busy: an upload of definitions')
  expect((await ask('GET', `${network}/changes`)).json()).toEqual({ items: [] })
  await end()
  expect(await tryChange()).toMatch(/^[0-9a-f-]{36}$/)
})

it('a reboot, a shutdown and a reset are refused with the uid of an open change and the commands that end it', async () => {
  const { edge, ask, tryChange, reset } = await start()
  const uid = await tryChange()
  for (const reply of [
    await ask('POST', `${actions}/reboot`),
    await ask('POST', `${actions}/shutdown`),
    await reset(''),
  ]) {
    expect(reply.statusCode).toBe(409)
    const { message, ...rest } = reply.json<ErrorReply>()
    expect(rest).toMatchObject(busyWith('NetworkChange', { uid }))
    expect(message).toContain(`edgehostctl network confirm ${uid}, or edgehostctl network revert ${uid}`)
  }
  // A cluster has to wait too, before anything of its definition is looked at.
  const create = await ask('POST', `${root}/cluster`, { metadata: { name: 'press' }, spec: {} })
  expect([create.statusCode, create.json()]).toMatchObject([409, busyWith('NetworkChange', { uid })])
  // Another change is told which one is open.
  expect((await ask('PUT', write, body)).json()).toMatchObject({
    code: 'NetworkChangeOpen',
    details: { uid },
  })
  expect((await ask('POST', `${network}/changes/${uid}/actions/revert`)).statusCode).toBe(200)
  edge.network.end('reverted\nasked\n1800000000000\n\n')
  expect((await reset('')).statusCode).toBe(202)
})

it.each([
  ['the deletion of the cluster', 'DELETE', `${root}/cluster`],
  ['the renewal of its certificates', 'POST', `${root}/cluster/renew-certificates`],
  ['a change of the network', 'PUT', write],
  ['the deletion of a bundle', 'DELETE', `${root}/content/bundles/0198c1f0-6f0e-4c3a-9d52-2f6d7c1b0a44`],
  ['the rejection of an update', 'DELETE', `${root}/clusters/archive/update`],
] as const)('%s is refused while the host is being reset', async (_what, method, url) => {
  const { edge, ask, reset, logIn } = await start()
  const route = edge.routes.routes.find(
    (each) =>
      each.method === method && each.url === url.replace(/[0-9a-f-]{36}$/, ':uid').replace('eth0', ':name'),
  )
  expect(route, url).toBeDefined()
  const accepted = await reset()
  expect(accepted.statusCode, accepted.body).toBe(202)
  await expect.poll(() => edge.sessions.list()).toEqual([])
  await logIn()
  const reply = await ask(method, url, method === 'PUT' ? body : undefined)
  expect([reply.statusCode, reply.json<ErrorReply>()]).toMatchObject([
    409,
    {
      ...busyWith('Reset', { uid: accepted.json<{ uid: string }>().uid }),
      message: expect.stringContaining('nothing can be changed') as string,
    },
  ])
})

it('while the host is being reset users log in, read, and may reboot it by force', async () => {
  const { edge, ask, reset, logIn } = await start()
  edge.host.ends.set('systemctl', { exitCode: 0 })
  await reset()
  await expect.poll(() => edge.sessions.list()).toEqual([])
  await logIn()
  expect((await ask('GET', actions)).json()).toMatchObject({ reset: { phase: 'cluster' } })
  expect((await ask('POST', `${actions}/reboot`)).json()).toMatchObject(busyWith('Reset'))
  expect((await ask('POST', `${actions}/reboot?force=true`)).statusCode).toBe(202)
})

it.each(['airgap', 'connected'] as const)(
  'in the mode %s a change is not left to a platform that is not connected',
  async (mode) => {
    const { ask, edge } = await start({ mode })
    for (const query of ['?confirm=platform', '?confirm=platform&dryRun=true'])
      expect((await ask('PUT', write + query, body)).json<ErrorReply>()).toMatchObject({
        code: 'BadRequest',
        message: expect.stringMatching(
          /^confirm is platform, and this host is not connected to one/,
        ) as string,
        details: { field: 'confirm' },
      })
    expect((await ask('PUT', `${write}?confirm=root`, body)).statusCode).toBe(400)
    expect(edge.network.calls).not.toContain('start')
  },
)

it('a change is refused while another one is tried, also where it asks for what that has configured', async () => {
  const { ask, tryChange } = await start()
  const uid = await tryChange()
  const refused = await ask('PUT', write, { ...body, ip: '192.0.2.20' })
  expect([refused.statusCode, refused.json<ErrorReply>()]).toMatchObject([
    429,
    { code: 'NetworkChangeOpen', details: { uid } },
  ])
  expect((await ask('PUT', `${write}?dryRun=true`, { ...body, ip: '192.0.2.20' })).statusCode).toBe(200)
})
