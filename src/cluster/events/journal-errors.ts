import { maskShapes } from '../../base/mask.ts'
import type { Event } from './schemas.ts'

type Fields = Readonly<Record<string, unknown>>

/**
 * Parses entries of the journal, `journalctl --output=json` (systemd.io/JOURNAL_EXPORT_FORMATS, "Journal JSON Format"). Text that looks
 * like a secret is masked, and what `hide` knows: kubelet and containerd write what they were given.
 */
export function parseJournalErrors(text: string, hide: (text: string) => string): Event[] {
  return text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => eventOf(JSON.parse(line) as Fields, hide))
}

function eventOf(entry: Fields, hide: (text: string) => string): Event {
  const field = (name: string) => (typeof entry[name] === 'string' ? entry[name] : '')
  const host = field('_HOSTNAME')
  const cursor = field('__CURSOR')
  return {
    metadata: {
      ...{ uid: cursor, name: cursor, number: 0 },
      creationTimestamp: new Date(Number(field('__REALTIME_TIMESTAMP')) / 1_000).toISOString(),
    },
    // Lines of systemd about a unit name it in UNIT.
    involvedObject: { kind: 'Unit', name: field('UNIT') || field('_SYSTEMD_UNIT') },
    reason: 'LogError',
    message: maskShapes(hide(messageOf(entry.MESSAGE))),
    severity: 'Error',
    source: { component: componentOf(field), ...(host && { host }) },
  }
}

/** The program of edgehostd is node, so its unit names it. */
const componentOf = (field: (name: string) => string) =>
  /^(.+)\.service$/.exec(field('_SYSTEMD_UNIT'))?.[1] ?? field('SYSLOG_IDENTIFIER')

/** A message is null where it is too long, and a list of bytes where it is not printable text. */
function messageOf(value: unknown): string {
  if (typeof value === 'string') return ownMessageOf(value) ?? value
  if (value === null) return '(too long to be shown here; journalctl --all shows it)'
  if (!Array.isArray(value)) return ''
  const isBytes = value.every((each) => typeof each === 'number')
  return isBytes ? Buffer.from(value).toString() : value.map(messageOf).join(' ')
}

/** What a line of edgehostd says: its message and the error. Undefined for lines of other programs. */
function ownMessageOf(line: string): string | undefined {
  if (!line.startsWith('{"level":')) return undefined
  try {
    const { msg, err } = JSON.parse(line) as { msg?: unknown; err?: { message?: unknown } }
    return [msg, err?.message].filter((each) => typeof each === 'string').join(': ')
  } catch {
    return undefined
  }
}
