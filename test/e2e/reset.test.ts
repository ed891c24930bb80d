import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest'
import type { HostActions, ResetPlan } from '../../src/power/schemas.ts'
import { imageLayout, layoutTar } from '../support/content-uploads.ts'
import { bootEdgehostd, type Edgehostd } from './host/edgehostd.ts'
import { definitionsOf } from './host/definitions.ts'
import { eventually } from './host/eventually.ts'

const right = 'right canary 0801'
const actions = '/v1/edge-mgmt/edgehosts/current/actions'
let host: Edgehostd
let token: string

beforeAll(async () => {
  // A wire does not outlast a power cut.
  host = await bootEdgehostd({ lower: 'machine', wire: false })
  await host.addUser({ name: 'olga', password: right, groups: ['sudo'] })
  await host.configure('room', 'content:\n  reserve: {percent: 0, leastBytes: 1000000}\n')
  await writeFile(join(host.folder, 'content.tar'), layoutTar(imageLayout()))
})
afterAll(() => host.unplug())

const login = () => eventually(async () => (await host.openSession('olga', right)).token, 60_000)
const count = async (path: string) =>
  ((await host.http('GET', path, { token })).json.items as unknown[]).length
const reset = async (query = '') => {
  const tried = await host.http('POST', `${actions}/reset?dryRun=true`, { token, body: {} })
  const { hostName } = tried.json as ResetPlan
  return host.http('POST', `${actions}/reset${query}`, { token, body: { hostName } })
}

beforeEach(async () => {
  token = await login()
  const form = [`uploadFile=@${join(host.folder, 'content.tar')}`]
  const uploaded = await host.http('POST', `${actions}/upload-content`, { token, form })
  expect(uploaded.status, uploaded.text).toBeLessThan(300)
  await definitionsOf(host, token).take('1.0.0')
  expect(await count('/v1/edge-mgmt/content/bundles')).toBe(1)
})

async function expectReset(uid: string): Promise<void> {
  await eventually(async () => {
    // The last phase ends this session too.
    token = await login()
    const { json } = await host.http('GET', actions, { token })
    const shown = (json as HostActions).reset
    expect(shown).toMatchObject({ uid, endTimestamp: expect.any(String) as string })
  }, 60_000)
  token = await login()
  expect(await count('/v1/edge-mgmt/content/bundles')).toBe(0)
  const left = await host.output(['edgehostctl', 'host', 'reset', '--dry-run', '-o', 'json'])
  const { removes } = JSON.parse(left) as ResetPlan
  expect(removes.filter(({ phase, items }) => phase !== 'sessions' && items.length > 0)).toEqual([])
  const verified = await host.output(['edgehostctl', 'audit', 'verify'])
  expect(verified).toMatch(/\S/)
  const trail = await host.output(['edgehostctl', 'audit', 'list', '--limit', '100', '-o', 'json'])
  expect(trail).toContain('this host was reset by olga')
}

/** Waits until the reset has begun this phase. */
const untilPhase = (phase: string) =>
  eventually(async () => {
    const shown = await host.output([
      ...['curl', '--silent', '--unix-socket', '/run/edgehostd/edgehostd.sock', `http://localhost${actions}`],
    ])
    const { reset: found } = JSON.parse(shown) as HostActions
    expect(found?.phase).toBe(phase)
  }, 30_000)

it('a reset removes content, definitions and sessions; accounts and the trail stay', async () => {
  const reply = await reset()
  expect(reply, reply.text).toMatchObject({ status: 202 })
  await eventually(async () => expect(await host.statusOf(token)).toBe(401))
  await expectReset((reply.json as { uid: string }).uid)
})

// Without a cluster its phase is over at once: test/e2e/cluster/reboot.test.ts has one.
it.each(['definitions', 'content', 'sessions'])(
  'a reset whose daemon is killed in the phase %s goes on',
  async (phase) => {
    const reply = await reset()
    expect(reply, reply.text).toMatchObject({ status: 202 })
    await untilPhase(phase)
    await host.output(['systemctl', 'kill', '--signal=KILL', 'edgehostd'])
    await expectReset((reply.json as { uid: string }).uid)
  },
)

it.each(['', 'definitions', 'content', 'sessions', 'network'])(
  'a reset whose host loses its power in the phase "%s" goes on after the boot; the empty one is before the first',
  async (phase) => {
    const reply = await reset('?wipe=network')
    expect(reply, reply.text).toMatchObject({ status: 202 })
    if (phase !== '') await untilPhase(phase)
    await host.cutPower()
    await expectReset((reply.json as { uid: string }).uid)
  },
)

it('edgehostctl shows what goes, asks for the name, and wipes configuration and identity', async () => {
  const shown = await host.output(['edgehostctl', 'host', 'reset', '--dry-run'])
  expect(shown).toMatch(/Goes: content/)
  expect(shown).toMatch(/Stays.*accounts/)
  const unasked = await host.run(['edgehostctl', 'host', 'reset'])
  expect(unasked.stderr).toContain('there is no terminal to ask for the name of the host on')
  const wrong = await host.run(['edgehostctl', 'host', 'reset', 'other', '--yes'])
  expect(wrong.stderr).toContain('is not the name of this host')
  expect(await count('/v1/edge-mgmt/content/bundles')).toBe(1)
  const name = (await host.output(['hostname'])).trim()
  const before = await host.output(['sha256sum', '/var/lib/edgehostd/tls/key.pem'])
  const pid = await host.mainPid()
  const wipe = '--wipe=configuration,identity'
  await host.output(['edgehostctl', 'host', 'reset', name, '--yes', wipe])
  await eventually(async () => expect(await host.mainPid()).not.toBe(pid), 60_000)
  await eventually(async () => {
    expect(await host.output(['sha256sum', '/var/lib/edgehostd/tls/key.pem'])).not.toBe(before)
  }, 30_000)
  await eventually(() => host.trust())
  expect(await host.output(['ls', '/etc/edgehostd/config.d'])).not.toContain('yaml')
})
