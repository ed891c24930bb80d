/**
 * The functions of systeminformation that are called, each in a process of its own: it has no limit of time, and it may
 * wait in the event loop. Never `diskLayout`, which wakes disks, nor what asks the network, lists processes or users, or
 * starts a child for each interface. `cpuCache` is left out for what lscpu says itself (rules/processor.ts).
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

/** Answers one call, in the process that was started for it. */
export async function answer(name: Call): Promise<unknown> {
  const library = await import('systeminformation')
  return library[name]()
}
