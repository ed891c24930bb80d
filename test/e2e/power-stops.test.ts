import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { HostActions } from '../../src/power/schemas.ts'
import { bootEdgehostd, type Edgehostd } from './host/edgehostd.ts'
import { eventually } from './host/eventually.ts'

const right = 'right canary 0801'
const path = '/v1/edge-mgmt/edgehosts/current/actions'
const inSeconds = (seconds: number) => new Date(Date.now() + seconds * 1_000).toISOString()

// The machine's root has the system bus and logind; the other one has neither.
describe.each(['machine', 'minbase'] as const)('a host of the layer %s', (lower) => {
  let host: Edgehostd
  beforeAll(async () => {
    // A wire does not outlast a reboot.
    host = await bootEdgehostd({ lower, wire: false })
    await host.addUser({ name: 'olga', password: right, groups: ['sudo'] })
  })
  afterAll(() => host.unplug())

  const login = () =>
    // The daemon and PAM may still start.
    eventually(async () => (await host.openSession('olga', right)).token, 60_000)
  async function actions(): Promise<HostActions> {
    const reply = await host.http('GET', path, { token: await login() })
    expect(reply).toMatchObject({ status: 200 })
    return reply.json as HostActions
  }

  it('a reboot: the reply comes before the host goes, sessions end, and afterwards it says how long it was away and why', async () => {
    const token = await login()
    let uid = ''
    await host.rebootBy(async () => {
      const reply = await host.http('POST', `${path}/reboot?message=new%20memory`, { token })
      expect(reply).toMatchObject({ status: 202 })
      uid = (reply.json as { uid: string }).uid
    })
    const { boot, last, items } = await actions()
    expect(items).toEqual([])
    expect(last).toMatchObject({ uid, action: 'reboot', state: 'done', by: 'olga', message: 'new memory' })
    expect(boot).toMatchObject({ isOrderly: true })
    expect(boot?.message).toBe(
      `this host is back after ${boot?.backAfterSeconds} s: reboot by olga: new memory`,
    )
    expect(boot?.backAfterSeconds).toBeGreaterThanOrEqual(0)
    expect(boot?.backAfterSeconds).toBeLessThan(120)
    expect(await host.statusOf(token)).toBe(401)
    expect((await host.log()).map(({ msg }) => msg)).toContain(boot?.message)
    const again = await login()
    const attention = await host.http('GET', '/v1/edge-mgmt/edgehosts/current/attention', { token: again })
    expect(attention.json.items).toContainEqual(
      expect.objectContaining({ code: 'HostBack', severity: 'info', message: boot?.message }),
    )
    const audits = await host.http('GET', '/v1/edge-mgmt/edgehosts/current/audits?limit=50', { token: again })
    const messages = (audits.json.items as { spec: { message: string } }[]).map(({ spec }) => spec.message)
    expect(messages).toContainEqual(boot?.message)
    expect(messages).toContainEqual(expect.stringContaining('the host is rebooted'))
  })

  it('a planned reboot is still planned after restarts of the daemon, and is done at its time', async () => {
    const token = await login()
    const plan = async (seconds: number) =>
      host.http('POST', `${path}/reboot?at=${inSeconds(seconds)}&message=window`, { token })
    const first = await plan(3_600)
    expect(first).toMatchObject({ status: 202 })
    const { uid } = first.json as { uid: string }
    await host.output(['systemctl', 'restart', 'edgehostd'])
    expect((await actions()).items).toMatchObject([{ uid, state: 'planned' }])
    expect(await host.http('DELETE', `${path}/${uid}`, { token })).toMatchObject({ status: 204 })
    await host.rebootBy(async () => {
      expect(await plan(8)).toMatchObject({ status: 202 })
      await host.output(['systemctl', 'kill', '--signal=KILL', 'edgehostd'])
    })
    expect((await actions()).last).toMatchObject({ state: 'done', message: 'window', by: 'olga' })
  })

  it('a reboot by another program is told from a power cut', async () => {
    await host.reboot()
    const { boot } = await actions()
    expect(boot).toMatchObject({ isOrderly: true })
    expect(boot?.message).toMatch(/^this host is back after \d+ s: it was stopped in order, not by edgehostd/)
    await host.cutPower()
    expect((await actions()).boot).toMatchObject({
      isOrderly: false,
      message: expect.stringMatching(/without an orderly stop/) as string,
    })
  })

  it('edgehostctl asks, shows and cancels, and a shutdown turns the host off', async () => {
    const refused = await host.run(['edgehostctl', 'host', 'shutdown'])
    expect(refused.stderr).toContain('There is no terminal to confirm it on')
    const planned = await host.output([
      'edgehostctl',
      'host',
      'shutdown',
      '--yes',
      '--at',
      '+2h',
      '--message',
      'move',
    ])
    expect(planned).toMatch(/^the host will shut down at /)
    expect(await host.output(['edgehostctl', 'host', 'stops'])).toMatch(
      /Planned.*shutdown, .* by root\n.*move/,
    )
    await host.output(['edgehostctl', 'host', 'stops', 'cancel'])
    expect(await host.output(['edgehostctl', 'host', 'stops'])).toMatch(/Planned.*nothing/)
    await host.shutDownBy(async () => {
      expect(await host.output(['edgehostctl', 'host', 'shutdown', '--yes'])).toMatch(/turned on again/)
    })
  })
})
