import type { HostFiles } from './files.ts'

/**
 * Processors the scheduler uses.
 * Source: /sys/devices/system/cpu/online (Documentation/admin-guide/cputopology.rst).
 */
export async function readCores(files: HostFiles): Promise<number> {
  const path = '/sys/devices/system/cpu/online'
  const cores = countCpuList((await files.text(path)) ?? '')
  if (cores === 0) throw new Error(`${path} lists no processor`)
  return cores
}

/** Counts a kernel CPU list such as `0-3,8,10-11`; 0 for an empty one. */
export function countCpuList(list: string): number {
  return list
    .trim()
    .split(',')
    .filter((range) => /^\d+(-\d+)?$/.test(range))
    .map((range) => range.split('-').map(Number))
    .reduce((count, [first = 0, last = first]) => count + last - first + 1, 0)
}

// Debian's names of Node's architectures (process.arch), where the two differ.
const debianNames: Readonly<Record<string, string>> = {
  x64: 'amd64',
  ia32: 'i386',
  arm: 'armhf',
  ppc64: 'ppc64el',
}

/** Debian's name of an architecture of `process.arch`. */
export function archTypeOf(nodeArch: string): string {
  return debianNames[nodeArch] ?? nodeArch
}
