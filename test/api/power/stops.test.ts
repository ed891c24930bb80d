import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { expect, it, onTestFinished } from 'vitest'
import type { AuditView } from '../../../src/audit/schemas.ts'
import type { HostActions, StopAccepted } from '../../../src/power/schemas.ts'
import type { AttentionList } from '../../../src/service/schemas.ts'
import {
  createTestEdge,
  currentPath,
  type ErrorReply,
  type TestEdgeOptions,
} from '../../support/test-edge.ts'

const hostPath = '/v1/edge-mgmt/edgehosts/current'
const path = `${hostPath}/actions`

async function start(options: TestEdgeOptions = {}) {
  const edge = await createTestEdge(options)
  let isStopped = false
  const stop = async () => {
    if (!isStopped) await edge.stop()
    isStopped = true
  }
  onTestFinished(stop)
  const { access } = await edge.login('alice')
  const ask = (method: 'GET' | 'POST' | 'DELETE', url: string) =>
    edge.app.inject({ method, url, headers: { authorization: access } })
  return {
    edge,
    access,
    stop,
    ask,
    job: (name: string) => edge.daemon.rooms.power.jobs?.find((each) => each.name === name)?.run(),
    actions: async () => {
      const { access: token } = await edge.login('bob')
      return (await edge.get(path, token)).json<HostActions>()
    },
    attention: async () => {
      const { access: token } = await edge.login('bob')
      const { items } = (await edge.get(`${hostPath}/attention`, token)).json<AttentionList>()
      return items.filter(({ code }) => code.startsWith('Host'))
    },
    audits: async () => {
      const { access: token } = await edge.login('alice')
      const reply = await edge.get('/v1/edge-mgmt/edgehosts/current/audits?limit=50', token)
      return reply.json<{ items: AuditView[] }>().items.map(({ spec }) => spec)
    },
    systemctl: () =>
      edge.host.calls
        .filter(
          ({ program, args }) => program === 'systemctl' && ['reboot', 'poweroff'].includes(args[0] ?? ''),
        )
        .map(({ args }) => args),
  }
}
const inSeconds = (seconds: number) => new Date(Date.now() + seconds * 1_000).toISOString()

it.each([
  ['reboot', 'reboot'],
  ['shutdown', 'poweroff'],
])('%s: 202 with the uid, then the sessions end and systemd is asked', async (action, verb) => {
  const { edge, access, ask, actions, systemctl } = await start()
  edge.host.ends.set('systemctl', { exitCode: 0 })
  const reply = await ask('POST', `${path}/${action}?message=new%20memory`)
  expect(reply.statusCode, reply.body).toBe(202)
  const { uid, message } = reply.json<StopAccepted>()
  expect(message).toMatch(/^the host is being/)
  await expect
    .poll(systemctl)
    .toEqual([[verb, '--no-block', `--message=edgehostd: ${action} by alice: new memory`]])
  expect((await edge.get(currentPath, access)).statusCode).toBe(401)
  expect((await actions()).items).toMatchObject([
    { uid, action, state: 'going', message: 'new memory', by: 'alice', isForced: false },
  ])
})

it.each(['airgap', 'connected'] as const)('a host in the mode %s is rebooted on the spot', async (mode) => {
  const { edge, ask, systemctl } = await start({ mode })
  edge.host.ends.set('systemctl', { exitCode: 0 })
  expect((await ask('POST', `${path}/reboot`)).statusCode).toBe(202)
  await expect.poll(systemctl).toHaveLength(1)
})

it('a second stop is refused while the host goes, and with force another option of systemctl ignores locks', async () => {
  const { edge, ask, systemctl } = await start()
  edge.host.ends.set('systemctl', { exitCode: 0 })
  expect((await ask('POST', `${path}/reboot?force=true`)).statusCode).toBe(202)
  await expect
    .poll(systemctl)
    .toEqual([['reboot', '--no-block', '-i', '--message=edgehostd: reboot by alice']])
  const { access } = await edge.login('alice')
  const second = await edge.app.inject({
    method: 'POST',
    url: `${path}/shutdown`,
    headers: { authorization: access },
  })
  expect(second.statusCode).toBe(409)
  expect(second.json<ErrorReply>()).toMatchObject({
    code: 'StopUnderWay',
    message: 'this host is being rebooted already, by alice',
  })
  expect(systemctl()).toHaveLength(1)
})

it('a stop that systemd refuses is reported with its reason, and another one may follow', async () => {
  const { edge, ask, actions, attention, audits, systemctl } = await start()
  edge.host.ends.set('systemctl', { exitCode: 1, stderr: 'Operation inhibited by "upgrade".\n' })
  expect((await ask('POST', `${path}/reboot`)).statusCode).toBe(202)
  await expect.poll(async () => (await actions()).last?.state).toBe('failed')
  expect((await actions()).last?.reason).toContain('Operation inhibited by "upgrade".')
  expect(await attention()).toMatchObject([{ code: 'HostStopFailed', severity: 'error' }])
  expect(await audits()).toContainEqual(
    expect.objectContaining({ message: expect.stringContaining('a reboot of this host was not done') }),
  )
  edge.host.ends.set('systemctl', { exitCode: 0 })
  const { access } = await edge.login('alice')
  await edge.app.inject({ method: 'POST', url: `${path}/reboot`, headers: { authorization: access } })
  await expect.poll(systemctl).toHaveLength(2)
})

it('a busy host refuses with all reasons, and goes with force', async () => {
  const { edge, ask, systemctl } = await start()
  edge.host.ends.set('systemctl', { exitCode: 0 })
  const { access } = await edge.login('alice')
  // An upload whose body does not end.
  const body = new PassThrough()
  body.write('--x\r\ncontent-disposition: form-data; name="file"; filename="a.tgz"\r\n\r\nabc')
  const upload = edge.app.inject({
    method: 'POST',
    url: `${path}/upload-clusterconfig`,
    headers: { authorization: access, 'content-type': 'multipart/form-data; boundary=x' },
    payload: body,
  })
  await expect.poll(() => edge.daemon.rooms.definition.busy?.()).toHaveLength(1)
  expect((await ask('POST', `${path}/reboot`)).json<ErrorReply>()).toMatchObject({
    code: 'Busy',
    message: 'a reboot would break off or disturb what this host does: an upload of definitions',
    details: { reasons: [{ reason: 'Upload', message: 'an upload of definitions' }] },
  })
  expect(systemctl()).toEqual([])
  expect((await ask('POST', `${path}/reboot?force=true`)).statusCode).toBe(202)
  await expect.poll(systemctl).toHaveLength(1)
  await upload.catch(() => undefined)
})

it('a planned stop is listed, refuses another, is cancelled once, and its time is bounded', async () => {
  const { ask, actions, attention, systemctl } = await start()
  const planned = await ask('POST', `${path}/reboot?at=${inSeconds(3_600)}&message=window`)
  expect(planned.statusCode, planned.body).toBe(202)
  const { uid, message } = planned.json<StopAccepted>()
  expect(message).toMatch(/^the host will reboot at .*; DELETE /)
  expect((await actions()).items).toMatchObject([{ uid, state: 'planned', message: 'window' }])
  expect(await attention()).toMatchObject([{ code: 'HostStopPlanned', severity: 'info' }])
  const second = await ask('POST', `${path}/shutdown?at=${inSeconds(60)}`)
  expect(second.json<ErrorReply>()).toMatchObject({ code: 'StopPlanned', details: { uid } })
  expect((await ask('DELETE', `${path}/${uid}`)).statusCode).toBe(204)
  expect((await ask('DELETE', `${path}/${uid}`)).statusCode).toBe(404)
  expect((await actions()).items).toEqual([])
  for (const at of [inSeconds(-1), inSeconds(7 * 86_400 + 60), 'soon'])
    expect((await ask('POST', `${path}/reboot?at=${at}`)).json<ErrorReply>(), at).toMatchObject({
      code: 'BadRequest',
      details: { field: expect.stringMatching(/at$/) },
    })
  expect((await ask('POST', `${path}/reboot?dryrun=true`)).statusCode).toBe(400)
  expect((await ask('POST', `${path}/reboot?message=a%0Ab`)).statusCode).toBe(400)
  expect(systemctl()).toEqual([])
})

it('a planned stop is done at its time, by another process of the daemon too', async () => {
  const stateDirectory = await mkdtemp(join(tmpdir(), 'edgehostd-stops-'))
  onTestFinished(() => rm(stateDirectory, { recursive: true, force: true }))
  const first = await start({ stateDirectory })
  expect((await first.ask('POST', `${path}/shutdown?at=${inSeconds(2)}`)).statusCode).toBe(202)
  await first.job('stop of the host')
  expect(first.systemctl()).toEqual([])
  await first.stop()
  const second = await start({ stateDirectory })
  second.edge.host.ends.set('systemctl', { exitCode: 0 })
  await expect
    .poll(
      async () => {
        await second.job('stop of the host')
        return second.systemctl()
      },
      { timeout: 10_000 },
    )
    .toEqual([['poweroff', '--no-block', '--message=edgehostd: shutdown by alice']])
})

it('a viewer sees the stops and causes none', async () => {
  const { edge, systemctl } = await start()
  const { access } = await edge.login('bob')
  for (const url of [`${path}/reboot`, `${path}/shutdown`])
    expect(
      (await edge.app.inject({ method: 'POST', url, headers: { authorization: access } })).json<ErrorReply>(),
    ).toMatchObject({ code: 'Forbidden' })
  expect((await edge.get(path, access)).json()).toEqual({ items: [] })
  expect(systemctl()).toEqual([])
})
