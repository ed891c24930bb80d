/** The time servers of this host, by name or address, and how it polls them. */
export interface Ntp extends PollFigures {
  readonly fallbackNtpServers: readonly string[]
  readonly ntpServers: readonly string[]
}

/** Seconds as text, as timesyncd.conf(5) accepts them without a unit. A figure that the host does not state is absent. */
export interface PollFigures {
  readonly connectionRetrySec?: string
  readonly pollIntervalMaxSec?: string
  readonly pollIntervalMinSec?: string
  readonly rootDistanceMaxSec?: string
  readonly saveIntervalSec?: string
}

/** The time servers of this host, and why the service could not be asked. */
export interface NtpReading {
  readonly ntp: Ntp
  readonly problems: readonly string[]
}

/** A server, pool or peer as a configuration file names it. */
export interface TimeSource {
  readonly name: string
  /** Power of two, in seconds. */
  readonly minpoll?: number
  readonly maxpoll?: number
}

/** Parses the lines that chrony.conf(5) and ntp.conf(5) have in common. Reference clocks of ntpd (127.127.x.y) are left out. */
export function parseTimeSources(text: string): TimeSource[] {
  return [...text.matchAll(/^[ \t]*(?:server|pool|peer)[ \t]+(?:-[46][ \t]+)?([^\s#]+)([^#\n]*)/gim)]
    .map(([, name = '', options = '']) => ({
      name,
      ...poll('minpoll', options),
      ...poll('maxpoll', options),
    }))
    .filter(({ name }) => !name.startsWith('127.127.'))
}

/** Sums up the sources of a configuration. A poll figure is stated only where all sources state the same. */
export function ntpOf(sources: readonly TimeSource[]): Ntp {
  return {
    ...figuresOf({
      pollIntervalMaxSec: agreed(sources.map(({ maxpoll }) => maxpoll)),
      pollIntervalMinSec: agreed(sources.map(({ minpoll }) => minpoll)),
    }),
    fallbackNtpServers: [],
    ntpServers: unique(sources.map(({ name }) => name)),
  }
}

/** The known figures, in seconds, as text. */
export function figuresOf(seconds: { readonly [Key in keyof PollFigures]: number | undefined }): PollFigures {
  const known = Object.entries(seconds).filter(([, value]) => value !== undefined)
  return Object.fromEntries(known.map(([key, value]) => [key, String(value)]))
}

export function words(text: string): string[] {
  return text.split(/\s+/).filter((word) => word !== '')
}

export function unique(values: readonly string[]): string[] {
  return [...new Set(values)]
}

function poll(key: 'minpoll' | 'maxpoll', options: string): Pick<TimeSource, typeof key> {
  const [, value] = new RegExp(`(?:^|\\s)${key}\\s+(-?\\d+)(?:\\s|$)`, 'i').exec(options) ?? []
  return value === undefined ? {} : { [key]: Number(value) }
}

function agreed(powers: readonly (number | undefined)[]): number | undefined {
  const [power, ...others] = new Set(powers)
  return power === undefined || others.length > 0 ? undefined : 2 ** power
}
