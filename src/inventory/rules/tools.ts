import type { Static } from 'typebox'
import type { Inventory } from '../schemas.ts'

export type Condition = NonNullable<Static<typeof Inventory>['conditions']>[number]

/** Programs that a host need not have, the Debian package of each, and the part of the inventory that lacks without. */
export const tools = {
  dmidecode: { packageName: 'dmidecode', type: 'memory' },
  lspci: { packageName: 'pciutils', type: 'graphics' },
  lsusb: { packageName: 'usbutils', type: 'usb' },
  smartctl: { packageName: 'smartmontools', type: 'disks' },
  ethtool: { packageName: 'ethtool', type: 'nics' },
} as const

export type Tool = keyof typeof tools

/** A tool is not there that this machine has something for. */
export function toolMissing(tool: Tool): Condition {
  const { packageName, type } = tools[tool]
  const message = `${tool} is not installed; for the rest of this part: apt install ${packageName}`
  return { type, status: 'False', reason: 'ToolMissing', message }
}

/** The reason of `cannotBeRead`. */
export const cannotBeReadReason = 'CannotBeRead'

/** Something gave no answer. */
export const cannotBeRead = (type: string, message: string): Condition => ({
  ...{ type, status: 'False', reason: cannotBeReadReason },
  message,
})
