import { mkdir, rm, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import {
  asNetworkHost,
  giveLinksTo,
  neighbourNetworks,
  startDhcp,
  type NetworkHost,
  type Owner,
} from '../../e2e/host/network-host.ts'
import { lowerFolder } from '../../e2e/host/roots.ts'
import { makeImage, type Recipe } from './image.ts'
import { asHost } from './machine-host.ts'
import { startMachine } from './machine.ts'

// A machine for changes of the network that need a kernel of their own, with bonds and VLANs. Its neighbour is at the other end of its cables, in the
// network namespace of QEMU.

/** Of host0, which has the management address, of eth1 in the same network without an address, and of eth2 in another one. */
const cables = [
  { slot: 16, bridge: 'edge0' },
  { slot: 17, bridge: 'edge0' },
  { slot: 18, bridge: 'edge1' },
]

const prepare = `${neighbourNetworks}
${cables
  .map(({ bridge }, at) => `ip tuntap add tap${at} mode tap; ip link set tap${at} master ${bridge} up`)
  .join('\n')}`

// A card that names no speed is no member of a bond of the mode 802.3ad.
const nics = cables.flatMap(({ slot }, at) => [
  ...['-netdev', `tap,id=net${at},ifname=tap${at},script=no,downscript=no`],
  '-device',
  `virtio-net-pci,id=nic${at},netdev=net${at},mac=02:fc:00:00:00:${slot},bus=pcie.0,addr=0x${slot.toString(16)},speed=1000,duplex=full`,
])

const recipe: Recipe = {
  name: 'network-machine',
  tree: () => lowerFolder('network-machine'),
  async prepare(root) {
    // Who owns the links is for the test.
    const wants = ['multi-user', 'network-online', 'sockets', 'sysinit', 'timers', 'network']
    for (const each of wants)
      await rm(join(root, `etc/systemd/system/${each}.target.wants`), { recursive: true, force: true })
    // Python asks for it, and the kernel of the machine has no module of it.
    for (const each of ['systemd-binfmt.service', 'proc-sys-fs-binfmt_misc.automount'])
      await symlink('/dev/null', join(root, 'etc/systemd/system', each))
    await mkdir(join(root, 'etc/systemd/network'), { recursive: true })
    await writeFile(
      join(root, 'etc/systemd/network/10-host0.link'),
      '[Match]\nOriginalName=eth0\n[Link]\nName=host0\n',
    )
  },
}

/** Starts a machine with a package, whose links a backend owns. It boots again, and the power may be cut. */
export async function startNetworkMachine(backend: Owner, deb: string): Promise<NetworkHost> {
  const image = await makeImage(deb, recipe)
  const machine = await startMachine({
    image,
    prepare,
    hardware: async () => nics,
    kernelArguments: 'net.ifnames=0',
    reboots: true,
  })
  const host = { ...asHost(machine), clientNamespace: () => machine.pid }
  const dhcp = await startDhcp(machine.pid)
  const network: NetworkHost = {
    ...(await asNetworkHost(host)),
    async unplug() {
      dhcp.kill('SIGKILL')
      await machine.unplug()
    },
  }
  try {
    await giveLinksTo(network, backend)
  } catch (error) {
    const shown = `${await network.sh('ip address; journalctl --no-pager -n 60')}\n${machine.console()}`
    await network.unplug()
    throw new Error(`the links do not come up:\n${shown}`, { cause: error })
  }
  return network
}
