import type { HostFiles } from './files.ts'

/** Names of a device in udev's hardware database, from pci.ids. */
interface UdevNames {
  /** For example `NVIDIA Corporation`. */
  readonly vendor?: string
  /** For example `GA102GL [RTX A6000]`. */
  readonly model?: string
}

/** Reads what udev stored about a PCI device at an address such as `0000:3b:00.0`; empty where udev does not run. */
export async function readUdevNames(files: HostFiles, address: string): Promise<UdevNames> {
  return parseUdevNames((await files.text(`/run/udev/data/+pci:${address}`)) ?? '')
}

/** Parses a file of /run/udev/data: properties are the lines `E:KEY=value`. */
function parseUdevNames(text: string): UdevNames {
  const vendor = /^E:ID_VENDOR_FROM_DATABASE=(.+)$/m.exec(text)?.[1]?.trim()
  const model = /^E:ID_MODEL_FROM_DATABASE=(.+)$/m.exec(text)?.[1]?.trim()
  return { ...(vendor ? { vendor } : {}), ...(model ? { model } : {}) }
}

// Names of the PCI SIG's vendor ids (https://pcisig.com/membership/member-companies): makers of NVMe controllers and
// makers of display controllers. An id that is not listed has no name.

const storage: Readonly<Record<string, string>> = {
  '0x025e': 'Solidigm',
  '0x1179': 'Toshiba',
  '0x126f': 'Silicon Motion',
  '0x1344': 'Micron',
  '0x1414': 'Microsoft',
  '0x144d': 'Samsung',
  '0x15b7': 'SanDisk',
  '0x1987': 'Phison',
  '0x1ae0': 'Google',
  '0x1bb1': 'Seagate',
  '0x1c5c': 'SK hynix',
  '0x1cc1': 'ADATA',
  '0x1d0f': 'Amazon',
  '0x1e0f': 'KIOXIA',
  '0x2646': 'Kingston',
  '0x8086': 'Intel',
  '0xc0a9': 'Micron',
}

const display: Readonly<Record<string, string>> = {
  '0x1002': 'AMD',
  '0x102b': 'Matrox',
  '0x10de': 'NVIDIA',
  '0x15ad': 'VMware',
  '0x1a03': 'ASPEED',
  '0x8086': 'Intel',
}

/** The maker of an NVMe controller, by its sysfs vendor id such as `0x144d`. */
export const storageVendorOf = (id: string): string | undefined => storage[id]

/** The maker of a display controller, by its sysfs vendor id such as `0x10de`. */
export const displayVendorOf = (id: string): string | undefined => display[id]
