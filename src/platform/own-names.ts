import { hostname, networkInterfaces } from 'node:os'
import type { Job } from '../room.ts'

export interface OwnNamesOptions {
  /** The name that the configuration gives. */
  readonly hostName: string | undefined
  /** The name of this machine and its addresses; the default asks the kernel. */
  readonly machine?: () => { readonly name: string; readonly addresses: readonly string[] }
}

/** The names of this machine, for the certificate. */
export interface OwnNames {
  hostName(): string
  /** Addresses at which others may reach this machine; not those of the loopback. */
  addresses(): readonly string[]
  /** Registers a listener, called when a name or an address has changed. */
  onNamesChange(listener: () => void): void
  readonly job: Job
}

/** Asks for the names each minute; node:os has no notification of a change. */
export function createOwnNames({ hostName, machine = ofThisMachine }: OwnNamesOptions): OwnNames {
  let current = machine()
  const listeners: (() => void)[] = []
  return {
    hostName: () => hostName ?? current.name,
    addresses: () => current.addresses,
    onNamesChange: (listener) => void listeners.push(listener),
    job: {
      name: 'own names',
      schedule: '7 * * * * *',
      stuckAfterMs: 300_000,
      run() {
        const next = machine()
        const isSame = JSON.stringify(next) === JSON.stringify(current)
        current = next
        if (!isSame) for (const tell of listeners) tell()
      },
    },
  }
}

function ofThisMachine() {
  const all = Object.values(networkInterfaces()).flatMap((each) => each ?? [])
  const reachable = all.filter(({ internal, address }) => !internal && !address.startsWith('fe80:'))
  return { name: hostname(), addresses: [...new Set(reachable.map(({ address }) => address))].sort() }
}
