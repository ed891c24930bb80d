import { access } from 'node:fs/promises'
import { basename } from 'node:path'
import { ask } from '../../host/ask.ts'
import type { HostFiles } from '../../host/files.ts'
import { readDisks } from '../../host/storage/disks.ts'
import type { CommandRunner } from '../../system/runner.ts'
import { rawOf, textOf, type Raw } from '../rules/clean.ts'
import {
  blocksOf,
  diskOf,
  smartProblem,
  batteryOf,
  biosOf,
  boardOf,
  chassisOf,
  graphicsOf,
  memoryOf,
  systemOf,
  temperatureOf,
  usbOf,
  nicOf,
  processorOf,
} from '../rules/hardware.ts'
import { cannotBeRead, tooMany, toolMissing, type Condition, type Tool } from '../rules/tools.ts'
import type { Hardware } from '../schemas.ts'

/** Does the work for each item of a list, `atOnce` at a time; returns the results in the order of the list. */
async function inParallel<T, Result>(
  atOnce: number,
  list: readonly T[],
  work: (item: T) => Promise<Result>,
): Promise<Result[]> {
  const results: Result[] = []
  const queue = list.entries()
  const worker = async () => {
    for (const [index, item] of queue) results[index] = await work(item)
  }
  await Promise.all(Array.from({ length: atOnce }, worker))
  return results
}

/**
 * The functions of systeminformation that are called, each in a process of its own: the library has no time limits, and
 * it may block the event loop. Never call `diskLayout`, which wakes disks, nor functions that use the network, list
 * processes or users, or start a child for each interface. `cpuCache` is not called, since lscpu itself is more exact
 * (rules/hardware.ts).
 */
const calls = [
  'system',
  'bios',
  'baseboard',
  'chassis',
  'cpu',
  'memLayout',
  'graphics',
  'usb',
  'battery',
  'cpuTemperature',
] as const

type Call = (typeof calls)[number]

export const isCall = (name: string): name is Call => (calls as readonly string[]).includes(name)

/** Makes one call, in the process that was started for it. */
export async function answer(name: Call): Promise<unknown> {
  const library = await import('systeminformation')
  return library[name]()
}

interface ReadHardwareOptions {
  readonly runner: CommandRunner
  readonly files: HostFiles
  /** Path of `inventory.cjs`, which answers the calls of systeminformation. */
  readonly program: string
  /** Whether a tool is installed; by default this checks the folders in which the runner finds programs. */
  readonly hasTool?: (tool: Tool) => Promise<boolean>
  /** Time limit of each child: a call, a disk, a card. */
  readonly timeoutMs?: number
}

const most = { disks: 128, nics: 128 }
// Each call is a process of some 60 MiB, so few run at once; reading a disk is mostly waiting. Where every card hangs, it still
// ends in half of the program's time.
const atOnce = { calls: 2, disks: 8, nics: 8 }
// Ethernet, Wi-Fi and InfiniBand, of if_arp.h; a CAN bus is no network card.
const kinds: readonly string[] = ['1', '32']
// Controllers whose disks smartctl does not support.
const withoutSmart: readonly unknown[] = ['VIRTIO', 'MMC']

/** Reads the hardware; a part that cannot be read is absent, and a condition says why. */
export async function readHardware(options: ReadHardwareOptions): Promise<Hardware> {
  const { runner, files, program, hasTool = isInstalled, timeoutMs = 10_000 } = options
  const conditions: Condition[] = []

  /** The output of a tool; undefined, with a condition, where it failed. */
  async function run(type: string, tool: string, args: readonly string[]): Promise<string | undefined> {
    const answer = await ask(runner, tool, args, timeoutMs)
    if ('stdout' in answer) return answer.stdout
    conditions.push(cannotBeRead(type, textOf(answer.problem) ?? `${tool} has no answer`))
    return undefined
  }

  /** Parses the answer of a tool; undefined where there is none, and, with a condition, where it is not JSON. */
  function parse(type: string, tool: string, json: string | undefined): unknown {
    if (json === undefined) return undefined
    try {
      return JSON.parse(json)
    } catch {
      conditions.push(cannotBeRead(type, `${tool}: the answer is not JSON`))
      return undefined
    }
  }

  /** The entries that are read; adds a condition where there are more. */
  function firstOf<T>(type: keyof typeof most, list: readonly T[]): readonly T[] {
    if (list.length > most[type]) conditions.push(tooMany(type, most[type], list.length))
    return list.slice(0, most[type])
  }

  /** Whether a tool is of use and installed; adds a condition where it would be of use but is not installed. */
  async function has(tool: Tool, isOfUse: boolean): Promise<boolean> {
    if (!isOfUse) return false
    if (await hasTool(tool)) return true
    conditions.push(toolMissing(tool))
    return false
  }

  const call = async (type: string, name: Call): Promise<unknown> => {
    const answer = await ask(runner, process.execPath, [program, name], timeoutMs)
    if ('stdout' in answer) return parse(type, `systeminformation ${name}()`, answer.stdout)
    // The path of the program does not help the operator.
    const problem = answer.problem.replace(/^.*? exit code/, 'exit code').replace(/^\S+node: /, '')
    conditions.push(cannotBeRead(type, `systeminformation ${name}(): ${textOf(problem) ?? 'no answer'}`))
    return undefined
  }

  async function readDisk(
    disk: Awaited<ReturnType<typeof readDisks>>[number],
    block: Raw,
    hasSmart: boolean,
  ) {
    const isAsked = hasSmart && !withoutSmart.includes(disk.controller)
    const smart = isAsked ? await readSmart(disk.name) : {}
    return diskOf({ disk, block, smart })
  }

  /** The exit code of smartctl is not checked as a whole: most of its bits are about the disk, not about the reading. */
  async function readSmart(name: string): Promise<Raw> {
    const args = ['--nocheck=standby', '--all', '--json', `/dev/${name}`]
    try {
      const { stdout } = await runner.run('smartctl', args, { timeoutMs })
      const smart = rawOf(parse('disks', `smartctl /dev/${name}`, stdout))
      const problem = smartProblem(smart)
      if (problem !== undefined) conditions.push(cannotBeRead('disks', `smartctl /dev/${name}: ${problem}`))
      return smart
    } catch (error) {
      conditions.push(cannotBeRead('disks', `/dev/${name}: ${(error as Error).message}`))
      return {}
    }
  }

  async function readDisksOfHost() {
    const disks = firstOf('disks', await readDisks(files, []))
    if (disks.length === 0) return []
    const columns = 'NAME,SIZE,MODEL,SERIAL,REV,ROTA'
    const lsblk = await run('disks', 'lsblk', ['--json', '--bytes', '--nodeps', '--output', columns])
    const blocks = blocksOf(parse('disks', 'lsblk', lsblk))
    const mayHaveSmart = disks.some(({ controller }) => !withoutSmart.includes(controller))
    const hasSmart = await has('smartctl', mayHaveSmart)
    return inParallel(atOnce.disks, disks, (disk) => readDisk(disk, blocks.get(disk.name) ?? {}, hasSmart))
  }

  async function readNics() {
    const names: string[] = []
    for (const name of await files.names('/sys/class/net')) {
      // Interfaces without hardware are virtual devices. A name that begins with a dash would be an option of ethtool.
      const path = await files.link(`/sys/class/net/${name}`)
      const isHardware = path !== undefined && !path.startsWith('/sys/devices/virtual/')
      const kind = (await files.text(`/sys/class/net/${name}/type`))?.trim() ?? ''
      if (isHardware && kinds.includes(kind) && !name.startsWith('-')) names.push(name)
    }
    const hasEthtool = await has('ethtool', names.length > 0)
    return inParallel(atOnce.nics, firstOf('nics', names), async (name) => {
      const file = (each: string) => files.text(`/sys/class/net/${name}/${each}`)
      const driver = await files.link(`/sys/class/net/${name}/device/driver`)
      // No condition where this fails: some drivers do not support it.
      const answer = hasEthtool ? await ask(runner, 'ethtool', ['--driver', name], timeoutMs) : undefined
      return nicOf({
        name,
        // A member of a bond has the address of the bond.
        address: (await file('bonding_slave/perm_hwaddr')) ?? (await file('address')),
        speed: await file('speed').catch(() => undefined),
        duplex: await file('duplex').catch(() => undefined),
        driver: driver && basename(driver),
        ethtool: answer && 'stdout' in answer ? answer.stdout : undefined,
      })
    })
  }

  const dmi = (name: string) => files.text(`/sys/class/dmi/id/${name}`)
  const board = (await files.text('/proc/device-tree/model'))?.replace(/\0.*$/s, '')
  const hasDmi = (await files.names('/sys/class/dmi/id')).length > 0
  const hasDmidecode = await has('dmidecode', hasDmi)
  const hasDisplay = await hasDisplayController(files)
  await has('lspci', hasDisplay)
  const wanted: readonly (readonly [type: string, name: Call, isWanted: boolean])[] = [
    ['system', 'system', true],
    ['board', 'baseboard', true],
    ['chassis', 'chassis', hasDmi],
    ['bios', 'bios', hasDmi],
    ['processor', 'cpu', true],
    ['memory', 'memLayout', hasDmidecode],
    ['graphics', 'graphics', hasDisplay],
    ['usb', 'usb', await has('lsusb', (await files.names('/sys/bus/usb/devices')).length > 0)],
    ['battery', 'battery', (await files.names('/sys/class/power_supply')).length > 0],
    ['temperature', 'cpuTemperature', true],
  ]
  const [answers, lscpu, topology, disks, nics] = await Promise.all([
    inParallel(atOnce.calls, wanted, async ([type, name, isWanted]) => [
      name,
      isWanted ? await call(type, name) : undefined,
    ]).then((pairs) => Object.fromEntries(pairs) as Readonly<Record<Call, unknown>>),
    run('processor', 'lscpu', ['--json', '--bytes']),
    run('processor', 'lscpu', ['--parse=CORE,SOCKET']),
    readDisksOfHost(),
    readNics(),
  ])
  return {
    ...systemOf(rawOf(answers.system), (await dmi('product_name')) ?? board),
    ...boardOf(rawOf(answers.baseboard)),
    ...chassisOf(rawOf(answers.chassis)),
    ...biosOf(rawOf(answers.bios), await dmi('bios_date')),
    ...processorOf({
      cpu: rawOf(answers.cpu),
      lscpu: rawOf(parse('processor', 'lscpu', lscpu)),
      topology,
    }),
    ...memoryOf(answers.memLayout),
    graphics: graphicsOf(answers.graphics),
    usb: usbOf(answers.usb),
    ...batteryOf(rawOf(answers.battery)),
    ...temperatureOf(rawOf(answers.cpuTemperature), await hasSilentSensor(files)),
    disks,
    nics,
    ...(conditions.length > 0 ? { conditions } : {}),
  }
}

/** Whether a labelled sensor of the processor gives no value, Documentation/hwmon/sysfs-interface.rst of the kernel. */
export async function hasSilentSensor(files: HostFiles): Promise<boolean> {
  for (const monitor of await files.names('/sys/class/hwmon'))
    for (const name of await files.names(`/sys/class/hwmon/${monitor}`)) {
      const path = `/sys/class/hwmon/${monitor}/${name}`
      if (!/^temp\d+_label$/.test(name)) continue
      const label = await files.text(path)
      if (label === undefined || !/^(?:core|package|physical|tctl|tdie|tccd1)/i.test(label)) continue
      const value = await files.text(path.replace(/label$/, 'input')).catch(() => undefined)
      if (value === undefined || value.trim() === '') return true
    }
  return false
}

/** Whether there is a PCI device of class 03, display controller. */
async function hasDisplayController(files: HostFiles): Promise<boolean> {
  for (const address of await files.names('/sys/bus/pci/devices'))
    if ((await files.text(`/sys/bus/pci/devices/${address}/class`))?.startsWith('0x03')) return true
  return false
}

/** Checks the folders in which the runner finds programs. */
async function isInstalled(tool: Tool): Promise<boolean> {
  const folders = ['/usr/sbin', '/usr/bin', '/sbin', '/bin']
  const found = await Promise.allSettled(folders.map((folder) => access(`${folder}/${tool}`)))
  return found.some(({ status }) => status === 'fulfilled')
}
