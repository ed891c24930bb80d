import { isIPv4 } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { canonicalAddress } from '../../base/address.ts'
import type { CommandRunner } from '../../system/runner.ts'
import type { HostFiles } from '../files.ts'

interface AnsweringDeviceOptions {
  readonly files: HostFiles
  readonly runner: CommandRunner
}

// Time limit for a device.
const withinMs = 3_500
const pauseMs = 100
// The service "discard": where a device has it, it sends no reply (RFC 863).
const port = 9

/**
 * Finds out whether a device of the network has an address: a datagram makes the kernel ask for it (ARP, RFC 826; for IPv6 neighbour
 * discovery, RFC 4861), three times in three seconds (arp(7), neighbour.default.ucast_solicit), and its table has the answer. That needs no
 * right, and a firewall of the device does not hide it.
 * @returns the hardware address of the device; undefined where none answered
 * @throws the reason of the signal, and the system's error where no datagram can be sent
 */
export async function findAnsweringDevice(
  { address, networkInterface }: { readonly address: string; readonly networkInterface: string },
  { files, runner }: AnsweringDeviceOptions,
  signal: AbortSignal,
): Promise<string | undefined> {
  await sendDatagram(address)
  const find = isIPv4(address)
    ? async () => parseArp((await files.text('/proc/net/arp')) ?? '', address)
    : () => askNeighbours(runner, address, networkInterface)
  for (const end = performance.now() + withinMs; ;) {
    const found = await find()
    if (found !== undefined || performance.now() > end) return found
    await delay(pauseMs, undefined, { signal })
  }
}

async function sendDatagram(address: string): Promise<void> {
  // Loaded here: a start of the daemon does not need it.
  const { createSocket } = await import('node:dgram')
  const socket = createSocket(isIPv4(address) ? 'udp4' : 'udp6')
  const { promise, resolve, reject } = Promise.withResolvers<undefined>()
  socket.on('error', reject)
  socket.send(Buffer.alloc(1), port, address, (error) => (error ? reject(error) : resolve(undefined)))
  try {
    await promise
  } catch (error) {
    // Error of an address without a device, after the questions for an earlier datagram.
    if ((error as NodeJS.ErrnoException).code !== 'EHOSTUNREACH') throw error
  } finally {
    socket.close()
  }
}

/** The hardware address in /proc/net/arp (net/ipv4/arp.c); an entry without the flag ATF_COM, 0x2, has got no answer. */
export function parseArp(text: string, address: string): string | undefined {
  for (const line of text.split('\n')) {
    const [ip, , flags = '', hardware] = line.trim().split(/\s+/)
    if (ip === address && (parseInt(flags, 16) & 0x2) !== 0) return hardware
  }
  return undefined
}

interface Neighbour {
  readonly dst?: string
  readonly lladdr?: string
  readonly state?: readonly string[]
}

/** The kernel has no file for the neighbours of IPv6. */
async function askNeighbours(
  runner: CommandRunner,
  address: string,
  networkInterface: string,
): Promise<string | undefined> {
  const args = ['-6', '-json', 'neighbour', 'show', 'to', address, 'dev', networkInterface]
  const { stdout } = await runner.run('ip', args, { timeoutMs: 5_000 })
  const found = (JSON.parse(stdout || '[]') as readonly Neighbour[]).find(
    ({ dst = '' }) => canonicalAddress(dst) === canonicalAddress(address),
  )
  const isKnown = found?.state?.some((state) => ['REACHABLE', 'STALE', 'DELAY', 'PROBE'].includes(state))
  return isKnown ? found?.lladdr : undefined
}
