import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest'
import { asEdgehostd } from '../e2e/host/edgehostd.ts'
import { eventually } from '../e2e/host/eventually.ts'
import { clientOf, networkPath, type NetworkClient } from '../e2e/host/network-client.ts'
import { removeForeign } from '../e2e/host/network-course.ts'
import { gateway, type NetworkHost, type Owner } from '../e2e/host/network-host.ts'
import { canEmulate } from './machine/machine.ts'
import { startNetworkMachine } from './machine/network-machine.ts'

// Bonds and VLANs on a kernel of their own: the link of the management address is a member of the bond each time.

const name = 'olga'
const password = 'a-long-Passw0rd'
const address = { type: 'static', ip: '192.0.2.10', subnet: '255.255.255.0', gateway }
const members = ['host0', 'eth1']
/** How late after the window a host may answer. */
const lateMs = 5_000
/** Only ends what hangs. */
const soonMs = 120_000

/** A change of the network over the API. */
interface Change {
  readonly method: 'POST' | 'PUT' | 'DELETE'
  readonly target: string
  readonly body?: object
  readonly windowSeconds: number
  /** Bash; it fails where the change is not there. */
  readonly there: string
}

const isBond = (mode: string) => `
  grep -q '^${mode} ' /sys/class/net/bond0/bonding/mode
  [ "$(xargs -n1 < /sys/class/net/bond0/bonding/slaves | sort | paste -sd' ')" = 'eth1 host0' ]
`

const bond: Change = {
  method: 'POST',
  target: 'bonds/bond0',
  body: { ...address, members },
  windowSeconds: 120,
  there: isBond('active-backup'),
}
const vlan: Change = {
  method: 'POST',
  target: 'vlans/bond0.20',
  body: {
    ...{ type: 'static', ip: '198.51.100.10', subnet: '255.255.255.0' },
    ...{ parentName: 'bond0', parentType: 'bond', vlanID: '20' },
  },
  windowSeconds: 60,
  there: `ip -d link show dev bond0.20 | grep -q 'vlan protocol 802.1Q id 20'; ip address show dev bond0.20 | grep -q 198.51.100.10/24`,
}
const mode: Change = {
  method: 'PUT',
  target: 'bonds/bond0',
  body: { ...address, members, mode: '802.3ad' },
  windowSeconds: 90,
  there: isBond('802.3ad'),
}
const deletion: Change = {
  method: 'DELETE',
  target: 'bonds/bond0',
  windowSeconds: 60,
  there: `[ ! -e /sys/class/net/bond0 ]; ip address show dev host0 | grep -q 192.0.2.10/24`,
}
const leased: Change = {
  method: 'PUT',
  target: 'interfaces/host0/config',
  body: { type: 'dhcp' },
  windowSeconds: 60,
  there: `ip -4 address show dev host0 dynamic | grep -q 'inet 192.0.2.1[0-4][0-9]/24'`,
}
const byDhcp: Change = {
  method: 'POST',
  target: 'bonds/bond0',
  body: { type: 'dhcp', members },
  windowSeconds: 90,
  there: `${isBond('active-backup')}; ip -4 address show dev bond0 dynamic | grep -q 'inet 192.0.2.1[0-4][0-9]/24'`,
}

const owners: readonly Owner[] = ['networkd', 'networkmanager', 'ifupdown', 'netplan']

describe
  .skipIf(!canEmulate)
  .each(owners.flatMap((backend) => (['static', 'by DHCP'] as const).map((kind) => ({ backend, kind }))))(
  'a bond over the link of the management address of a host with $backend, its address $kind',
  ({ backend, kind }) => {
    let host: NetworkHost
    let client: NetworkClient
    /** Where its API is. */
    let at = address.ip

    beforeAll(async () => {
      host = await startNetworkMachine(backend, inject('deb'))
      const edgehostd = asEdgehostd(host)
      await edgehostd.configure(
        'test',
        'api: {rateLimits: {enabled: false}}\nnetwork: {shortestWindowSeconds: 5}\n',
      )
      await host.addUser({ name, password, groups: ['sudo'] })
      client = clientOf(host, 60)
      await answers()
      await client.login(at, name, password)
    })
    afterAll(() => host.unplug())

    const measured = (text: string) => process.stdout.write(`${backend}: ${text}\n`)

    /** Waits until the API answers. */
    const answers = () =>
      eventually(async () => {
        const { status } = await client.ask(at, 'GET', networkPath)
        if (status === 0) throw new Error(`the API does not answer at ${at}`)
      }, soonMs)

    async function begin({ method, target, body, windowSeconds }: Change): Promise<string> {
      const reply = await client.ask(at, method, `${networkPath}/${target}?window=${windowSeconds}`, body)
      expect(reply, JSON.stringify(reply)).toMatchObject({ status: 202 })
      return reply.json.uid
    }

    const addressOf = async (link: string) =>
      /inet (192\.0\.2\.1\d+)\/24/.exec(
        await host.output(['ip', '-o', '-4', 'address', 'show', 'dev', link]),
      )?.[1]

    /** The address of a bond that was made of a member with one by DHCP is not known before. */
    async function follow(change: Change): Promise<void> {
      const link = change === deletion || change === leased ? 'host0' : 'bond0'
      at = await eventually(async () => {
        const found = await addressOf(link)
        if (found === undefined) throw new Error(`${link} has no address`)
        return found
      }, soonMs)
    }

    async function isInTrial(uid: string, change: Change): Promise<void> {
      const beganAt = Date.now()
      await eventually(async () => {
        const state = await host.stateOf(uid)
        if (state !== 'open trial')
          throw new Error(
            `${state}: ${await host.sh('cat /run/edgehostd-network/trial/errors || cat /run/edgehostd-network/ended/*')}`,
          )
      }, change.windowSeconds * 1_000)
      measured(`${change.target} is applied after ${Date.now() - beganAt} ms`)
      // A lease is there already.
      await host.sh(change.there)
      await follow(change)
    }

    /** A snapshot that stays the same. */
    const settled = () =>
      eventually(async () => {
        const seen = await host.snapshot()
        expect(await host.snapshot()).toBe(seen)
        expect(seen).not.toContain('tentative')
        return seen
      })

    const isAsBefore = (before: string) =>
      eventually(async () => expect(await host.snapshot()).toBe(before), 30_000)

    /** Makes a change that stays. */
    async function keep(change: Change): Promise<string> {
      const uid = await begin(change)
      await isInTrial(uid, change)
      const inTrial = await settled()
      const reply = await client.ask(at, 'POST', `${networkPath}/changes/${uid}/actions/confirm`)
      expect(reply, JSON.stringify(reply)).toMatchObject({ status: 200, json: { state: 'confirmed' } })
      await isAsBefore(inTrial)
      return uid
    }

    async function takesBackAtDeadline(change: Change): Promise<void> {
      await host.addForeign(change === byDhcp ? 'host0' : 'bond0')
      const [before, was] = [await settled(), at]
      const beganAt = Date.now()
      const uid = await begin(change)
      await isInTrial(uid, change)
      at = was
      const deadline = beganAt + change.windowSeconds * 1_000
      await eventually(() => expect(Date.now()).toBeGreaterThan(deadline), soonMs)
      await answers()
      const answeredMs = Date.now() - deadline
      await client.isState(uid, 'reverted', at, soonMs)
      measured(
        `${change.target}: the API answers ${answeredMs} ms after the deadline, and all is as before after ${Date.now() - deadline} ms`,
      )
      expect(await client.change(uid, at)).toMatchObject({ reason: 'deadline' })
      await isAsBefore(before)
      await removeForeign(host)
      expect(answeredMs).toBeLessThan(lateMs)
    }

    async function isGoneAfterPowerCut(change: Change): Promise<void> {
      const [before, was] = [await settled(), at]
      const uid = await begin(change)
      await isInTrial(uid, change)
      at = was
      await host.cutPower()
      await answers()
      expect(await client.change(uid, at)).toMatchObject({ state: 'reverted', reason: 'reboot' })
      await isAsBefore(before)
    }

    async function staysAfterReboot(change: Change): Promise<void> {
      await keep(change)
      await host.reboot()
      await follow(change)
      await answers()
      await host.sh(change.there)
    }

    if (kind === 'static') {
      it('is in force over a boot where it is confirmed', () => staysAfterReboot(bond))

      describe.each([
        ['a VLAN on it', vlan],
        ['another mode of it', mode],
        ['its deletion', deletion],
      ] as const)('%s', (_, change) => {
        it('is taken back at the deadline, and the network is as before', () => takesBackAtDeadline(change))
        it('is gone after a power cut', () => isGoneAfterPowerCut(change))
      })

      it('another mode of it that is confirmed is there after a boot', () => staysAfterReboot(mode))

      it('a VLAN on it that is confirmed is there after a boot', () => staysAfterReboot(vlan))

      it('its deletion that is confirmed lasts over a boot', async () => {
        await keep({
          ...{ method: 'DELETE', target: 'vlans/bond0.20', windowSeconds: 60 },
          there: '[ ! -e /sys/class/net/bond0.20 ]',
        })
        await staysAfterReboot(deletion)
      })
    } else {
      beforeAll(async () => {
        const uid = await begin(leased)
        await isInTrial(uid, leased)
        const reply = await client.ask(at, 'POST', `${networkPath}/changes/${uid}/actions/confirm`)
        expect(reply, JSON.stringify(reply)).toMatchObject({ status: 200 })
      })

      it('is taken back at its deadline, and the network is as before', () => takesBackAtDeadline(byDhcp))
      it('is gone after a power cut', () => isGoneAfterPowerCut(byDhcp))
      it('has the address after a boot where it is confirmed', () => staysAfterReboot(byDhcp))
    }
  },
)
