import type { ChildProcess } from 'node:child_process'
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest'
import type { PingResponse, TraceRouteResponse } from '../../src/diagnosis/schemas.ts'
import { startBeside, type NetworkHost } from '../e2e/host/network-host.ts'
import { output } from '../e2e/host/process.ts'
import { canEmulate } from './machine/machine.ts'
import { startNetworkMachine } from './machine/network-machine.ts'

// `IPAddressDeny=` has no effect in a container: it needs a kernel of its own. The neighbour is the router to a network behind it.

const target = '10.99.0.2'
const router = '192.0.2.1'

describe.skipIf(!canEmulate)('the unit of ping and traceroute', () => {
  let host: NetworkHost
  let far: ChildProcess

  const ask = async <T>(tool: 'ping' | 'traceroute', endpoint: string): Promise<T> => {
    const path = `/v1/edge-mgmt/edgehosts/connectivity/${tool}?endpoint=${endpoint}&structured=true`
    return JSON.parse(await host.output(['edgehostctl', 'api', 'get', path])) as T
  }

  beforeAll(async () => {
    host = await startNetworkMachine('networkd', inject('deb'))
    const holder = host.clientNamespace()
    far = startBeside(holder, 'unshare', '--net', 'sleep', 'infinity')
    const beside = `
      until [ "$(readlink /proc/$1/ns/net)" != "$(readlink /proc/self/ns/net)" ]; do sleep 0.1; done
      ip link add far0 type veth peer name far1; ip link set far1 netns "$1"
      ip address add 10.99.0.1/24 dev far0; ip link set far0 up; sysctl -qw net.ipv4.ip_forward=1
      nsenter -t "$1" -n sh -euc 'ip address add ${target}/24 dev far1; ip link set far1 up; ip route add default via 10.99.0.1'
    `
    await output('nsenter', ['-t', String(holder), '-n', 'bash', '-euc', beside, 'sh', String(far.pid)])
  })
  afterAll(async () => {
    far.kill('SIGKILL')
    await host.unplug()
  })

  it('what is behind a router answers, and the router is on the way to it', async () => {
    const { result, pingHostStatus } = await ask<Required<PingResponse>>('ping', target)
    expect(result, pingHostStatus).toMatchObject({ isReachable: true, received: 5 })
    const traced = await ask<Required<TraceRouteResponse>>('traceroute', target)
    expect(traced.result, traced.traceRouteStatus).toMatchObject({
      isReachable: true,
      hops: [
        { number: 1, addresses: [router] },
        { number: 2, addresses: [target] },
      ],
    })
  })

  it('what a router says of an address that is not there is told', async () => {
    const { result, pingHostStatus } = await ask<Required<PingResponse>>('ping', '10.99.0.77')
    expect(result).toMatchObject({ isReachable: false })
    expect(pingHostStatus).toMatch(/From 192\.0\.2\.1 .*Destination Host Unreachable/)
  })

  it('a program in it reaches the one address, and no other, not even of the host itself', async () => {
    const program = `#!/bin/sh
for address in ${target} ${router} 192.0.2.10 127.0.0.1; do
  if ping.real -n -c 1 -W 2 $address > /dev/null 2>&1; then echo "$address answers"; else echo "$address is out of reach"; fi
done
`
    await host.sh('mv /usr/bin/ping /usr/bin/ping.real')
    await host.write('/usr/bin/ping', program, 0o755)
    const { pingHostStatus } = await ask<PingResponse>('ping', target)
    expect(pingHostStatus.trim().split('\n')).toEqual([
      `${target} answers`,
      ...[router, '192.0.2.10', '127.0.0.1'].map((address) => `${address} is out of reach`),
    ])
  })
})
