import { type HostFiles, passRefused } from './files.ts'

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

/**
 * Bytes of memory the kernel manages: MemTotal of /proc/meminfo, proc_meminfo(5).
 * @throws Error where the line is missing
 */
export async function readTotalMemory(files: HostFiles): Promise<number> {
  const kibibytes = /^MemTotal:\s+(\d+) kB$/m.exec((await files.text('/proc/meminfo')) ?? '')?.[1]
  if (kibibytes === undefined) throw new Error('/proc/meminfo has no MemTotal')
  return Number(kibibytes) * 1_024
}

/** Whole MiB, rounded down. */
export function toMiB(bytes: number): number {
  return Math.floor(bytes / 2 ** 20)
}

/** Whole GiB, rounded to the nearest. */
export function toGiB(bytes: number): number {
  return Math.round(bytes / 2 ** 30)
}

// EFI_GLOBAL_VARIABLE (UEFI specification 3.3).
const folder = '/sys/firmware/efi/efivars'
const vendor = '8be4df61-93ca-11d2-aa0d-00e098032b8c'

/**
 * Reads whether UEFI Secure Boot was on at the start. As the kernel decides it (drivers/firmware/efi): the variable
 * SecureBoot is 1, and SetupMode, in which no signature is checked, is not; firmware without the variable has no Secure
 * Boot. The value cannot change while the host runs, and each reading is a call of the firmware.
 * @returns undefined without EFI, or where its variables cannot be read
 */
export async function readSecureBoot(files: HostFiles): Promise<boolean | undefined> {
  const text = await files.text(`${folder}/SecureBoot-${vendor}`)
  if (text === undefined) {
    const names = await files.names(folder)
    return names.length > 0 && !names.includes(`SecureBoot-${vendor}`) ? false : undefined
  }
  const secureBoot = parseEfiFlag(text)
  const setupMode = parseEfiFlag((await files.text(`${folder}/SetupMode-${vendor}`)) ?? '')
  return secureBoot === undefined ? undefined : secureBoot && setupMode !== true
}

/**
 * The flag in a file of efivarfs (Documentation/filesystems/efivarfs.rst): four bytes of attributes, one of data.
 * Reading it as text loses no byte: a byte that is not UTF-8 becomes one replacement character.
 */
export function parseEfiFlag(text: string): boolean | undefined {
  return text.length < 5 ? undefined : text.charCodeAt(4) === 1
}

/** Distribution and kernel. */
export interface OperatingSystem {
  /** `ID` of os-release, for example `debian`. */
  readonly family: string
  /** `VERSION_ID` of os-release, for example `12`; rolling distributions have none. */
  readonly version?: string
  /** For example `Linux`. */
  readonly kernel?: string
  /** The release, as `uname -r` prints it. */
  readonly kernelVersion?: string
}

/** Reads os-release(5) and the kernel's name. */
export async function readOperatingSystem(all: HostFiles): Promise<OperatingSystem> {
  const { files } = passRefused(all)
  const release = (await files.text('/etc/os-release')) ?? (await files.text('/usr/lib/os-release'))
  const kernel = (await files.text('/proc/sys/kernel/ostype'))?.trim()
  const kernelVersion = (await files.text('/proc/sys/kernel/osrelease'))?.trim()
  return {
    ...distributionOf(parseAssignments(release ?? '')),
    ...(kernel ? { kernel } : {}),
    ...(kernelVersion ? { kernelVersion } : {}),
  }
}

/** Reads the current host name; it may change while the daemon runs. */
export async function readHostName(files: HostFiles): Promise<string> {
  const name = (await files.text('/proc/sys/kernel/hostname'))?.trim()
  if (!name) throw new Error('/proc/sys/kernel/hostname is empty')
  return name
}

/** A derivative without an ID of its own counts as the distribution in ID_LIKE; `linux` is the default of os-release(5). */
function distributionOf(release: ReadonlyMap<string, string>): Pick<OperatingSystem, 'family' | 'version'> {
  const family = release.get('ID') || release.get('ID_LIKE')?.split(/\s+/)[0] || 'linux'
  const version = release.get('VERSION_ID')
  return { family, ...(version ? { version } : {}) }
}

/** Parses `KEY=value` lines with shell quoting, as os-release(5) and systemd's state files have them. */
export function parseAssignments(text: string): ReadonlyMap<string, string> {
  const values = new Map<string, string>()
  for (const line of text.split('\n')) {
    const match = /^\s*([A-Za-z_][A-Za-z0-9_]*)=(.*?)\s*$/.exec(line)
    if (match) values.set(match[1] ?? '', unquote(match[2] ?? ''))
  }
  return values
}

function unquote(value: string): string {
  const single = /^'(.*)'$/.exec(value)
  if (single) return single[1] ?? ''
  const double = /^"(.*)"$/.exec(value)
  return (double?.[1] ?? value).replace(/\\(["$`\\'])/g, '$1')
}
