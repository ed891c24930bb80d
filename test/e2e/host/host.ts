import { readFile, writeFile, mkdir, chmod } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { boot, type BootOptions } from './boot.ts'
import { curl, type Ask, type Reply } from './http.ts'
import { startLoad, type Load, type LoadOrder } from './load.ts'
import { layWire, wireOnBridge, type Wire } from './network.ts'
import { output, run, type Ended, type RunOptions } from './process.ts'

/** An account to make on a host. */
export interface Account {
  readonly name: string
  readonly password?: string
  readonly groups?: readonly string[]
  readonly shell?: string
}

/** A line of the journal, as `journalctl -o json` gives it. */
export interface JournalLine {
  readonly message: string
  readonly priority: number
  readonly unit: string
}

/** A booted host and the clients on its wire. */
export interface Host {
  /** Runs a program inside, in a clean environment. */
  run(args: readonly string[], options?: RunOptions): Promise<Ended>
  /** Runs a program that has to succeed; gives its standard output. */
  output(args: readonly string[], options?: RunOptions): Promise<string>
  /** Runs a bash script with arguments; any failing line fails the test. */
  sh(script: string, ...args: string[]): Promise<string>
  read(path: string): Promise<string>
  write(path: string, content: string | Buffer, mode?: number): Promise<void>
  /** Makes an account with a home. */
  addUser(account: Account): Promise<void>
  /** The journal of a unit. */
  journal(unit?: string): Promise<JournalLine[]>
  /** An address that no client has used before: its guess counters are empty. */
  newAddress(family?: 'ipv4' | 'ipv6'): Promise<string>
  addAddress(address: string): Promise<void>
  /** Sends a request to the daemon by curl; by default from the first client address. */
  http(method: string, path: string, ask?: Ask): Promise<Reply>
  startLoad(order: Partial<LoadOrder> & { path: string; token?: string }): Promise<Load>
  /** Path of the certificate that clients trust, on the test machine. */
  readonly cacert: string
  /** Process id in whose network namespace its clients are, at 10.77.0.2. */
  clientNamespace(): number
  /** A folder on the test machine that is removed with the host. */
  readonly folder: string
  /** Process id of PID 1; another one after a reboot. */
  readonly leader: number
  /** Boots again; not for hosts with a wire that was laid after the boot, since that does not outlast it. */
  reboot(): Promise<void>
  /** Waits until it has booted again, after something that reboots it; with the same limit. */
  rebootBy(act: () => Promise<unknown>): Promise<void>
  /** Waits until it is off, after something that shuts it down. */
  shutDownBy(act: () => Promise<unknown>): Promise<void>
  /** Cuts its power and boots it again; with the same limit. */
  cutPower(): Promise<void>
  /** Ends the host at once and removes everything of it. */
  unplug(): Promise<void>
}

export interface HostOptions extends BootOptions {
  /** `false`: the host has only its loopback. */
  readonly wire?: boolean
}

/** Boots a host. */
export async function bootHost(options: HostOptions): Promise<Host> {
  const machine = await boot(options)
  const { folder } = machine
  const pid = () => String(machine.leader)
  let wire: Wire | undefined
  try {
    await output('nsenter', ['-t', pid(), '-n', 'ip', 'link', 'set', 'lo', 'up'])
    if (options.ground?.hasClients) wire = wireOnBridge(machine.holder)
    else if (options.wire ?? true) wire = await layWire(machine.leader)
  } catch (error) {
    await machine.unplug()
    throw error
  }
  const inside = (args: readonly string[]) => ['-t', pid(), '-a', ...args]
  const path = (name: string) => join(`/proc/${pid()}/root`, name)
  const cacert = join(folder, 'certificate.pem')
  const isWireLaid = wire !== undefined && !options.ground?.hasClients
  const expectWireStays = () => {
    if (isWireLaid) throw new Error('a wire that was laid after the boot does not outlast the host')
  }
  const onWire = () => {
    if (!wire) throw new Error('this host has no wire')
    return wire
  }
  const host: Host = {
    get leader() {
      return machine.leader
    },
    folder,
    cacert,
    clientNamespace: () => onWire().client,
    run: (args, runOptions) => run('nsenter', inside(args), runOptions),
    output: (args, runOptions) => output('nsenter', inside(args), runOptions),
    sh: (script, ...args) =>
      output('nsenter', inside(['bash', '--norc', '-euo', 'pipefail', '-c', script, 'sh', ...args])),
    read: (name) => readFile(path(name), 'utf8'),
    async write(name, content, mode = 0o644) {
      await mkdir(path(dirname(name)), { recursive: true })
      await writeFile(path(name), content)
      await chmod(path(name), mode)
    },
    async addUser({ name, password, groups = [], shell = '/bin/bash' }) {
      await host.output(['useradd', '-m', '-s', shell, '-G', groups.join(','), name])
      if (password !== undefined) await host.output(['chpasswd'], { input: `${name}:${password}\n` })
    },
    async journal(unit) {
      const args = unit === undefined ? [] : ['-u', unit]
      const lines = await host.output(['journalctl', '--no-pager', '-o', 'json', '--all', ...args])
      return lines.split('\n').filter(Boolean).map(toJournalLine)
    },
    newAddress: async (family) => onWire().newAddress(family),
    addAddress: async (address) => onWire().addAddress(address),
    http(method, target, ask = {}) {
      const from = ask.from ?? (wire ? '10.77.0.2' : 'loopback')
      const local = from === 'loopback' || !wire
      const name = local ? '127.0.0.1' : from.includes(':') ? `[${wire!.host.ipv6}]` : wire!.host.ipv4
      const namespace = local ? machine.leader : wire!.client
      return curl(namespace, method, `https://${name}:5080${target}`, { cacert, ...ask, from })
    },
    startLoad({ path: target, token, ...order }) {
      // From the first client address, or from inside a host that has no wire.
      const [namespace, server, from] = wire
        ? [wire.client, wire.host.ipv4, '10.77.0.2']
        : [machine.leader, '127.0.0.1', '127.0.0.1']
      const usual = { cacerts: [cacert], from, clients: 2, pauseMs: 5, keepAlive: false }
      return startLoad(namespace, { ...usual, ...order, url: `https://${server}:5080${target}` }, token)
    },
    reboot: async () => {
      expectWireStays()
      await machine.reboot()
    },
    rebootBy: async (act) => {
      expectWireStays()
      await machine.rebootBy(act)
    },
    shutDownBy: machine.shutDownBy,
    cutPower: async () => {
      expectWireStays()
      await machine.cutPower()
    },
    async unplug() {
      await wire?.cut()
      await machine.unplug()
    },
  }
  return host
}

export function toJournalLine(line: string): JournalLine {
  const entry = JSON.parse(line) as Record<string, string | number[]>
  const message = entry.MESSAGE ?? ''
  return {
    // Bytes that are not text are an array of numbers.
    message: typeof message === 'string' ? message : Buffer.from(message).toString('latin1'),
    priority: Number(entry.PRIORITY ?? 6),
    unit: String(entry._SYSTEMD_UNIT ?? ''),
  }
}
