import { posix } from 'node:path'
import type { HostFiles } from '../files.ts'
import { parseAssignments } from '../operating-system.ts'
import { ntpOf, parseTimeSources, type Ntp, type TimeSource } from './time-source.ts'

// As deep as ntp.conf(5) allows.
const maxDepth = 5

/** Reads the sources in the configuration files of ntpd (NTPsec or the older one); undefined where it is not installed. */
export async function readNtpdConfiguration(files: HostFiles): Promise<Ntp | undefined> {
  for (const path of [...(await filesOfDhcp(files)), '/etc/ntpsec/ntp.conf', '/etc/ntp.conf']) {
    const text = await files.text(path)
    if (text === undefined) continue
    // ntpd also reads the folder ntp.d beside the file, as if the file included it at its end (ntpd(8)).
    return ntpOf(await sourcesOf(files, path, `${text}\nincludefile ntp.d\n`))
  }
  return undefined
}

/** Debian's unit prefers a copy that its DHCP hook has written, with the servers of the lease. */
async function filesOfDhcp(files: HostFiles): Promise<string[]> {
  const defaults = parseAssignments((await files.text('/etc/default/ntpsec')) ?? '')
  return defaults.get('IGNORE_DHCP') === 'yes' ? [] : ['/run/ntpsec/ntp.conf.dhcp']
}

/** The sources of a file of ntp.conf(5), then those of the files and folders that it includes. */
async function sourcesOf(files: HostFiles, path: string, text: string, depth = 0): Promise<TimeSource[]> {
  const sources = parseTimeSources(text)
  if (depth === maxDepth) return sources
  for (const [, place = ''] of text.matchAll(/^[ \t]*includefile[ \t]+"?([^\s"#]+)/gm)) {
    const included = posix.resolve(posix.dirname(path), place)
    // Including a folder includes its files that end in .conf.
    const names = (await files.names(included)).filter((name) => name.endsWith('.conf'))
    for (const file of names.length > 0 ? names.map((name) => `${included}/${name}`) : [included]) {
      const text = await files.text(file)
      if (text !== undefined) sources.push(...(await sourcesOf(files, file, text, depth + 1)))
    }
  }
  return sources
}
