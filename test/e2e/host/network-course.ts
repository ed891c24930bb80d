import { expect } from 'vitest'
import { eventually } from './eventually.ts'
import { changeOf, type Case, type NetworkHost, type TestedBackend } from './network-host.ts'

/** What happens to a change that is tried. */
export const courses = [
  'asked',
  'deadline',
  'apply killed',
  'backend restarted',
  'bus restarted',
  'power cut in the trial',
  'power cut before the commit',
  'power cut after the commit',
  'confirmed',
] as const
export type Course = (typeof courses)[number]

const units: Readonly<Record<TestedBackend, string>> = {
  networkd: 'systemd-networkd',
  networkmanager: 'NetworkManager',
  ifupdown: 'networking',
}

/** Time that DHCP may take before an apply counts as hanging, and windows that leave room for it. */
const windowOf = (name: Case) => (name === 'dhcp' ? 20 : 8)
const soonMs = 60_000

/** Takes a change through a course, and expects what has to be so at its end. A host may take further courses, except after one that keeps the change. */
export async function takeCourse(host: NetworkHost, backend: TestedBackend, name: Case, course: Course) {
  const uid = `${name}-${course.replaceAll(' ', '-')}-${Date.now()}`
  const bare = await host.snapshot()
  await host.addForeign()
  const before = await settled(host)
  const mac = (await host.output(['cat', '/sys/class/net/host0/address'])).trim()
  const change = changeOf(backend, name, mac)
  const windowSeconds = windowOf(name)
  const isInTrial = () =>
    eventually(async () => expect(await host.stateOf(uid)).toBe('open trial'), windowSeconds * 1_000)
  const isReverted = async (reason: string) => {
    await eventually(async () => expect(await host.stateOf(uid)).toMatch(/^reverted|^revertFailed/), soonMs)
    expect(await host.stateOf(uid)).toBe(`reverted ${reason}`)
    await isAsBefore(host, before)
  }
  const begunAt = Date.now()
  await host.begin(uid, change, windowSeconds)

  switch (course) {
    case 'asked':
      await isInTrial()
      await expectForeign(host)
      expect(await host.trial('ask', uid)).toMatchObject({ exitCode: 0 })
      await isReverted('asked')
      expect(await host.trial('confirm', uid)).toMatchObject({ exitCode: 6 })
      break
    case 'deadline':
      await isInTrial()
      await eventually(async () => expect(await host.stateOf(uid)).not.toBe('open trial'), soonMs)
      await eventually(async () => expect(await host.reaches('192.0.2.10')).toBe(true))
      // The answer of a ping on a busy test machine takes its time too.
      expect(Date.now() - begunAt).toBeLessThan((windowSeconds + 10) * 1_000)
      await isReverted('deadline')
      break
    case 'apply killed':
      await host.sh('systemctl kill --signal=KILL "edgehostd-network-apply-$1.service" || true', uid)
      await isReverted('deadline')
      break
    case 'backend restarted':
      await isInTrial()
      // That of ifupdown fails over a bridge that is not in its file.
      await host.run(['systemctl', 'restart', units[backend]])
      await isReverted('deadline')
      break
    case 'bus restarted':
      await isInTrial()
      await host.output(['systemctl', 'restart', 'dbus'])
      await isReverted('deadline')
      break
    case 'power cut in the trial':
      await isInTrial()
      await host.cutPower()
      await eventually(async () => expect(await host.stateOf(uid)).toBe('reverted reboot'))
      await eventually(async () => expect(await host.reaches('192.0.2.10')).toBe(true), soonMs)
      await isAsBefore(host, bare)
      break
    case 'power cut before the commit':
    case 'power cut after the commit': {
      await isInTrial()
      const isKept = course === 'power cut after the commit'
      // The program waits in the rename of the commit, or in the first file that it keeps.
      const [program, place] = isKept ? ['cp', '/kept/'] : ['mv', '/commit']
      await host.write(`/usr/local/sbin/${program}`, waiting(program, place), 0o755)
      await host.output([
        ...['systemd-run', '--quiet', '--collect', '--no-block'],
        ...['/usr/lib/edgehostd/network-trial', 'confirm', uid],
      ])
      await eventually(async () => expect(await host.sh('ls /run')).toContain('test-waits'))
      await host.sh('rm /usr/local/sbin/"$1"; sync', program)
      await host.cutPower()
      const [state, address] = isKept
        ? ['confirmed asked', await addressOf(host, name)]
        : ['reverted reboot', '192.0.2.10']
      await eventually(async () => expect(await host.stateOf(uid)).toBe(state))
      await eventually(async () => expect(await host.reaches(address)).toBe(true), soonMs)
      if (!isKept) await isAsBefore(host, bare)
      break
    }
    case 'confirmed': {
      await isInTrial()
      const inTrial = await settled(host)
      await expectForeign(host)
      const confirmed = await host.trial('confirm', uid)
      expect(confirmed, confirmed.stderr).toMatchObject({ exitCode: 0 })
      expect(await host.stateOf(uid)).toBe('confirmed asked')
      expect(await host.trial('ask', uid)).toMatchObject({ exitCode: 6 })
      await isAsBefore(host, inTrial)
      for (const { path, content } of change.kept)
        if (typeof content === 'object') expect(await host.read(path)).toBe(content.text)
      await host.reboot()
      const address = await addressOf(host, name)
      await eventually(async () => expect(await host.reaches(address)).toBe(true), soonMs)
    }
  }
  await removeForeign(host)
}

/** A program in the place of one that waits for its end where one of its arguments names this place. */
const waiting = (program: string, place: string) =>
  `#!/bin/sh\ncase "$*" in *${place}*) : > /run/test-waits; sleep 60 ;; esac\nexec /bin/${program} "$@"\n`

/** The address of the host after a change. */
async function addressOf(host: NetworkHost, name: Case): Promise<string> {
  if (name === 'static') return '192.0.2.11'
  if (name !== 'dhcp') return '192.0.2.10'
  return eventually(async () => {
    const [address] =
      /192\.0\.2\.1[0-4]\d/.exec(await host.output(['ip', '-4', 'address', 'show', 'dev', 'host0'])) ?? []
    if (address === undefined) throw new Error('no address by DHCP')
    return address
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
