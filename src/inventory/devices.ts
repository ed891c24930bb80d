import type { HostFiles } from '../host/files.ts'

// Those of network cards and disks beside the buses: a card may bring its interface later, a reader its medium.
const folders = ['/sys/bus/usb/devices', '/sys/bus/pci/devices', '/sys/block', '/sys/class/net']

/** The hardware that is there, as a text that changes when some of it comes or goes; what pods and volumes bring is not. */
export async function listDevices(files: HostFiles): Promise<string> {
  const found: string[] = []
  for (const folder of folders)
    for (const name of await files.names(folder)) {
      const path = await files.link(`${folder}/${name}`)
      if (path && !path.startsWith('/sys/devices/virtual/')) found.push(path)
    }
  return found.join('\n')
}
