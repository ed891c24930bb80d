import type { Host } from '../../e2e/host/host.ts'

// The output of the machine's own tools, in the shape of the inventory; blank values are undefined.

interface Block {
  readonly name: string
  readonly type: string
  readonly size: number
  readonly model: string | null
  readonly serial: string | null
}

/** All hardware of the machine, as its tools report it. */
export async function inventoryByTools(host: Host) {
  return {
    board: await boardOf(host),
    processor: await processorOf(host),
    disks: await disksOf(host),
    nics: await nicsOf(host),
  }
}

const known = (value: string | null | undefined) => {
  const text = value?.trim() ?? ''
  return text === '' || /^(Not Specified|Unknown|Other)$/.test(text) ? undefined : text
}

async function boardOf(host: Host) {
  const dmi = async (name: string) => known(await host.output(['dmidecode', '-s', name]))
  const [month, day, year] = (await dmi('bios-release-date'))!.split('/')
  const modules = [...(await host.output(['dmidecode', '-t', '17'])).matchAll(/^\tSize: (\d+) (MB|GB)$/gm)]
  const usb = (await host.output(['lsusb'])).trim().split('\n')
  const display = /^(\S+) VGA compatible controller: /m.exec(await host.output(['lspci', '-D']))?.[1]
  return {
    system: {
      manufacturer: await dmi('system-manufacturer'),
      model: await dmi('system-product-name'),
      version: await dmi('system-version'),
    },
    bios: {
      vendor: await dmi('bios-vendor'),
      version: await dmi('bios-version'),
      releaseDate: `${year}-${month}-${day}`,
    },
    chassis: { manufacturer: await dmi('chassis-manufacturer'), version: await dmi('chassis-version') },
    memory: {
      modules: modules.map(([, size, unit]) => ({
        sizeBytes: Number(size) * 2 ** (unit === 'GB' ? 30 : 20),
      })),
    },
    usb: usb.map((line) => {
      const [, bus, device, id] = /^Bus (\d+) Device (\d+): ID (\S+)/.exec(line)!
      return { bus: Number(bus), device: Number(device), id }
    }),
    graphics: [{ address: display }],
  }
}

async function processorOf(host: Host) {
  const { lscpu } = JSON.parse(await host.output(['lscpu', '--json', '--bytes'])) as {
    lscpu: readonly { readonly field: string; readonly data: string }[]
  }
  const field = (name: string) => lscpu.find((each) => each.field === `${name}:`)?.data ?? ''
  const number = (name: string) => parseInt(field(name), 10)
  return {
    brand: field('Model name'),
    family: field('CPU family'),
    model: field('Model'),
    stepping: field('Stepping'),
    flags: field('Flags').split(' '),
    sockets: number('Socket(s)'),
    cores: number('Socket(s)') * number('Core(s) per socket'),
    threads: number('CPU(s)'),
    cacheBytes: {
      l1d: number('L1d cache'),
      l1i: number('L1i cache'),
      l2: number('L2 cache'),
      l3: number('L3 cache'),
    },
  }
}

async function disksOf(host: Host) {
  const columns = ['--nodeps', '--output', 'NAME,TYPE,SIZE,MODEL,SERIAL']
  const { blockdevices } = JSON.parse(await host.output(['lsblk', '--json', '--bytes', ...columns])) as {
    blockdevices: readonly Block[]
  }
  return blockdevices
    .filter(({ type, size }) => type === 'disk' && size > 0)
    .map(({ name, size, model, serial }) => ({
      ...{ name, sizeBytes: size, model: known(model), serial: known(serial) },
    }))
}

async function nicsOf(host: Host) {
  const names = (await host.sh('cd /sys/class/net; for nic in *; do [ ! -e $nic/device ] || echo $nic; done'))
    .trim()
    .split('\n')
  return Promise.all(
    names.map(async (name) => {
      const link = await host.output(['ethtool', name])
      const field = (label: string, text: string) => new RegExp(`^\\s*${label}: (.*)$`, 'm').exec(text)?.[1]
      const duplex = field('Duplex', link)?.toLowerCase() ?? ''
      const speed = parseInt(field('Speed', link) ?? '', 10)
      return {
        name,
        macAddr: field('Permanent address', await host.output(['ethtool', '-P', name])),
        driver: field('driver', await host.output(['ethtool', '-i', name])),
        speedMbps: speed > 0 ? speed : undefined,
        duplex: ['full', 'half'].includes(duplex) ? duplex : undefined,
      }
    }),
  )
}
