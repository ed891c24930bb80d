import { posix } from 'node:path'
import { passRefused, type HostFiles } from '../../../host/files.ts'
import { isServiceRunning } from '../../../host/services.ts'
import { ownMark } from './own-text.ts'

/** Where the time service of this host takes servers from. */
export interface TimePlace {
  /** Its unit. */
  readonly unit: string
  /** The file that edgehostd may place. */
  readonly path: string
  readonly form: 'timesyncd' | 'chrony'
  /** How the service gets to know of a change: it is restarted, or reads its sources again. */
  readonly reading: 'restart' | 'sources'
}

/** @property problem why no file can be placed, and what to do; a clause */
export type FoundTimePlace = TimePlace | { readonly problem: string }

// The last of its folder, so that it has the last word.
const fileName = 'zz-edgehostd-cluster'
const timesyncd = 'systemd-timesyncd.service'
/** Names of the unit of chrony, and its file, in Debian and elsewhere. */
const chronyUnits = ['chrony.service', 'chronyd.service']
const chronyFiles = ['/etc/chrony/chrony.conf', '/etc/chrony.conf']
const otherUnits = ['ntpsec.service', 'ntp.service', 'ntpd.service', 'openntpd.service']

/** Where a file is on hosts as Debian makes them. */
export const usualPlaces: readonly TimePlace[] = [
  {
    ...{ unit: timesyncd, form: 'timesyncd', reading: 'restart' },
    path: `/etc/systemd/timesyncd.conf.d/${fileName}.conf`,
  },
  {
    ...{ unit: 'chrony.service', form: 'chrony', reading: 'sources' },
    path: `/etc/chrony/sources.d/${fileName}.sources`,
  },
]

/** Finds the time service that runs, and the place for servers; it changes nothing. */
export async function findTimePlace(files: HostFiles): Promise<FoundTimePlace> {
  const isRunning = (unit: string) => isServiceRunning(files, unit)
  if (await isRunning(timesyncd))
    return {
      ...{ unit: timesyncd, form: 'timesyncd', reading: 'restart' },
      path: `/etc/systemd/timesyncd.conf.d/${fileName}.conf`,
    }
  for (const unit of chronyUnits) if (await isRunning(unit)) return chronyPlace(files, unit)
  for (const unit of otherUnits)
    if (await isRunning(unit))
      return {
        problem: `the time service of this host, ${unit}, has no folder for further servers; use systemd-timesyncd or chrony, or set its servers by hand`,
      }
  return {
    problem:
      'no time service runs on this host; enable systemd-timesyncd (timedatectl set-ntp true) or install chrony',
  }
}

async function chronyPlace(files: HostFiles, unit: string): Promise<FoundTimePlace> {
  for (const file of chronyFiles) {
    const text = await passRefused(files).files.text(file)
    if (text === undefined) continue
    const sources = foldersOf(text, 'sourcedir')
    if (sources !== undefined)
      return { unit, form: 'chrony', reading: 'sources', path: posix.join(sources, `${fileName}.sources`) }
    const folder = foldersOf(text, 'confdir')
    if (folder !== undefined)
      return { unit, form: 'chrony', reading: 'restart', path: posix.join(folder, `${fileName}.conf`) }
    return {
      problem: `${file} names no folder for further servers; add the line "sourcedir /etc/chrony/sources.d" and restart ${unit}`,
    }
  }
  return { problem: `${unit} runs without ${chronyFiles.join(' and ')}, so its servers cannot be changed` }
}

/** The first folder of a directive of chrony.conf(5) that outlives a start of the host. */
function foldersOf(text: string, directive: 'sourcedir' | 'confdir'): string | undefined {
  const folders = [...text.matchAll(new RegExp(`^[ \\t]*${directive}[ \\t]+(.+)$`, 'gim'))].flatMap(
    ([, places = '']) => places.trim().split(/\s+/),
  )
  return folders.find((folder) => folder.startsWith('/etc/'))
}

/** The text of the file. */
export function timeText({ form }: Pick<TimePlace, 'form'>, servers: readonly string[]): string {
  const lines =
    form === 'timesyncd'
      ? // The empty value takes away what the files before it have named, timesyncd.conf(5).
        ['[Time]', 'NTP=', `NTP=${servers.join(' ')}`]
      : // Sources of an administrator stay, and are used where none of these answers, chrony.conf(5).
        servers.map((server) => `server ${server} iburst prefer`)
  return `${[ownMark, ...lines].join('\n')}\n`
}
