import { findTimePlace, timeText, type TimeOwner } from '../cluster/host/ntp-servers.ts'
import type { HostFiles } from '../host/files.ts'
import type { HostTime } from './schemas.ts'

/** The servers of the host itself; a cluster, whose file comes after it, has the last word. */
export const timeOwner: TimeOwner = {
  fileName: 'zy-edgehostd-host',
  mark: '# Written by edgehostd: edgehostctl host time.',
}

/** The time servers that were set here, and the service that takes them. */
export async function readHostTime(files: HostFiles): Promise<HostTime> {
  const place = await findTimePlace(files, timeOwner)
  if ('problem' in place) return { ntpServers: [], problem: place.problem }
  const text = (await files.text(place.path)) ?? ''
  const words = text.startsWith(`${timeOwner.mark}\n`)
    ? [...text.matchAll(place.form === 'timesyncd' ? /^NTP=(.*)$/gm : /^server (\S+)/gm)]
    : []
  const ntpServers = words.flatMap(([, value = '']) => value.split(' ')).filter((each) => each !== '')
  // A text of ours that says something else was edited by hand.
  const isWhole = ntpServers.length === 0 || text === timeText(place, ntpServers, timeOwner)
  return {
    ntpServers,
    service: place.unit,
    ...(isWhole ? {} : { problem: `${place.path} was edited by hand; setting the servers replaces it` }),
  }
}
