import { passRefused, type HostFiles } from './files.ts'

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
