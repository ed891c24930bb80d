import { readFile } from 'node:fs/promises'
import { afterEach, beforeEach, describe, expect, inject, it } from 'vitest'
import type { ResetPlan } from '../../src/power/schemas.ts'
import { asEdgehostd, installPackage, type Edgehostd } from './host/edgehostd.ts'
import { eventually } from './host/eventually.ts'
import { bootNetworkHost, type NetworkHost } from './host/network-host.ts'
import './host/global-setup.ts'

const path = '/v1/edge-mgmt/network'
const actions = '/v1/edge-mgmt/edgehosts/current/actions'
const files = {
  netplan: '/etc/netplan',
  networkmanager: '/etc/NetworkManager/system-connections',
  ifupdown: '/etc/network',
} as const

describe.each(['netplan', 'networkmanager', 'ifupdown'] as const)(
  'a reset wipes the network of %s',
  (owner) => {
    let network: NetworkHost
    let host: Edgehostd
    let token = ''
    let address = '192.0.2.10'
    /** Text, mode and name of each file of the owner. */
    const configured = () =>
      host.sh(
        `cd ${files[owner]}; find . -type f | sort | while read -r f; do stat -c '%n %a' "$f"; cat "$f"; done`,
      )

    /** NetworkManager numbers the metrics of its routes anew. */
    const snapshot = async () => {
      const text = await network.snapshot()
      return owner === 'networkmanager' ? text.replace(/ metric \d+/g, '') : text
    }

    async function ask(method: string, target: string, body?: unknown) {
      const { stdout, stderr } = await network.neighbour(
        ...['curl', '--silent', '--show-error', '--insecure', '--max-time', '60', '--request', method],
        ...['--header', `Authorization: ${token}`, '--write-out', '\n%{http_code}'],
        ...(body === undefined ? [] : ['--json', JSON.stringify(body)]),
        `https://${address}:5080${target}`,
      )
      const at = stdout.lastIndexOf('\n')
      return { status: Number(stdout.slice(at + 1)), text: stdout.slice(0, at) || stderr }
    }
    async function logIn(): Promise<string> {
      const { text } = await ask('POST', '/v1/users/default/login', {
        username: 'olga',
        password: 'a-long-Passw0rd',
      })
      return (JSON.parse(text) as { Token: { Authorization: string } }).Token.Authorization
    }
    async function confirmed(method: string, target: string, body: object, next: string): Promise<void> {
      const begun = await ask(method, `${path}/${target}`, body)
      expect(begun, begun.text).toMatchObject({ status: 202 })
      const { uid } = JSON.parse(begun.text) as { uid: string }
      address = next
      await eventually(async () => {
        const { text } = await ask('GET', `${path}/changes/${uid}`)
        expect(text).toContain('"state":"trial"')
      }, 60_000)
      const kept = await ask('POST', `${path}/changes/${uid}/actions/confirm`)
      expect(kept, kept.text).toMatchObject({ status: 200 })
    }

    beforeEach(async () => {
      address = '192.0.2.10'
      token = ''
      network = await bootNetworkHost(owner)
      host = asEdgehostd(network)
      await host.write('/etc/edgehostd/config.d/test.yaml', 'api: {rateLimits: {enabled: false}}\n')
      await installPackage(host, await readFile(inject('deb')))
      await host.addUser({ name: 'olga', password: 'a-long-Passw0rd', groups: ['sudo'] })
      token = await logIn()
    }, 180_000)
    afterEach(() => network.unplug())

    async function reset(): Promise<ResetPlan> {
      const tried = await ask('POST', `${actions}/reset?dryRun=true&wipe=network`, {})
      const plan = JSON.parse(tried.text) as ResetPlan
      const accepted = await ask('POST', `${actions}/reset?wipe=network`, { hostName: plan.hostName })
      expect(accepted, accepted.text).toMatchObject({ status: 202 })
      address = '192.0.2.10'
      await eventually(async () => {
        expect(await network.reaches('192.0.2.10')).toBe(true)
        token = await logIn()
        const { text } = await ask('GET', actions)
        expect((JSON.parse(text) as { reset?: object }).reset).toHaveProperty('endTimestamp')
      }, 120_000)
      return plan
    }

    it('changes and a bridge go; the files are as they were found, and so are the links, also after a boot', async () => {
      const before = { files: await configured(), links: await snapshot() }
      const body = { type: 'static', ip: '192.0.2.11', subnet: '255.255.255.0', gateway: '192.0.2.1' }
      await confirmed('PUT', 'interfaces/host0/config', body, '192.0.2.11')
      await confirmed(
        'POST',
        'bridges/br0',
        { name: 'br0', members: ['eth2'], type: 'static', ip: '203.0.113.10', subnet: '255.255.255.0' },
        '192.0.2.11',
      )
      expect(await configured()).not.toBe(before.files)
      const plan = await reset()
      const named = plan.removes.find(({ phase }) => phase === 'network')?.items.join('\n') ?? ''
      expect(named).toContain(`${files[owner]}/`)
      expect(await configured()).toBe(before.files)
      await eventually(async () => expect(await snapshot()).toBe(before.links), 60_000)
      expect(await network.reaches('192.0.2.11')).toBe(false)
      await network.reboot()
      await eventually(async () => expect(await network.reaches('192.0.2.10')).toBe(true), 60_000)
      await eventually(async () => expect(await snapshot()).toBe(before.links), 60_000)
    })
  },
)
