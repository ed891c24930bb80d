import type { HostFiles } from '../host/files.ts'

// Disks and network interfaces beside the buses: a card may get its interface later than its device, a reader its medium.
const folders = ['/sys/bus/usb/devices', '/sys/bus/pci/devices', '/sys/block', '/sys/class/net']

/** The present hardware, as a text that changes when a device is added or removed; devices of pods and volumes are left out. */
export async function listDevices(files: HostFiles): Promise<string> {
  const found: string[] = []
  for (const folder of folders)
    for (const name of await files.names(folder)) {
      const path = await files.link(`${folder}/${name}`)
      if (path && !path.startsWith('/sys/devices/virtual/')) found.push(path)
    }
  return found.join('\n')
}
