import type { HostFiles } from './files.ts'
import { displayVendorOf } from './pci-vendors.ts'

/** The display controllers of one model. */
export interface Gpu {
  readonly vendor?: string
  readonly model?: string
  readonly gpuCount: number
  /** Number of the controller to its PCI address with underscores, for example `0000_11_00_0`. */
  readonly addresses: Readonly<Record<string, string>>
}

/** Reads PCI devices of class 03 (display controller); tools and drivers are not needed. */
export async function readGpus(files: HostFiles): Promise<readonly Gpu[]> {
  const folder = '/sys/bus/pci/devices'
  const models = new Map<
    string,
    { vendor: string | undefined; model: string | undefined; addresses: string[] }
  >()
  for (const address of await files.names(folder)) {
    if (!(await files.text(`${folder}/${address}/class`))?.startsWith('0x03')) continue
    const vendorId = ((await files.text(`${folder}/${address}/vendor`)) ?? '').trim()
    const deviceId = ((await files.text(`${folder}/${address}/device`)) ?? '').trim()
    const known = models.get(vendorId + deviceId)
    if (known) {
      known.addresses.push(address)
    } else {
      const model = await readModel(files, address)
      models.set(vendorId + deviceId, { vendor: displayVendorOf(vendorId), model, addresses: [address] })
    }
  }
  return [...models.values()].map(({ vendor, model, addresses }) => ({
    addresses: Object.fromEntries(addresses.map((address, index) => [index, address.replace(/[:.]/g, '_')])),
    gpuCount: addresses.length,
    ...(model ? { model } : {}),
    ...(vendor ? { vendor } : {}),
  }))
}

/** The name the driver gives: NVIDIA's in /proc, amdgpu's in `product_name` of boards that carry one. */
async function readModel(files: HostFiles, address: string): Promise<string | undefined> {
  const nvidia = await files.text(`/proc/driver/nvidia/gpus/${address}/information`)
  const model = /^Model:\s*(.+)$/m.exec(nvidia ?? '')?.[1]
  return model ?? ((await files.text(`/sys/bus/pci/devices/${address}/product_name`))?.trim() || undefined)
}
