import type { HostFiles } from './files.ts'

/** Names of a device in udev's hardware database, from pci.ids. */
export interface UdevNames {
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
export function parseUdevNames(text: string): UdevNames {
  const vendor = /^E:ID_VENDOR_FROM_DATABASE=(.+)$/m.exec(text)?.[1]?.trim()
  const model = /^E:ID_MODEL_FROM_DATABASE=(.+)$/m.exec(text)?.[1]?.trim()
  return { ...(vendor ? { vendor } : {}), ...(model ? { model } : {}) }
}
