import { readFile } from 'node:fs/promises'
import { expect, inject } from 'vitest'
import type { NetworkChange } from '../../../src/network/schemas.ts'
import { installPackage } from './edgehostd.ts'
import { eventually } from './eventually.ts'
import { rootOf, type AskAsRoot } from './http.ts'
import { bootNetworkHost, type NetworkHost, type Owner } from './network-host.ts'
import { watchNetwork, type NetworkWatch } from './network-watch.ts'
import './global-setup.ts'

/** What happens to a change that is tried. A host may take further courses, except after one of `keeping`. */
export const courses = [
  'asked',
  'deadline',
  'apply killed',
  'daemon killed before the apply',
  'daemon killed in the apply',
  'daemon killed after the apply',
  'backend restarted',
  'bus restarted',
  'power cut in the trial',
  'power cut before the commit',
  'power cut after the commit',
  'confirmed',
] as const
export type Course = (typeof courses)[number]
export const keeping: readonly Course[] = ['power cut after the commit', 'confirmed']

export const addressed = (last: number, more: object = {}) => ({
  ...{ type: 'static', ip: `192.0.2.${last}`, subnet: '255.255.255.0', gateway: '192.0.2.1' },
  ...more,
})
const toHost0 = (body: object) => ({ method: 'PUT', target: 'interfaces/host0/config', body })

/** Changes of the link by which the host is managed, as a client asks for them. */
export const cases = {
  static: toHost0(addressed(11)),
  dhcp: toHost0({ type: 'dhcp' }),
  bridge: {
    method: 'POST',
    target: 'bridges/br0',
    body: { name: 'br0', members: ['host0'], stpEnabled: false, ...addressed(10) },
  },
  mtu: toHost0(addressed(10, { mtu: 1_400 })),
} as const
export type Case = keyof typeof cases
export const caseNames = Object.keys(cases) as Case[]

/** A host with the package, whose network can be changed for seconds. */
export interface TrialHost extends NetworkHost {
  readonly backend: Owner
  /** A request of root to the room network. */
  readonly ask: AskAsRoot<NetworkChange & { readonly items: readonly NetworkChange[] }>
}

const path = '/v1/edge-mgmt/network'

export async function bootTrialHost(backend: Owner): Promise<TrialHost> {
  const host = await bootNetworkHost(backend)
  const ask: TrialHost['ask'] = rootOf(() => host.leader)
  const trialHost: TrialHost = {
    ...host,
    get leader() {
      return host.leader
    },
    backend,
    ask: (method, target, body) => ask(method, `${path}/${target}`, body),
  }
  try {
    await host.write(
      '/etc/edgehostd/config.d/test.yaml',
      'api: {rateLimits: {enabled: false}}\nnetwork: {shortestWindowSeconds: 5}\n',
    )
    await installPackage(host, await readFile(inject('deb')))
    await isAnswering(trialHost)
  } catch (error) {
    await host.unplug()
    throw error
  }
  return trialHost
}

const isAnswering = ({ ask }: TrialHost) =>
  eventually(async () => expect(await ask('GET', 'changes')).toMatchObject({ status: 200 }), soonMs)

const units: Readonly<Record<Owner, string>> = {
  networkd: 'systemd-networkd',
  netplan: 'systemd-networkd',
  networkmanager: 'NetworkManager',
  ifupdown: 'networking',
}

/** A client of DHCP needs some seconds of it. */
const windowOf = (name: Case) => (name === 'dhcp' ? 10 : 8)
const soonMs = 60_000
/** A host is reached again this much after its window, whatever happened. */
const graceSeconds = 5
const address = '192.0.2.10'

/** Takes a change through a course, expects what has to be so at its end, and prints what was measured. */
export async function takeCourse(host: TrialHost, name: Case, course: Course): Promise<void> {
  await isAnswering(host)
  const bare = await host.snapshot()
  await host.addForeign()
  const before = await settled(host)
  const watch = watchNetwork(host, address)
  try {
    // The first answers, so that what comes after them is a time without one.
    await eventually(() => expect(watch.longestGap(Date.now() - 400)).toBeLessThan(0.3))
    const figures = await follow({ host, name, course, watch, bare, before })
    process.stdout.write(`${host.backend}, ${name}, ${course}: ${figures.join(', ')}\n`)
  } finally {
    watch.end()
    await removeForeign(host)
  }
}

interface Taken {
  readonly host: TrialHost
  readonly name: Case
  readonly course: Course
  readonly watch: NetworkWatch
  /** Snapshots: as the owner of the links alone has made them, and with what other programs have put there. */
  readonly bare: string
  readonly before: string
}

/** @returns what was measured, a clause each */
async function follow({ host, name, course, watch, bare, before }: Taken): Promise<string[]> {
  const windowSeconds = windowOf(name)
  const { method, target, body } = cases[name]
  const begunAt = Date.now()
  const begin = async () => host.ask(method, `${target}?window=${windowSeconds}`, body)
  const find = async (uid: string) => (await host.ask('GET', `changes/${uid}`)).json
  const newest = async () => {
    const [change] = (await host.ask('GET', 'changes')).json.items
    if (change === undefined || Date.parse(change.creationTimestamp) < begunAt)
      throw new Error('no change yet')
    return change
  }
  const isEnded = async (uid: string, state: string, reason?: string) => {
    await eventually(
      async () => expect((await find(uid)).state).toMatch(/^(reverted|revertFailed|confirmed)$/),
      soonMs,
    )
    expect(await find(uid)).toMatchObject({ state, ...(reason === undefined ? {} : { reason }) })
  }
  const trial = '/run/edgehostd-network/trial'

  /** It is as before, within the window, by what the neighbour sees. */
  async function isReverted(uid: string, reason: string): Promise<string[]> {
    await isEnded(uid, 'reverted', reason)
    await isAsBefore(host, before)
    // The window begins with the change; planning it and looking for the address come before.
    const seconds = watch.backAfter(Date.parse((await find(uid)).creationTimestamp))
    expect(seconds, 'seconds until the host is reached again').toBeLessThan(windowSeconds + graceSeconds)
    const appliedIn = await secondsBetween(host, begunAt, '/run/edgehostd-network/gone/applied')
    const events = watch.otherLinkEvents()
    return [
      `reached again after ${seconds.toFixed(1)} of ${windowSeconds + graceSeconds} s`,
      ...(appliedIn === undefined ? [] : [`applied in ${appliedIn.toFixed(2)} s`]),
      `taken back in ${(await secondsOfRevert(host, uid)).toFixed(2)} s`,
      `longest gap ${watch.longestGap(begunAt).toFixed(2)} s`,
      `${events.length} events of the other link${events.length === 0 ? '' : `: ${events.slice(0, 3).join(' | ')}`}`,
    ]
  }
  /** Boots it after a power cut; it is reached at an address. */
  async function cutPower(at: () => string | Promise<string>): Promise<string[]> {
    watch.endMonitor()
    const cutAt = Date.now()
    await host.cutPower()
    const bootedAt = Date.now()
    const reached = await at()
    await eventually(
      async () => expect(await host.reaches(reached)).toBe(true),
      (windowSeconds + graceSeconds) * 1_000,
    )
    const seconds = (Date.now() - cutAt) / 1_000
    await isAnswering(host)
    const figures = [
      `reached again ${seconds.toFixed(1)} s after the cut, with a boot of ${((bootedAt - cutAt) / 1_000).toFixed(1)} s`,
    ]
    if (reached !== address) return figures
    await eventually(() => expect(watch.apiAfterPing(cutAt)).toBeLessThan(soonMs))
    return [...figures, `the API ${watch.apiAfterPing(cutAt).toFixed(1)} s after the first ping`]
  }

  async function killDaemon(when: 'before' | 'in' | 'after'): Promise<string[]> {
    // The program waits before it has changed anything, and goes on without the daemon.
    if (when === 'before')
      await host.write('/usr/local/sbin/flock', waiting('/usr/bin/flock', '*', '/run/test-goes'), 0o755)
    const asked = begin().catch(() => undefined)
    const place = { before: '/run/test-waits', in: `${trial}/armed`, after: `${trial}/applied` }[when]
    await eventually(() => host.sh('ls "$1"', place), soonMs)
    await host.sh('kill -KILL "$(systemctl show --property=MainPID --value edgehostd)"')
    if (when === 'before') await host.sh('rm /usr/local/sbin/flock /run/test-waits; : > /run/test-goes')
    await asked
    await isAnswering(host)
    const { uid } = await eventually(newest)
    if (when !== 'before') return isReverted(uid, 'deadline')
    // The next daemon may be faster than the program, and takes the change away.
    await eventually(async () => expect((await find(uid)).state).toMatch(/^revert/), soonMs)
    const { reason } = await find(uid)
    expect(reason).toMatch(/^(deadline|failed)$/)
    await host.sh('rm /run/test-goes')
    if (reason === 'deadline') return isReverted(uid, reason)
    await isAsBefore(host, before)
    return ['it was not begun']
  }
  async function started(): Promise<string> {
    const begun = await begin()
    expect(begun.status, begun.text).toBe(202)
    return begun.json.uid
  }
  async function tried(): Promise<string> {
    const uid = await started()
    await eventually(
      async () => expect(await find(uid)).toMatchObject({ state: 'trial' }),
      windowSeconds * 1_000,
    )
    await expectForeign(host)
    return uid
  }

  switch (course) {
    case 'daemon killed before the apply':
      return killDaemon('before')
    case 'daemon killed in the apply':
      return killDaemon('in')
    case 'daemon killed after the apply':
      return killDaemon('after')
    case 'asked': {
      const uid = await tried()
      const gap = watch.longestGap(begunAt)
      expect(await host.ask('POST', `changes/${uid}/actions/revert`)).toMatchObject({ status: 200 })
      const figures = await isReverted(uid, 'asked')
      expect(await host.ask('POST', `changes/${uid}/actions/confirm`)).toMatchObject({ status: 409 })
      return [...figures, ...(name === 'bridge' ? [`gap of the apply ${gap.toFixed(2)} s`] : [])]
    }
    case 'deadline': {
      const uid = await tried()
      return isReverted(uid, 'deadline')
    }
    case 'apply killed': {
      const uid = await started()
      await host.sh('systemctl kill --signal=KILL "edgehostd-network-apply-$1.service" || true', uid)
      return isReverted(uid, 'deadline')
    }
    case 'backend restarted': {
      const uid = await tried()
      // That of ifupdown fails over a bridge that is not in its file.
      await host.run(['systemctl', 'restart', units[host.backend]])
      return isReverted(uid, 'deadline')
    }
    case 'bus restarted': {
      const uid = await tried()
      await host.output(['systemctl', 'restart', 'dbus'])
      return isReverted(uid, 'deadline')
    }
    case 'power cut in the trial': {
      const uid = await tried()
      const figures = await cutPower(() => address)
      await isEnded(uid, 'reverted', 'reboot')
      await isAsBefore(host, bare)
      return figures
    }
    case 'power cut before the commit':
    case 'power cut after the commit': {
      const uid = await tried()
      const isKept = course === 'power cut after the commit'
      // The program waits in the rename of the commit, or before it puts the first file in place that it has staged.
      const [program, place] = isKept ? (['cmp', '*/kept/*'] as const) : (['mv', '*/commit*'] as const)
      await host.write(
        `/usr/local/sbin/${program}`,
        waiting(`/usr/bin/${program}`, place, '/run/test-goes'),
        0o755,
      )
      const confirmed = host.ask('POST', `changes/${uid}/actions/confirm`).catch(() => undefined)
      await eventually(() => host.sh('ls /run/test-waits'))
      await host.sh('rm /usr/local/sbin/"$1"; sync', program)
      const figures = await cutPower(() => (isKept ? addressOf(host, name) : address))
      await confirmed
      await (isKept ? isEnded(uid, 'confirmed') : isEnded(uid, 'reverted', 'reboot'))
      if (!isKept) await isAsBefore(host, bare)
      return figures
    }
    case 'confirmed': {
      const uid = await tried()
      const inTrial = await settled(host)
      const appliedIn = await secondsBetween(host, begunAt, `${trial}/applied`)
      expect(await host.reaches(await addressOf(host, name))).toBe(true)
      const confirmed = await host.ask('POST', `changes/${uid}/actions/confirm`)
      expect(confirmed, confirmed.text).toMatchObject({ status: 200, json: { state: 'confirmed' } })
      expect(Date.now() - begunAt).toBeLessThan((windowSeconds + graceSeconds) * 1_000)
      expect(await host.ask('POST', `changes/${uid}/actions/revert`)).toMatchObject({ status: 409 })
      await isAsBefore(host, inTrial)
      const events = watch.otherLinkEvents()
      watch.endMonitor()
      await host.reboot()
      await eventually(async () => expect(await host.reaches(await addressOf(host, name))).toBe(true), soonMs)
      return [`applied in ${appliedIn?.toFixed(2)} s`, `${events.length} events of the other link`]
    }
  }
}

/** Seconds from a moment until a file was written; undefined where there is none. */
async function secondsBetween(host: TrialHost, since: number, file: string): Promise<number | undefined> {
  const { exitCode, stdout } = await host.run(['stat', '--format=%.Y', file])
  return exitCode === 0 ? Number(stdout) - since / 1_000 : undefined
}

/** From the decision to take a change back until its result. */
async function secondsOfRevert(host: TrialHost, uid: string): Promise<number> {
  const [decided, ended] = await Promise.all(
    ['gone/reason', `ended/${uid}`].map((file) => secondsBetween(host, 0, `/run/edgehostd-network/${file}`)),
  )
  return (ended ?? NaN) - (decided ?? NaN)
}

/** A program in the place of another one that waits for a file where its arguments match a pattern of the shell. */
const waiting = (program: string, place: string, until: string) =>
  `#!/bin/sh\ncase "$*" in ${place}) : > /run/test-waits; while [ ! -e ${until} ]; do sleep 0.1; done ;; esac\nexec ${program} "$@"\n`

/** The address of the host after a change. */
async function addressOf(host: NetworkHost, name: Case): Promise<string> {
  if (name === 'static') return '192.0.2.11'
  if (name !== 'dhcp') return address
  return eventually(async () => {
    const [leased] =
      /192\.0\.2\.1[0-4]\d/.exec(await host.output(['ip', '-4', 'address', 'show', 'dev', 'host0'])) ?? []
    if (leased === undefined) throw new Error('no address by DHCP')
    return leased
  }, soonMs)
}

/** The virtual address, the route of the cluster and the rule are there in the trial too. */
async function expectForeign(host: NetworkHost): Promise<void> {
  await eventually(async () => {
    const seen = await host.snapshot()
    for (const each of ['192.0.2.200/32', 'fd00:98::1/64', 'fd00:99::1/64', '203.0.113.200/32'])
      expect(seen).toContain(each)
    expect(seen).toContain('10.244.1.0/24 via 192.0.2.1 ')
    expect(seen).toContain('10.244.2.0/24 via 203.0.113.1 ')
    expect(seen).toContain('1000:\tfrom 10.244.0.0/16 lookup main')
  })
}

/** Takes away what `addForeign` has put on the links, wherever it is now. */
export async function removeForeign(host: NetworkHost): Promise<void> {
  await host.sh(`
    for link in $(ls /sys/class/net); do
      for address in 192.0.2.200/32 203.0.113.200/32 fd00:98::1/64 fd00:99::1/64; do ip address del $address dev $link 2> /dev/null || true; done
    done
    for route in 10.244.1.0/24 10.244.2.0/24; do ip route del $route 2> /dev/null || true; done
    ip rule del pref 1000 || true`)
}

/** A snapshot that stays the same. */
async function settled(host: NetworkHost): Promise<string> {
  return eventually(async () => {
    const seen = await host.snapshot()
    expect(await host.snapshot()).toBe(seen)
    expect(seen).not.toContain('tentative')
    return seen
  })
}

async function isAsBefore(host: NetworkHost, before: string): Promise<void> {
  await eventually(async () => expect(await host.snapshot()).toBe(before), 20_000)
}
