import { join } from 'node:path'
import { inject } from 'vitest'
import { asEdgehostd, type Edgehostd } from '../../e2e/host/edgehostd.ts'
import { toJournalLine, type Host } from '../../e2e/host/host.ts'
import { curl } from '../../e2e/host/http.ts'
import { eventually } from '../../e2e/host/eventually.ts'
import { startLoad } from '../../e2e/host/load.ts'
import { diskFile, layHardware, type CardName, type DiskName } from './hardware.ts'
import { allHardware, makeImage } from './image.ts'
import { startMachine, type Machine } from './machine.ts'

/** A machine with the package installed, whose hardware can be plugged and unplugged. */
export interface MachineHost extends Edgehostd {
  /** Kernel and systemd on the serial console. */
  console(): string
  /** Plugs a disk into the SCSI controller. */
  plug(disk: DiskName): Promise<void>
  pull(disk: DiskName): Promise<void>
  setCarrier(card: CardName, carrier: boolean): Promise<void>
}

/** Starts a machine that has the package under test installed. */
export async function startEdgehostd(): Promise<MachineHost> {
  const image = await makeImage(inject('deb'), allHardware)
  const machine = await startMachine({ image, hardware: (folder) => layHardware(folder, image.initramfs) })
  const host = asHost(machine)
  const edgehostd = asEdgehostd(host)
  const { execute } = machine.monitor
  return {
    ...edgehostd,
    get leader() {
      return host.leader
    },
    console: () => machine.console(),
    async plug(disk) {
      const file = { driver: 'file', filename: diskFile(machine.folder, disk) }
      await execute('blockdev-add', { driver: 'raw', 'node-name': disk, file })
      await execute('device_add', {
        driver: 'scsi-hd',
        bus: 'scsi-bus.0',
        drive: disk,
        id: disk,
        serial: disk,
      })
    },
    async pull(disk) {
      await execute('device_del', { id: disk })
      // The machine releases the disk first; then it can be plugged in again.
      await eventually(() => execute('blockdev-del', { 'node-name': disk }))
    },
    async setCarrier(card, carrier) {
      await execute('set_link', { name: card, up: carrier })
    },
  }
}

/** A machine with the interface of the other test hosts: clients use the port 5080 of 127.0.0.1 in the network namespace of QEMU. */
export function asHost(machine: Machine): Host {
  const { shell, folder, pid } = machine
  const noWire = () => {
    throw new Error('a machine has no wire')
  }
  const output: Host['output'] = async (args, options) => {
    const { exitCode, stdout, stderr } = await shell.run(args, options)
    if (exitCode !== 0) throw new Error(`${args.join(' ')}: exit ${exitCode}\n${stderr}\n${stdout}`)
    return stdout
  }
  const host: Host = {
    leader: pid,
    folder,
    cacert: join(folder, 'certificate.pem'),
    run: (args, options) => shell.run(args, options),
    output,
    sh: (script, ...args) =>
      output(['bash', '--norc', '-euo', 'pipefail', '-c', script, 'sh', ...args], { timeoutMs: 300_000 }),
    read: (path) => output(['cat', path]),
    async write(path, content, mode = 0o644) {
      const script = 'mkdir -p "${1%/*}"; base64 -d > "$1"; chmod "$2" "$1"'
      const args = ['bash', '--norc', '-euc', script, 'sh', path, mode.toString(8)]
      await output(args, { input: Buffer.from(content).toString('base64') })
    },
    async addUser({ name, password, groups = [], shell: login = '/bin/bash' }) {
      await output(['useradd', '-m', '-s', login, '-G', groups.join(','), name])
      if (password !== undefined) await output(['chpasswd'], { input: `${name}:${password}` })
    },
    async journal(unit) {
      const args = unit === undefined ? [] : ['-u', unit]
      const lines = await output(['journalctl', '--no-pager', '-o', 'json', '--all', ...args])
      return lines.split('\n').filter(Boolean).map(toJournalLine)
    },
    newAddress: noWire,
    addAddress: noWire,
    clientNamespace: noWire,
    http: (method, path, ask = {}) =>
      curl(pid, method, `https://127.0.0.1:5080${path}`, { cacert: host.cacert, ...ask, from: 'loopback' }),
    startLoad({ path, token, ...order }) {
      const usual = { cacerts: [host.cacert], from: '127.0.0.1', clients: 2, pauseMs: 5, keepAlive: false }
      return startLoad(pid, { ...usual, ...order, url: `https://127.0.0.1:5080${path}` }, token)
    },
    reboot: () =>
      machine.rebootBy(() =>
        shell.run(['systemd-run', '--quiet', '--no-block', 'sh', '-c', 'sleep 0.3; systemctl reboot']),
      ),
    rebootBy: (act) => machine.rebootBy(act),
    async shutDownBy() {
      throw new Error('a machine is unplugged')
    },
    cutPower: () => machine.cutPower(),
    unplug: () => machine.unplug(),
  }
  return host
}
