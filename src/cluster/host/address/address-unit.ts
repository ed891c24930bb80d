import { isIPv4 } from 'node:net'
import { isAddress } from '../../../base/address.ts'
import { units } from '../../engine/paths.ts'
import { spellSubnet, subnetOfOne } from '../subnet.ts'

/** A virtual address and the interface that has it. */
export interface HeldAddress {
  readonly address: string
  readonly networkInterface: string
}

/** As the kernel accepts names of interfaces (net/core/dev.c, dev_valid_name), without what systemd or a shell would read. */
export const isInterfaceName = (name: string): boolean =>
  /^[A-Za-z0-9_.-]{1,15}$/.test(name) && name !== '.' && name !== '..'

/** The address with the length of one address: no route of a network comes with it, and it is not chosen as a source. */
export const heldPrefix = (address: string): string => spellSubnet(subnetOfOne(address))

/**
 * The text of the unit. It adds the address again whenever the kernel says that it was removed, as a restart of the network service
 * does. While there is no such interface it ends, and systemd starts it again.
 * @throws Error for an address or a name that could break the unit
 */
export function addressUnitText({ address, networkInterface }: HeldAddress): string {
  if (!isAddress(address) || !isInterfaceName(networkInterface))
    throw new Error(`${address} on ${networkInterface} cannot be held by a unit`)
  const prefix = heldPrefix(address)
  const place = `${prefix} dev ${networkInterface}`
  const add = `ip address replace ${place}${isIPv4(address) ? '' : ' nodad preferred_lft 0'}`
  const removed = `"Deleted "*" ${prefix} "*`
  return `# Written by edgehostd for its cluster; removed when the cluster is deleted.
[Unit]
Description=Virtual address ${address} of the cluster of edgehostd
After=network-pre.target systemd-networkd.service NetworkManager.service networking.service
Before=${units.kubelet} ${units.containerd}
StartLimitIntervalSec=0

[Service]
ExecStartPre=/bin/sh -c 'exec ${add}'
ExecStart=/bin/sh -c 'ip -oneline monitor address dev ${networkInterface} | while read -r line; do case "$$line" in ${removed}) ${add} || kill 0;; esac; done'
ExecStopPost=-/bin/sh -c 'exec ip address delete ${place}'
Restart=always
RestartSec=1
TimeoutStopSec=5

[Install]
WantedBy=multi-user.target
`
}
