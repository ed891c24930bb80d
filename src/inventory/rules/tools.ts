import type { Static } from 'typebox'
import type { Inventory } from '../schemas.ts'

export type Condition = NonNullable<Static<typeof Inventory>['conditions']>[number]

/** Optional programs, the Debian package of each, and the part of the inventory that is incomplete without it. */
export const tools = {
  dmidecode: { packageName: 'dmidecode', type: 'memory' },
  lspci: { packageName: 'pciutils', type: 'graphics' },
  lsusb: { packageName: 'usbutils', type: 'usb' },
  smartctl: { packageName: 'smartmontools', type: 'disks' },
  ethtool: { packageName: 'ethtool', type: 'nics' },
} as const

export type Tool = keyof typeof tools

/** The condition for a tool that is not installed although this machine has devices for it. */
export function toolMissing(tool: Tool): Condition {
  const { packageName, type } = tools[tool]
  const message = `${tool} is not installed; for the rest of this part: apt install ${packageName}`
  return { type, status: 'False', reason: 'ToolMissing', message }
}

/** The reason of `cannotBeRead`. */
export const cannotBeReadReason = 'CannotBeRead'

/** The condition for a part, or a source of it, that cannot be read. */
export const cannotBeRead = (type: string, message: string): Condition => ({
  type,
  status: 'False',
  reason: cannotBeReadReason,
  message,
})

/** The condition for more devices of a kind than are read. */
export const tooMany = (type: string, most: number, count: number): Condition => ({
  type,
  status: 'False',
  reason: 'TooMany',
  message: `only the first ${most} of ${count} are read`,
})
