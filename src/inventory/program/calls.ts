/**
 * The functions of systeminformation that are called, each in a process of its own: the library has no time limits, and
 * it may block the event loop. Never call `diskLayout`, which wakes disks, nor functions that use the network, list
 * processes or users, or start a child for each interface. `cpuCache` is not called, since lscpu itself is more exact
 * (rules/processor.ts).
 */
export const calls = [
  'system',
  'bios',
  'baseboard',
  'chassis',
  'cpu',
  'memLayout',
  'graphics',
  'usb',
  'battery',
  'cpuTemperature',
] as const

export type Call = (typeof calls)[number]

export const isCall = (name: string): name is Call => (calls as readonly string[]).includes(name)

/** Makes one call, in the process that was started for it. */
export async function answer(name: Call): Promise<unknown> {
  const library = await import('systeminformation')
  return library[name]()
}
